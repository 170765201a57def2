// SPDX-License-Identifier: Apache-2.0
/* The whole hand-over as a tool does it, of a program that uses its memory all the time. */
#include "tool.h"

#include "../../tests/contract/api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>

#define MIB ((size_t)1 << 20)
#define SMALL_ONES 300
#define LARGE_ONES 6
#define SPLIT (4 * MIB)

#define MUST(call)                                   \
	do {                                         \
		int must = (int)(call);              \
		CHECK(!must, "%s: %d", #call, must); \
	} while (0)

/* The program. */

static CUdeviceptr small[SMALL_ONES], large[LARGE_ONES], split;
static CUmemGenericAllocationHandle handle;
static CUcontext context;
static _Atomic unsigned int rounds;
static atomic_bool leave, stuck;

static size_t small_size(unsigned int i)
{
	return 4 * (1 + i * 37 % 4000);
}

static size_t large_size(unsigned int i)
{
	return (i + 1) * MIB + 4 * i;
}

static void fill(CUdeviceptr at, unsigned int word, size_t size)
{
	MUST(cu.MemsetD32(at, word, size / 4));
}

static void expect(CUdeviceptr at, unsigned int word)
{
	unsigned int seen = 0;

	MUST(cu.MemcpyDtoH(&seen, at, 4));
	CHECK(seen == word, "%08x instead of %08x at %llx", seen, word, at);
}

static void allocate(void)
{
	CUmemAllocationProp properties = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
					   .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
	CUmemAccessDesc access = { properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };

	for (unsigned int i = 0; i < SMALL_ONES; i++) {
		MUST(cu.MemAlloc(&small[i], small_size(i)));
		fill(small[i], 0x51000000 + i, small_size(i));
	}
	for (unsigned int i = 0; i < LARGE_ONES; i++) {
		MUST(cu.MemAlloc(&large[i], large_size(i)));
		fill(large[i], 0x1a000000 + i, large_size(i));
	}
	MUST(cu.MemCreate(&handle, SPLIT, &properties, 0)); /* seen at two places, its name given back */
	MUST(cu.MemAddressReserve(&split, 4 * SPLIT, 0, 0, 0));
	MUST(cu.MemMap(split, SPLIT, 0, handle, 0));
	MUST(cu.MemMap(split + 2 * SPLIT, SPLIT, 0, handle, 0));
	MUST(cu.MemSetAccess(split, SPLIT, &access, 1));
	MUST(cu.MemSetAccess(split + 2 * SPLIT, SPLIT, &access, 1));
	MUST(cu.MemRelease(handle));
	fill(split, 0x5b17, SPLIT);
	MUST(cu.CtxSynchronize());
}

static void verify(void)
{
	for (unsigned int i = 0; i < SMALL_ONES; i++) {
		expect(small[i], 0x51000000 + i);
		expect(small[i] + small_size(i) - 4, 0x51000000 + i);
	}
	for (unsigned int i = 0; i < LARGE_ONES; i++) {
		expect(large[i], 0x1a000000 + i);
		expect(large[i] + large_size(i) / 4 * 4 - 4, 0x1a000000 + i);
	}
	expect(split, 0x5b17);
	expect(split + 3 * SPLIT - 4, 0x5b17);
}

static void *verifies(void *unused)
{
	MUST(cu.CtxSetCurrent(context));
	while (!leave) {
		verify();
		rounds++;
	}
	return unused;
}

static void *launches(void *unused)
{
	CUdeviceptr own;
	CUstream stream;
	CUevent event;

	MUST(cu.CtxSetCurrent(context));
	MUST(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	MUST(cu.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
	MUST(cu.MemAlloc(&own, 8 * MIB));
	for (unsigned int n = 0; !leave; n++) {
		int result;

		MUST(cu.MemsetD32Async(own, n, 8 * MIB / 4, stream));
		MUST(cu.EventRecord(event, stream));
		do
			result = cu.EventQuery(event);
		while (result == 600);
		MUST(result);
		expect(own + 8 * MIB - 4, n);
	}
	return unused;
}

static void *churns(void *unused)
{
	unsigned int n = 0;

	MUST(cu.CtxSetCurrent(context));
	while (!leave) {
		CUdeviceptr some[8];

		for (int i = 0; i < 8; i++, n++) {
			MUST(cu.MemAlloc(&some[i], i & 1 ? 3 * MIB : 1 + n * 511 % 200000));
			MUST(cu.MemsetD8(some[i], n, 1));
		}
		for (int i = 0; i < 8; i++)
			MUST(cu.MemFree(some[i]));
	}
	return unused;
}

static void wait_while_stuck(void *unused)
{
	while (stuck)
		usleep(1000);
}

/* Commands are bytes: s stuck, f free again, r tell rounds, q quit. */
static void obey(void)
{
	CUstream stream;
	char command;

	MUST(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	while (read(0, &command, 1) == 1 && command != 'q') {
		unsigned int n = rounds;

		if (command == 's') {
			stuck = true;
			MUST(cu.LaunchHostFunc(stream, wait_while_stuck, NULL));
		}
		if (command == 'f')
			stuck = false;
		CHECK(write(3, &n, sizeof(n)) == sizeof(n), "answer");
	}
}

static int program(void)
{
	static void *(*const work[])(void *) = { verifies, launches, churns };
	pthread_t threads[3];

	check_case = "program";
	api_load("libcuda.so.1");
	MUST(cu.Init(0));
	MUST(cu.DevicePrimaryCtxRetain(&context, 0));
	MUST(cu.CtxSetCurrent(context));
	allocate();
	verify();
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, work[i], NULL);
	obey();
	leave = true;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	verify();
	return 0;
}

/* The tool. */

static struct {
	pid_t pid;
	int to, from;
} child;

static void start_program(void)
{
	int down[2], up[2];

	CHECK(!pipe(down) && !pipe(up), "pipe");
	child.pid = fork();
	if (!child.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(down[0], 0);
		dup2(up[1], 3);
		for (int fd = 4; fd < 64; fd++)
			close(fd);
		setenv("LD_LIBRARY_PATH", out("cuda-tests/replaced"), 1);
		setenv("DIAPAUSE_REAL_LIBCUDA", tool_driver(), 1);
		execl("/proc/self/exe", "handover", "program", NULL);
		_exit(127);
	}
	close(down[0]);
	close(up[1]);
	child.to = down[1];
	child.from = up[0];
}

static unsigned int tell(char command)
{
	unsigned int n = 0;

	CHECK(write(child.to, &command, 1) == 1, "command");
	CHECK(read(child.from, &n, sizeof(n)) == sizeof(n), "the program has ended");
	return n;
}

static void end_program(void)
{
	int status;

	CHECK(write(child.to, "q", 1) == 1, "quit");
	CHECK(waitpid(child.pid, &status, 0) == child.pid && !status, "the program: %#x", status);
	close(child.to);
	close(child.from);
}

/* It goes on, with its memory: every byte is looked at in a round. */
static void goes_on(void)
{
	unsigned int before = tell('r');

	for (int i = 0; i < 2000 && tell('r') < before + 3; i++)
		usleep(5000);
	CHECK(tell('r') >= before + 3, "no round in ten seconds");
}

static void stands_still(void)
{
	unsigned int before = tell('r');

	usleep(50000);
	CHECK(tell('r') == before, "it goes on with the gates closed");
}

/* What the driver does of it, asked for from outside as the engine does. */
static void driver_part(void)
{
	static const char *const calls[] = { "cuCheckpointProcessLock", "cuCheckpointProcessCheckpoint",
					     "cuCheckpointProcessRestore", "cuCheckpointProcessUnlock" };
	void *library = dlopen(tool_driver(), RTLD_NOW);

	CHECK(library, "%s", dlerror());
	MUST(((CUresult (*)(unsigned int))dlsym(library, "cuInit"))(0));
	for (int i = 0; i < 4; i++) {
		CUresult (*call)(int, void *) = (CUresult (*)(int, void *))dlsym(library, calls[i]);

		MUST(call(child.pid, NULL));
	}
}

static unsigned int count(const struct tool *tool, uint32_t set, uint32_t clear)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < tool->n_all; i++)
		n += (tool->all[i].flags & set) == set && !(tool->all[i].flags & clear);
	return n;
}

#define ATTACHED DIAPAUSE_MEMORY_ATTACHED
#define IMPORTED DIAPAUSE_MEMORY_IMPORTED

static void one_round(struct tool *tool, bool with_driver)
{
	static int fds[TOOL_LIST];
	uint64_t bytes = 0;
	unsigned int n;

	CHECK(tool_quiesce(tool, 10000) == DIAPAUSE_OK, "quiesce: %u", tool->frame.status);
	CHECK(tool_quiesce(tool, 0) == DIAPAUSE_OK, "again");
	stands_still();
	tool_list(tool);
	n = tool->n_all;
	CHECK(n >= LARGE_ONES + 2 && count(tool, ATTACHED, 0) == n, "%u allocations", n);
	CHECK(count(tool, DIAPAUSE_MEMORY_SLAB, 0) && count(tool, DIAPAUSE_MEMORY_PROGRAM, 0) == 1, "kinds");
	for (unsigned int i = 0; i < n; i++) {
		CHECK(tool->all[i].used <= tool->all[i].size && tool->all[i].address, "its place");
		bytes += tool->all[i].size;
	}
	CHECK(tool_each(tool, DIAPAUSE_OP_EXPORT, ATTACHED, IMPORTED, fds) == DIAPAUSE_OK, "export");
	if (count(tool, IMPORTED, 0)) { /* only whoever has its fd can hand it over */
		uint32_t status = tool_each(tool, DIAPAUSE_OP_EXPORT, IMPORTED, 0, fds);

		CHECK(status == DIAPAUSE_STATE, "export of what was imported: %u", status);
		status = tool_each(tool, DIAPAUSE_OP_REHOME, IMPORTED, 0, fds);
		CHECK(status == DIAPAUSE_OK, "rehome: %u", status);
		CHECK(tool_each(tool, DIAPAUSE_OP_EXPORT, IMPORTED, 0, fds) == DIAPAUSE_OK, "then export");
	}
	CHECK(tool_ask(tool, DIAPAUSE_OP_DROP, NULL, 0) == DIAPAUSE_OK, "drop: %u", tool->frame.status);
	CHECK(tool->dropped.count == n && tool->dropped.bytes == bytes, "%u of %u", tool->dropped.count, n);
	CHECK(tool_ask(tool, DIAPAUSE_OP_DROP, NULL, 0) == DIAPAUSE_OK && tool->dropped.count == n, "again");
	CHECK(tool_ask(tool, DIAPAUSE_OP_OPEN, NULL, 0) == DIAPAUSE_STATE, "nothing to open for");
	if (with_driver)
		driver_part();
	stands_still();
	CHECK(tool_each(tool, DIAPAUSE_OP_ATTACH, 0, 0, fds) == DIAPAUSE_OK, "attach: %u",
	      tool->failure.result);
	CHECK(tool_each(tool, DIAPAUSE_OP_ATTACH, 0, 0, fds) == DIAPAUSE_OK, "again");
	tool_close_fds(fds, n);
	tool_list(tool);
	CHECK(tool->n_all == n && count(tool, ATTACHED | IMPORTED, 0) == n, "all of it is back");
	CHECK(tool_ask(tool, DIAPAUSE_OP_OPEN, NULL, 0) == DIAPAUSE_OK, "open");
	CHECK(tool_ask(tool, DIAPAUSE_OP_OPEN, NULL, 0) == DIAPAUSE_OK, "again");
	goes_on();
}

static void two_rounds(void)
{
	struct tool *tool;

	start_program();
	goes_on();
	tool = tool_open(child.pid);
	one_round(tool, false);
	one_round(tool, true);
	one_round(tool, true);
	tool_close(tool);
	end_program();
}

/* A kernel that does not end, and nobody may be harmed by our having waited for it. */
static void not_quiet_in_time(void)
{
	struct tool *tool;

	start_program();
	goes_on();
	tool = tool_open(child.pid);
	tell('s');
	for (int i = 0; i < 2; i++) {
		CHECK(tool_quiesce(tool, 200) == DIAPAUSE_BUSY && tool->quiet.inside, "busy");
		goes_on();
	}
	tell('f');
	CHECK(tool_quiesce(tool, 10000) == DIAPAUSE_OK, "quiet");
	CHECK(tool_ask(tool, DIAPAUSE_OP_OPEN, NULL, 0) == DIAPAUSE_OK, "open");
	goes_on();
	tool_close(tool);
	end_program();
}

static void refusals(void)
{
	uint64_t id, ids[DIAPAUSE_IDS + 1] = { 0 };
	int fds[DIAPAUSE_IDS] = { 0 }, null = open("/dev/null", O_RDWR), fd;
	struct tool *tool;

	start_program();
	goes_on();
	tool = tool_open(child.pid);
	tool_list(tool);
	id = tool->all[0].id;
	CHECK(tool_ask(tool, DIAPAUSE_OP_EXPORT, &id, 8) == DIAPAUSE_STATE, "open gates: export");
	CHECK(tool_ask(tool, DIAPAUSE_OP_DROP, NULL, 0) == DIAPAUSE_STATE, "open gates: drop");
	CHECK(tool_ask(tool, DIAPAUSE_OP_REHOME, &id, 8) == DIAPAUSE_STATE, "open gates: rehome");
	CHECK(tool_ask_with(tool, DIAPAUSE_OP_ATTACH, &id, 8, &null, 1) == DIAPAUSE_STATE,
	      "open gates: attach");
	CHECK(tool_quiesce(tool, 10000) == DIAPAUSE_OK, "quiesce");
	tool_list(tool);
	id = tool->all[0].id;
	CHECK(tool_ask(tool, DIAPAUSE_OP_EXPORT, ids, 0) == DIAPAUSE_BAD_FRAME, "no id");
	CHECK(tool_ask(tool, DIAPAUSE_OP_EXPORT, ids, 7) == DIAPAUSE_BAD_FRAME, "half an id");
	CHECK(tool_ask(tool, DIAPAUSE_OP_EXPORT, ids, sizeof(ids)) == DIAPAUSE_BAD_FRAME, "17 ids");
	CHECK(tool_ask(tool, DIAPAUSE_OP_EXPORT, ids, 16) == DIAPAUSE_STATE, "unknown ids");
	CHECK(tool_ask_with(tool, DIAPAUSE_OP_EXPORT, &id, 8, &null, 1) == DIAPAUSE_BAD_FRAME, "an fd");
	CHECK(tool_ask_with(tool, DIAPAUSE_OP_ATTACH, ids, 16, fds, 3) == DIAPAUSE_BAD_FRAME, "3 fds for 2");
	CHECK(tool_ask(tool, DIAPAUSE_OP_ATTACH, ids, 16) == DIAPAUSE_BAD_FRAME, "no fds");
	CHECK(tool_ask(tool, DIAPAUSE_OP_OPEN, ids, 8) == DIAPAUSE_BAD_FRAME, "open with a payload");
	CHECK(tool_ask(tool, DIAPAUSE_OP_EXPORT, &id, 8) == DIAPAUSE_OK, "export");
	fd = tool->fds[0];
	CHECK(tool_ask_with(tool, DIAPAUSE_OP_ATTACH, &id, 8, &null, 1) == DIAPAUSE_OK, "it is attached");
	for (unsigned int i = 1; i < tool->n_all; i++) {
		CHECK(tool_ask(tool, DIAPAUSE_OP_EXPORT, &tool->all[i].id, 8) == DIAPAUSE_OK, "export");
		tool->all[i].address = tool->fds[0];
	}
	CHECK(tool_ask(tool, DIAPAUSE_OP_DROP, NULL, 0) == DIAPAUSE_OK, "drop");
	CHECK(tool_ask_with(tool, DIAPAUSE_OP_ATTACH, &id, 8, &null, 1) == DIAPAUSE_GPU &&
		      tool->failure.result == CUDA_ERROR_UNKNOWN && tool->failure.id == id,
	      "another file: %d", tool->failure.result);
	CHECK(tool_ask(tool, DIAPAUSE_OP_EXPORT, &id, 8) == DIAPAUSE_STATE, "nothing there");
	CHECK(tool_ask_with(tool, DIAPAUSE_OP_ATTACH, &id, 8, &fd, 1) == DIAPAUSE_OK, "the right one");
	CHECK(tool_ask(tool, DIAPAUSE_OP_OPEN, NULL, 0) == DIAPAUSE_STATE, "the rest");
	for (unsigned int i = 1; i < tool->n_all; i++) {
		fd = tool->all[i].address;
		CHECK(tool_ask_with(tool, DIAPAUSE_OP_ATTACH, &tool->all[i].id, 8, &fd, 1) == DIAPAUSE_OK,
		      "attach");
	}
	CHECK(tool_ask(tool, DIAPAUSE_OP_OPEN, NULL, 0) == DIAPAUSE_OK, "open");
	goes_on();
	tool_close(tool);
	end_program();
}

static void devices(void)
{
	struct tool *tool;

	start_program();
	goes_on();
	tool = tool_open(child.pid);
	CHECK(tool_ask(tool, DIAPAUSE_OP_DEVICES, NULL, 0) == DIAPAUSE_OK &&
		      tool->frame.len == sizeof(struct diapause_device),
	      "one device");
	CHECK(tool->devices[0].ordinal == 0 && tool->devices[0].contexts == 1 && tool->devices[0].uuid[0],
	      "it");
	CHECK(tool_ask(tool, DIAPAUSE_OP_HELLO, NULL, 0) == DIAPAUSE_OK && tool->hello.thread &&
		      tool->hello.gate == DIAPAUSE_GATE_OPEN,
	      "hello");
	CHECK(tool_ask(tool, DIAPAUSE_OP_STATS, NULL, 0) == DIAPAUSE_OK, "stats");
	CHECK(tool->stats.tracked > 21 * MIB && tool->stats.slab && tool->stats.program == SPLIT &&
		      !tool->stats.native && tool->stats.allocations >= SMALL_ONES + LARGE_ONES,
	      "tracked %lu slab %lu program %lu native %lu of %lu", tool->stats.tracked, tool->stats.slab,
	      tool->stats.program, tool->stats.native, tool->stats.allocations);
	tool_close(tool);
	end_program();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = { { "devices and stats", devices },
		      { "two rounds", two_rounds },
		      { "not quiet in time", not_quiet_in_time },
		      { "refusals", refusals } };

	if (argc > 1 && !strcmp(argv[1], "program"))
		return program();
	setenv("DIAPAUSE_SOFTGPU_DEVICE", "/dev/null", 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		check_case = cases[i].name;
		cases[i].run();
	}
	return 0;
}
