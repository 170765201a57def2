// SPDX-License-Identifier: Apache-2.0
/* diapause-runc: becomes the low-level runtime at once unless the call needs an edit or the engine. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "front.h"

/* Has any container `name` in its directory? With "journal": an engine works on it, or died while it did,
 * and then Python looks whether the verb concerns that container. */
static bool any_container_has(const char *name)
{
	const char *run = getenv("DIAPAUSE_RUN_DIR");
	char path[4096];
	struct dirent *entry;
	bool found = false;
	DIR *directory;

	snprintf(path, sizeof(path), "%s/c", run && *run ? run : "/run/diapause");
	directory = opendir(path);
	while (directory && !found && (entry = readdir(directory))) {
		snprintf(path, sizeof(path), "%s/%s", entry->d_name, name);
		found = *entry->d_name != '.' && !faccessat(dirfd(directory), path, F_OK, 0);
	}
	if (directory)
		closedir(directory);
	return found;
}

static bool has_manifest(const struct command *c)
{
	const char *image = verb_flag(c, "image-path", "image-path");
	char path[4096];

	snprintf(path, sizeof(path), "%s/diapause.json", image ? image : "checkpoint");
	return !faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW); /* who reads it refuses a link */
}

/* Does the call concern a container of ours, as far as can be seen from here? */
static bool is_managed(const struct command *c, const char *runc)
{
	if (command_is(c, "create") || command_is(c, "run"))
		return spec_has_trace(c, runc);
	if (command_is(c, "restore"))
		return has_manifest(c) || spec_has_trace(c, runc);
	if (command_is(c, "resume"))
		return any_container_has("suspended");
	return command_is(c, "suspend") || (command_is(c, "checkpoint") && any_container_has("state.json"));
}

int main(int argc, char **argv)
{
	struct command c;
	const char *runc;
	bool managed;

	command_parse(&c, argv);
	runc = runtime_find(&c);
	managed = is_managed(&c, runc);
	if (managed || (c.verb && any_container_has("journal")) ||
	    (command_is(&c, "delete") && any_container_has("suspended")))
		python_exec("diapause.runtime.oci.main", runc, argc, argv);
	if (managed)
		fail(&c,
		     "%s: the Python part of diapause is missing or broken (looked for diapause-oci beside "
		     "diapause-runc); install the package diapause again [python-missing]",
		     argv[c.verb]);
	runtime_exec(runc, argv);
	fail(&c,
	     "low-level runtime %s: %s; install it or set `runc` in section [runtime] of "
	     "/etc/diapause/config.toml [runtime-not-found]",
	     runc, strerror(errno));
}
