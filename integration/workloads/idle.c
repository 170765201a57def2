// SPDX-License-Identifier: Apache-2.0
/* A process that holds a context and memory and sleeps, and its child without CUDA that counts.
 * The memory is checked when SIGUSR1 or the end comes. */
#include "gpu.h"
#include "report.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t counting;

static void end(int signal)
{
	kill(counting, SIGTERM);
}

static void look(int signal)
{
}

static void count(const struct options *options)
{
	struct model model = model_fill(1000, 10);

	report_ready(options);
	do {
		model_step(&model);
	} while (report_step(options, model.steps, model.sum));
}

/* Returns once the parent holds its memory. */
static void wait_for_parent(const int *go)
{
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(go[1]);
	if (read(go[0], &byte, 1) != 1)
		_exit(8);
	close(go[0]);
}

int main(int argc, char **argv)
{
	struct options options = { .interval = 100, .mib = 64 };
	struct sigaction on_term = { .sa_handler = end }, on_usr1 = { .sa_handler = look };
	struct array array;
	int status = 0, go[2];
	bool ended;

	options_parse(&options, argc, argv);
	if (pipe(go) || (counting = fork()) < 0)
		return 8;
	if (counting == 0) {
		wait_for_parent(go);
		count(&options);
		return 0;
	}
	sigaction(SIGTERM, &on_term, NULL);
	sigaction(SIGUSR1, &on_usr1, NULL);
	gpu_open();
	array_make(&array, (options.mib << 20) / sizeof(uint64_t), 9, NULL);
	array_step(&array);
	array_sum(&array);
	array_verify(&array);
	if (write(go[1], "g", 1) != 1)
		return 8;
	close(go[0]);
	close(go[1]);
	do {
		ended = waitpid(counting, &status, 0) == counting;
		array_sum(&array);
		array_verify(&array);
	} while (!ended);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 8;
}
