/* SPDX-License-Identifier: Apache-2.0
 *
 * The software GPU: a libcuda.so.1 that computes on the CPU and can be checkpointed as the
 * hardware can, with the same refusals.
 *
 * Rules that keep a checkpoint possible (any thread but the service thread may be held still, by
 * ptrace, at any instruction, while the service thread works):
 *  - the service thread takes no lock and never calls malloc, stdio or the loader;
 *  - after Lock no API call is inside the library, except those that poll;
 *  - calls that poll take no lock on their way to the notifier memory.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <cuda_abi.h>

#include "identity.h"

#define EXPORT __attribute__((visibility("default")))

/* Every exported function is declared where it is defined; its caller is the program. */
#define CUDA_API(name, ...)                \
	EXPORT CUresult name(__VA_ARGS__); \
	CUresult name(__VA_ARGS__)

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define ALIGN_UP(n, to) (((n) + (to) - 1) / (to) * (to))
#define ALLOCATION_ALIGN 512
#define MAX_KERNEL_PARAMS 16

/* gate.c: what every call passes */

struct pass {
	CUresult result;
	bool entered;
};

extern atomic_bool driver_ready;
struct pass gate_enter(void);
void gate_leave(struct pass *pass);
CUresult gate_peek(void);
void gate_close(void);
void gate_open(void);
bool gate_quiet(void);
void gate_fail(void);
bool gate_pause(void);
void gate_resume(void);
void gate_callback_begin(void);
void gate_callback_end(void);
extern atomic_long work_pending;

/* For calls that need the driver; and for those that need a current, healthy context too. */
#define ENTER()                                                               \
	__attribute__((cleanup(gate_leave))) struct pass pass = gate_enter(); \
	if (pass.result)                                                      \
	return pass.result

