// SPDX-License-Identifier: Apache-2.0
/* NVML of the software GPU: initialisation, versions, errors. */
#include "../identity.h"
#include "nvml.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct nvml_device {
	char unused;
};

static atomic_int users;
static struct nvml_device device;

static int device_present(void)
{
	const char *path = getenv("DIAPAUSE_SOFTGPU_DEVICE");

	if (path && *path)
		return access(path, R_OK) == 0;
	for (const char *const *p = device_paths; *p; p++) {
		if (access(*p, R_OK) == 0)
			return 1;
	}
	return 0;
}

nvmlReturn nvml_check(void)
{
	return atomic_load(&users) > 0 ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

nvmlDevice nvml_device(void)
{
	return &device;
}

nvmlReturn nvml_check_device(nvmlDevice handle)
{
	nvmlReturn result = nvml_check();

	return !result && handle != &device ? NVML_ERROR_INVALID_ARGUMENT : result;
}

nvmlReturn nvml_text(char *to, unsigned size, const char *text)
{
	if (!to)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (size <= strlen(text))
		return NVML_ERROR_INSUFFICIENT_SIZE;
	strcpy(to, text);
	return NVML_SUCCESS;
}

NVML_API(nvmlInitWithFlags, unsigned flags)
{
	if (!device_present())
		return NVML_ERROR_DRIVER_NOT_LOADED;
	atomic_fetch_add(&users, 1);
	return NVML_SUCCESS;
}

NVML_API(nvmlInit_v2, void)
{
	return nvmlInitWithFlags(0);
}

NVML_API(nvmlInit, void)
{
	return nvmlInitWithFlags(0);
}

NVML_API(nvmlShutdown, void)
{
	nvmlReturn result = nvml_check();

	if (!result)
		atomic_fetch_sub(&users, 1);
	return result;
}

NVML_API(nvmlSystemGetDriverVersion, char *version, unsigned size)
{
	nvmlReturn result = nvml_check();

	return result ? result : nvml_text(version, size, SOFTWARE_VERSION);
}

NVML_API(nvmlSystemGetNVMLVersion, char *version, unsigned size)
{
	nvmlReturn result = nvml_check();

	return result ? result : nvml_text(version, size, "13." SOFTWARE_VERSION);
}

NVML_API(nvmlSystemGetCudaDriverVersion_v2, int *version)
{
	if (!version)
		return NVML_ERROR_INVALID_ARGUMENT;
	*version = DRIVER_VERSION;
	return NVML_SUCCESS;
}

NVML_API(nvmlSystemGetCudaDriverVersion, int *version)
{
	return nvmlSystemGetCudaDriverVersion_v2(version);
}

EXPORT const char *nvmlErrorString(nvmlReturn result);
const char *nvmlErrorString(nvmlReturn result)
{
	switch (result) {
	case NVML_SUCCESS:
		return "Success";
	case NVML_ERROR_UNINITIALIZED:
		return "Uninitialized";
	case NVML_ERROR_INVALID_ARGUMENT:
		return "Invalid Argument";
	case NVML_ERROR_NOT_SUPPORTED:
		return "Not Supported";
	case NVML_ERROR_NOT_FOUND:
		return "Not Found";
	case NVML_ERROR_INSUFFICIENT_SIZE:
		return "Insufficient Size";
	case NVML_ERROR_DRIVER_NOT_LOADED:
		return "Driver Not Loaded";
	case NVML_ERROR_FUNCTION_NOT_FOUND:
		return "Function Not Found";
	case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
		return "Argument Version Mismatch";
	default:
		return "Unknown Error";
	}
}
