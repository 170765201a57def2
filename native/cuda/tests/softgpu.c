// SPDX-License-Identifier: Apache-2.0
/* GPU programs print the same with the library in front of the software GPU as without it. */
#include "check.h"

#include <dirent.h>
#include <sys/stat.h>

#define LINES 4096

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* What `program` prints, its lines sorted because threads print in any order, and its status. */
static char *output(const char *program, const char *environment)
{
	char *command, *lines[LINES], *text = NULL;
	size_t n = 0, size = 0;
	FILE *pipe, *all = open_memstream(&text, &size);

	CHECK(asprintf(&command,
		       "exec env DIAPAUSE_SOFTGPU_DEVICE=/dev/null %s timeout 60 %s --steps 5 --interval 5 "
		       "2>&1",
		       environment, program) > 0,
	      "memory");
	pipe = popen(command, "r");
	while (n < LINES) {
		size_t length = 0;

		lines[n] = NULL;
		if (getline(&lines[n], &length, pipe) <= 0)
			break;
		n++;
	}
	qsort(lines, n, sizeof(*lines), by_text);
	for (size_t i = 0; i < n; i++)
		fputs(lines[i], all);
	fprintf(all, "status %d\n", pclose(pipe));
	fclose(all);
	return text;
}

static void compare(const char *name)
{
	char *program = out("workloads/%s", name), *alone, *replaced, *preloaded, *environment;
	const char *real = out("softgpu/libcuda.so.1");

	check_case = name;
	CHECK(asprintf(&environment, "LD_LIBRARY_PATH=%s", out("softgpu")) > 0, "memory");
	alone = output(program, environment);
	CHECK(strstr(alone, "ready"), "it runs:\n%s", alone);
	CHECK(asprintf(&environment, "DIAPAUSE_REAL_LIBCUDA=%s LD_LIBRARY_PATH=%s", real,
		       out("cuda-tests/replaced")) > 0,
	      "memory");
	replaced = output(program, environment);
	CHECK(!strcmp(alone, replaced), "replaced:\n%s\nalone:\n%s", replaced, alone);
	CHECK(asprintf(&environment, "DIAPAUSE_REAL_LIBCUDA=%s LD_PRELOAD=%s", real,
		       out("lib/libdiapause-cuda.so")) > 0,
	      "memory");
	preloaded = output(program, environment);
	CHECK(!strcmp(alone, preloaded), "preloaded:\n%s\nalone:\n%s", preloaded, alone);
}

/* No GPU, a way to misbehave that its arguments choose, or times: nothing to compare. */
static bool left_out(const char *name)
{
	return name[0] == '.' || !strcmp(name, "cpu") || !strcmp(name, "hostile") || !strcmp(name, "price");
}

int main(int argc, char **argv)
{
	DIR *folder = opendir(out("workloads"));
	struct dirent *entry;
	int n = 0;

	while (folder && (entry = readdir(folder))) {
		if (left_out(entry->d_name))
			continue;
		compare(entry->d_name);
		n++;
	}
	CHECK(n > 0, "no workloads");
	return 0;
}
