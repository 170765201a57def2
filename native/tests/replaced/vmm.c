// SPDX-License-Identifier: Apache-2.0
/* Memory that the program manages itself: cuMemCreate and what belongs to it. */
#include "replaced.h"

#include <fcntl.h>
#include <unistd.h>

#define SIZE (4 * MIB)

static CUresult drop(CUmemGenericAllocationHandle handle)
{
	return CALL(cuMemRelease, (CUmemGenericAllocationHandle), handle);
}

static CUresult retain(CUmemGenericAllocationHandle *handle, CUdeviceptr memory)
{
	return CALL(cuMemRetainAllocationHandle, (CUmemGenericAllocationHandle *, void *), handle,
		    (void *)(uintptr_t)memory);
}

static CUresult properties_of(CUmemAllocationProp *seen, CUmemGenericAllocationHandle handle)
{
	return CALL(cuMemGetAllocationPropertiesFromHandle,
		    (CUmemAllocationProp *, CUmemGenericAllocationHandle), seen, handle);
}

static void show(const char *what, CUmemGenericAllocationHandle handle)
{
	CUmemAllocationProp seen = { 0 };

	codes(properties_of(&seen, handle), "%s-properties", what);
	value("properties", "%s: type %d handles %d location %d %d compression %d rdma %d usage %d", what,
	      (int)seen.type, (int)seen.requestedHandleTypes, (int)seen.location.type, seen.location.id,
	      seen.allocFlags.compressionType, seen.allocFlags.gpuDirectRDMACapable, seen.allocFlags.usage);
}

static void with(const char *what, CUmemAllocationProp p, size_t size)
{
	CUmemGenericAllocationHandle handle = 0;
	CUresult result = create(&handle, size, &p);
	int fd = -1;

	code(what, result);
	if (result)
		return;
	show(what, handle);
	codes(export(&fd, handle), "%s-export", what);
	yes("export-gave-one", fd >= 0);
	close(fd);
	codes(drop(handle), "%s-release", what);
}

void group_create(void)
{
	CUmemAllocationProp p = properties;
	CUmemGenericAllocationHandle handle = 77;

	open_primary();
	with("plain", p, SIZE);
	with("smallest", p, 2 * MIB);
	with("zero", p, 0);
	with("odd", p, SIZE + 4096);
	with("beyond", p, (size_t)1 << 44);
	for (int types = 0; types < 16; types++) {
		p.requestedHandleTypes = types;
		value("types", "%d", types);
		with("typed", p, SIZE);
	}
	p = properties;
	for (int location = -1; location < 7; location++) {
		p.location.type = (CUmemLocationType)location;
		value("location", "%d", location);
		with("located", p, SIZE);
	}
	p = properties;
	p.location.id = 4711;
	with("elsewhere", p, SIZE);
	p.location.id = -1;
	with("nowhere", p, SIZE);
	p = properties;
	p.type = CU_MEM_ALLOCATION_TYPE_INVALID;
	with("untyped", p, SIZE);
	p = properties;
	p.allocFlags.gpuDirectRDMACapable = 1;
	with("rdma", p, SIZE);
	p = properties;
	p.allocFlags.compressionType = 1;
	with("compressed", p, SIZE);
	p = properties;
	p.allocFlags.usage = 4711;
	with("used", p, SIZE);
	code("no-properties", create(&handle, SIZE, NULL));
	code("no-output", create(NULL, SIZE, &properties));
	code("flags",
	     CALL(cuMemCreate,
		  (CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, unsigned long long),
		  &handle, SIZE, &properties, 1));
	yes("output-untouched", handle == 77);
}

