// SPDX-License-Identifier: Apache-2.0
/* Host memory that the device uses: words go up from registered memory, are stepped on the device
 * and come down into pinned memory, from where the CPU copies them over for the next round. Both
 * must still be known to the driver, at the same addresses. */
#include "gpu.h"
#include "report.h"

#include <string.h>
#include <sys/mman.h>

static void still_pinned(void *memory)
{
	CUdeviceptr device = 0;

	CHECK(cuda.MemHostGetDevicePointer(&device, memory, 0));
	if (device != (CUdeviceptr)(uintptr_t)memory)
		cuda_failed(CUDA_ERROR_INVALID_VALUE, "another device pointer");
}

int main(int argc, char **argv)
{
	struct options options = { .interval = 100, .mib = 4 };
	struct array array;
	uint64_t *pinned, *registered;
	size_t size;

	options_parse(&options, argc, argv);
	size = options.mib << 20;
	gpu_open();
	CHECK(cuda.MemHostAlloc((void **)&pinned, size, 0));
	registered = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (registered == MAP_FAILED)
		return 8;
	CHECK(cuda.MemHostRegister(registered, size, 0));
	array_make(&array, size / sizeof(uint64_t), 3, NULL);
	CHECK(cuda.MemcpyDtoH(registered, array.words, size));
	report_ready(&options);
	do {
		still_pinned(pinned);
		still_pinned(registered);
		CHECK(cuda.MemcpyHtoDAsync(array.words, registered, size, array.stream));
		array_step(&array);
		CHECK(cuda.MemcpyDtoHAsync(pinned, array.words, size, array.stream));
		array_sum(&array);
		array_verify(&array);
		if (checksum_words(pinned, array.model.words) != array.model.sum)
			report_bad(array.model.steps, checksum_words(pinned, array.model.words),
				   array.model.sum);
		memcpy(registered, pinned, size);
	} while (report_step(&options, array.model.steps, array.model.sum));
	return 0;
}
