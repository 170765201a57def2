// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "driver.h"

/* The version whose argument layouts are used below: they changed in 13.3. */
#define COMPILED_AGAINST 13000

/*
 * CUcheckpoint{Lock,Checkpoint,Restore,Unlock}Args are 64 bytes each in CUDA 13.0, reserved fields
 * zero. Only the lock's timeout is ever set: a restore without GPU pairs goes back to the same GPUs.
 */
union arguments {
	unsigned int lock_timeout_ms;
	unsigned char bytes[256];
};

typedef int get_proc_address(const char *symbol, void **function, int version, unsigned long long flags,
			     int *found);

static void *library;

const char *driver_load(struct driver *d, const char *path)
{
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return dlerror();
	d->init = (int (*)(unsigned int))dlsym(library, "cuInit");
	d->version = (int (*)(int *))dlsym(library, "cuDriverGetVersion");
	return d->init ? NULL : "the library has no cuInit";
}

static void *resolve(const char *name)
{
	get_proc_address *get = (get_proc_address *)dlsym(library, "cuGetProcAddress_v2");
	void *function = NULL;
	int found = 0;

	if (get && get(name, &function, COMPILED_AGAINST, 0, &found) == CUDA_SUCCESS && function)
		return function;
	return dlsym(library, name);
}

void driver_resolve(struct driver *d)
{
	d->lock = (int (*)(int, void *))resolve("cuCheckpointProcessLock");
	d->checkpoint = (int (*)(int, void *))resolve("cuCheckpointProcessCheckpoint");
	d->restore = (int (*)(int, void *))resolve("cuCheckpointProcessRestore");
	d->unlock = (int (*)(int, void *))resolve("cuCheckpointProcessUnlock");
	d->state = (int (*)(int, int *))resolve("cuCheckpointProcessGetState");
	d->restore_tid = (int (*)(int, int *))resolve("cuCheckpointProcessGetRestoreThreadId");
}

static int with_arguments(int (*function)(int, void *), int pid, unsigned int timeout_ms)
{
	union arguments arguments;

	if (!function)
		return CUDA_ERROR_NOT_FOUND;
	memset(&arguments, 0, sizeof(arguments));
	arguments.lock_timeout_ms = timeout_ms;
	return function(pid, &arguments);
}

static int with_value(int (*function)(int, int *), int pid, int *value)
{
	return function ? function(pid, value) : CUDA_ERROR_NOT_FOUND;
}

int driver_call(const struct driver *d, const char *verb, int pid, unsigned int argument, int *value)
{
	*value = 0;
	if (!strcmp(verb, "lock"))
		return with_arguments(d->lock, pid, argument);
	if (!strcmp(verb, "checkpoint"))
		return with_arguments(d->checkpoint, pid, 0);
	if (!strcmp(verb, "restore"))
		return with_arguments(d->restore, pid, 0);
	if (!strcmp(verb, "unlock"))
		return with_arguments(d->unlock, pid, 0);
	if (!strcmp(verb, "state"))
		return with_value(d->state, pid, value);
	if (!strcmp(verb, "restore-tid"))
		return with_value(d->restore_tid, pid, value);
	return CUDA_ERROR_INVALID_VALUE;
}
