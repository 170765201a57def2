// SPDX-License-Identifier: Apache-2.0
/* Descriptors of the driver: far above the program's, and not bound by its soft limit, because
 * the hardware needs none for each piece of memory. */
#include "softgpu.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOWEST 800

/* Move `fd` up; the old number is closed, also on failure. Returns the new one or -errno. */
int fd_lift(int fd)
{
	static const int lowest[] = { LOWEST, LOWEST / 2, 3 };
	struct rlimit old, high;
	int up = -1;

	if (fd < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(lowest) && up < 0; i++)
		up = fcntl(fd, F_DUPFD_CLOEXEC, lowest[i]);
	if (up < 0 && getrlimit(RLIMIT_NOFILE, &old) == 0 && old.rlim_cur < old.rlim_max) {
		high = old;
		high.rlim_cur = old.rlim_max;
		setrlimit(RLIMIT_NOFILE, &high);
		up = fcntl(fd, F_DUPFD_CLOEXEC, (int)old.rlim_cur);
		setrlimit(RLIMIT_NOFILE, &old);
	}
	if (up < 0)
		up = -errno;
	close(fd);
	return up;
}

/* Returns a descriptor or -errno. */
int memory_file(const char *name, size_t size)
{
	int fd = fd_lift((int)syscall(SYS_memfd_create, name, MFD_CLOEXEC | MFD_ALLOW_SEALING));

	if (fd >= 0 && ftruncate(fd, (off_t)size) < 0) {
		int error = errno;

		close(fd);
		return -error;
	}
	return fd;
}

/* Device memory as others may get it. Whoever has a descriptor must not be able to take pages away
 * from below the others: on hardware nobody can. */
int device_file(size_t size)
{
	int fd = memory_file(MEMORY_NAME, size);

	if (fd >= 0 && fcntl(fd, F_ADD_SEALS, DEVICE_SEALS) < 0) {
		int error = errno;

		close(fd);
		return -error;
	}
	return fd;
}
