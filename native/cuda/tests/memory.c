// SPDX-License-Identifier: Apache-2.0
/* Allocations as the program sees them, through the library, and as the control channel tells of them. */
#include "tool.h"

#include "../../tests/contract/api.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define MANY 50000

#define MUST(call)                                   \
	do {                                         \
		int must = (int)(call);              \
		CHECK(!must, "%s: %d", #call, must); \
	} while (0)

static CUcontext context;
static struct tool *tool;
static atomic_bool over;

static void open_gpu(void)
{
	api_load("libcuda.so.1");
	MUST(cu.Init(0));
	MUST(cu.DevicePrimaryCtxRetain(&context, 0));
	MUST(cu.CtxSetCurrent(context));
	tool = tool_open(getpid());
}

static const struct diapause_stats *stats(void)
{
	CHECK(tool_ask(tool, DIAPAUSE_OP_STATS, NULL, 0) == DIAPAUSE_OK, "stats");
	return &tool->stats;
}

static unsigned int word_at(CUdeviceptr address)
{
	unsigned int word = 0;

	MUST(cu.MemcpyDtoH(&word, address, 4));
	return word;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static CUdeviceptr some[MANY];

static size_t size_of(unsigned int i)
{
	return 4 + i * 7919 % 3000;
}

static int by_address(const void *a, const void *b)
{
	CUdeviceptr x = *(const CUdeviceptr *)a, y = *(const CUdeviceptr *)b;

	return x < y ? -1 : x > y;
}

static void many_small(void)
{
	double start = now();
	size_t free_before, free_after, total;
	static CUdeviceptr sorted[MANY];

	MUST(cu.MemGetInfo(&free_before, &total));
	for (unsigned int i = 0; i < MANY; i++)
		MUST(cu.MemAlloc(&some[i], size_of(i)));
	CHECK(now() - start < 5, "it took %.1f s", now() - start);
	CHECK(stats()->allocations == MANY && !stats()->native && !stats()->tracked, "all of them are small");
	tool_list(tool);
	CHECK(tool->n_all < 40, "%u handles", tool->n_all);
	CHECK(stats()->slab < 2 * (size_t)MANY * 1504 + 32 * MIB, "%lu bytes", stats()->slab);
	for (unsigned int i = 0; i < MANY; i++)
		MUST(cu.MemsetD32(some[i], i, 1));
	for (unsigned int i = 0; i < MANY; i += 97) {
		CUdeviceptr base = 0;
		size_t size = 0;

		CHECK(word_at(some[i]) == i, "content of %u", i);
		MUST(cu.MemGetAddressRange(&base, &size, some[i] + size_of(i) - 1));
		CHECK(base == some[i] && size == size_of(i), "range of %u", i);
	}
	memcpy(sorted, some, sizeof(some));
	qsort(sorted, MANY, sizeof(*sorted), by_address);
	for (unsigned int i = 1; i < MANY; i++)
		CHECK(sorted[i] - sorted[i - 1] >= 512 && sorted[i] % 512 == 0, "%llx %llx", sorted[i - 1],
		      sorted[i]);
	for (unsigned int i = 0; i < MANY; i += 2)
		MUST(cu.MemFree(some[i]));
	CHECK(stats()->allocations == MANY / 2, "half of them");
	for (unsigned int i = 1; i < MANY; i += 2)
		CHECK(i % 97 || word_at(some[i]) == i, "content of %u after frees", i);
	for (unsigned int i = 1; i < MANY; i += 2)
		MUST(cu.MemFree(some[i]));
	MUST(cu.MemGetInfo(&free_after, &total));
	CHECK(stats()->allocations == 0 && stats()->slab <= 4 * MIB, "%lu bytes stay", stats()->slab);
	CHECK(free_after + 4 * MIB >= free_before, "memory is free again");
}

static void sizes(void)
{
	static const size_t around[] = { 1,	  511,	       512,	513,	    4095, 4096,
					 4097,	  65536,       MIB / 2, MIB - 1,    MIB,  MIB + 1,
					 2 * MIB, 2 * MIB + 1, 5 * MIB, 7 * MIB + 3 };

	for (size_t i = 0; i < sizeof(around) / sizeof(around[0]); i++) {
		CUdeviceptr at = 0, base;
		size_t size;

		MUST(cu.MemAlloc(&at, around[i]));
		CHECK(at % 512 == 0, "%zu at %llx", around[i], at);
		MUST(cu.MemsetD8(at, 0x5a, around[i]));
		MUST(cu.MemGetAddressRange(&base, &size, at));
		CHECK(base == at && size == around[i], "%zu is %zu", around[i], size);
		CHECK(cu.MemFree(at + 256) == CUDA_ERROR_INVALID_VALUE, "%zu: in the middle", around[i]);
		CHECK(cu.MemFree(at + 512) == CUDA_ERROR_INVALID_VALUE, "%zu: in the middle", around[i]);
		MUST(cu.MemFree(at));
		CHECK(cu.MemFree(at) == CUDA_ERROR_INVALID_VALUE, "%zu: twice", around[i]);
		CHECK(cu.MemGetAddressRange(&base, &size, at) == CUDA_ERROR_NOT_FOUND, "%zu: gone",
		      around[i]);
	}
	MUST(cu.MemFree(0));
}

static void out_of_memory(void)
{
	size_t total, rest, n = 0;
	CUdeviceptr at;
	int result;

	MUST(cu.MemGetInfo(&rest, &total));
	CHECK(cu.MemAlloc(&at, total + 1) == CUDA_ERROR_OUT_OF_MEMORY, "more than there is");
	CHECK(cu.MemAlloc(&at, SIZE_MAX) == CUDA_ERROR_OUT_OF_MEMORY, "more than anything");
	while (!(result = cu.MemAlloc(&some[n], total / 16)))
		n++;
	CHECK(result == CUDA_ERROR_OUT_OF_MEMORY && n >= 8, "%d after %zu", result, n);
	while (!(result = cu.MemAlloc(&some[n], 700 * KIB)))
		CHECK(++n < MANY, "without end");
	CHECK(result == CUDA_ERROR_OUT_OF_MEMORY, "%d", result);
	MUST(cu.MemGetInfo(&rest, &total));
	CHECK(rest < total / 64, "to the last: %zu", rest);
	MUST(cu.CtxSynchronize());
	while (n)
		MUST(cu.MemFree(some[--n]));
	MUST(cu.MemAlloc(&at, total / 2));
	MUST(cu.MemFree(at));
}

static void reuse(void)
{
	CUdeviceptr at, first = 0;

	for (int i = 0; i < 3000; i++) {
		MUST(cu.MemAlloc(&at, i & 1 ? 3 * MIB : 100));
		if (i == 1)
			first = at;
		MUST(cu.MemFree(at));
	}
	CHECK(at == first, "addresses are used again");
}

/* Addresses that lie side by side serve a request that is as large as all of them. */
static void joined(void)
{
	CUdeviceptr at[5], all;

	for (int i = 0; i < 5; i++)
		MUST(cu.MemAlloc(&at[i], 4 * MIB));
	for (int i = 1; i < 5; i++)
		CHECK(at[i] == at[0] + i * 4 * MIB, "one after the other");
	MUST(cu.MemFree(at[2]));
	MUST(cu.MemFree(at[1]));
	MUST(cu.MemFree(at[3]));
	MUST(cu.MemAlloc(&all, 12 * MIB));
	CHECK(all == at[1], "the three");
	MUST(cu.MemFree(all));
	MUST(cu.MemFree(at[0]));
	MUST(cu.MemFree(at[4]));
}

static void *churn(void *seed)
{
	unsigned int state = (uintptr_t)seed;
	CUdeviceptr mine[64] = { 0 };

	MUST(cu.CtxSetCurrent(context));
	for (int i = 0; i < 4000; i++) {
		unsigned int k = (state = state * 1103515245 + 12345) >> 16 & 63, size;

		if (mine[k]) {
			CHECK(word_at(mine[k]) == (unsigned int)(mine[k] ^ (uintptr_t)seed),
			      "somebody else's");
			MUST(cu.MemFree(mine[k]));
			mine[k] = 0;
			continue;
		}
		size = state >> 8 & 1 ? 4 + (state >> 9) % 100000 : 4 + (state >> 9) % (3 * MIB);
		MUST(cu.MemAlloc(&mine[k], size));
		MUST(cu.MemsetD32(mine[k], mine[k] ^ (uintptr_t)seed, 1));
	}
	for (int k = 0; k < 64; k++)
		if (mine[k])
			MUST(cu.MemFree(mine[k]));
	return NULL;
}

static void threads(void)
{
	pthread_t all[6];

	for (uintptr_t i = 0; i < 6; i++)
		pthread_create(&all[i], NULL, churn, (void *)(i + 1));
	for (int i = 0; i < 6; i++)
		pthread_join(all[i], NULL);
	CHECK(!stats()->allocations && !stats()->tracked && stats()->slab <= 4 * MIB, "nothing is left");
}

static void contexts(void)
{
	CUcontext other;
	CUdeviceptr mine, small, large, base;
	size_t size;
	int result;

	MUST(cu.MemAlloc(&mine, 5 * MIB));
	MUST(cu.CtxCreate(&other, 0, 0));
	MUST(cu.MemAlloc(&small, 100));
	MUST(cu.MemAlloc(&large, 4 * MIB));
	CHECK(stats()->allocations == 3, "three");
	MUST(cu.CtxDestroy(other));
	CHECK(stats()->allocations == 1, "its memory has gone with it");
	CHECK(cu.MemGetAddressRange(&base, &size, small) == CUDA_ERROR_NOT_FOUND, "the small one");
	CHECK(cu.MemGetAddressRange(&base, &size, large) == CUDA_ERROR_NOT_FOUND, "the large one");
	MUST(cu.MemGetAddressRange(&base, &size, mine));
	MUST(cu.CtxCreate(&other, 0, 0));
	MUST(cu.MemFree(mine)); /* from another context */
	MUST(cu.CtxDestroy(other));
	MUST(cu.MemAlloc(&mine, 5 * MIB));
	MUST(cu.DevicePrimaryCtxReset(0));
	CHECK(stats()->allocations == 0 && stats()->tracked == 0, "reset");
	MUST(cu.DevicePrimaryCtxRetain(&context, 0));
	MUST(cu.CtxSetCurrent(context));
	MUST(cu.MemAlloc(&mine, 5 * MIB));
	do
		result = cu.DevicePrimaryCtxRelease(0);
	while (!result && stats()->allocations);
	CHECK(!result && !stats()->tracked, "the last release: %d", result);
}

/* Without a context, and in a child, the driver's refusals. */
static void refused(void)
{
	CUdeviceptr at, mine;
	pid_t child;
	int status;

	MUST(cu.MemAlloc(&mine, 5 * MIB));
	MUST(cu.MemsetD32(mine, 0x77, 1));
	MUST(cu.CtxSetCurrent(NULL));
	CHECK(cu.MemAlloc(&at, 5 * MIB) == CUDA_ERROR_INVALID_CONTEXT, "no context: alloc");
	CHECK(cu.MemFree(mine + 512) == CUDA_ERROR_INVALID_VALUE, "no context: free in the middle");
	MUST(cu.MemFree(mine));
	CHECK(stats()->allocations == 0, "no context is needed to free");
	MUST(cu.CtxSetCurrent(context));
	MUST(cu.MemAlloc(&mine, 5 * MIB));
	MUST(cu.MemsetD32(mine, 0x77, 1));
	child = fork();
	if (!child) {
		CHECK(cu.MemAlloc(&at, 5 * MIB) == CUDA_ERROR_NOT_INITIALIZED, "child: alloc");
		CHECK(cu.MemAlloc(&at, 5) == CUDA_ERROR_NOT_INITIALIZED, "child: small alloc");
		CHECK(cu.MemFree(mine) == CUDA_ERROR_NOT_INITIALIZED, "child: free");
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && !status, "the child");
	CHECK(word_at(mine) == 0x77, "it did no harm");
	MUST(cu.MemFree(mine));
}

static pthread_barrier_t barrier;

static void *allocates(void *unused)
{
	CUdeviceptr at;

	MUST(cu.CtxSetCurrent(context));
	pthread_barrier_wait(&barrier);
	while (!over) {
		MUST(cu.MemAlloc(&at, 2000));
		MUST(cu.MemGetAddressRange(NULL, NULL, at));
		MUST(cu.MemFree(at));
	}
	return unused;
}

/* The lock may be taken in the moment of a fork. */
static void forks(void)
{
	pthread_t thread;

	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, allocates, NULL);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 300; i++) {
		pid_t child = fork();
		CUdeviceptr at = 0;
		int status;

		if (!child) {
			alarm(10);
			_exit(cu.MemAlloc(&at, 100) == CUDA_ERROR_NOT_INITIALIZED &&
					      cu.MemGetAddressRange(&at, NULL, at)
				      ? 0
				      : 1);
		}
		CHECK(waitpid(child, &status, 0) == child && !status, "child %d: %#x", i, status);
	}
	over = true;
	pthread_join(thread, NULL);
}

