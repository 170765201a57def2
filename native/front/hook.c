// SPDX-License-Identifier: Apache-2.0
/* diapause-hook VERB --key KEY: what runc and CRIU start for a managed container, where a Python start would
 * be felt. Only a `register` that finds something else than what was prepared needs it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "front.h"
#include "register.h"
#include "tree.h"

/* 32 hex digits and nothing else: the key becomes a part of a path. */
static bool is_key(const char *key)
{
	return key && strlen(key) == 32 && strspn(key, "0123456789abcdef") == 32;
}

/* Does the directory still belong to the container that this hook was installed for? runc frees an id before
 * it runs poststop, so a new container may have it already. */
static bool is_ours(int fd, const char *maker)
{
	char there[64] = "";

	return !maker || readlinkat(fd, "maker", there, sizeof(there) - 1) < 0 || !strcmp(there, maker);
}

/* The container's lock; a controller that asks what a process has freed holds it for about a millisecond. */
static bool is_locked(int lock)
{
	const struct timespec moment = { .tv_nsec = 5000000 };
	char holder[8] = "";

	for (int i = 0; i < 200; i++) {
		if (!flock(lock, LOCK_EX | LOCK_NB))
			return true;
		if (pread(lock, holder, sizeof(holder) - 1, 0) > 0 && strcmp(holder, "release"))
			break;
		nanosleep(&moment, NULL);
	}
	return false;
}

/* poststop: forget the container, unless an operation holds it: runc calls this *inside* a checkpoint that
 * ends the container, and the engine still needs what lies there. */
static int cleanup(const char *directory, const char *maker)
{
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), lock;

	if (fd < 0)
		return 0;
	lock = openat(fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (lock >= 0 && is_locked(lock) && is_ours(fd, maker))
		tree_remove(fd, directory);
	return 0;
}

/* CRIU action script: at `pre-dump` the engine says whether CRIU may begin (where there is no engine, nobody
 * minds), at `post-dump` whether the snapshot is complete; any other answer than "0\n", and none, makes CRIU
 * fail the dump and the container runs on. The socket is reached through its directory's descriptor: its own
 * path may be longer than an address. */
static int commit(const struct command *c, const char *directory)
{
	const char *action = getenv("CRTOOLS_SCRIPT_ACTION");
	bool begins = action && !strcmp(action, "pre-dump");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct timeval patience = { .tv_sec = 3600 };
	char answer[2] = "", question[16];
	int at, fd, length;

	if (!begins && (!action || strcmp(action, "post-dump")))
		return 0;
	length = snprintf(question, sizeof(question), "%s\n", action);
	at = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/commit.sock", at);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (at < 0 || fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		if (begins && errno == ENOENT)
			return 0;
		fail(c, "commit: no engine listens at %s/commit.sock: %m [commit-no-engine]", directory);
	}
	if (send(fd, question, (size_t)length, MSG_NOSIGNAL) != length ||
	    recv(fd, answer, 2, MSG_WAITALL) != 2)
		fail(c, "commit: the engine went away without an answer [commit-no-engine]");
	return memcmp(answer, "0\n", 2) ? 1 : 0;
}

/* CRIU starts its action script without arguments: as .../c/KEY/commit, a link to this program. Returns the
 * directory of the container, NULL for any other call. */
static char *directory_of_link(int argc, char *self)
{
	char *name = strrchr(self, '/'), *key;

	if (argc != 1 || !name || strcmp(name, "/commit"))
		return NULL;
	*name = 0;
	key = strrchr(self, '/');
	return key && is_key(key + 1) ? self : NULL;
}

int main(int argc, char **argv)
{
	struct command c = { .argv = argv, .verb = argc > 1 };
	char *linked = directory_of_link(argc, argv[0]);
	const char *run = getenv("DIAPAUSE_RUN_DIR"), *key = c.verb ? verb_flag(&c, "key", "key") : NULL;
	char directory[4096];

	if (linked)
		return commit(&c, linked);
	if (!is_key(key))
		fail(&c, "diapause-hook: usage: diapause-hook register|cleanup|commit --key KEY "
			 "(started by runc and CRIU, not by hand) [hook-usage]");
	snprintf(directory, sizeof(directory), "%s/c/%s", run && *run ? run : "/run/diapause", key);
	if (command_is(&c, "cleanup"))
		return cleanup(directory, verb_flag(&c, "maker", "maker"));
	if (command_is(&c, "commit"))
		return commit(&c, directory);
	if (!command_is(&c, "register"))
		fail(&c, "diapause-hook: unknown verb %s [hook-usage]", argv[1]);
	if (argc == 4 && register_container(directory))
		return 0;
	python_exec("diapause.hooks.main", "", argc, argv);
	fail(&c, "diapause-hook: the Python part of diapause is missing or broken (looked for "
		 "diapause-oci beside diapause-hook); install the package diapause again [python-missing]");
}
