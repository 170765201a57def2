// SPDX-License-Identifier: Apache-2.0
/* The Python part: the interpreter that the console script `diapause-oci` beside this program names. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "front.h"

/* Not the console script itself: it imports `re`, which takes as long as all of our modules together. */
static char program[] = {
#embed "start.py" suffix(, 0)
};

extern char **environ;

/* The absolute path in a script's first lines: `#!PATH`, or what installers write where PATH is too long for
 * the kernel or has spaces: `#!/bin/sh`, then `'''exec' "PATH" "$0" "$@"`. */
static char *interpreter_of(char *script)
{
	char *sh = strncmp(script, "#!/bin/sh\n'''exec' ", 19) ? NULL : script + 19;
	char *path = sh ? sh + (*sh == '"' || *sh == '\'') : script + 2 + strspn(script + 2, " ");

	path[strcspn(path, sh && path > sh ? (*sh == '"' ? "\"" : "'") : " \n")] = 0;
	return *path == '/' && !strncmp(script, "#!", 2) ? path : NULL;
}

void python_exec(char *module, const char *first, int argc, char **argv)
{
	const char *broken = getenv("DIAPAUSE_BROKEN_PYTHON");
	char self[4096] = "", path[4096 + 16], text[1024] = "", *interpreter;
	char **args = calloc((size_t)argc + 9, sizeof(*args));
	int fd, folder, beside;

	if (broken && atoi(broken) == getpid()) { /* Python was here, and ignored what it always ignores */
		signal(SIGPIPE, SIG_DFL);
		signal(SIGXFSZ, SIG_DFL);
		return;
	}
	if (!args || readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return;
	folder = (int)(strrchr(self, '/') - self);
	snprintf(path, sizeof(path), "%.*s/diapause-oci", folder, self);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		return;
	interpreter = interpreter_of(text);
	/* A relocatable installation computes the path: the interpreter lies beside its scripts. */
	if (!interpreter && snprintf(path, sizeof(path), "%.*s/python3", folder, self))
		interpreter = path;
	beside = !strncmp(interpreter, self, folder) && strrchr(interpreter, '/') - interpreter == folder;
	/* UTF-8 whatever the locale: a name of any bytes comes back as these bytes. */
	memcpy(args,
	       (char *[]){ interpreter, beside ? "-IS" : "-I", "-X", "utf8", "-c", program, module, self,
			   (char *)first },
	       9 * sizeof(*args));
	memcpy(args + 9, argv + 1, (size_t)argc * sizeof(*args));
	execve(interpreter, args, environ);
}
