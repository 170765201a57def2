/* SPDX-License-Identifier: Apache-2.0 */
/* The C front of diapause-runc: decides in well under a millisecond whether a call needs Python. */
#ifndef DIAPAUSE_FRONT_H
#define DIAPAUSE_FRONT_H

#include <stdbool.h>

struct command {
	char **argv;	 /* as we were called */
	int verb;	 /* index of the verb, 0: none (help, version, nothing) */
	const char *log; /* values of runc's global flags, NULL: not given */
	const char *log_format;
};

/* args.c */
void command_parse(struct command *c, char **argv);
bool command_is(const struct command *c, const char *verb);
const char *verb_flag(const struct command *c, const char *name, const char *alias);

/* config.c, scan.c */
const char *config_runc(void);
bool spec_has_trace(const struct command *c, const char *runc);

/* runtime.c: `runtime_exec` returns only when execve failed */
const char *runtime_find(const struct command *c);
void runtime_exec(const char *runc, char **argv);

/* python.c: main(first, argv[1:]) of a module of ours; returns only when there is no Python or package */
void python_exec(char *module, const char *first, int argc, char **argv);

/* fail.c: a record in --log, a line on stderr, status 1 */
_Noreturn void fail(const struct command *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
