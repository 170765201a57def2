/* SPDX-License-Identifier: Apache-2.0
 *
 * This program once more in another role, with which it talks by lines.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct process {
	pid_t pid;
	int to, from; /* its stdin and stdout */
};

/* `fd` stays open in the child under its number, -1: none. */
void process_start(struct process *process, const char *role, int fd);
/* Sends a line and reads one: "" if there is none within the time. */
void process_ask(struct process *process, char *answer, size_t size, unsigned ms, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
bool process_send(struct process *process, const char *format, ...) __attribute__((format(printf, 2, 3)));
void process_read(struct process *process, char *answer, size_t size, unsigned ms);
/* Says how it ended: "exit 0", "signal 11"; kills it after the time: "hangs". */
void process_end(struct process *process, char *how, size_t size, unsigned ms);
void process_kill(struct process *process);
