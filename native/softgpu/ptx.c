// SPDX-License-Identifier: Apache-2.0
/* Just enough of PTX to know which kernels and global variables a text declares. */
#include "ptx.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const char *skip_blank(const char *p)
{
	for (;;) {
		while (isspace((unsigned char)*p))
			p++;
		if (p[0] == '/' && p[1] == '/') {
			while (*p && *p != '\n')
				p++;
		} else if (p[0] == '/' && p[1] == '*') {
			p = strstr(p + 2, "*/");
			if (!p)
				return "";
			p += 2;
		} else {
			return p;
		}
	}
}

static bool in_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '.' || c == '%';
}

/* A name, a number or one other character. Length 0 at the end of the text. */
static const char *token(const char **at, size_t *length)
{
	const char *start = skip_blank(*at), *p = start;

	while (in_name(*p) && !(p > start && *p == '.' && *start == '.'))
		p++;
	if (p == start && *p)
		p++;
	*length = (size_t)(p - start);
	*at = p;
	return start;
}

static bool is(const char *t, size_t length, const char *word)
{
	return strlen(word) == length && memcmp(t, word, length) == 0;
}

/* PTX starts with .version and .target. Images in binary form need hardware. */
CUresult ptx_check(const char *text)
{
	const char *t;
	size_t length;

	if (memcmp(text,
		   "\x7f"
		   "ELF",
		   4) == 0 ||
	    memcmp(text, "\x50\xed\x55\xba", 4) == 0)
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	t = token(&text, &length);
	if (!is(t, length, ".version"))
		return CUDA_ERROR_INVALID_IMAGE;
	token(&text, &length);
	t = token(&text, &length);
	return is(t, length, ".target") ? CUDA_SUCCESS : CUDA_ERROR_INVALID_PTX;
}

/* .global .align 8 .u64 name; or .global .b8 name[64]; */
static bool read_global(const char **at, struct declaration *d)
{
	size_t length, width = 0;
	const char *t;

	for (;;) {
		t = token(at, &length);
		if (!length)
			return false;
		if (is(t, length, ".align"))
			token(at, &length);
		else if (*t == '.' && length > 2 && isdigit((unsigned char)t[2]))
			width = (size_t)atoi(t + 2) / 8;
		else if (*t != '.')
			break;
	}
	d->name = t;
	d->length = length;
	d->size = width;
	t = skip_blank(*at);
	if (*t == '[')
		d->size = width * strtoul(t + 1, NULL, 0);
	return d->size != 0;
}

/* Instructions have parts called .global too. False: the text ends in the middle. */
static bool skip_body(const char **at)
{
	size_t length, depth = 1;
	const char *t;

	while (depth && (t = token(at, &length), length)) {
		if (*t == '{')
			depth++;
		if (*t == '}')
			depth--;
	}
	return !depth;
}

int ptx_next(const char **at, struct declaration *d)
{
	const char *t;
	size_t length;

	while ((t = token(at, &length)), length) {
		if (is(t, length, ".entry")) {
			d->name = token(at, &d->length);
			d->size = 0;
			return d->length ? 1 : -1;
		}
		if (is(t, length, "{") && !skip_body(at))
			return -1;
		if (is(t, length, ".global") && read_global(at, d))
			return 1;
	}
	return 0;
}
