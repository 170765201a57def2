// SPDX-License-Identifier: Apache-2.0
/* What a child of fork inherits of the driver. It cannot use CUDA, but it holds the GPU's device files open,
 * and no checkpoint of it could be made: CRIU knows no such files, and the driver knows no such process.
 * /dev/null takes their places, so that the numbers stay taken for whoever closes them. */
#include "library.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct listed { /* of getdents64 */
	uint64_t inode;
	int64_t offset;
	unsigned short length;
	unsigned char type;
	char name[];
};

static bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_gpu(int folder, const char *name)
{
	char target[64];
	ssize_t length = readlinkat(folder, name, target, sizeof(target) - 1);

	if (length <= 0)
		return false;
	target[length] = '\0';
	return starts_with(target, "/dev/nvidia") || starts_with(target, "/dev/diapause-gpu");
}

static int number(const char *name)
{
	int n = 0;

	for (; *name >= '0' && *name <= '9'; name++)
		n = n * 10 + (*name - '0');
	return *name ? -1 : n;
}

/* Runs between fork and what the program does in its child: no malloc, no lock. */
void inherit_no_gpu(void)
{
	int folder = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	char buffer[4096] __attribute__((aligned(8)));
	long size;

	while (folder >= 0 && null >= 0 &&
	       (size = syscall(SYS_getdents64, folder, buffer, sizeof(buffer))) > 0) {
		for (long at = 0; at < size;) {
			const struct listed *entry = (const void *)(buffer + at);
			int fd = number(entry->name);

			at += entry->length;
			if (fd >= 0 && is_gpu(folder, entry->name))
				dup3(null, fd, O_CLOEXEC);
		}
	}
	if (null >= 0)
		close(null);
	if (folder >= 0)
		close(folder);
}
