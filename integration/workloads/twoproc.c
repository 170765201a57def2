// SPDX-License-Identifier: Apache-2.0
/* Two processes with a GPU state each. The child takes a step when the parent asks for it and
 * answers with its checksum, so that no line can hide a child that stands still. */
#include "gpu.h"
#include "report.h"

#include <unistd.h>

static int ask[2], answer[2];

static void child(uint64_t words)
{
	struct array array;
	uint64_t sum;
	char byte;

	gpu_open();
	array_make(&array, words, 5, NULL);
	while (read(ask[0], &byte, 1) == 1) {
		array_step(&array);
		array_sum(&array);
		sum = array_verify(&array);
		if (write(answer[1], &sum, sizeof(sum)) != sizeof(sum))
			break;
	}
	_exit(0);
}

static uint64_t step_child(void)
{
	uint64_t sum = 0; /* what a dead child is good for */

	if (write(ask[1], "s", 1) != 1 || read(answer[0], &sum, sizeof(sum)) != sizeof(sum))
		return 0;
	return sum;
}

int main(int argc, char **argv)
{
	struct options options = { .interval = 100, .mib = 8 };
	struct model other;
	struct array array;
	uint64_t words, sum, answered;

	options_parse(&options, argc, argv);
	words = (options.mib << 20) / sizeof(uint64_t);
	if (pipe(ask) || pipe(answer))
		return 8;
	if (fork() == 0) {
		close(ask[1]);
		close(answer[0]);
		child(words);
	}
	close(ask[0]);
	close(answer[1]);
	gpu_open();
	array_make(&array, words, 4, NULL);
	other = model_fill(words, 5);
	report_ready(&options);
	do {
		array_step(&array);
		array_sum(&array);
		sum = array_verify(&array);
		model_step(&other);
		answered = step_child();
		if (answered != other.sum)
			report_bad(other.steps, answered, other.sum);
	} while (report_step(&options, array.model.steps, sum ^ other.sum));
	return 0;
}
