// SPDX-License-Identifier: Apache-2.0
/* target: a process that is checkpointed. It does what the lines on its stdin say, with a line for
 * each. It holds memory of every kind that survives, and checks all of it when told to. */
#include "contract.h"

#include "../../demo/model.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SIZE (4 * MIB)
#define WORDS (SIZE / sizeof(uint64_t))

static struct kernels k;
static CUstream stream;
static CUevent event;
static CUdeviceptr done, managed;
static CUmemGenericAllocationHandle physical;
static atomic_ulong polls;

static struct piece {
	const char *name;
	CUdeviceptr at;
	struct model model;
} pieces[] = {
	{ .name = "plain" },	   { .name = "pinned" }, { .name = "registered" },
	{ .name = "pool memory" }, { .name = "mapped" },
};

static CUdeviceptr map_some(void)
{
	static const CUmemAllocationProp properties = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	static const CUmemAccessDesc both = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
					      CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUdeviceptr range;

	NEED(cu.MemCreate(&physical, SIZE, &properties, 0));
	NEED(cu.MemAddressReserve(&range, 4 * SIZE, 0, 0, 0));
	NEED(cu.MemMap(range + SIZE, SIZE, 0, physical, 0));
	NEED(cu.MemSetAccess(range + SIZE, SIZE, &both, 1));
	return range + SIZE;
}

static void open_all(void)
{
	void *pinned, *registered;

	contract_open();
	contract_kernels(&k);
	registered = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	NEED(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	NEED(cu.EventCreate(&event, 0));
	NEED(cu.MemAlloc(&done, sizeof(uint64_t)));
	NEED(cu.MemAlloc(&pieces[0].at, SIZE));
	NEED(cu.MemHostAlloc(&pinned, SIZE, 0));
	NEED(cu.MemHostRegister(registered, SIZE, 0));
	NEED(cu.MemAllocAsync(&pieces[3].at, SIZE, stream));
	NEED(cu.StreamSynchronize(stream));
	pieces[1].at = (CUdeviceptr)(uintptr_t)pinned;
	pieces[2].at = (CUdeviceptr)(uintptr_t)registered;
	pieces[4].at = map_some();
	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
		pieces[i].model = model_fill(WORDS, i + 1);
		launch_fill(&k, pieces[i].at, WORDS, i + 1, stream);
	}
	NEED(cu.EventRecord(event, stream));
	NEED(cu.CtxSynchronize());
}

/* As it is, and then once more after a step, with the objects from before. */
static const char *check_all(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
		struct piece *p = &pieces[i];

		if (checksum(&k, p->at, WORDS) != p->model.sum)
			return p->name;
		launch_step(&k, p->at, WORDS, stream);
		NEED(cu.EventRecord(event, stream));
		NEED(cu.EventSynchronize(event));
		model_step(&p->model);
		if (checksum(&k, p->at, WORDS) != p->model.sum)
			return p->name;
	}
	return "good";
}

static void wait_ms(void *ms)
{
	sleep_ms((unsigned)(uintptr_t)ms);
}

static CUresult allocate(void)
{
	CUdeviceptr memory;
	CUresult result = cu.MemAlloc(&memory, MIB);

	return result ? result : cu.MemFree(memory);
}

static CUresult query_event(void)
{
	return cu.EventQuery(event);
}

static CUresult query_stream(void)
{
	return cu.StreamQuery(stream);
}

static CUresult ask_for_memory(void)
{
	size_t free_bytes, total;

	return cu.MemGetInfo(&free_bytes, &total);
}

static CUresult ask_for_pointer(void)
{
	unsigned type;

	return cu.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pieces[0].at);
}

static CUresult launch_and_wait(void)
{
	uint64_t none = 0;
	void *arguments[] = { &done, &none };

	NEED(cu.LaunchKernel(k.step, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
	return cu.StreamSynchronize(stream);
}

static CUresult copy_word(void)
{
	uint64_t word;

	return cu.MemcpyDtoH(&word, done, sizeof(word));
}

static CUresult synchronize(void)
{
	return cu.CtxSynchronize();
}

static const struct {
	const char *name;
	CUresult (*once)(void);
} poll_kinds[] = {
	{ "context", synchronize },   { "event", query_event },	      { "stream", query_stream },
	{ "memory", ask_for_memory }, { "pointer", ask_for_pointer }, { "launch", launch_and_wait },
	{ "copy", copy_word },	      { "alloc", allocate },
};

static void *poll_forever(void *kind)
{
	CUresult (*once)(void) = kind;

	NEED(cu.CtxSetCurrent(contract_context));
	for (;;) {
		CUresult result = once();

		if (result != CUDA_ERROR_NOT_READY)
			need("poll", result);
		atomic_fetch_add(&polls, 1);
	}
	return NULL;
}

static void start_polling(const char *what)
{
	pthread_t thread;

	for (size_t i = 0; i < ARRAY_SIZE(poll_kinds); i++) {
		if (strcmp(what, poll_kinds[i].name) == 0)
			pthread_create(&thread, NULL, poll_forever, poll_kinds[i].once);
	}
	while (atomic_load(&polls) < 100)
		sleep_ms(1);
}

static bool still_polling(void)
{
	unsigned long before = atomic_load(&polls);

	for (int i = 0; i < 2000 && atomic_load(&polls) == before; i++)
		sleep_ms(1);
	return atomic_load(&polls) != before;
}

static const char *obey(const char *order, const char *argument)
{
	static char number[16];
	CUresult result = CUDA_SUCCESS;
	unsigned ms = (unsigned)atoi(argument);
	int fd;

	if (strcmp(order, "check") == 0)
		return check_all();
	if (strcmp(order, "polling") == 0)
		return still_polling() ? "yes" : "no";
	if (strcmp(order, "open") == 0)
		open_all();
	else if (strcmp(order, "spin") == 0)
		launch_spin(&k, ms, done, stream);
	else if (strcmp(order, "hostfunc") == 0)
		result = cu.LaunchHostFunc(stream, wait_ms, (void *)(uintptr_t)ms);
	else if (strcmp(order, "poll") == 0)
		start_polling(argument);
	else if (strcmp(order, "alloc") == 0)
		result = allocate();
	else if (strcmp(order, "managed") == 0)
		result = cu.MemAllocManaged(&managed, MIB, CU_MEM_ATTACH_GLOBAL);
	else if (strcmp(order, "unmanaged") == 0)
		result = cu.MemFree(managed);
	else if (strcmp(order, "export") == 0)
		result = cu.MemExportToShareableHandle(&fd, physical,
						       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	else if (strcmp(order, "synchronize") == 0)
		result = cu.CtxSynchronize();
	else
		return "what?";
	snprintf(number, sizeof(number), "%d", (int)result);
	return number;
}

int target_main(int argc, char **argv)
{
	char line[256], order[64], argument[64];

	api_load(contract_library);
	setvbuf(stdout, NULL, _IOLBF, 0);
	while (fgets(line, sizeof(line), stdin)) {
		argument[0] = '\0';
		if (sscanf(line, "%63s %63s", order, argument) < 1)
			return 2;
		puts(obey(order, argument));
	}
	return 0;
}
