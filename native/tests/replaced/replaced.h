/* SPDX-License-Identifier: Apache-2.0
 *
 * Every function that the interception library answers itself, and those that are handed its memory, with
 * good and bad arguments: once on a driver, once through the library. Lines `group.check: value` have to be
 * equal, or allowed.txt says why they are not.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda_abi.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Each in a process of its own, which has not touched the driver before. */
#define GROUPS(G)    \
	G(before)    \
	G(allocate)  \
	G(refuse)    \
	G(release)   \
	G(pitch)     \
	G(range)     \
	G(attribute) \
	G(create)    \
	G(map)       \
	G(share)     \
	G(context)   \
	G(primary)   \
	G(capture)   \
	G(callback)  \
	G(exhaust)   \
	G(handed)    \
	G(old)       \
	G(lookup)    \
	G(no_output) \
	G(no_handle)

#define G(name) void group_##name(void);
GROUPS(G)
#undef G

/* A function of the library under test by its exported name: CALL(cuMemFree_v2, (CUdeviceptr), p). */
#define CALL(name, types, ...)                     \
	({                                         \
		typedef CUresult call_type types;  \
		call_type *call = function(#name); \
		call ? call(__VA_ARGS__) : ABSENT; \
	})
#define ABSENT ((CUresult)99999) /* this driver exports no such function */

void *function(const char *name);

/* Lines of the group that runs. `check` may be a format. */
void value(const char *check, const char *format, ...) __attribute__((format(printf, 2, 3)));
void code(const char *check, CUresult result);
void codes(CUresult result, const char *check, ...) __attribute__((format(printf, 2, 3)));
void yes(const char *check, bool condition);
/* For what a check needs before it can look at anything: ends the group. */
void need(const char *what, CUresult result);
#define NEED(...) need(#__VA_ARGS__, __VA_ARGS__)

/* common.c */

extern const CUmemAllocationProp properties; /* of memory on device 0, without a handle type */
extern const CUmemAccessDesc both;	     /* read and write, from device 0 */

CUcontext open_primary(void); /* cuInit, and the primary context of device 0 made current */
CUdeviceptr allocate(size_t size);
CUresult release(CUdeviceptr memory);
CUresult create(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *p);
CUdeviceptr reserve(size_t size);
CUresult map(CUdeviceptr at, size_t size, size_t offset, CUmemGenericAllocationHandle handle);
CUresult unmap(CUdeviceptr at, size_t size);
CUresult access_both(CUdeviceptr at, size_t size);
CUresult export(int *fd, CUmemGenericAllocationHandle handle);
CUresult import(CUmemGenericAllocationHandle *handle, int fd);
unsigned first_word(CUdeviceptr memory);
void synchronize(void);
/* Keeps the legacy stream busy for so long, then adds 1 to *done. */
void spin(uint64_t ms, CUdeviceptr done);
double now_ms(void);
