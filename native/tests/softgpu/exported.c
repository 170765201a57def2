// SPDX-License-Identifier: Apache-2.0
/* Memory that was exported: the exporter can be checkpointed, its descriptor keeps the device open;
 * who holds memory of another process loses it. */
#include "testing.h"

#include <string.h>
#include <unistd.h>

#define SIZE ((size_t)2 << 20)

static CUresult (*create)(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *,
			  unsigned long long);
static CUresult (*export)(void *, CUmemGenericAllocationHandle, CUmemAllocationHandleType,
			  unsigned long long);
static CUresult (*import)(CUmemGenericAllocationHandle *, void *, CUmemAllocationHandleType);
static CUresult (*reserve)(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long);
static CUresult (*map)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long);
static CUresult (*set_access)(CUdeviceptr, size_t, const CUmemAccessDesc *, size_t);

static void open_vmm(void)
{
	*(void **)&create = driver_symbol("cuMemCreate");
	*(void **)&export = driver_symbol("cuMemExportToShareableHandle");
	*(void **)&import = driver_symbol("cuMemImportFromShareableHandle");
	*(void **)&reserve = driver_symbol("cuMemAddressReserve");
	*(void **)&map = driver_symbol("cuMemMap");
	*(void **)&set_access = driver_symbol("cuMemSetAccess");
}

/* Two mappings of one handle, or of what was imported from it. 'c' closes the descriptor. */
static void role(const char *name)
{
	CUmemAllocationProp properties = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 }, 3 };
	CUmemGenericAllocationHandle handle, second;
	struct array array;
	CUdeviceptr p, own;
	char byte;
	int fd;

	gpu_open();
	open_vmm();
	array_make(&array, SIZE / 8, 1, NULL);
	CHECK(create(&handle, SIZE, &properties, 0));
	CHECK(export(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	second = handle;
	if (strcmp(name, "importer") == 0)
		CHECK(import(&second, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	CHECK(reserve(&p, 2 * SIZE, 0, 0, 0));
	CHECK(map(p, SIZE, 0, handle, 0));
	CHECK(map(p + SIZE, SIZE, 0, second, 0));
	CHECK(set_access(p, 2 * SIZE, &access, 1));
	own = array.words;
	array.words = p;
	array_fill(&array);
	role_answer('r');
	while ((byte = role_next())) {
		if (byte == 'c')
			close(fd);
		if (byte == 'v') {
			/* Written through one mapping, read through the other. */
			array.words = p;
			array_step(&array);
			array.words = p + SIZE;
			array_sum(&array);
			array_verify(&array);
		}
		role_answer(byte);
	}
	CHECK(cuda.MemFree(own));
	exit(0);
}

static CUresult down(pid_t pid)
{
	EXPECT_EQ(driver.lock(pid, NULL), CUDA_SUCCESS);
	return driver.checkpoint(pid, NULL);
}

static void up(const struct child *child)
{
	EXPECT_EQ(driver.restore(child->pid, NULL), CUDA_SUCCESS);
	EXPECT_EQ(driver.unlock(child->pid, NULL), CUDA_SUCCESS);
	EXPECT_EQ(child_do(child, 'v'), 'v');
}

int main(int argc, char **argv)
{
	const char *device = getenv("DIAPAUSE_SOFTGPU_DEVICE");
	struct child child;

	if (role_of(argc, argv))
		role(role_of(argc, argv));
	if (!device) {
		device = "/dev/fuse";
		setenv("DIAPAUSE_SOFTGPU_DEVICE", device, 1);
	}
	if (access(device, R_OK))
		test_skip("no /dev/fuse");
	driver_open();
	child = child_start("exporter");
	EXPECT_EQ(child_do(&child, 'v'), 'v');
	EXPECT_EQ(down(child.pid), CUDA_SUCCESS);
	EXPECT_EQ(fds_like(child.pid, device), 1); /* the program's descriptor needs it */
	up(&child);
	EXPECT_EQ(child_do(&child, 'c'), 'c');
	EXPECT_EQ(down(child.pid), CUDA_SUCCESS);
	EXPECT_EQ(fds_like(child.pid, device), 0);
	up(&child);
	EXPECT_EQ(child_end(&child), 0);

	child = child_start("importer");
	EXPECT_EQ(child_do(&child, 'v'), 'v');
	EXPECT_EQ(down(child.pid), CUDA_SUCCESS);
	EXPECT_EQ(driver.restore(child.pid, NULL), CUDA_ERROR_NOT_SUPPORTED);
	EXPECT_EQ(driver_state(child.pid), CU_PROCESS_STATE_FAILED);
	child_kill(&child);
	return 0;
}
