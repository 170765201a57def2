/* SPDX-License-Identifier: Apache-2.0
 *
 * What the driver's and NVML's view of the device have in common.
 */
#pragma once

#include <stddef.h>

#define DEVICE_NAME "Diapause software GPU"
#define SOFTWARE_VERSION "softgpu-1"
#define DRIVER_VERSION 13000
#define DEVICE_BUS_ID "0000:D1:00.0"
#define DEVICE_BUS 0xd1
/* The 16 bytes of the UUID, and as NVML writes it. */
#define DEVICE_UUID_BYTES "\xd1\xa9\xa0\x5e\x50\xf7\x40\x00\x80\x00\x00\x00\x00\x00\x00\x00"
#define DEVICE_UUID_TEXT "GPU-d1a9a05e-50f7-4000-8000-000000000000"
#define COMPUTE_MAJOR 9
#define COMPUTE_MINOR 0
#define GRANULARITY ((size_t)2 << 20)

/* Where the character device may be, in order; ends with NULL. */
extern const char *const device_paths[];

/* DIAPAUSE_SOFTGPU_MEMORY: bytes, or a number with K, M or G. 2 GiB without it. */
size_t device_memory_size(void);
