// SPDX-License-Identifier: Apache-2.0
#include "identity.h"

#include <stdlib.h>

#define DEFAULT_MEMORY ((size_t)2 << 30)

/* In a container the CDI edits put the device at the first path. On a host there is none: any
 * character device that CRIU refuses to dump will do. */
const char *const device_paths[] = {
	"/dev/diapause-gpu0", "/dev/fuse", "/dev/loop-control", "/dev/vhost-net",     "/dev/kvm",
	"/dev/hpet",	      "/dev/cuse", "/dev/vhost-vsock",	"/dev/btrfs-control", NULL,
};

size_t device_memory_size(void)
{
	const char *text = getenv("DIAPAUSE_SOFTGPU_MEMORY");
	unsigned long long n;
	char *end;

	if (!text || !*text)
		return DEFAULT_MEMORY;
	n = strtoull(text, &end, 10);
	switch (*end) {
	case 'G':
		n <<= 30;
		break;
	case 'M':
		n <<= 20;
		break;
	case 'K':
		n <<= 10;
		break;
	}
	return n ? (n + GRANULARITY - 1) / GRANULARITY * GRANULARITY : DEFAULT_MEMORY;
}
