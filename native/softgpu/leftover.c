// SPDX-License-Identifier: Apache-2.0
/* Descriptors of device memory that the program holds itself, from an export. On hardware they are
 * descriptors of the device, the driver leaves them alone at a checkpoint, and CRIU refuses them.
 * Here they are memfds, which CRIU would take: so the device stays open as long as there are any. */
#include "softgpu.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct entry {
	uint64_t inode, offset;
	unsigned short length;
	unsigned char type;
	char name[];
};

static bool is_memory(int dir, const char *name)
{
	const char memory[] = "/memfd:" MEMORY_NAME;
	char link[64];

	return readlinkat(dir, name, link, sizeof(link)) >= (ssize_t)sizeof(memory) - 1 &&
	       memcmp(link, memory, sizeof(memory) - 1) == 0;
}

/* Service thread, after the driver's own are closed: no malloc, so no readdir. */
bool leftover_any(void)
{
	char buffer[2048] __attribute__((aligned(8)));
	int dir = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool found = false;
	long n;

	while (dir >= 0 && !found && (n = syscall(SYS_getdents64, dir, buffer, sizeof(buffer))) > 0) {
		for (long at = 0; at < n && !found;) {
			const struct entry *entry = (const struct entry *)(buffer + at);

			found = is_memory(dir, entry->name);
			at += entry->length;
		}
	}
	if (dir >= 0)
		close(dir);
	return found;
}
