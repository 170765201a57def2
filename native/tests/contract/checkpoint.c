// SPDX-License-Identifier: Apache-2.0
/* The driver's checkpoint calls on another process, as diapause-cudactl and CRIU's plug-in make them. */
#include "checkpoint.h"

#include "contract.h"
#include "spawn.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define PATIENCE 60000

struct checkpoint checkpoint_start(void)
{
	struct checkpoint c = { calloc(1, sizeof(struct process)), calloc(1, sizeof(struct process)) };

	if (!c.target || !c.helper)
		need("calloc", CUDA_ERROR_OUT_OF_MEMORY);
	process_start(c.target, "target", -1);
	process_start(c.helper, "helper", -1);
	return c;
}

void checkpoint_end(struct checkpoint *c)
{
	process_kill(c->target);
	process_kill(c->helper);
	free(c->target);
	free(c->helper);
}

static int ask(const struct checkpoint *c, const char *what, int pid, unsigned number, int *answer)
{
	char line[64];
	int result;

	process_ask(c->helper, line, sizeof(line), PATIENCE, "%s %d %u", what, pid, number);
	return sscanf(line, "%d %d", &result, answer) == 2 ? result : -1;
}

int quietly(const struct checkpoint *c, const char *what, unsigned number)
{
	int answer;

	return ask(c, what, c->target->pid, number, &answer);
}

void request(const struct checkpoint *c, const char *check, const char *what, unsigned number)
{
	value(check, "%d", quietly(c, what, number));
}

void request_for(const struct checkpoint *c, const char *check, const char *what, int pid)
{
	int answer;

	value(check, "%d", ask(c, what, pid, 0, &answer));
}

void state(const struct checkpoint *c, const char *check)
{
	int answer = -1, result = ask(c, "state", c->target->pid, 0, &answer);

	if (result)
		value(check, "%d", result);
	else
		value(check, "0 state %d", answer);
}

int restore_tid(const struct checkpoint *c)
{
	int tid = -1;

	return ask(c, "restore-tid", c->target->pid, 0, &tid) ? -1 : tid;
}

void order(const struct checkpoint *c, const char *check, const char *what)
{
	char answer[256];

	process_ask(c->target, answer, sizeof(answer), PATIENCE, "%s", what);
	value(check, "%s", answer);
}

void order_quietly(const struct checkpoint *c, const char *what)
{
	char answer[256];

	process_ask(c->target, answer, sizeof(answer), PATIENCE, "%s", what);
	if (strcmp(answer, "0") != 0)
		value("order", "%s: %s", what, answer);
}

/* Memory (1) and terminals (4, 5, 136 to 143) are no such devices. */
static bool is_device(const struct stat *st)
{
	unsigned m = major(st->st_rdev);

	return S_ISCHR(st->st_mode) && m != 1 && m != 4 && m != 5 && (m < 136 || m > 143);
}

bool has_device(const struct checkpoint *c)
{
	char folder[64], path[400];
	struct dirent *entry;
	struct stat st;
	bool found = false;
	DIR *fds;

	snprintf(folder, sizeof(folder), "/proc/%d/fd", c->target->pid);
	fds = opendir(folder);
	while (fds && (entry = readdir(fds))) {
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		found |= stat(path, &st) == 0 && is_device(&st);
	}
	if (fds)
		closedir(fds);
	return found;
}
