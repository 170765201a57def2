// SPDX-License-Identifier: Apache-2.0
#include "compare.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct line {
	char *check;
	char *value[SIDES];
};

/* A line of allowed.txt: patterns of check and of both values, and the reason. */
struct allowed {
	char *check, *native, *library, *reason;
};

static const char text[] = {
#embed "allowed.txt"
	, 0
};

static struct line *lines;
static size_t count;
static struct allowed *table;
static size_t table_size;

static void *more(void *array, size_t size)
{
	array = realloc(array, size);
	if (!array)
		abort();
	return array;
}

/* A check that comes several times is compared in turn. */
static struct line *line_of(enum side side, const char *check, size_t length)
{
	for (size_t i = 0; i < count; i++) {
		if (!lines[i].value[side] && strlen(lines[i].check) == length &&
		    memcmp(lines[i].check, check, length) == 0)
			return &lines[i];
	}
	lines = more(lines, (count + 1) * sizeof(*lines));
	lines[count] = (struct line){ .check = strndup(check, length) };
	return &lines[count++];
}

void compare_take(enum side side, const char *line)
{
	const char *colon = strstr(line, ": ");

	if (!colon)
		return;
	line_of(side, line, (size_t)(colon - line))->value[side] = strdup(colon + 2);
}

static char *field(char **rest)
{
	char *word = strsep(rest, "|");
	size_t length;

	if (!word)
		return NULL;
	word += strspn(word, " \t");
	length = strlen(word);
	while (length && strchr(" \t", word[length - 1]))
		word[--length] = '\0';
	return word;
}

static void read_allowed(void)
{
	char *rest = strdup(text);

	for (char *line; rest && (line = strsep(&rest, "\n"));) {
		struct allowed a;

		if (!*line || *line == '#')
			continue;
		a.check = field(&line);
		a.native = field(&line);
		a.library = field(&line);
		a.reason = field(&line);
		if (!a.reason || !*a.reason) {
			fprintf(stderr, "replaced: a line of allowed.txt has no reason: %s\n", a.check);
			exit(2);
		}
		table = more(table, (table_size + 1) * sizeof(*table));
		table[table_size++] = a;
	}
}

static bool matches(const char *pattern, const char *value)
{
	return fnmatch(pattern, value ? value : "missing", 0) == 0;
}

static const char *reason(const struct line *line)
{
	for (size_t i = 0; i < table_size; i++) {
		if (matches(table[i].check, line->check) && matches(table[i].native, line->value[NATIVE]) &&
		    matches(table[i].library, line->value[LIBRARY]))
			return table[i].reason;
	}
	return NULL;
}

static bool same(const struct line *line)
{
	return line->value[NATIVE] && line->value[LIBRARY] &&
	       strcmp(line->value[NATIVE], line->value[LIBRARY]) == 0;
}

int compare_result(void)
{
	size_t equal = 0, allowed = 0, different = 0;
	const char *why;

	read_allowed();
	for (size_t i = 0; i < count; i++) {
		if (same(&lines[i])) {
			equal++;
			continue;
		}
		why = reason(&lines[i]);
		allowed += why != NULL;
		different += why == NULL;
		printf("%s %s: native %s, library %s%s%s\n", why ? "allowed  " : "DIFFERENT", lines[i].check,
		       lines[i].value[NATIVE] ? lines[i].value[NATIVE] : "missing",
		       lines[i].value[LIBRARY] ? lines[i].value[LIBRARY] : "missing", why ? ": " : "",
		       why ? why : "");
	}
	printf("%zu checks equal, %zu allowed to differ, %zu different\n", equal, allowed, different);
	return different || !equal ? 1 : 0;
}
