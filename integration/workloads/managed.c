// SPDX-License-Identifier: Apache-2.0
/* Managed memory, which the driver refuses to checkpoint: stepped by the device, read by the CPU. */
#include "gpu.h"
#include "report.h"

int main(int argc, char **argv)
{
	struct options options = { .interval = 100, .mib = 4 };
	struct array array;
	CUdeviceptr managed;
	uint64_t sum;

	options_parse(&options, argc, argv);
	gpu_open();
	array_make(&array, (options.mib << 20) / sizeof(uint64_t), 6, NULL);
	CHECK(cuda.MemAllocManaged(&managed, options.mib << 20, CU_MEM_ATTACH_GLOBAL));
	CHECK(cuda.MemFree(array.words));
	array.words = managed;
	array_fill(&array);
	report_ready(&options);
	do {
		array_step(&array);
		array_sum(&array);
		array_verify(&array);
		sum = checksum_words((const uint64_t *)managed, array.model.words);
		if (sum != array.model.sum)
			report_bad(array.model.steps, sum, array.model.sum);
	} while (report_step(&options, array.model.steps, sum));
	return 0;
}
