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

static bool wants_gpu(const struct command *c, const char *runc)
{
	const char *bundle = verb_flag(c, "bundle", "b");

	return spec_has_trace(bundle ? bundle : ".", runc);
}

static bool has_manifest(const struct command *c)
{
	const char *image = verb_flag(c, "image-path", "image-path");
	char path[4096];

	snprintf(path, sizeof(path), "%s/diapause.json", image ? image : "checkpoint");
	return !access(path, F_OK);
}

int main(int argc, char **argv)
{
	bool create, checkpoint, restore, hit;
	struct command c;
	const char *runc;

	command_parse(&c, argv);
	runc = runtime_find(&c);
	create = command_is(&c, "create") || command_is(&c, "run");
	checkpoint = command_is(&c, "checkpoint");
	restore = command_is(&c, "restore");
	hit = (create || restore) && wants_gpu(&c, runc);
	if (hit || checkpoint || restore || (c.verb && any_container_has("journal"))) {
		python_exec("diapause.runtime.oci.main", runc, argc, argv);
		if (hit || (checkpoint && any_container_has("state.json")) || (restore && has_manifest(&c)))
			fail(&c,
			     "%s: the Python part of diapause is missing or broken (looked for "
			     "diapause-oci beside "
			     "diapause-runc); install the package diapause again [python-missing]",
			     argv[c.verb]);
	}
	runtime_exec(runc, argv);
	fail(&c,
	     "low-level runtime %s: %s; install it or set `runc` in section [runtime] of "
	     "/etc/diapause/config.toml [runtime-not-found]",
	     runc, strerror(errno));
}
