// SPDX-License-Identifier: Apache-2.0
/* Names of the results that we give. */
#include "softgpu.h"

static const struct {
	CUresult result;
	const char *name, *text;
} errors[] = {
#define E(id, text) { CUDA_##id, "CUDA_" #id, text }
	E(SUCCESS, "no error"),
	E(ERROR_INVALID_VALUE, "invalid argument"),
	E(ERROR_OUT_OF_MEMORY, "out of memory"),
	E(ERROR_NOT_INITIALIZED, "initialization error"),
	E(ERROR_DEINITIALIZED, "driver shutting down"),
	E(ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
	E(ERROR_INVALID_DEVICE, "invalid device ordinal"),
	E(ERROR_INVALID_IMAGE, "device kernel image is invalid"),
	E(ERROR_INVALID_CONTEXT, "invalid device context"),
	E(ERROR_MAP_FAILED, "mapping of buffer object failed"),
	E(ERROR_ALREADY_MAPPED, "resource already mapped"),
	E(ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device"),
	E(ERROR_NOT_MAPPED, "resource not mapped"),
	E(ERROR_UNSUPPORTED_LIMIT, "limit is not supported on this architecture"),
	E(ERROR_PEER_ACCESS_UNSUPPORTED, "peer access is not supported between these two devices"),
	E(ERROR_INVALID_PTX, "a PTX JIT compilation failed"),
	E(ERROR_FILE_NOT_FOUND, "file not found"),
	E(ERROR_OPERATING_SYSTEM, "OS call failed or operation not supported on this OS"),
	E(ERROR_INVALID_HANDLE, "invalid resource handle"),
	E(ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state"),
	E(ERROR_NOT_FOUND, "named symbol not found"),
	E(ERROR_NOT_READY, "device not ready"),
	E(ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
	E(ERROR_PRIMARY_CONTEXT_ACTIVE, "cannot set while device is active in this process"),
	E(ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
	E(ERROR_HOST_MEMORY_ALREADY_REGISTERED,
	  "part or all of the requested memory range is already mapped"),
	E(ERROR_HOST_MEMORY_NOT_REGISTERED, "pointer does not correspond to a registered memory region"),
	E(ERROR_LAUNCH_FAILED, "unspecified launch failure"),
	E(ERROR_NOT_PERMITTED, "operation not permitted"),
	E(ERROR_NOT_SUPPORTED, "operation not supported"),
	E(ERROR_TIMEOUT, "wait operation timed out"),
	E(ERROR_UNKNOWN, "unknown error"),
#undef E
};

CUDA_API(cuGetErrorName, CUresult result, const char **name)
{
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	*name = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		if (errors[i].result == result)
			*name = errors[i].name;
	}
	return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUDA_API(cuGetErrorString, CUresult result, const char **text)
{
	if (!text)
		return CUDA_ERROR_INVALID_VALUE;
	*text = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		if (errors[i].result == result)
			*text = errors[i].text;
	}
	return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