static void quiesce(void)
{
	CHECK(tool_quiesce(tool, 10000) == DIAPAUSE_OK, "quiesce");
}

static void open_gates(void)
{
	CHECK(tool_ask(tool, DIAPAUSE_OP_OPEN, NULL, 0) == DIAPAUSE_OK, "open");
}

/* Everything away and back. */
static void round_trip(void)
{
	static int fds[TOOL_LIST];

	quiesce();
	tool_list(tool);
	CHECK(tool_each(tool, DIAPAUSE_OP_REHOME, DIAPAUSE_MEMORY_IMPORTED, 0, fds) == DIAPAUSE_OK, "rehome");
	CHECK(tool_each(tool, DIAPAUSE_OP_EXPORT, 0, 0, fds) == DIAPAUSE_OK, "export");
	CHECK(tool_ask(tool, DIAPAUSE_OP_DROP, NULL, 0) == DIAPAUSE_OK, "drop");
	CHECK(tool_each(tool, DIAPAUSE_OP_ATTACH, 0, 0, fds) == DIAPAUSE_OK, "attach");
	tool_close_fds(fds, tool->n_all);
	open_gates();
}

static void wait_until_over(void *unused)
{
	while (!over)
		usleep(1000);
}

/* Nobody is inside a call, but the GPU is not idle, and may never be. */
static void work_without_end(void)
{
	struct diapause_page page;
	CUdeviceptr at;
	CUstream stream;

	MUST(cu.MemAlloc(&at, 100));
	MUST(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	MUST(cu.LaunchHostFunc(stream, wait_until_over, NULL));
	for (int i = 0; i < 2; i++) {
		CHECK(tool_quiesce(tool, 100) == DIAPAUSE_BUSY && tool->quiet.inside == 1, "busy");
		CHECK(tool_page(getpid(), &page) && page.gate == DIAPAUSE_GATE_OPEN, "open again");
	}
	over = true;
	quiesce();
	CHECK(tool->quiet.contexts == 1, "drained");
	CHECK(tool_page(getpid(), &page) && page.gate == DIAPAUSE_GATE_CLOSED, "closed");
	open_gates();
	MUST(cu.MemFree(at));
}

static const CUmemAllocationProp properties = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
						.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
static const CUmemAccessDesc access_both = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
					     CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
static const CUmemAccessDesc access_read = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
					     CU_MEM_ACCESS_FLAGS_PROT_READ };

