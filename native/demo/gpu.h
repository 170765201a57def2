/* SPDX-License-Identifier: Apache-2.0
 *
 * What demo and workloads do with a GPU: arrays of words that are filled, stepped and summed, and
 * checked against the model.
 */
#pragma once

#include "cuda_load.h"
#include "model.h"

struct gpu {
	CUcontext ctx;
	CUfunction fill, step, checksum, spin;
};

extern struct gpu gpu;

/* Load the driver, take the primary context of device 0, make it current, load the kernels. */
void gpu_open(void);

struct array {
	CUdeviceptr words, sum;
	CUstream stream;
	uint64_t *host_sum; /* where the device's answer arrives */
	struct model model;
};

void array_make(struct array *array, uint64_t words, uint64_t seed, CUstream stream);
void array_free(struct array *array);
void array_fill(struct array *array); /* array_make does it too */
void array_step(struct array *array);
/* Start to sum up; array_verify waits for the answer and exits with 9 if it is wrong. */
void array_sum(struct array *array);
uint64_t array_verify(struct array *array);
void gpu_spin(CUdeviceptr count, uint64_t ns, CUstream stream);
