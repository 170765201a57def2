// SPDX-License-Identifier: Apache-2.0
/* runc's command line: globals, verb, flags and id; one or two dashes, "=" or a space. */
#include <string.h>

#include "front.h"

/* The value of flag `name` if argv[*i] is that flag; moves *i over a value that is a word of its own. */
static const char *flag_value(char **argv, int *i, const char *name)
{
	const char *word = argv[*i];
	size_t length = strlen(name);

	if (*word++ != '-')
		return NULL;
	word += *word == '-';
	if (strncmp(word, name, length))
		return NULL;
	if (word[length] == '=')
		return word + length + 1;
	return !word[length] && argv[*i + 1] ? argv[++*i] : NULL;
}

/* Unknown flags count as switches: all flags that take a value, of runc and of crun, are known here. */
static void take_global(struct command *c, int *i)
{
	static const char *const more[] = { "root", "criu", "rootless", "log-level", "cgroup-manager", NULL };
	const char *value;

	if ((value = flag_value(c->argv, i, "log")))
		c->log = value;
	else if ((value = flag_value(c->argv, i, "log-format")))
		c->log_format = value;
	else
		for (const char *const *name = more; *name && !flag_value(c->argv, i, *name); name++)
			;
}

static bool only_prints(const char *flag)
{
	flag += 1 + (flag[1] == '-');
	return !strcmp(flag, "h") || !strcmp(flag, "help") || !strcmp(flag, "v") || !strcmp(flag, "version");
}

void command_parse(struct command *c, char **argv)
{
	*c = (struct command){ .argv = argv };
	for (int i = 1; argv[i] && !c->verb; i++) {
		if (!strcmp(argv[i], "--") && argv[i + 1])
			c->verb = i + 1;
		else if (argv[i][0] != '-')
			c->verb = i;
		else if (only_prints(argv[i]))
			return;
		else
			take_global(c, &i);
	}
}

bool command_is(const struct command *c, const char *verb)
{
	return c->verb && !strcmp(c->argv[c->verb], verb);
}

/* The last value of a flag of the verb, NULL if there is none or it is empty; runc's parser takes flags after
 * the id as well. */
const char *verb_flag(const struct command *c, const char *name, const char *alias)
{
	const char *found = NULL, *value;

	for (int i = c->verb + 1; c->argv[i] && strcmp(c->argv[i], "--"); i++)
		if ((value = flag_value(c->argv, &i, name)) || (value = flag_value(c->argv, &i, alias)))
			found = value;
	return found && *found ? found : NULL;
}
