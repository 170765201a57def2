/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of the software GPU: children that use it, and the checkpoint calls from outside.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

#include "../../demo/gpu.h"

#define EXPECT(condition)                                            \
	do {                                                         \
		if (!(condition))                                    \
			test_failed(__FILE__, __LINE__, #condition); \
	} while (0)

#define EXPECT_EQ(got, want)                                                               \
	do {                                                                               \
		long long test_got = (long long)(got), test_want = (long long)(want);      \
		if (test_got != test_want) {                                               \
			fprintf(stderr, "got %lld, expected %lld: ", test_got, test_want); \
			test_failed(__FILE__, __LINE__, #got " == " #want);                \
		}                                                                          \
	} while (0)

void test_failed(const char *file, int line, const char *what) __attribute__((noreturn));
void test_skip(const char *reason) __attribute__((noreturn));
void sleep_ms(unsigned ms);
double now_ms(void);

/* The program again, with the role as its argument: the driver does not survive a fork. A role
 * answers each byte that it gets with one byte. */
struct child {
	pid_t pid;
	int to, from;
};

struct child child_start(const char *role);
void child_say(const struct child *child, char byte);
char child_hear(const struct child *child); /* 0: it is gone */
char child_do(const struct child *child, char byte);
/* Lets it end; exit status, or -signal. */
int child_end(const struct child *child);
void child_kill(const struct child *child);

/* In the child. role_next returns 0 when the test is over. */
const char *role_of(int argc, char **argv); /* NULL: this is the test itself */
void role_answer(char byte);
char role_next(void);

/* The checkpoint calls of this process's driver. */
struct driver {
	CUresult (*lock)(int pid, CUcheckpointLockArgs *args);
	CUresult (*checkpoint)(int pid, CUcheckpointCheckpointArgs *args);
	CUresult (*restore)(int pid, CUcheckpointRestoreArgs *args);
	CUresult (*unlock)(int pid, CUcheckpointUnlockArgs *args);
	CUresult (*get_state)(int pid, CUprocessState *state);
	CUresult (*get_tid)(int pid, int *tid);
};

extern struct driver driver;
void driver_open(void); /* skips the test if there is none */
void *driver_symbol(const char *name);
int driver_state(int pid);
CUresult lock_within(int pid, unsigned ms);

/* How many descriptors of the process have a link that contains the text. */
unsigned fds_like(pid_t pid, const char *text);
/* How many of its mappings do, in bytes. */
size_t mapped_like(pid_t pid, const char *text);