#define ENTER_CONTEXT(ctx)                             \
	ENTER();                                       \
	struct context *ctx;                           \
	CUresult ctx##_result = context_current(&ctx); \
	if (ctx##_result)                              \
	return ctx##_result

/* init.c */

struct device {
	int fd; /* the character device that CRIU refuses; -1 while checkpointed */
	char path[128];
	size_t memory;
};

extern struct device device;
extern const CUuuid device_uuid;
int device_open(void);

/* fault.c */

enum operation { OP_LOCK, OP_CHECKPOINT, OP_RESTORE, OP_UNLOCK, OPERATIONS, OP_STATE = OPERATIONS };
enum fault { FAULT_NONE, FAULT_FAIL, FAULT_FATAL, FAULT_HANG, FAULT_STUCK, FAULT_SLOW };

void fault_load(const char *text);
enum fault fault_take(enum operation operation);

/* fd.c: descriptors far above those of the program */

#define MEMORY_NAME "softgpu-memory"
#define DEVICE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

int fd_lift(int fd);
int memory_file(const char *name, size_t size);
int device_file(size_t size);

/* wait.c: how far something is, in memory that stays, and a way to wait for more */

struct ticks {
	_Atomic uint64_t count;
	_Atomic uint32_t futex;
};

void ticks_reach(struct ticks *ticks, uint64_t count);
void ticks_wait(struct ticks *ticks, uint64_t count);

/* notify.c: memory that the GPU writes and polling calls read; gone while checkpointed */

typedef _Atomic uint64_t notifier;

int notify_init(void);
notifier *notify_get(void);
void notify_put(notifier *slot);
int notify_save(void);
int notify_load(void);

/* context.c */

struct stream;

struct context {
	uint32_t magic;
	struct context *next;
	bool primary;
	unsigned references; /* of the primary context */
	bool active;
	unsigned flags;
	unsigned version;
	uint64_t id;
	_Atomic CUresult error; /* sticky: the first thing that went wrong on the device */
	struct stream *legacy;
	struct stream *_Atomic streams; /* only grows: polling calls walk it without a lock */
	size_t limits[3];
};

CUresult context_current(struct context **ctx);
struct context *context_find(CUcontext handle);
CUresult context_synchronize(struct context *ctx);
CUcontext thread_context(void);
void thread_replace(CUcontext ctx);
void thread_push(CUcontext ctx);
CUresult thread_pop(CUcontext *ctx);

/* stream.c, work.c */

struct event;
struct graph;
struct kernel;

struct work {
	struct work *next;
	struct stream *stream;
	uint64_t sequence;
	CUresult (*run)(struct work *work);
	bool owns_argument; /* free(argument) afterwards */
	void *argument;
	union {
		struct {
			uint64_t to, from;
			size_t size;
		} copy;
		struct {
			uint64_t to;
			size_t pitch, width, height; /* elements a row, rows */
			unsigned value, element;     /* bytes an element */
		} set;
		struct {
			struct stream *stream;
			uint64_t sequence;
		} wait;
		struct {
			struct event *event;
			uint64_t generation;
		} event;
		struct {
			CUhostFn function;
			CUstreamCallback callback;
			CUstream handle;
		} host;
		struct {
			const struct kernel *kernel;
			uint64_t arguments[MAX_KERNEL_PARAMS];
		} launch;
		uint64_t address;
	};
};

struct stream {
	uint32_t magic;
	struct stream *next;
	struct context *ctx;
	unsigned flags;
	int priority;
	uint64_t id;
	bool hidden;	    /* default streams have no handle of their own */
	atomic_bool vacant; /* may become another stream */
	pthread_mutex_t lock;
	pthread_cond_t added;
	struct work *head, *tail;
	_Atomic uint64_t submitted;
	notifier *done;	       /* sequence of the last finished work, for those who poll */
	struct ticks finished; /* the same, for those who wait */
	bool worker, leaving;
	struct graph *_Atomic capture; /* work goes there instead */
};

CUresult stream_resolve(struct context *ctx, CUstream handle, struct stream **stream);
struct stream *stream_make(struct context *ctx, unsigned flags, int priority, bool hidden);
void stream_drop(struct stream *stream);
bool stream_idle(struct stream *stream);
void stream_wait(struct stream *stream, uint64_t sequence);
CUresult stream_submit(struct stream *stream, const struct work *work, uint64_t *sequence);
CUresult stream_run(struct stream *stream, const struct work *work);

/* graph.c */

CUresult graph_record(struct stream *stream, const struct work *work);
CUresult graph_waits(struct stream *stream);
CUresult graph_unsafe(struct context *ctx);

/* NULL means another stream in the _ptds and _ptsz variants of a function. */
static inline CUstream per_thread(CUstream stream)
{
	return stream ? stream : CU_STREAM_PER_THREAD;
}

/* physical.c: device memory; span.c: where it is mapped */

struct physical {
	struct physical *next, *previous;
	size_t size;
	int fd; /* memfd of memory that can be exported, -1 for the heap's */
	unsigned references, mappings;
	bool imported;
	CUmemAllocationProp properties;
	char *heap;  /* heap memory lies here and nowhere else */
	char *saved; /* private copy while checkpointed */
};

struct mapping {
	struct mapping *next;
	uint64_t address;
	size_t size;
	struct physical *physical;
	int access; /* PROT_* */
};

enum span_kind { SPAN_RESERVED, SPAN_HEAP, SPAN_HOST, SPAN_REGISTERED, SPAN_MANAGED };

struct block;
struct pool;

/* A range of addresses that the device knows. The program's addresses of device memory are mapped
 * to nothing; the memory itself lies `shadow` bytes away, so that host code that follows a device
 * pointer dies here as it does on hardware. */
struct span {
	enum span_kind kind;
	uint64_t address;
	size_t size;
	intptr_t shadow;
	struct mapping *mappings;  /* SPAN_RESERVED, by address */
	struct physical *physical; /* SPAN_HEAP */
	struct block *blocks;	   /* SPAN_HEAP, by address */
	size_t largest;		   /* SPAN_HEAP: no free block is larger */
	size_t asked;		   /* the rest: size that the program asked for */
	unsigned flags;
	struct context *ctx;
	uint64_t id;
};

extern pthread_mutex_t memory_lock;
extern struct span **spans;
extern size_t span_count;
struct span *span_find(uint64_t address);
int span_add(struct span *span);
void span_remove(struct span *span);
void *span_reserve(size_t size, size_t align, uint64_t hint);
void *memory_at(uint64_t address, size_t size, int access);
bool memory_known(uint64_t address, size_t size);
bool memory_pinned(uint64_t address, size_t size);
uint64_t memory_id(void);

extern struct physical *physicals;
int memory_init(void);
size_t memory_free(void);
CUresult physical_make(size_t size, bool file, struct physical **physical);
void physical_link(struct physical *physical);
void physical_free(struct physical *physical);
struct physical *physical_find(CUmemGenericAllocationHandle handle);
void mapping_drop(struct span *span, struct mapping *mapping);
int shadow_map(void *at, size_t size, int access, int fd);
int shadow_clear(void *at, size_t size);

/* heap.c */

struct block {
	struct block *next;
	uint64_t address;
	size_t size;  /* rounded */
	size_t asked; /* as the program asked, 0: free */
	struct context *ctx;
	struct pool *pool; /* whose books it is in, or NULL */
	uint64_t id;
};

CUresult heap_alloc(struct context *ctx, size_t size, struct block **block);
struct block *heap_block(uint64_t address);
CUresult heap_free(uint64_t address);
void pool_return(struct block *block);
void heap_forget(struct context *ctx);

/* host.c, managed.c */

void host_forget(struct context *ctx);
CUresult managed_free(struct span *span, uint64_t address);
bool managed_any(void);

/* kernels.c */

struct kernel {
	const char *name;
	unsigned params;
	unsigned char size[MAX_KERNEL_PARAMS];
	CUresult (*run)(const uint64_t *arguments);
};

const struct kernel *kernel_find(const char *name, size_t length);

/* module.c */

void module_forget(struct context *ctx);

/* leftover.c */

bool leftover_any(void);

/* save.c: what Checkpoint and Restore do in the service thread */

CUresult save_all(void);
CUresult load_all(void);

/* service.c */

int service_start(void);