#define SIZE (4 * MIB)
#define POSIX CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

static void program_handles(void)
{
	CUmemAllocationProp shareable = properties, seen;
	CUmemGenericAllocationHandle private, shared, unmapped, again, fresh[20], imported;
	unsigned long long id_before = 0, id_after = 0, access = 0;
	CUdeviceptr range;
	int fd = -1;

	for (int i = 0; i < 20; i++)
		MUST(cu.MemCreate(&fresh[i], SIZE, &properties, 0));
	for (int i = 0; i < 20; i++)
		MUST(cu.MemRelease(fresh[i]));
	shareable.requestedHandleTypes = POSIX;
	MUST(cu.MemAddressReserve(&range, 8 * SIZE, 0, 0, 0));
	MUST(cu.MemCreate(&private, SIZE, &properties, 0));
	MUST(cu.MemCreate(&shared, SIZE, &shareable, 0));
	MUST(cu.MemCreate(&unmapped, SIZE, &properties, 0));
	MUST(cu.MemMap(range, SIZE, 0, private, 0));
	MUST(cu.MemMap(range + SIZE, SIZE, 0, shared, 0));
	MUST(cu.MemMap(range + 2 * SIZE, SIZE, 0, unmapped, 0));
	MUST(cu.MemSetAccess(range, 3 * SIZE, &access_both, 1));
	MUST(cu.MemsetD32(range, 1, SIZE / 4));
	MUST(cu.MemsetD32(range + SIZE, 2, SIZE / 4));
	MUST(cu.MemsetD32(range + 2 * SIZE, 3, SIZE / 4));
	MUST(cu.CtxSynchronize());
	MUST(cu.MemUnmap(range + 2 * SIZE, SIZE)); /* it keeps its content in its handle */
	MUST(cu.MemSetAccess(range, SIZE, &access_read, 1));
	MUST(cu.PointerGetAttribute(&id_before, CU_POINTER_ATTRIBUTE_BUFFER_ID, range));
	CHECK(stats()->program == 3 * SIZE, "three");
	CHECK(cu.MemExportToShareableHandle(&fd, private, POSIX, 0) == CUDA_ERROR_INVALID_VALUE, "private");
	for (int i = 0; i < 2; i++) {
		round_trip();
		MUST(cu.PointerGetAttribute(&id_after, CU_POINTER_ATTRIBUTE_BUFFER_ID, range));
		CHECK(id_before == id_after, "the buffer is the same");
		CHECK(word_at(range) == 1 && word_at(range + 2 * SIZE - 4) == 2, "content");
		MUST(cu.MemGetAccess(&access, &access_read.location, range));
		CHECK(access == 1, "access: %llu", access);
		MUST(cu.MemGetAllocationPropertiesFromHandle(&seen, private));
		CHECK(!memcmp(&seen.requestedHandleTypes, &properties.requestedHandleTypes, 4), "as asked");
		MUST(cu.MemMap(range + 3 * SIZE, SIZE, 0, unmapped, 0));
		MUST(cu.MemSetAccess(range + 3 * SIZE, SIZE, &access_both, 1));
		CHECK(word_at(range + 4 * SIZE - 4) == 3, "content without a place");
		MUST(cu.MemUnmap(range + 3 * SIZE, SIZE));
		MUST(cu.MemRetainAllocationHandle(&again, (void *)(uintptr_t)(range + SIZE)));
		CHECK(again == shared, "the name stays");
		MUST(cu.MemRelease(again));
		CHECK(cu.MemExportToShareableHandle(&fd, private, POSIX, 0) == CUDA_ERROR_INVALID_VALUE,
		      "not asked for");
		MUST(cu.MemExportToShareableHandle(&fd, shared, POSIX, 0));
		MUST(cu.MemImportFromShareableHandle(&imported, (void *)(intptr_t)fd, POSIX));
		close(fd);
		CHECK(stats()->foreign_count == 1, "foreign");
		MUST(cu.MemMap(range + 4 * SIZE, SIZE, 0, imported, 0));
		MUST(cu.MemSetAccess(range + 4 * SIZE, SIZE, &access_both, 1));
		CHECK(word_at(range + 4 * SIZE) == 2, "the same memory");
		MUST(cu.MemUnmap(range + 4 * SIZE, SIZE));
		MUST(cu.MemRelease(imported));
		CHECK(stats()->foreign_count == 0, "no more");
	}
	/* handles that the driver gives now may be called as others were before */
	quiesce();
	tool_list(tool);
	CHECK(tool_each(tool, DIAPAUSE_OP_REHOME, DIAPAUSE_MEMORY_IMPORTED, 0, &fd) == DIAPAUSE_OK, "rehome");
	open_gates();
	for (int i = 0; i < 20; i++) {
		MUST(cu.MemCreate(&fresh[i], SIZE, &properties, 0));
		CHECK(fresh[i] != private && fresh[i] != shared && fresh[i] != unmapped, "a name of its own");
	}
	for (int i = 0; i < 20; i++)
		MUST(cu.MemRelease(fresh[i]));
	MUST(cu.MemRelease(private));
	CHECK(cu.MemRelease(private) == CUDA_ERROR_INVALID_VALUE, "given back");
	CHECK(cu.MemMap(range + 5 * SIZE, SIZE, 0, private, 0) == CUDA_ERROR_INVALID_VALUE, "unknown");
	round_trip();
	CHECK(word_at(range) == 1, "mapped without a name");
	MUST(cu.MemUnmap(range, 2 * SIZE));
	MUST(cu.MemRelease(shared));
	MUST(cu.MemRelease(unmapped));
	MUST(cu.MemAddressFree(range, 8 * SIZE));
	CHECK(stats()->program == 0, "all gone");
	tool_list(tool);
	CHECK(tool->n_all == 0, "%u left", tool->n_all);
}

