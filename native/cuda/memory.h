/* SPDX-License-Identifier: Apache-2.0
 *
 * Device memory of the process, kept so that it can be taken away and brought back.
 *
 *   memory.c          cuMemAlloc and what belongs to it
 *   memory_block.c    allocations by address
 *   memory_large.c    those with a handle of their own; slab.c: those that share one
 *   memory_gpu.c      what a device can do, and the window of addresses that ours come from
 *   memory_window.c   ranges of that window
 *   memory_backing.c  handles of device memory and where they are mapped
 *   memory_names.c    the program's handles and mappings, which are not ours to place
 *   memory_context.c  the contexts that have to be idle
 *   memory_other.c    what the driver keeps for itself, to be told
 *   memory_pool.c     records, and the lock around all of this
 *   vmm.c vmm_map.c vmm_share.c   the program's own handles
 *   attributes.c      what a pointer is
 *   handover*.c       taking it all away and bringing it back
 *
 * One lock guards every record. It is not held while the driver waits for the GPU; calls that make,
 * map and release our own memory are made without it too, on records that nobody else can find. The
 * control thread works while the gates are closed and so finds everything at rest.
 */
#ifndef DIAPAUSE_MEMORY_H
#define DIAPAUSE_MEMORY_H

#include "memory_driver.h"

#define GRANULE ((uint64_t)2 << 20) /* of addresses and handles; a device that wants more is left alone */
#define GPUS 32
#define CONTEXTS 256
#define ACCESSES 16
#define SMALL ((size_t)1 << 20) /* requests below share handles */

/* memory_pool.c */
struct pool {
	size_t size; /* of a record */
	void *free;
};

void memory_lock(void);
void memory_unlock(void);
void *pool_take(struct pool *pool); /* zeroed; NULL: no memory */
void pool_give(struct pool *pool, void *record);
void *pages_take(size_t size); /* zeroed; NULL: no memory */
void pages_give(void *pages, size_t size);
void memory_forget(void); /* in the child after a fork: all of it is the parent's */

/* memory_context.c */
struct context {
	CUcontext handle; /* NULL: free */
	int device;
};

struct context *context_know(CUcontext handle, int device); /* NULL: there are too many */
struct context *context_at(unsigned int index);
unsigned int context_index(const struct context *context);
CUresult context_synchronize(CUcontext handle);
CUresult contexts_drain(uint32_t *n);
uint32_t contexts_on(int device);
bool context_enter(int device); /* a context of that device, current until context_leave() */
void context_leave(void);
void contexts_forget(void);

/* memory_backing.c */
struct access {
	uint8_t location; /* CUmemLocationType */
	uint8_t flags;
	int16_t id;
};

struct mapping {
	struct mapping *next;	   /* of the same handle */
	struct mapping *displaced; /* vmm_map.c */
	struct backing *backing;
	uint64_t address, size, offset;
	uint64_t id; /* of the buffer, as CU_POINTER_ATTRIBUTE_BUFFER_ID tells */
	bool sync;   /* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS was set */
	uint32_t accesses;
	struct access access[ACCESSES];
};

#define BACKING_KEPT (1u << 16)	     /* cannot be handed over: the driver saves it */
#define BACKING_MULTICAST (1u << 17) /* no memory at all */

/* A handle of device memory. */
struct backing {
	struct backing *previous, *next; /* by id */
	struct backing *same_bucket;
	uint64_t id;
	driver_handle real; /* valid while DIAPAUSE_MEMORY_ATTACHED */
	driver_handle name; /* by which the program knows it, 0: it is ours */
	uint64_t size, used;
	struct mapping *mappings;
	uint32_t flags;	     /* DIAPAUSE_MEMORY_*, BACKING_* */
	uint32_t references; /* that the program holds; the driver knows of one */
	uint32_t pins;	     /* calls in progress that use it */
	int device;
	int fd;			      /* to be given when the program exports what was imported, or -1 */
	driver_properties properties; /* as the program asked; ours: as we did */
};

struct backing *backing_add(struct backing *backing); /* under the lock: gives it its id and place */
void backing_remove(struct backing *backing);	      /* under the lock: out of the list, and of the names */
struct backing *backing_take(void);		      /* under the lock: a record */
void backing_give(struct backing *backing);
struct backing *backing_from(uint64_t id); /* under the lock: the first with this id or a higher one */
struct mapping *mapping_add(struct backing *backing, uint64_t address, uint64_t size, uint64_t offset);
void mapping_remove(struct mapping *mapping);
uint64_t memory_id(void);
CUresult mapping_make(const struct mapping *mapping, driver_handle real);
void backing_drop_fd(struct backing *backing);
void backing_released(const struct backing *backing); /* the driver has it no more */
bool backing_wait(uint64_t *since); /* a moment, if memory may come free soon: is it worth trying again? */
void backings_forget(void);

/* memory_window.c */
struct range;

struct window {
	uint64_t base, size;
	uint64_t fresh; /* nothing above was ever used */
	struct range *free;
	void **granules; /* what lies at each: struct region, or NULL */
};

bool window_make(struct window *window, void *granules, uint64_t base, uint64_t size);
uint64_t window_take(struct window *window, uint64_t size); /* 0: no room */
void window_give(struct window *window, uint64_t address, uint64_t size);
void window_put(struct window *window, uint64_t address, uint64_t size, void *region);

/* memory_gpu.c */
enum gpu_state { GPU_UNTRIED, GPU_READY, GPU_NATIVE };

struct slab;
struct chunk;

#define SLAB_CLASSES 40

