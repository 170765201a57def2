/* SPDX-License-Identifier: Apache-2.0 */
/* The checkpoint part of the CUDA driver API, resolved at run time. */
#ifndef CUDACTL_DRIVER_H
#define CUDACTL_DRIVER_H

/* CUresult values that we answer ourselves; the rest is passed on as the driver gave it. */
enum {
	CUDA_SUCCESS = 0,
	CUDA_ERROR_INVALID_VALUE = 1,
	CUDA_ERROR_NOT_FOUND = 500,
};

struct driver {
	int (*init)(unsigned int flags);
	int (*version)(int *version);
	int (*lock)(int pid, void *args);
	int (*checkpoint)(int pid, void *args);
	int (*restore)(int pid, void *args);
	int (*unlock)(int pid, void *args);
	int (*state)(int pid, int *state);
	int (*restore_tid)(int pid, int *tid);
};

/* Load the library at path. Returns NULL, or what went wrong (valid until the next call). */
const char *driver_load(struct driver *d, const char *path);

/* Resolve the checkpoint functions; those that this driver lacks stay NULL. Call after init. */
void driver_resolve(struct driver *d);

/*
 * Make one call on a process. argument is the timeout of a lock in milliseconds; *value receives
 * the state or the thread id. Returns the CUresult, CUDA_ERROR_NOT_FOUND where the driver has no
 * such function.
 */
int driver_call(const struct driver *d, const char *verb, int pid, unsigned int argument, int *value);

#endif
