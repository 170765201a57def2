// SPDX-License-Identifier: Apache-2.0
/* cuInit, and the character device that stands for the GPU. */
#include "softgpu.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Marks this libcuda as the software one for whoever looks. */
EXPORT const char diapause_softgpu_version[] = SOFTWARE_VERSION;

struct device device = { .fd = -1 };
const CUuuid device_uuid = { DEVICE_UUID_BYTES };

static int open_character_device(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || !S_ISCHR(st.st_mode)) {
		close(fd);
		return -ENODEV;
	}
	return fd_lift(fd);
}

/* Called at cuInit and, by the service thread, at a restore: in a new container, on another host.
 * Returns 0 or -errno, with `device.fd` set. */
int device_open(void)
{
	int fd = -ENODEV;

	if (device.path[0]) {
		fd = open_character_device(device.path);
	} else {
		for (const char *const *path = device_paths; *path && fd < 0; path++)
			fd = open_character_device(*path);
	}
	if (fd < 0)
		return fd;
	device.fd = fd;
	return 0;
}

static CUresult initialise(void)
{
	const char *path = getenv("DIAPAUSE_SOFTGPU_DEVICE");

	if (path && *path) {
		if (strlen(path) >= sizeof(device.path))
			return CUDA_ERROR_NO_DEVICE;
		strcpy(device.path, path);
	}
	device.memory = device_memory_size();
	fault_load(getenv("DIAPAUSE_SOFTGPU_FAULT"));
	if (device_open() < 0)
		return CUDA_ERROR_NO_DEVICE;
	if (notify_init() < 0 || memory_init() < 0 || service_start() < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	return CUDA_SUCCESS;
}

CUDA_API(cuInit, unsigned int flags)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	CUresult result = CUDA_SUCCESS;

	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (atomic_load(&driver_ready))
		return gate_peek();
	pthread_mutex_lock(&lock);
	if (!atomic_load(&driver_ready)) {
		result = initialise();
		atomic_store(&driver_ready, result == CUDA_SUCCESS);
	}
	pthread_mutex_unlock(&lock);
	return result;
}

CUDA_API(cuDriverGetVersion, int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = DRIVER_VERSION;
	return CUDA_SUCCESS;
}
