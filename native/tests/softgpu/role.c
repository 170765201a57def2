// SPDX-License-Identifier: Apache-2.0
#include "role.h"
#include "testing.h"

static void take_time(void *unused)
{
	sleep_ms(500);
}

void role_counter(void)
{
	CUresult (*launch_host)(CUstream, CUhostFn, void *);
	CUdeviceptr spins;
	struct array array;
	char byte;

	gpu_open();
	*(void **)&launch_host = driver_symbol("cuLaunchHostFunc");
	CHECK(cuda.MemAlloc(&spins, sizeof(uint64_t)));
	array_make(&array, 1 << 17, 1, NULL);
	role_answer('r');
	while ((byte = role_next())) {
		if (byte == 's')
			gpu_spin(spins, 500000000, NULL);
		if (byte == 'h')
			CHECK(launch_host(NULL, take_time, NULL));
		if (byte == 'v') {
			array_step(&array);
			array_sum(&array);
			array_verify(&array);
		}
		role_answer(byte);
	}
	exit(0);
}
