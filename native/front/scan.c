// SPDX-License-Identifier: Apache-2.0
/* Does a bundle's config.json hold any trace of a GPU request or of us? Bytes, not JSON: a false hit only
 * costs the start of Python, and the writers of such files do not escape plain letters or slashes. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "front.h"

static const char *const traces[] = {
	"diapause", "/dev/nvidia", "libcuda.so", "nvidia-c", "nvidia.com", NULL
};

bool spec_has_trace(const struct command *c, const char *runc)
{
	const char *bundle = verb_flag(c, "bundle", "b");
	char path[4096];
	struct stat st;
	bool found = false;
	void *bytes;
	int fd;

	snprintf(path, sizeof(path), "%s/config.json", bundle ? bundle : ".");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size <= 0)
		goto out;
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	if (bytes == MAP_FAILED)
		goto out;
	for (const char *const *trace = traces; *trace && !found; trace++)
		found = memmem(bytes, (size_t)st.st_size, *trace, strlen(*trace));
	/* Only NVIDIA's own runtime injects on behalf of this variable; with any other it means nothing. */
	if (!found && strstr(runc, "nvidia"))
		found = memmem(bytes, (size_t)st.st_size, "NVIDIA_VISIBLE_DEVICES", 22);
	munmap(bytes, (size_t)st.st_size);
out:
	close(fd);
	return found;
}
