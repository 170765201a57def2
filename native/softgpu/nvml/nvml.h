/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of NVML's binary interface that monitoring of one device uses.
 */
#pragma once

#define EXPORT __attribute__((visibility("default")))

/* Declared where it is defined; the caller is the program. */
#define NVML_API(name, ...)                  \
	EXPORT nvmlReturn name(__VA_ARGS__); \
	nvmlReturn name(__VA_ARGS__)

typedef enum {
	NVML_SUCCESS = 0,
	NVML_ERROR_UNINITIALIZED = 1,
	NVML_ERROR_INVALID_ARGUMENT = 2,
	NVML_ERROR_NOT_SUPPORTED = 3,
	NVML_ERROR_NOT_FOUND = 6,
	NVML_ERROR_INSUFFICIENT_SIZE = 7,
	NVML_ERROR_DRIVER_NOT_LOADED = 9,
	NVML_ERROR_FUNCTION_NOT_FOUND = 13,
	NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
	NVML_ERROR_UNKNOWN = 999,
} nvmlReturn;

typedef struct nvml_device *nvmlDevice;

struct nvml_memory {
	unsigned long long total, free, used;
};

struct nvml_memory_v2 {
	unsigned version;
	unsigned long long total, reserved, free, used;
};

#define NVML_MEMORY_V2 0x02000028

struct nvml_utilization {
	unsigned gpu, memory; /* percent */
};

struct nvml_pci {
	char bus_id_legacy[16];
	unsigned domain, bus, device;
	unsigned pci_device_id, pci_subsystem_id;
	char bus_id[32];
};

/* init.c */
nvmlReturn nvml_check(void);
nvmlReturn nvml_check_device(nvmlDevice device);
nvmlDevice nvml_device(void);
nvmlReturn nvml_text(char *to, unsigned size, const char *text);
