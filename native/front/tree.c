// SPDX-License-Identifier: Apache-2.0
#include "tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static void empty(int fd, int depth)
{
	DIR *directory = fdopendir(fd);
	struct dirent *entry;
	int below;

	while (directory && (entry = readdir(directory))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (!unlinkat(dirfd(directory), entry->d_name, 0) || !depth)
			continue;
		below = openat(dirfd(directory), entry->d_name,
			       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (below < 0)
			continue;
		empty(below, depth - 1);
		unlinkat(dirfd(directory), entry->d_name, AT_REMOVEDIR);
	}
	if (directory)
		closedir(directory);
}

void tree_remove(int fd, const char *path)
{
	empty(fd, 1);
	rmdir(path);
}
