// SPDX-License-Identifier: Apache-2.0
/* The low-level runtime: which one it is, that it is not ourselves, and becoming it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "front.h"

extern char **environ;

static bool is_self(const char *path)
{
	struct stat self, other;

	return !stat("/proc/self/exe", &self) && !stat(path, &other) && self.st_dev == other.st_dev &&
	       self.st_ino == other.st_ino;
}

/* The first executable `name` in `path` that is not this program. */
static const char *search(const char *name, const char *path)
{
	static char found[4096];
	struct stat st;

	for (const char *end; path && *path; path = *end ? end + 1 : end) {
		end = strchrnul(path, ':');
		snprintf(found, sizeof(found), "%.*s/%s", (int)(end - path), path, name);
		if (*found == '/' && !stat(found, &st) && S_ISREG(st.st_mode) && !access(found, X_OK) &&
		    !is_self(found))
			return found;
	}
	return NULL;
}

static _Noreturn void leads_back(const struct command *c, const char *runc)
{
	fail(c,
	     "low-level runtime %s: it leads back to diapause-runc; set `runc` in section [runtime] of "
	     "/etc/diapause/config.toml to the real one [runtime-loop]",
	     runc);
}

const char *runtime_find(const struct command *c)
{
	const char *wanted = config_runc(), *mark = getenv("DIAPAUSE_FRONT_PID"), *path = wanted;
	const char *name = *wanted ? wanted : "runc";
	char pid[16];

	/* execve keeps the pid: whoever finds its own here was started by a runtime that leads back to us. */
	snprintf(pid, sizeof(pid), "%d", getpid());
	if (mark && !strcmp(mark, pid))
		leads_back(c, name);
	setenv("DIAPAUSE_FRONT_PID", pid, 1);
	if (!strchr(name, '/') && !(path = search(name, getenv("PATH"))))
		path = search(name, "/usr/bin:/usr/sbin:/usr/local/bin:/usr/local/sbin");
	if (!path || *path != '/')
		fail(c,
		     "low-level runtime %s: not found in PATH, /usr/bin or /usr/sbin, and no absolute path; "
		     "install runc or set `runc` in section [runtime] of /etc/diapause/config.toml "
		     "[runtime-not-found]",
		     name);
	if (is_self(path))
		leads_back(c, path);
	return path;
}

void runtime_exec(const char *runc, char **argv)
{
	argv[0] = (char *)runc; /* crun looks at its name */
	execve(runc, argv, environ);
}