struct gpu {
	int ordinal;
	enum gpu_state state;
	bool rdma;	   /* memory can be reached by RDMA if it is made for it */
	bool decompresses; /* it has a unit for that */
	uint64_t peers;	   /* devices that reach its memory, by bits */
	size_t total;	   /* bytes of memory */
	struct window window;
	struct slab *slabs;
	struct chunk *room[SLAB_CLASSES]; /* chunks with a free block */
	void *spare[SLAB_CLASSES];	  /* memory of a chunk that went */
	uint64_t slab_bytes;
};

struct gpu *gpu_at(int ordinal);		   /* NULL: no such number */
struct gpu *gpu_current(struct context **context); /* NULL: leave the call to the driver */
struct gpu *gpu_of(uint64_t address);		   /* under the lock: whose window that is in */
driver_properties gpu_properties(const struct gpu *gpu);
struct backing *gpu_backing(struct gpu *gpu, uint64_t size, uint32_t flags); /* mapped; NULL: did not work */
void gpu_backing_free(struct gpu *gpu, struct backing *backing);
void gpu_share(int owner, int device); /* `device` reaches the memory of `owner` */
void gpus_forget(void);

/* Regions of a window: an allocation, or a part of a slab. */
enum region_kind { REGION_LARGE, REGION_CHUNK };

struct region {
	enum region_kind kind;
	struct gpu *gpu;
	uint64_t address;
};

/* An allocation of the program, as a lookup tells of it. */
struct block {
	struct region *region;
	uint32_t index; /* in a chunk */
	uint32_t context;
	uint64_t address, asked, id;
};

/* memory_large.c, slab.c. find: the block at or around an address, under the lock. take: it is going,
 * and nobody finds it any more; give back: its memory; keep: it stays after all. */
CUresult large_alloc(struct gpu *gpu, struct context *context, size_t asked, CUdeviceptr *address);
bool large_find(struct region *region, uint64_t address, struct block *block);
void large_take(const struct block *block);
void large_keep(const struct block *block);
void large_give_back(const struct block *block);

CUresult slab_alloc(struct gpu *gpu, struct context *context, size_t asked, CUdeviceptr *address);
bool slab_find(struct region *region, uint64_t address, struct block *block);
void slab_take(const struct block *block);
void slab_keep(const struct block *block);
void slab_give_back(const struct block *block);
bool slab_next(struct region *region, uint32_t from, struct block *block); /* the first one from an index */
uint32_t slab_used(struct region *region);

/* memory_block.c */
enum where { NOWHERE, IN_BLOCK, IN_WINDOW, IN_MAPPING };
enum where block_find(uint64_t address, struct block *block); /* under the lock */
bool block_take(uint64_t address, struct block *block);	      /* if one starts there */
void block_keep(const struct block *block);
void block_give_back(const struct block *block);
void block_defer(const struct block *block);
void blocks_reap(void); /* what had to wait for the end of a capture */
void blocks_of_context_free(struct context *context);
uint64_t blocks_count(void);
void blocks_forget(void);

/* memory_names.c */
struct backing *name_find(driver_handle name); /* under the lock; the program may have given it back */
void name_add(struct backing *backing);	       /* under the lock: chooses its name */
void name_remove(struct backing *backing);
bool place_add(struct mapping *mapping);		    /* under the lock: a mapping of the program */
struct mapping *place_find(uint64_t address);		    /* the one around an address */
struct mapping *place_next(uint64_t address, uint64_t end); /* the first one in a range */
void place_remove(struct mapping *mapping);
void names_forget(void);

/* memory_other.c */
enum other { OTHER_ASYNC, OTHER_MANAGED, OTHER_PINNED, OTHER_NATIVE, OTHER_IPC, OTHERS };

void other_add(uint64_t address, uint64_t size, enum other kind);
bool other_remove(uint64_t address);
void others_of_context_remove(CUcontext context);
uint64_t other_bytes(enum other kind);
uint64_t other_count(enum other kind);
void others_forget(void);

extern _Atomic uint64_t ipc_given; /* memory_count.c */

/* vmm.c: between pin and unpin a handle stays. A name that is unknown leads the call to the driver with a
 * handle that it judges: the same, or none if the program gave it back and we still have it. */
CUresult vmm_remember(driver_handle *handle, uint64_t size, const driver_properties *properties,
		      uint32_t flags);
struct backing *vmm_pin(driver_handle name, driver_handle *real);
void vmm_unpin(struct backing *backing);
void vmm_keep(struct backing *backing); /* it is used in a way that cannot be done again */

extern _Atomic uint64_t vmm_multicasts;

/* handover.c: for the control thread, while the gates are closed. `failure` tells of a CUresult. */
enum diapause_status handover_export(const uint64_t *ids, unsigned int n, int *fds,
				     struct diapause_failure *failure);
enum diapause_status handover_drop(struct diapause_dropped *dropped, struct diapause_failure *failure);
enum diapause_status handover_attach(const uint64_t *ids, unsigned int n, const int *fds,
				     struct diapause_failure *failure);
enum diapause_status handover_rehome(const uint64_t *ids, unsigned int n, struct diapause_failure *failure);
bool handover_complete(void); /* is everything attached? */

/* handover_list.c */
size_t list_memory(uint64_t first, struct diapause_memory *list, size_t room); /* number of entries */
size_t list_devices(struct diapause_device *list, size_t room);
void list_stats(struct diapause_stats *stats);

/* handover_quiet.c */
void quiesce_prepare(void); /* its thread */
enum diapause_status quiesce(uint32_t timeout_ms, struct diapause_quiet *quiet,
			     struct diapause_failure *failure);
void quiesce_forget(void);

#endif