static void mapping(CUdeviceptr range, CUmemGenericAllocationHandle handle)
{
	CUmemLocation here = { CU_MEM_LOCATION_TYPE_DEVICE, 0 };
	unsigned long long access = 77;
	CUmemAccessDesc wrong = both;
	CUdeviceptr base = 0;
	size_t size = 0;

	code("map", map(range, SIZE, 0, handle));
	code("over", map(range, SIZE, 0, handle));
	code("odd-address", map(range + SIZE + 4096, SIZE, 0, handle));
	code("unreserved", map(0x1234000000, SIZE, 0, handle));
	code("too-long", map(range + SIZE, 2 * SIZE, 0, handle));
	code("offset", map(range + SIZE, 2 * MIB, 2 * MIB, handle));
	code("offset-unmap", unmap(range + SIZE, 2 * MIB));
	code("zero-size", map(range + SIZE, 0, 0, handle));
	code("flags",
	     CALL(cuMemMap, (CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long),
		  range + SIZE, SIZE, 0, handle, 1));
	code("access-none", CALL(cuMemSetAccess, (CUdeviceptr, size_t, const CUmemAccessDesc *, size_t),
				 range, SIZE, NULL, 1));
	code("access-count", CALL(cuMemSetAccess, (CUdeviceptr, size_t, const CUmemAccessDesc *, size_t),
				  range, SIZE, &both, 0));
	wrong.location.id = 4711;
	code("access-elsewhere", CALL(cuMemSetAccess, (CUdeviceptr, size_t, const CUmemAccessDesc *, size_t),
				      range, SIZE, &wrong, 1));
	wrong = both;
	wrong.flags = (CUmemAccess_flags)2;
	code("access-flags", CALL(cuMemSetAccess, (CUdeviceptr, size_t, const CUmemAccessDesc *, size_t),
				  range, SIZE, &wrong, 1));
	code("access-unmapped", access_both(range + 8 * SIZE, SIZE));
	code("access-beyond", access_both(range, 2 * SIZE));
	code("access", access_both(range, SIZE));
	code("get-access", CALL(cuMemGetAccess, (unsigned long long *, const CUmemLocation *, CUdeviceptr),
				&access, &here, range));
	value("access-is", "%llu", access);
	code("range", CALL(cuMemGetAddressRange_v2, (CUdeviceptr *, size_t *, CUdeviceptr), &base, &size,
			   range + MIB));
	value("range-is", "%d %zu", base == range, size);
	code("range-unmapped", CALL(cuMemGetAddressRange_v2, (CUdeviceptr *, size_t *, CUdeviceptr), &base,
				    &size, range + 8 * SIZE));
	code("free", release(range));
	wrong.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
	code("read-only", CALL(cuMemSetAccess, (CUdeviceptr, size_t, const CUmemAccessDesc *, size_t), range,
			       SIZE, &wrong, 1));
	wrong.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	code("no-access", CALL(cuMemSetAccess, (CUdeviceptr, size_t, const CUmemAccessDesc *, size_t), range,
			       SIZE, &wrong, 1));
	code("access-again", access_both(range, SIZE));
}

static void retaining(CUdeviceptr range, CUmemGenericAllocationHandle handle)
{
	CUmemGenericAllocationHandle first = 77, second = 77, none = 77;
	CUdeviceptr plain = allocate(SIZE), small = allocate(100);
	static char here[64];

	code("retain", retain(&first, range + 100));
	yes("retain-same", first == handle);
	code("retain-again", retain(&second, range + SIZE - 1));
	yes("retain-again-same", second == first);
	show("retained", first);
	code("retain-null", retain(NULL, range));
	code("retain-unmapped", retain(&none, range + 8 * SIZE));
	code("retain-plain", retain(&none, plain));
	code("retain-small", retain(&none, small));
	code("retain-host", retain(&none, (CUdeviceptr)(uintptr_t)here));
	code("retain-nothing", retain(&none, 0));
	yes("retain-untouched", none == 77);
	code("unmap-plain", unmap(plain, SIZE));
	code("access-plain", access_both(plain, SIZE));
	code("address-free-plain", CALL(cuMemAddressFree, (CUdeviceptr, size_t), plain, SIZE));
	code("map-over-plain", map(plain, SIZE, 0, handle));
	value("plain-is-there", "%d",
	      (int)CALL(cuMemsetD8_v2, (CUdeviceptr, unsigned char, size_t), plain, 7, SIZE));
	code("free-plain", release(plain));
	code("free-small", release(small));
	code("release-first", drop(first));
	code("release-second", drop(second));
}

