/* SPDX-License-Identifier: Apache-2.0
 *
 * What the stub has for its tests, reached through the handle of the real file.
 */
#ifndef STUB_H
#define STUB_H

#include <stdint.h>

/* `name` with up to three of its arguments. */
typedef int stub_call(const char *name, void *first, void *second, void *third);

struct stub {
	int calls;	       /* of cuInit */
	int init_result;       /* what cuInit returns */
	uint64_t integers[11]; /* what the last cuLaunchKernel got */
	double reals[10];      /* what the last cuParamSetf got */
	void *unknown_variant; /* of cuInit: given by cuGetProcAddress, not exported */
	void *internal;	       /* of cuStreamQuery: given by cuGetProcAddress, not exported */
	stub_call *call;       /* what the functions of stub_calls.c do */
};

#define STUB_LATER 99000 /* from this version on cuGetProcAddress gives the two */

#endif
