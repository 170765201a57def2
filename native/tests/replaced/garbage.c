// SPDX-License-Identifier: Apache-2.0
/* Arguments on which a driver may die: in groups of their own, each call worse than the one before. */
#include "replaced.h"

void group_no_output(void)
{
	CUmemAllocationProp p = properties;
	CUmemGenericAllocationHandle handle = 0;
	CUdeviceptr memory;
	int which[] = { 2, 3 }, fd = -1;
	unsigned type;
	void *into[] = { &type, &type };

	open_primary();
	memory = allocate(4096);
	p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	NEED(create(&handle, 2 * MIB, &p));
	NEED(export(&fd, handle));
	code("import", import(NULL, fd));
	code("export", export(NULL, handle));
	code("list",
	     CALL(cuPointerGetAttributes, (unsigned, int *, void **, CUdeviceptr), 2, NULL, into, memory));
	code("lists",
	     CALL(cuPointerGetAttributes, (unsigned, int *, void **, CUdeviceptr), 2, which, NULL, memory));
	into[1] = NULL;
	code("one",
	     CALL(cuPointerGetAttributes, (unsigned, int *, void **, CUdeviceptr), 2, which, into, memory));
	code("properties",
	     CALL(cuMemGetAllocationPropertiesFromHandle, (CUmemAllocationProp *, uint64_t), NULL, handle));
}

void group_no_handle(void)
{
	CUmemAllocationProp p;
	CUdeviceptr range;

	open_primary();
	range = reserve(2 * MIB);
	code("release", CALL(cuMemRelease, (uint64_t), 0));
	code("map", map(range, 2 * MIB, 0, 0));
	code("properties",
	     CALL(cuMemGetAllocationPropertiesFromHandle, (CUmemAllocationProp *, uint64_t), &p, 0));
	code("export", export((int[1]){ 0 }, 0));
	code("synchronize", CALL(cuCtxSynchronize, (void)));
}
