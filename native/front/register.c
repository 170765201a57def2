// SPDX-License-Identifier: Apache-2.0
/* createRuntime where nothing has changed since the verb of ours: runtime/oci/expected.py wrote down what it
 * saw, and here it is seen again. Whatever differs, is unusual or fails is left to hooks/register.py, which
 * knows more and says what is wrong. */
#include "register.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "told.h"

#define LIMIT ((size_t)1 << 20) /* bytes; hooks/main.py reads as many */
#define FORMAT "diapause-expected 1\n"
#define UNSET "\"pid\":null,\"start_time\":null}" /* the end of state.json, by runtime/oci/managed.py */

/* Everything there is to read, terminated; NULL if that fails, is too long or holds a NUL. */
static char *read_all(int fd)
{
	char *bytes = calloc(1, LIMIT + 1);
	size_t length = 0;
	ssize_t got = -1;

	while (bytes && length < LIMIT && (got = read(fd, bytes + length, LIMIT - length)) > 0)
		length += (size_t)got;
	if (bytes && !got && strlen(bytes) == length)
		return bytes;
	free(bytes);
	return NULL;
}

static char *read_file(int directory, const char *name)
{
	int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char *bytes = fd < 0 ? NULL : read_all(fd);

	if (fd >= 0)
		close(fd);
	return bytes;
}

/* Stdin once more for whoever comes after us. */
static bool rewind_stdin(void)
{
	int fd = (int)syscall(SYS_memfd_create, "stdin", 1 /* MFD_CLOEXEC; a duplicate stays open */);
	char block[4096];
	ssize_t got;

	if (fd < 0)
		return false;
	while ((got = read(STDIN_FILENO, block, sizeof(block))) > 0)
		if (write(fd, block, (size_t)got) != got)
			return false;
	return !got && !lseek(fd, 0, SEEK_SET) && !dup2(fd, STDIN_FILENO);
}

static bool is_same(const char *stamp)
{
	unsigned long long device, inode, size, modified, changed;
	struct stat st;
	int path = 0;

	if (sscanf(stamp, "%llu %llu %llu %llu %llu %n", &device, &inode, &size, &modified, &changed,
		   &path) != 5 ||
	    stamp[path] != '/' || stat(stamp + path, &st) || !S_ISREG(st.st_mode))
		return false;
	return st.st_dev == device && st.st_ino == inode && (unsigned long long)st.st_size == size &&
	       (unsigned long long)st.st_mtim.tv_sec * 1000000000 + (unsigned long long)st.st_mtim.tv_nsec ==
		       modified &&
	       (unsigned long long)st.st_ctim.tv_sec * 1000000000 + (unsigned long long)st.st_ctim.tv_nsec ==
		       changed;
}

/* Is a character driver of that number loaded? The list of them comes first. */
static bool is_loaded(const char *major)
{
	char *devices = read_file(AT_FDCWD, "/proc/devices"), *rest = devices, *line;
	bool found = false;

	while (!found && (line = strsep(&rest, "\n")) && strncmp(line, "Block", 5)) {
		line += strspn(line, " ");
		line[strcspn(line, " ")] = 0;
		found = *line >= '0' && *line <= '9' && !strcmp(line, major);
	}
	free(devices);
	return found;
}

/* Can others write the specification that is about to be used? */
static bool is_trusted(const char *bundle)
{
	char path[4096];
	struct stat st;

	return *bundle == '/' && snprintf(path, sizeof(path), "%s/config.json", bundle) < (int)sizeof(path) &&
	       !stat(path, &st) && (!st.st_uid || st.st_uid == geteuid()) && !(st.st_mode & 0002);
}

static bool holds(const struct told *t, char *line)
{
	char *value = strchr(line, ' ');

	if (!value)
		return false;
	*value++ = 0;
	if (!strcmp(line, "id"))
		return text_is(&t->id, value);
	if (!strcmp(line, "bundle"))
		return text_is(&t->bundle, value) && is_trusted(value);
	if (!strcmp(line, "file"))
		return is_same(value);
	return !strcmp(line, "major") && is_loaded(value);
}

/* Every line holds, and the last one is there. */
static bool all_hold(const struct told *t, char *expected)
{
	char *line;

	if (strncmp(expected, FORMAT, strlen(FORMAT)))
		return false;
	expected += strlen(FORMAT);
	while ((line = strsep(&expected, "\n")) && strcmp(line, "end"))
		if (!holds(t, line))
			return false;
	return line;
}

static unsigned long long start_time(int pid)
{
	char path[64], *stat, *field;
	unsigned long long ticks = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	stat = read_file(AT_FDCWD, path);
	field = stat ? strrchr(stat, ')') : NULL;
	for (int i = 0; field && i < 20; i++)
		field = strchr(field + 1, ' ');
	if (field)
		ticks = strtoull(field + 1, NULL, 10);
	free(stat);
	return ticks;
}

static bool replace(int directory, const char *name, const char *text)
{
	char temporary[64];
	int fd;

	snprintf(temporary, sizeof(temporary), "%s.%d.tmp", name, getpid());
	fd = openat(directory, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	if (write(fd, text, strlen(text)) == (ssize_t)strlen(text) && !close(fd) &&
	    !renameat(directory, temporary, directory, name))
		return true;
	unlinkat(directory, temporary, 0);
	return false;
}

/* state.json with the process that the container begins with. */
static bool record(int directory, int pid)
{
	char *state = read_file(directory, "state.json"), *text = NULL;
	size_t length = state ? strlen(state) : 0;
	unsigned long long start = start_time(pid);
	bool done = false;

	if (start && length > strlen(UNSET) && !strcmp(state + length - strlen(UNSET), UNSET) &&
	    asprintf(&text, "%.*s\"pid\":%d,\"start_time\":%llu}", (int)(length - strlen(UNSET)), state, pid,
		     start) > 0)
		done = replace(directory, "state.json", text);
	free(state);
	free(text);
	return done;
}

bool register_container(const char *directory)
{
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char *expected = fd < 0 ? NULL : read_file(fd, "expected"), *json;
	struct told told;
	bool done;

	if (!expected || !rewind_stdin())
		return false;
	json = read_all(STDIN_FILENO);
	done = json && told_parse(&told, json) && all_hold(&told, expected) && record(fd, told.pid);
	lseek(STDIN_FILENO, 0, SEEK_SET);
	return done;
}
