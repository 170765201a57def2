/* SPDX-License-Identifier: Apache-2.0
 *
 * What programs may expect of a libcuda.so.1, as lines `group.check: value`. The same program runs
 * on the software GPU, on a real driver and through the interception library; contract.expected
 * says what a real driver answers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api.h"

#define MIB ((size_t)1 << 20)
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* A group runs in a process of its own, which has not touched the driver before. */
struct group {
	const char *name;
	void (*run)(void);
	unsigned seconds; /* before it counts as hanging */
};

#define GROUPS(G)        \
	G(init, 30)      \
	G(device, 30)    \
	G(context, 60)   \
	G(memory, 60)    \
	G(pointer, 60)   \
	G(copy, 60)      \
	G(host, 60)      \
	G(managed, 60)   \
	G(pool, 60)      \
	G(vmm, 60)       \
	G(share, 90)     \
	G(stream, 60)    \
	G(event, 60)     \
	G(hostfunc, 60)  \
	G(module, 60)    \
	G(kernel, 60)    \
	G(fault, 60)     \
	G(lookup, 30)    \
	G(error, 30)     \
	G(states, 120)   \
	G(contents, 120) \
	G(lock, 120)     \
	G(stopped, 120)  \
	G(refusal, 120)  \
	G(polling, 400)

#define G(name, seconds) void group_##name(void);
GROUPS(G)
#undef G

/* Lines of the group that runs. */
void value(const char *check, const char *format, ...) __attribute__((format(printf, 2, 3)));
void code(const char *check, CUresult result);
void yes(const char *check, bool condition);

/* For what a check needs before it can look at anything: ends the group. */
void need(const char *what, CUresult result);
#define NEED(call) need(#call, call)

/* The file given on the command line, for dlopen. */
extern const char *contract_library;

struct kernels {
	CUmodule module;
	CUfunction fill, step, checksum, spin;
};

/* cuInit, and the primary context of device 0 made current. */
extern CUcontext contract_context;
void contract_open(void);
void contract_kernels(struct kernels *kernels);
void launch_fill(const struct kernels *k, CUdeviceptr words, uint64_t count, uint64_t seed, CUstream stream);
void launch_step(const struct kernels *k, CUdeviceptr words, uint64_t count, CUstream stream);
uint64_t checksum(const struct kernels *k, CUdeviceptr words, uint64_t count);
/* Long enough for a few calls on a busy machine. */
#define SPIN_MS 400

/* Keeps the stream busy for so long, then adds 1 to *done. */
void launch_spin(const struct kernels *k, uint64_t ms, CUdeviceptr done, CUstream stream);

double now_ms(void);
void sleep_ms(unsigned ms);

/* Programs that this one is when it is started again: argv[1] says which. */
int helper_main(int argc, char **argv);	  /* helper.c */
int target_main(int argc, char **argv);	  /* target.c */
int creator_main(int argc, char **argv);  /* share.c */
int importer_main(int argc, char **argv); /* share.c */
