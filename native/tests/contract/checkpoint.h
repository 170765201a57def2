/* SPDX-License-Identifier: Apache-2.0
 *
 * A target and a helper that checkpoints it.
 */
#pragma once

#include <stdbool.h>

struct checkpoint {
	struct process *target, *helper;
};

/* Started; the target has not touched the driver yet. */
struct checkpoint checkpoint_start(void);
void checkpoint_end(struct checkpoint *c);
/* A line `check: RESULT` for a request to the helper about the target. */
void request(const struct checkpoint *c, const char *check, const char *what, unsigned number);
void request_for(const struct checkpoint *c, const char *check, const char *what, int pid);
/* The same with the value that came along, if the result is 0. */
void state(const struct checkpoint *c, const char *check);
int restore_tid(const struct checkpoint *c);
/* The same without a line; -1 for no answer. */
int quietly(const struct checkpoint *c, const char *what, unsigned number);
/* A line `check: ANSWER` for an order to the target. */
void order(const struct checkpoint *c, const char *check, const char *what);
void order_quietly(const struct checkpoint *c, const char *what);
/* Does the target hold a character device that is no terminal and nothing like /dev/null? */
bool has_device(const struct checkpoint *c);
