/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A function as cuGetProcAddress knows it. */
struct api {
	const char *name;
	int since;
	void (*legacy)(void), (*per_thread)(void);
};

extern const struct api api_table[]; /* ends with a NULL name */