void group_map(void)
{
	CUmemGenericAllocationHandle handle = 0, other = 0;
	CUdeviceptr range;

	open_primary();
	range = reserve(16 * SIZE);
	NEED(create(&handle, SIZE, &properties));
	mapping(range, handle);
	NEED(CALL(cuMemsetD32_v2, (CUdeviceptr, unsigned, size_t), range, 0x11223344, SIZE / 4));
	retaining(range, handle);
	code("second-view", map(range + SIZE, SIZE, 0, handle));
	code("second-access", access_both(range + SIZE, SIZE));
	value("second-content", "%08x", first_word(range + 2 * SIZE - 4));
	code("unmap-part", unmap(range, 2 * MIB));
	code("unmap-both", unmap(range, 2 * SIZE));
	code("unmap-again", unmap(range, SIZE));
	code("map-again", map(range, SIZE, 0, handle));
	NEED(access_both(range, SIZE));
	value("content-stays", "%08x", first_word(range));
	code("release", drop(handle));
	value("content-after-release", "%08x", first_word(range + SIZE - 4));
	code("retain-released", retain(&other, range));
	yes("retain-released-gives-one", other != 0);
	code("release-retained", drop(other));
	code("address-free-mapped", CALL(cuMemAddressFree, (CUdeviceptr, size_t), range, 16 * SIZE));
	code("unmap", unmap(range, SIZE));
	NEED(create(&handle, SIZE, &properties));
	NEED(create(&other, SIZE, &properties));
	code("map-first", map(range, SIZE, 0, handle));
	code("map-behind", map(range + SIZE, SIZE, 0, other));
	code("access-over-both", access_both(range, 2 * SIZE));
	code("set-over-both",
	     CALL(cuMemsetD32_v2, (CUdeviceptr, unsigned, size_t), range, 0x99aabbcc, 2 * SIZE / 4));
	value("content-of-both", "%08x %08x", first_word(range), first_word(range + 2 * SIZE - 4));
	code("unmap-over-both", unmap(range, 2 * SIZE));
	code("release-both", drop(handle) ?: drop(other));
	code("address-free", CALL(cuMemAddressFree, (CUdeviceptr, size_t), range, 16 * SIZE));
	synchronize();
}

void group_share(void)
{
	CUmemAllocationProp p = properties;
	CUmemGenericAllocationHandle handle, other = 0, again = 0;
	CUdeviceptr range;
	int fd = -1, second = -1, null = open("/dev/null", O_RDWR | O_CLOEXEC);

	open_primary();
	range = reserve(4 * SIZE);
	NEED(create(&handle, SIZE, &p));
	code("private", export(&fd, handle));
	NEED(map(range, SIZE, 0, handle));
	code("private-mapped", export(&fd, handle));
	NEED(unmap(range, SIZE));
	NEED(drop(handle));
	p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	NEED(create(&handle, SIZE, &p));
	NEED(map(range, SIZE, 0, handle));
	NEED(access_both(range, SIZE));
	NEED(CALL(cuMemsetD32_v2, (CUdeviceptr, unsigned, size_t), range, 0xabcd1234, SIZE / 4));
	synchronize();
	code("no-type", CALL(cuMemExportToShareableHandle,
			     (void *, unsigned long long, int, unsigned long long), &fd, handle, 0, 0));
	code("flags", CALL(cuMemExportToShareableHandle,
			   (void *, unsigned long long, int, unsigned long long), &fd, handle, 1, 1));
	code("export", export(&fd, handle));
	code("export-again", export(&second, handle));
	yes("two-descriptors", fd >= 0 && second >= 0 && fd != second);
	yes("closed-on-exec", fcntl(fd, F_GETFD) & FD_CLOEXEC);
	code("import", import(&other, fd));
	yes("import-another", other != handle);
	show("imported", other);
	code("import-export", export(&null, other));
	code("import-map", map(range + SIZE, SIZE, 0, other));
	code("import-access", access_both(range + SIZE, SIZE));
	value("import-content", "%08x", first_word(range + 2 * SIZE - 4));
	code("import-again", import(&again, second));
	code("import-type", CALL(cuMemImportFromShareableHandle, (unsigned long long *, void *, int), &again,
				 (void *)(intptr_t)fd, 0));
	close(fd);
	code("import-closed", import(&again, fd));
	code("import-null-device", import(&again, open("/dev/null", O_RDWR | O_CLOEXEC)));
	code("unmap-import", unmap(range + SIZE, SIZE));
	code("release-import", drop(other));
	code("unmap", unmap(range, SIZE));
	code("release", drop(handle));
	close(second);
	synchronize();
}
