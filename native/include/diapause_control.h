/* SPDX-License-Identifier: Apache-2.0
 *
 * The control channel between libdiapause-cuda.so in a process and the tools on the host.
 *
 * The library holds a sealed memfd called DIAPAUSE_PAGE_NAME, one struct diapause_page long, and
 * both ends of a SOCK_SEQPACKET pair. A tool finds the memfd among the file descriptors of the
 * process, takes the end whose number the page tells (pidfd_getfd), sends one frame a request and
 * gets one frame an answer. The same layout is in runtime/engine/control.
 *
 * Everything is little endian. The major number changes when an older side would misunderstand; a
 * tool speaks its own major and the one before. New ops and counters only raise the minor number.
 */
#ifndef DIAPAUSE_CONTROL_H
#define DIAPAUSE_CONTROL_H

#include <stdint.h>

#define DIAPAUSE_MAJOR 1
#define DIAPAUSE_MAJOR_OLDEST 1 /* the oldest that this side answers */
#define DIAPAUSE_MINOR 0

#define DIAPAUSE_PAGE_NAME "diapause-control-v1"
#define DIAPAUSE_PAGE_SIZE 4096
#define DIAPAUSE_PAGE_MAGIC 0x3153554150414944ull /* "DIAPAUS1" */

enum diapause_counter {
	DIAPAUSE_COUNT_INIT,	  /* successful cuInit calls */
	DIAPAUSE_COUNT_RESOLVED,  /* cuGetProcAddress answers that lead to an entry of ours */
	DIAPAUSE_COUNT_LOOKED_UP, /* dlsym answers that were exchanged for an entry of ours */
	DIAPAUSE_COUNT_REFUSED,	  /* unknown variants of replaced functions: not found */
	DIAPAUSE_COUNT_ANSWERED,  /* requests answered with status 0 */
	DIAPAUSE_COUNT_REJECTED,  /* requests answered with another status */
	DIAPAUSE_COUNT_DROPPED,	  /* messages that were no request at all */
	DIAPAUSE_COUNT_FOREIGN,	  /* cuGetProcAddress answers that are no exported function: passed on */
	DIAPAUSE_COUNTERS
};

struct diapause_page {
	uint64_t magic; /* written last */
	uint32_t major;
	uint32_t minor;
	int32_t pid;   /* the owner as it sees itself; a child that inherited the page differs */
	int32_t peer;  /* number of the tool's end, -1: nobody answers any more */
	uint32_t gate; /* 0: open */
	uint32_t reserved;
	uint64_t counters[DIAPAUSE_COUNTERS];
};

#define DIAPAUSE_FRAME_MAGIC 0x46504944u /* "DIPF" */
#define DIAPAUSE_FRAME_MAX 65536	 /* header and payload */
#define DIAPAUSE_FRAME_FDS 16

/* An epoch is one use of the channel by one tool: hello begins it, and a request of another epoch
 * is refused. A request that comes twice with the same epoch and seq gets the same answer twice. */
struct diapause_frame {
	uint32_t magic;
	uint16_t major;
	uint16_t minor;
	uint16_t op;
	uint16_t nfds; /* file descriptors that travel with the frame */
	uint32_t epoch;
	uint32_t seq;
	uint32_t len;	   /* bytes after the header */
	uint32_t status;   /* 0 in a request */
	uint32_t reserved; /* 0 */
};

enum diapause_op {
	DIAPAUSE_OP_HELLO = 1,	  /* → struct diapause_hello */
	DIAPAUSE_OP_COUNTERS = 2, /* → uint64_t[], as many as the library has */
};

enum diapause_status {
	DIAPAUSE_OK = 0,
	DIAPAUSE_BAD_FRAME = 1, /* lengths or fds that do not fit the op */
	DIAPAUSE_BAD_MAJOR = 2, /* the header of the answer tells the newest that is spoken */
	DIAPAUSE_BAD_OP = 3,
	DIAPAUSE_BAD_EPOCH = 4,
};

#define DIAPAUSE_HELLO_SOFTWARE 1u /* the real library is the software GPU */

struct diapause_hello {
	int32_t pid;
	uint32_t flags;
	int32_t driver;	      /* cuDriverGetVersion, 0: unknown */
	uint32_t functions;   /* entries of the table that the real library has */
	uint64_t real_path;   /* FNV-1a of the path of the real library */
	uint8_t build_id[20]; /* of this library, zero when it has none */
	uint8_t reserved[4];
};

_Static_assert(sizeof(struct diapause_page) <= DIAPAUSE_PAGE_SIZE, "the page is one page");
_Static_assert(sizeof(struct diapause_frame) == 32, "the header has no padding");
_Static_assert(sizeof(struct diapause_hello) == 48, "the answer has no padding");

#endif
