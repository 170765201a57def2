/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "softgpu.h"

/* What a PTX text declares: kernels and global variables. The strings point into the text. */
struct declaration {
	const char *name;
	size_t length;
	size_t size; /* bytes of a global; 0: an entry */
};

CUresult ptx_check(const char *text);
/* 1: the next one, 0: no more, -1: the text is broken. */
int ptx_next(const char **at, struct declaration *declaration);
