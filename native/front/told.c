// SPDX-License-Identifier: Apache-2.0
/* The state of a container as JSON, as far as a hook needs it. */
#include "told.h"

#include <stdlib.h>
#include <string.h>

#define DEPTH 16

static const char *space(const char *at)
{
	return at + strspn(at, " \t\r\n");
}

/* Each of these returns what follows, NULL if there is no such thing. */
static const char *string(const char *at, struct text *text)
{
	if (*at != '"')
		return NULL;
	text->at = ++at;
	for (; *at != '"'; at++)
		if (!*at || (*at == '\\' && !*++at))
			return NULL;
	text->length = (int)(at - text->at);
	return at + 1;
}

static const char *skip(const char *at, int depth);

static const char *members(const char *at, char end, int depth)
{
	struct text name;

	at = space(at + 1);
	if (*at == end)
		return at + 1;
	for (;; at = space(at + 1)) {
		if (end == '}' && !((at = string(at, &name)) && *(at = space(at)) == ':' && at++))
			return NULL;
		if (!(at = skip(space(at), depth)))
			return NULL;
		at = space(at);
		if (*at == end)
			return at + 1;
		if (*at != ',')
			return NULL;
	}
}

static const char *skip(const char *at, int depth)
{
	size_t length = strspn(at, "+-.0123456789Eaeflnrstu"); /* numbers, true, false, null */
	struct text text;

	if (*at == '"')
		return string(at, &text);
	if (*at == '{' || *at == '[')
		return depth ? members(at, *at == '{' ? '}' : ']', depth - 1) : NULL;
	return length ? at + length : NULL;
}

static bool is_plain(const struct text *text)
{
	return !memchr(text->at, '\\', (size_t)text->length);
}

bool text_is(const struct text *text, const char *wanted)
{
	return strlen(wanted) == (size_t)text->length && !memcmp(text->at, wanted, (size_t)text->length);
}

static bool keep(struct text *kept, const char *at)
{
	struct text text;

	if (kept->at || !string(at, &text) || !is_plain(&text))
		return false;
	*kept = text;
	return true;
}

static bool keep_pid(int *pid, const char *at)
{
	char *end;
	long value = strtol(at, &end, 10);

	if (*pid || *at < '1' || *at > '9' || value <= 1 || value > 1 << 30 || !strchr(",} \t\r\n", *end))
		return false;
	*pid = (int)value;
	return true;
}

bool told_parse(struct told *t, const char *json)
{
	const char *at = space(json);
	struct text name;

	*t = (struct told){ .pid = 0 };
	if (*at != '{')
		return false;
	do {
		at = string(space(at + 1), &name);
		if (!at || !is_plain(&name) || *(at = space(at)) != ':')
			return false;
		at = space(at + 1);
		if ((text_is(&name, "id") && !keep(&t->id, at)) ||
		    (text_is(&name, "bundle") && !keep(&t->bundle, at)) ||
		    (text_is(&name, "pid") && !keep_pid(&t->pid, at)))
			return false;
		at = skip(at, DEPTH);
		if (!at)
			return false;
		at = space(at);
	} while (*at == ',');
	return *at == '}' && !*space(at + 1) && t->id.at && t->bundle.at && t->pid;
}
