// SPDX-License-Identifier: Apache-2.0
/* cuGetProcAddress: the real one answers, and an address of the real library becomes our entry.
 *
 * Only the address says which version of a function was chosen. An answer that is not an exported
 * function passes as it is, unless it is one of those that we replace: "not found" is better than a
 * way around us. */
#include "library.h"

typedef CUresult resolver_v1(const char *symbol, void **function, int version, uint64_t flags);
typedef CUresult resolver_v2(const char *symbol, void **function, int version, uint64_t flags, int *status);

#define SYMBOL_NOT_FOUND 1 /* CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND */

static CUresult exchange(CUresult result, const char *symbol, void **function, int *status)
{
	int entry;

	if (result != CUDA_SUCCESS || !symbol || !function || !*function)
		return result;
	if (is_entry(*function)) /* its own reference was bound to us, which stand first in the scope */
		return result;
	entry = entry_by_real(*function);
	if (entry >= 0) {
		count(DIAPAUSE_COUNT_RESOLVED);
		*function = diapause_entries[entry];
		return result;
	}
	if (!name_is_replaced_family(symbol)) {
		count(DIAPAUSE_COUNT_FOREIGN);
		return result;
	}
	count(DIAPAUSE_COUNT_REFUSED);
	*function = NULL;
	if (status)
		*status = SYMBOL_NOT_FOUND;
	return CUDA_ERROR_NOT_FOUND;
}

/* entries.S leads the exported names here. */
resolver_v1 replaced_cuGetProcAddress;
resolver_v2 replaced_cuGetProcAddress_v2, replaced_cuGetProcAddress_v2_ptsz;

CUresult replaced_cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags)
{
	resolver_v1 *real = real_function(ENTRY_cuGetProcAddress);

	return exchange(real(symbol, function, version, flags), symbol, function, NULL);
}

CUresult replaced_cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
				      int *status)
{
	resolver_v2 *real = real_function(ENTRY_cuGetProcAddress_v2);

	return exchange(real(symbol, function, version, flags, status), symbol, function, status);
}

CUresult replaced_cuGetProcAddress_v2_ptsz(const char *symbol, void **function, int version, uint64_t flags,
					   int *status)
{
	resolver_v2 *real = real_function(ENTRY_cuGetProcAddress_v2_ptsz);

	return exchange(real(symbol, function, version, flags, status), symbol, function, status);
}
