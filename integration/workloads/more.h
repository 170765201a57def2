/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions that only one workload needs, by cuGetProcAddress: MORE(StreamEndCapture, 10000, CUstream,
 * CUgraph *); defines more_StreamEndCapture, which MORE_LOAD(StreamEndCapture) fills once the driver is
 * loaded.
 */
#pragma once

#include "cuda_load.h"

#define MORE(name, since, ...)                              \
	static CUresult (*more_##name)(__VA_ARGS__);        \
	static inline void more_load_##name(void)           \
	{                                                   \
		more_find("cu" #name, since, &more_##name); \
	}

#define MORE_LOAD(name) more_load_##name()

static inline void more_find(const char *name, int since, void *into)
{
	CUdriverProcAddressQueryResult found = 0;

	CHECK(cuda.GetProcAddress(name, (void **)into, since, 0, &found));
	if (!*(void **)into)
		cuda_failed(CUDA_ERROR_NOT_FOUND, name);
}
