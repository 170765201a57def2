// SPDX-License-Identifier: Apache-2.0
/* cuGetProcAddress, as CUDA's runtime and others use it; and the texts of errors. */
#include "contract.h"

#include <stdio.h>

static CUresult look(const char *name, int version, cuuint64_t flags, void **found,
		     CUdriverProcAddressQueryResult *status)
{
	*found = (void *)1;
	*status = 77;
	return cu.GetProcAddress(name, found, version, flags, status);
}

/* Which of two exported functions a look-up gives. */
static void gives(const char *check, const char *name, int version, cuuint64_t flags, const char *expected)
{
	CUdriverProcAddressQueryResult status;
	void *found;
	CUresult result = look(name, version, flags, &found, &status);

	value(check, "%d status %d %s", (int)result, (int)status,
	      found && found == api_symbol(expected) ? expected
	      : found				     ? "another"
						     : "nothing");
}

static void self(void)
{
	CUresult (*second)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *) = NULL;
	CUresult (*third)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *) = NULL;
	CUdriverProcAddressQueryResult status;
	void *found = NULL;

	NEED(look("cuGetProcAddress", 12000, 0, (void **)&second, &status));
	NEED(second("cuGetProcAddress", (void **)&third, 12000, 0, &status));
	code("self-three-deep", third("cuMemAlloc", &found, 12000, 0, &status));
	yes("self-three-deep-same", found == api_symbol("cuMemAlloc_v2"));
}

void group_lookup(void)
{
	void *found = (void *)1;

	gives("alloc", "cuMemAlloc", 4000, 0, "cuMemAlloc_v2");
	gives("alloc-newer", "cuMemAlloc", 13000, 0, "cuMemAlloc_v2");
	gives("alloc-too-new", "cuMemAlloc", 13040, 0, "cuMemAlloc_v2");
	gives("alloc-by-version", "cuMemAlloc_v2", 13000, 0, "cuMemAlloc_v2");
	gives("create-old", "cuCtxCreate", 4000, 0, "cuCtxCreate_v2");
	gives("create-middle", "cuCtxCreate", 11040, 0, "cuCtxCreate_v3");
	gives("create-new", "cuCtxCreate", 12050, 0, "cuCtxCreate_v4");
	gives("uuid-old", "cuDeviceGetUuid", 11030, 0, "cuDeviceGetUuid");
	gives("uuid-new", "cuDeviceGetUuid", 11040, 0, "cuDeviceGetUuid_v2");
	gives("elapsed-old", "cuEventElapsedTime", 12000, 0, "cuEventElapsedTime");
	gives("elapsed-new", "cuEventElapsedTime", 12080, 0, "cuEventElapsedTime_v2");
	gives("self-old", "cuGetProcAddress", 11030, 0, "cuGetProcAddress");
	gives("self-new", "cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2");
	gives("query-legacy", "cuStreamQuery", 12000, 1, "cuStreamQuery");
	gives("query-per-thread", "cuStreamQuery", 12000, 2, "cuStreamQuery_ptsz");
	gives("copy-per-thread", "cuMemcpyHtoD", 12000, 2, "cuMemcpyHtoD_v2_ptds");
	gives("event-query-per-thread", "cuEventQuery", 12000, 2, "cuEventQuery");
	gives("checkpoint", "cuCheckpointProcessLock", 12080, 0, "cuCheckpointProcessLock");
	gives("insufficient", "cuMemAllocAsync", 11010, 0, "cuMemAllocAsync");
	gives("unknown", "cuFrobnicate", 12000, 0, "cuFrobnicate");
	gives("flags-unknown", "cuStreamQuery", 12000, 0x4000, "cuStreamQuery");
	code("status-null", cu.GetProcAddress("cuMemAlloc", &found, 12000, 0, NULL));
	yes("status-null-same", found == api_symbol("cuMemAlloc_v2"));
	found = (void *)1;
	code("status-null-unknown", cu.GetProcAddress("cuFrobnicate", &found, 12000, 0, NULL));
	found = NULL;
	code("old-abi", cu.GetProcAddress_v1("cuMemAlloc", &found, 11030, 0));
	yes("old-abi-same", found == api_symbol("cuMemAlloc_v2"));
	code("old-abi-unknown", cu.GetProcAddress_v1("cuFrobnicate", &found, 11030, 0));
	self();
}

void group_error(void)
{
	static const int codes[] = { 0,	  1,   2,   3,	 4,   100, 101, 200, 201, 205, 208,
				     209, 211, 215, 217, 218, 301, 304, 400, 401, 500, 600,
				     700, 708, 709, 712, 713, 719, 800, 801, 909, 999 };
	const char *text;
	char check[32];

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		text = NULL;
		snprintf(check, sizeof(check), "name-%d", codes[i]);
		cu.GetErrorName((CUresult)codes[i], &text);
		value(check, "%s", text ? text : "nothing");
		text = NULL;
		snprintf(check, sizeof(check), "text-%d", codes[i]);
		cu.GetErrorString((CUresult)codes[i], &text);
		value(check, "%s", text ? text : "nothing");
	}
	text = "before";
	code("name-unknown", cu.GetErrorName((CUresult)4711, &text));
	yes("name-unknown-null", !text);
	text = "before";
	code("text-unknown", cu.GetErrorString((CUresult)4711, &text));
	yes("text-unknown-null", !text);
}
