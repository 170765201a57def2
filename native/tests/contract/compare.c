// SPDX-License-Identifier: Apache-2.0
#include "compare.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct expectation {
	char *check, *value;
	bool pattern, doubtful, seen;
};

static const char expected[] = {
#embed "contract.expected"
	, 0
};

static struct expectation *expectations;
static size_t count, differences;
static const char *compared = "contract";

static void trim(char *text)
{
	size_t length = strlen(text);

	while (length && strchr(" \t\n", text[length - 1]))
		text[--length] = '\0';
}

static void add(char *line)
{
	struct expectation e = { 0 };
	char *comment = strchr(line, '#'), *colon;

	if (comment) {
		e.doubtful = comment[1 + strspn(comment + 1, " ")] == '?';
		*comment = '\0';
	}
	trim(line);
	e.pattern = line[0] == '~';
	line += e.pattern;
	colon = strstr(line, ": ");
	if (!colon)
		return;
	*colon = '\0';
	e.check = strdup(line);
	e.value = strdup(colon + 2);
	expectations = realloc(expectations, (count + 1) * sizeof(e));
	if (!e.check || !e.value || !expectations)
		abort();
	expectations[count++] = e;
}

static void read_expectations(void)
{
	char *text = strdup(expected), *rest = text;

	if (!text)
		abort();
	for (char *line; (line = strsep(&rest, "\n"));)
		add(line);
	free(text);
}

void compare_begin(const char *what)
{
	compared = what;
	if (!expectations)
		read_expectations();
	for (size_t i = 0; i < count; i++)
		expectations[i].seen = false;
}

static struct expectation *find(const char *check, size_t length)
{
	for (size_t i = 0; i < count; i++) {
		if (strlen(expectations[i].check) == length &&
		    memcmp(expectations[i].check, check, length) == 0)
			return &expectations[i];
	}
	return NULL;
}

static bool matches(const struct expectation *e, const char *value)
{
	return e->pattern ? fnmatch(e->value, value, FNM_EXTMATCH) == 0 : strcmp(e->value, value) == 0;
}

void compare_line(const char *line)
{
	const char *colon = strstr(line, ": ");
	struct expectation *e;
	char value[512];

	if (!colon)
		return;
	snprintf(value, sizeof(value), "%s", colon + 2);
	trim(value);
	e = find(line, (size_t)(colon - line));
	if (e)
		e->seen = true;
	if (e && matches(e, value))
		return;
	differences++;
	fprintf(stderr, "%s: %.*s: %s, expected %s%s\n", compared, (int)(colon - line), line, value,
		e ? e->value : "no such line", e && e->doubtful ? " (never seen on hardware)" : "");
}

void compare_group(const char *group)
{
	size_t length = strlen(group);

	for (size_t i = 0; i < count; i++) {
		const struct expectation *e = &expectations[i];

		if (e->seen || strncmp(e->check, group, length) != 0 || e->check[length] != '.')
			continue;
		differences++;
		fprintf(stderr, "%s: %s: missing, expected %s\n", compared, e->check, e->value);
	}
}

int compare_result(void)
{
	if (differences)
		fprintf(stderr, "contract: %zu differences\n", differences);
	return differences ? 1 : 0;
}
