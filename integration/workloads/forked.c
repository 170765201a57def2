// SPDX-License-Identifier: Apache-2.0
/* A child that was forked from a process with a GPU state and lives on without one, as the workers do that
 * load data for a training: it has inherited what the driver holds open. Both count. */
#include "gpu.h"
#include "report.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void child(struct model *model, atomic_ulong *steps)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		model_step(model);
		atomic_fetch_add(steps, 1);
		usleep(1000);
	}
}

int main(int argc, char **argv)
{
	struct options options = { .interval = 20, .mib = 4 };
	struct model other = model_fill(1000, 12);
	unsigned long last = 0;
	struct array array;
	atomic_ulong *steps;

	options_parse(&options, argc, argv);
	steps = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (steps == MAP_FAILED)
		return 8;
	gpu_open();
	array_make(&array, (options.mib << 20) / sizeof(uint64_t), 12, NULL);
	if (fork() == 0)
		child(&other, steps);
	report_ready(&options);
	do {
		array_step(&array);
		array_sum(&array);
		array_verify(&array);
		while (atomic_load(steps) == last && waitpid(-1, NULL, WNOHANG) == 0)
			report_pause(1);
		if (atomic_load(steps) == last)
			report_bad(array.model.steps, last, last + 1);
		last = atomic_load(steps);
	} while (report_step(&options, array.model.steps, array.model.sum));
	return 0;
}
