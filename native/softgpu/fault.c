// SPDX-License-Identifier: Apache-2.0
/* Faults that tests ask for: DIAPAUSE_SOFTGPU_FAULT="checkpoint=fail:1,restore=hang".
 *
 * fail    the operation fails (a failed restore is final, as on hardware)
 * fatal   it fails and the process is lost
 * hang    this call is never answered; the state stays as it was
 * stuck   nothing is answered from now on
 * slow    one second more
 * A count after a colon says how many calls are hit; without it all are. */
#include "softgpu.h"

#include <stdlib.h>
#include <string.h>

static struct {
	enum fault fault;
	int left; /* -1: for ever */
} faults[OPERATIONS];

static const char *const operations[OPERATIONS] = { "lock", "checkpoint", "restore", "unlock" };
static const struct {
	const char *name;
	enum fault fault;
} names[] = {
	{ "fail", FAULT_FAIL },	  { "fatal", FAULT_FATAL }, { "hang", FAULT_HANG },
	{ "stuck", FAULT_STUCK }, { "slow", FAULT_SLOW },
};

static void load_one(char *item)
{
	char *value = strchr(item, '='), *count;

	if (!value)
		return;
	*value++ = 0;
	count = strchr(value, ':');
	if (count)
		*count++ = 0;
	for (size_t i = 0; i < OPERATIONS; i++) {
		if (strcmp(item, operations[i]) != 0)
			continue;
		for (size_t k = 0; k < ARRAY_SIZE(names); k++) {
			if (strcmp(value, names[k].name) == 0)
				faults[i].fault = names[k].fault;
		}
		faults[i].left = count ? atoi(count) : -1;
	}
}

void fault_load(const char *text)
{
	char *copy, *item, *rest;

	if (!text || !(copy = strdup(text)))
		return;
	for (item = strtok_r(copy, ",", &rest); item; item = strtok_r(NULL, ",", &rest))
		load_one(item);
	free(copy);
}

enum fault fault_take(enum operation operation)
{
	if (operation >= OPERATIONS || faults[operation].left == 0)
		return FAULT_NONE;
	if (faults[operation].left > 0)
		faults[operation].left--;
	return faults[operation].fault;
}
