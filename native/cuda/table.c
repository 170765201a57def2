// SPDX-License-Identifier: Apache-2.0
/* The table by name: sorted, as symbols.py writes it. */
#include "library.h"

#include <string.h>

const char *const entry_names[ENTRIES] = {
#define FORWARD(name) #name,
#define GATE(name) #name,
#define REPLACE(name) #name,
#include "symbols.def"
#undef FORWARD
#undef GATE
#undef REPLACE
};

static const unsigned char kinds[ENTRIES] = {
#define FORWARD(name) [ENTRY_##name] = ENTRY_FORWARDED,
#define GATE(name) [ENTRY_##name] = ENTRY_GATED,
#define REPLACE(name) [ENTRY_##name] = ENTRY_REPLACED,
#include "symbols.def"
#undef FORWARD
#undef GATE
#undef REPLACE
};

int entry_by_name(const char *name)
{
	int low = 0, high = ENTRIES;

	while (low < high) {
		int middle = (low + high) / 2;
		int order = strcmp(name, entry_names[middle]);

		if (order == 0)
			return middle;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return -1;
}

enum entry_kind entry_kind(int entry)
{
	return kinds[entry];
}

static bool all_digits(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (text[i] < '0' || text[i] > '9')
			return false;
	return length > 0;
}

/* The length of a name without the suffixes that tell variants apart: _v2, _ptds, _ptsz. */
static size_t stem(const char *name)
{
	size_t length = strlen(name);

	for (;;) {
		size_t at = length;

		while (at > 0 && name[at - 1] != '_')
			at--;
		if (at < 2)
			return length;
		if (!(length - at == 4 && (!memcmp(name + at, "ptds", 4) || !memcmp(name + at, "ptsz", 4))) &&
		    !(name[at] == 'v' && all_digits(name + at + 1, length - at - 1)))
			return length;
		length = at - 1;
	}
}

/* Is it a variant, known or not, of a function that we replace? cuInit_v9 would be one. */
bool name_is_replaced_family(const char *name)
{
	size_t length = stem(name);

	for (int i = 0; i < ENTRIES; i++)
		if (kinds[i] == ENTRY_REPLACED && stem(entry_names[i]) == length &&
		    !memcmp(entry_names[i], name, length))
			return true;
	return false;
}
