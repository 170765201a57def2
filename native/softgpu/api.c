// SPDX-License-Identifier: Apache-2.0
/* The table behind cuGetProcAddress. The functions are declared without their parameters here,
 * so this file must not see cuda_abi.h. */
#include "api.h"

#include <stddef.h>

#define API(name, since, symbol) void symbol(void);
#define API_STREAM(name, since, symbol, stream_symbol) void symbol(void), stream_symbol(void);
#include "api.def"
#undef API
#undef API_STREAM

const struct api api_table[] = {
#define API(name, since, symbol) { #name, since, symbol, symbol },
#define API_STREAM(name, since, symbol, stream_symbol) { #name, since, symbol, stream_symbol },
#include "api.def"
	{ NULL, 0, NULL, NULL },
};
