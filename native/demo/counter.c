// SPDX-License-Identifier: Apache-2.0
/* diapause-counter: counts steps in device memory and checks all of it after each. */
#include "gpu.h"
#include "report.h"

int main(int argc, char **argv)
{
	struct options options = { .interval = 100, .mib = 16 };
	struct array array;

	options_parse(&options, argc, argv);
	gpu_open();
	array_make(&array, (options.mib << 20) / sizeof(uint64_t), 1, NULL);
	report_ready(&options);
	do {
		array_step(&array);
		array_sum(&array);
	} while (report_step(&options, array.model.steps, array_verify(&array)));
	return 0;
}
