/* SPDX-License-Identifier: Apache-2.0
 *
 * Between cuCheckpointProcess* in one process and the service thread of another: a page in a memfd
 * that the caller finds in /proc/PID/fd, and a socket whose number the page names, taken with
 * pidfd_getfd. No path is involved, so it works across containers, and CRIU restores both ends.
 * With each request comes a socket for its answer; it closes when the caller or the process ends.
 */
#pragma once

#include "softgpu.h"

#define CONTROL_NAME "softgpu-control"
#define CONTROL_MAGIC 0x3175706774666f73ull /* "softgpu1" */

struct control_page {
	uint64_t magic;
	int32_t pid, tid; /* as the process itself sees them */
	int32_t peer;	  /* number of the caller's end of the socket */
};

#define MAX_PAIRS 8

struct control_request {
	uint32_t operation;
	uint32_t timeout_ms;
	uint32_t pair_count;
	CUcheckpointGpuPair pairs[MAX_PAIRS];
};

struct control_answer {
	int32_t result;
	int32_t state;
};
