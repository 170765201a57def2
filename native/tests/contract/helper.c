// SPDX-License-Identifier: Apache-2.0
/* helper: the driver's checkpoint calls in a process of their own. A line `lock PID MS` on stdin is
 * answered by a line `RESULT VALUE`. */
#include "contract.h"

#include <stdio.h>
#include <string.h>

static CUresult restore_onto(int pid, bool known)
{
	CUcheckpointGpuPair pair = { 0 };
	CUcheckpointRestoreArgs arguments = { .gpuPairs = &pair, .gpuPairsCount = 1 };

	if (cu.DeviceGetUuid(&pair.oldUuid, 0))
		return CUDA_ERROR_UNKNOWN;
	pair.newUuid = pair.oldUuid;
	if (!known)
		memset(&pair.newUuid, 0x5a, sizeof(pair.newUuid));
	return cu.CheckpointProcessRestore(pid, &arguments);
}

static CUresult serve(const char *request, int pid, unsigned number, int *answer)
{
	CUcheckpointLockArgs lock = { .timeoutMs = number };
	CUcheckpointCheckpointArgs checkpoint = { 0 };
	CUcheckpointRestoreArgs restore = { 0 };
	CUcheckpointUnlockArgs unlock = { 0 };
	CUprocessState state = 77;
	CUresult result;

	if (strcmp(request, "lock") == 0)
		return cu.CheckpointProcessLock(pid, &lock);
	if (strcmp(request, "checkpoint") == 0)
		return cu.CheckpointProcessCheckpoint(pid, &checkpoint);
	if (strcmp(request, "restore") == 0)
		return cu.CheckpointProcessRestore(pid, &restore);
	if (strcmp(request, "unlock") == 0)
		return cu.CheckpointProcessUnlock(pid, &unlock);
	if (strcmp(request, "lock-null") == 0)
		return cu.CheckpointProcessLock(pid, NULL);
	if (strcmp(request, "checkpoint-null") == 0)
		return cu.CheckpointProcessCheckpoint(pid, NULL);
	if (strcmp(request, "restore-null") == 0)
		return cu.CheckpointProcessRestore(pid, NULL);
	if (strcmp(request, "unlock-null") == 0)
		return cu.CheckpointProcessUnlock(pid, NULL);
	if (strcmp(request, "restore-same") == 0)
		return restore_onto(pid, true);
	if (strcmp(request, "restore-elsewhere") == 0)
		return restore_onto(pid, false);
	if (strcmp(request, "restore-tid") == 0)
		return cu.CheckpointProcessGetRestoreThreadId(pid, answer);
	if (strcmp(request, "state-null") == 0)
		return cu.CheckpointProcessGetState(pid, NULL);
	if (strcmp(request, "state") != 0)
		return CUDA_ERROR_UNKNOWN;
	result = cu.CheckpointProcessGetState(pid, &state);
	*answer = (int)state;
	return result;
}

int helper_main(int argc, char **argv)
{
	char line[256], request[64];
	unsigned number;
	int pid;

	api_load(contract_library);
	if (cu.Init(0))
		return 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	while (fgets(line, sizeof(line), stdin)) {
		int answer = -1;

		number = 0;
		if (sscanf(line, "%63s %d %u", request, &pid, &number) < 2)
			return 2;
		printf("%d ", (int)serve(request, pid, number, &answer));
		printf("%d\n", answer);
	}
	return 0;
}