static void others(void)
{
	CUdeviceptr managed, pool;
	void *host;

	MUST(cu.MemAllocManaged(&managed, 3 * MIB, CU_MEM_ATTACH_GLOBAL));
	MUST(cu.MemAllocAsync(&pool, 5 * MIB, NULL));
	MUST(cu.MemHostAlloc(&host, 7 * MIB, 0));
	CHECK(stats()->managed == 3 * MIB && stats()->managed_count == 1, "managed");
	CHECK(stats()->async == 5 * MIB && stats()->pinned == 7 * MIB, "async and pinned");
	MUST(cu.MemFree(managed));
	MUST(cu.MemFreeAsync(pool, NULL));
	MUST(cu.MemFreeHost(host));
	CHECK(!stats()->managed && !stats()->managed_count && !stats()->async && !stats()->pinned, "none");
	for (unsigned int i = 0; i < 3000; i++)
		MUST(cu.MemAllocAsync(&some[i], 4096, NULL));
	CHECK(stats()->async == 3000 * 4096, "many");
	for (unsigned int i = 0; i < 3000; i++)
		MUST(cu.MemFreeAsync(some[i * 7 % 3000], NULL));
	CHECK(!stats()->async, "%lu", stats()->async);
}

/* What a relaxed capture allows: the memory is not given to anybody before the capture is over. */
static void freed_in_a_capture(void)
{
	int (*begin)(CUstream, int) = api_symbol("cuStreamBeginCapture_v2");
	int (*end)(CUstream, void **) = api_symbol("cuStreamEndCapture");
	int (*exchange)(int *) = api_symbol("cuThreadExchangeStreamCaptureMode");
	CUdeviceptr at, small, other;
	int mode = 2;
	CUstream stream;
	void *graph = NULL;

	CHECK(begin && end && exchange, "captures");
	MUST(cu.MemAlloc(&at, 6 * MIB));
	MUST(cu.MemAlloc(&small, 600));
	MUST(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	MUST(exchange(&mode));
	MUST(begin(stream, 2));
	MUST(cu.MemFree(at));
	MUST(cu.MemFree(small));
	CHECK(cu.MemFree(at) == CUDA_ERROR_INVALID_VALUE, "twice");
	CHECK(cu.MemFree(small) == CUDA_ERROR_INVALID_VALUE, "the small one twice");
	CHECK(tool_quiesce(tool, 100) == DIAPAUSE_BUSY && tool->quiet.captures == 1, "a capture");
	MUST(cu.MemAlloc(&other, 6 * MIB));
	CHECK(other != at, "not yet");
	MUST(cu.MemFree(other));
	CHECK(stats()->tracked == 12 * MIB, "they wait: %lu", stats()->tracked);
	MUST(end(stream, &graph));
	CHECK(graph, "the capture is whole");
	quiesce();
	CHECK(stats()->tracked == 0, "gone: %lu", stats()->tracked);
	open_gates();
}

static int held[TOOL_LIST];
static unsigned int n_held;

static void *lets_go(void *unused)
{
	usleep(200000);
	tool_close_fds(held, n_held);
	return unused;
}

/* A controller that has brought memory back holds it, until it hears of its release. */
static void held_by_a_controller(void)
{
	struct diapause_page page;
	size_t free_bytes, total;
	CUdeviceptr at, more;
	pthread_t thread;

	MUST(cu.MemGetInfo(&free_bytes, &total));
	MUST(cu.MemAlloc(&at, free_bytes / 2 + 4 * MIB));
	quiesce();
	tool_list(tool);
	CHECK(tool_each(tool, DIAPAUSE_OP_EXPORT, 0, 0, held) == DIAPAUSE_OK, "export");
	CHECK(tool_ask(tool, DIAPAUSE_OP_DROP, NULL, 0) == DIAPAUSE_OK, "drop");
	CHECK(tool_each(tool, DIAPAUSE_OP_ATTACH, 0, 0, held) == DIAPAUSE_OK, "attach");
	n_held = tool->n_all;
	open_gates();
	CHECK(tool_page(getpid(), &page) && page.counters[DIAPAUSE_COUNT_RELEASED] == 0, "none released");
	MUST(cu.MemFree(at));
	CHECK(tool_page(getpid(), &page) && page.counters[DIAPAUSE_COUNT_RELEASED] == 1, "one");
	pthread_create(&thread, NULL, lets_go, NULL);
	MUST(cu.MemAlloc(&more, free_bytes / 2 + 4 * MIB));
	pthread_join(thread, NULL);
	MUST(cu.MemFree(more));
	CHECK(tool_page(getpid(), &page) && page.counters[DIAPAUSE_COUNT_RELEASED] == 1, "not imported");
}

static void pitches(void)
{
	CUdeviceptr at, base;
	size_t pitch = 0, size;

	MUST(cu.MemAllocPitch(&at, &pitch, 1000, 5000, 4));
	MUST(cu.MemGetAddressRange(&base, &size, at + 100));
	CHECK(pitch >= 1000 && size == pitch * 5000 && !stats()->native, "pitch %zu, %zu bytes", pitch, size);
	MUST(cu.MemFree(at));
	CHECK(!stats()->tracked, "gone");
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "sizes", sizes },
	{ "many small", many_small },
	{ "out of memory", out_of_memory },
	{ "reuse", reuse },
	{ "joined", joined },
	{ "threads", threads },
	{ "contexts", contexts },
	{ "refused", refused },
	{ "forks", forks },
	{ "work without end", work_without_end },
	{ "program handles", program_handles },
	{ "others", others },
	{ "freed in a capture", freed_in_a_capture },
	{ "held by a controller", held_by_a_controller },
	{ "pitches", pitches },
};

#define CASES (int)(sizeof(cases) / sizeof(cases[0]))

int main(int argc, char **argv)
{
	char *path, *real;

	if (argc > 2) {
		check_case = argv[2];
		open_gpu();
		for (int i = 0; i < CASES; i++)
			if (!strcmp(cases[i].name, argv[2]))
				cases[i].run();
		return 0;
	}
	CHECK(asprintf(&path, "LD_LIBRARY_PATH=%s", out("cuda-tests/replaced")) > 0, "memory");
	CHECK(asprintf(&real, "DIAPAUSE_REAL_LIBCUDA=%s", tool_driver()) > 0, "memory");
	setenv("DIAPAUSE_SOFTGPU_DEVICE", "/dev/null", 0);
	for (int i = 0; i < CASES; i++)
		CHECK(start(cases[i].name, real, path, NULL) == 0, "%s", cases[i].name);
	return 0;
}
