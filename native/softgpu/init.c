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
EXPORT const char diapause_softgpu_version[] = "softgpu-1";

struct device device = { .fd = -1, .memory = DEFAULT_MEMORY };
const CUuuid device_uuid = { "\xd1\xa9\xa0\x5e\x50\xf7\x40\x00\x80\x00\x00\x00\x00\x00\x00" };

/* In a container the CDI edits put the device at the first path. On a host there is none: any
 * character device that CRIU refuses to dump will do. */
static const char *const candidates[] = {
	"/dev/diapause-gpu0", "/dev/fuse", "/dev/loop-control", "/dev/vhost-net",
	"/dev/kvm",	      "/dev/hpet", "/dev/cuse",		"/dev/btrfs-control",
};

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
		for (size_t i = 0; i < ARRAY_SIZE(candidates) && fd < 0; i++)
			fd = open_character_device(candidates[i]);
	}
	if (fd < 0)
		return fd;
	device.fd = fd;
	return 0;
}

static size_t memory_from(const char *text)
{
	char *end;
	unsigned long long n;

	if (!text || !*text)
		return DEFAULT_MEMORY;
	n = strtoull(text, &end, 10);
	switch (*end) {
	case 'G':
		n <<= 30;
		break;
	case 'M':
		n <<= 20;
		break;
	case 'K':
		n <<= 10;
		break;
	}
	return n ? ALIGN_UP(n, GRANULARITY) : DEFAULT_MEMORY;
}

static CUresult initialise(void)
{
	const char *path = getenv("DIAPAUSE_SOFTGPU_DEVICE");

	if (path && *path) {
		if (strlen(path) >= sizeof(device.path))
			return CUDA_ERROR_NO_DEVICE;
		strcpy(device.path, path);
	}
	device.memory = memory_from(getenv("DIAPAUSE_SOFTGPU_MEMORY"));
	fault_load(getenv("DIAPAUSE_SOFTGPU_FAULT"));
	if (device_open() < 0)
		return CUDA_ERROR_NO_DEVICE;
	if (notify_init() < 0 || service_start() < 0)
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
