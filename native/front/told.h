/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DIAPAUSE_TOLD_H
#define DIAPAUSE_TOLD_H

#include <stdbool.h>

/* What runc tells a hook on stdin. The texts point into what was parsed and are not terminated. */
struct text {
	const char *at;
	int length;
};

struct told {
	struct text id, bundle;
	int pid;
};

/* False for anything but a plain state, also where it may be right: escapes in a name, a key that comes
 * twice. `json` is terminated. */
bool told_parse(struct told *t, const char *json);

bool text_is(const struct text *text, const char *wanted);

#endif
