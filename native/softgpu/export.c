// SPDX-License-Identifier: Apache-2.0
/* Parts of the driver that the software GPU does not have, but that programs ask about. */
#include "softgpu.h"

CUDA_API(cuGetExportTable, const void **table, const CUuuid *id)
{
	if (!table || !id)
		return CUDA_ERROR_INVALID_VALUE;
	*table = NULL;
	return CUDA_ERROR_NOT_FOUND;
}
