// SPDX-License-Identifier: Apache-2.0
/* What a child of fork inherits of the driver. It cannot use CUDA, but it holds the GPU's device files open
 * and mapped, and no checkpoint of it could be made: CRIU knows no such files, and the driver knows no such
 * process. /dev/null takes the places of the files, so that the numbers stay taken for whoever closes them,
 * and memory that nobody may touch takes those of the mappings. */
#include "library.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
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

static bool is_device(const char *path)
{
	return starts_with(path, "/dev/nvidia") || starts_with(path, "/dev/diapause-gpu");
}

static bool is_gpu(int folder, const char *name)
{
	char target[64];
	ssize_t length = readlinkat(folder, name, target, sizeof(target) - 1);

	if (length <= 0)
		return false;
	target[length] = '\0';
	return is_device(target);
}

static int number(const char *name)
{
	int n = 0;

	for (; *name >= '0' && *name <= '9'; name++)
		n = n * 10 + (*name - '0');
	return *name ? -1 : n;
}

static uintptr_t hexadecimal(const char **text)
{
	uintptr_t n = 0;

	for (;; (*text)++) {
		char c = **text;

		if (c >= '0' && c <= '9')
			n = n * 16 + (uintptr_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			n = n * 16 + (uintptr_t)(c - 'a' + 10);
		else
			return n;
	}
}

/* A line of /proc/self/maps: "low-high access offset device inode   path". */
static void unmap(const char *line)
{
	const char *path = strchr(line, '/');
	uintptr_t low, high;

	if (!path || !is_device(path))
		return;
	low = hexadecimal(&line);
	line++;
	high = hexadecimal(&line);
	mmap((void *)low, high - low, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
	     0);
}

/* What is read while mappings change has each of them once: the kernel goes on by address. */
static void inherit_no_mapping(void)
{
	int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	char buffer[8192]; /* longer than a line: a path has 4096 bytes at most */
	size_t have = 0;
	ssize_t n;

	while (maps >= 0 && (n = read(maps, buffer + have, sizeof(buffer) - 1 - have)) > 0) {
		char *line = buffer, *end;

		have += (size_t)n;
		buffer[have] = '\0';
		for (; (end = strchr(line, '\n')); line = end + 1) {
			*end = '\0';
			unmap(line);
		}
		have = strlen(line);
		memmove(buffer, line, have);
	}
	if (maps >= 0)
		close(maps);
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
	inherit_no_mapping();
}
