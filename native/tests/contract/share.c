// SPDX-License-Identifier: Apache-2.0
/* Memory that goes to another process as a file descriptor. */
#include "contract.h"

#include "spawn.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SIZE (4 * MIB)
#define PATIENCE 20000

static CUmemAllocationProp properties = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
};
static const CUmemAccessDesc both = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
				      CU_MEM_ACCESS_FLAGS_PROT_READWRITE };

static CUresult export(int *fd, CUmemGenericAllocationHandle handle)
{
	return cu.MemExportToShareableHandle(fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
}

static CUresult import(CUmemGenericAllocationHandle *handle, int fd)
{
	return cu.MemImportFromShareableHandle(handle, (void *)(intptr_t)fd,
					       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

static CUdeviceptr map(CUmemGenericAllocationHandle handle)
{
	CUdeviceptr range;

	NEED(cu.MemAddressReserve(&range, SIZE, 0, 0, 0));
	NEED(cu.MemMap(range, SIZE, 0, handle, 0));
	NEED(cu.MemSetAccess(range, SIZE, &both, 1));
	return range;
}

static void unmap(CUdeviceptr range, CUmemGenericAllocationHandle handle)
{
	NEED(cu.MemUnmap(range, SIZE));
	NEED(cu.MemAddressFree(range, SIZE));
	NEED(cu.MemRelease(handle));
}

static unsigned first_word(CUdeviceptr memory)
{
	unsigned word = 0;

	NEED(cu.MemcpyDtoH(&word, memory, sizeof(word)));
	return word;
}

static int open_quietly(void)
{
	CUcontext ctx;

	api_load(contract_library);
	return cu.Init(0) || cu.DevicePrimaryCtxRetain(&ctx, 0) || cu.CtxSetCurrent(ctx);
}

/* importer FD: says what it found there, what an export of it says, and leaves a word of its own. */
int importer_main(int argc, char **argv)
{
	CUmemGenericAllocationHandle handle = 0;
	CUdeviceptr range = 0;
	unsigned word = 0;
	CUresult result, exported;
	int fd = -1;

	if (argc < 1 || open_quietly())
		return 1;
	result = import(&handle, atoi(argv[0]));
	if (result) {
		printf("import %d\n", (int)result);
		return 0;
	}
	exported = export(&fd, handle);
	if (cu.MemAddressReserve(&range, SIZE, 0, 0, 0) || cu.MemMap(range, SIZE, 0, handle, 0) ||
	    cu.MemSetAccess(range, SIZE, &both, 1) || cu.MemcpyDtoH(&word, range + SIZE - 4, 4) ||
	    cu.MemsetD32(range, 0xfeedbeef, 1) || cu.CtxSynchronize())
		return 1;
	printf("import 0 word %08x export %d\n", word, (int)exported);
	return 0;
}

static void send_fd(int to, int fd)
{
	char room[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 'f';
	struct iovec data = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(int));
	if (sendmsg(to, &message, 0) < 0)
		perror("contract: sendmsg");
}

static int receive_fd(int from)
{
	char room[CMSG_SPACE(sizeof(int))], byte;
	struct iovec data = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)
	};
	int fd = -1;

	if (recvmsg(from, &message, MSG_CMSG_CLOEXEC) > 0 && CMSG_FIRSTHDR(&message))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
	return fd;
}

/* creator SOCKET: makes memory, sends its descriptor and ends. */
int creator_main(int argc, char **argv)
{
	CUmemGenericAllocationHandle handle;
	int fd;

	if (argc < 1 || open_quietly() || cu.MemCreate(&handle, SIZE, &properties, 0))
		return 1;
	if (cu.MemsetD32(map(handle), 0xabcd1234, SIZE / 4) || cu.CtxSynchronize() || export(&fd, handle))
		return 1;
	send_fd(atoi(argv[0]), fd);
	puts("sent");
	return 0;
}

static void ask_importer(const char *check, int fd)
{
	struct process importer;
	char answer[256];

	process_start(&importer, "importer", fd);
	process_read(&importer, answer, sizeof(answer), PATIENCE);
	value(check, "%s", answer);
	process_end(&importer, answer, sizeof(answer), PATIENCE);
	if (strcmp(answer, "exit 0") != 0)
		value("importer-ended", "%s", answer);
}

static void from_another(void)
{
	struct process creator;
	int pair[2], fd;
	char answer[256];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		need("socketpair", CUDA_ERROR_OPERATING_SYSTEM);
	process_start(&creator, "creator", pair[1]);
	close(pair[1]);
	process_read(&creator, answer, sizeof(answer), PATIENCE);
	fd = receive_fd(pair[0]);
	process_end(&creator, answer, sizeof(answer), PATIENCE);
	value("creator", "%s", answer);
	ask_importer("creator-gone", fd);
	ask_importer("creator-gone-again", fd);
	close(fd);
	close(pair[0]);
}

void group_share(void)
{
	CUmemAllocationProp private = properties;
	CUmemGenericAllocationHandle handle, other = 0;
	CUdeviceptr range;
	int fd = -1, null = open("/dev/null", O_RDWR | O_CLOEXEC);

	contract_open();
	private.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
	NEED(cu.MemCreate(&handle, SIZE, &private, 0));
	code("export-private", export(&fd, handle));
	NEED(cu.MemRelease(handle));
	NEED(cu.MemCreate(&handle, SIZE, &properties, 0));
	range = map(handle);
	NEED(cu.MemsetD32(range, 0x12345678, SIZE / 4));
	NEED(cu.CtxSynchronize());
	code("export-type", cu.MemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_NONE, 0));
	code("export", export(&fd, handle));
	ask_importer("imported", fd);
	value("importer-wrote", "%08x %08x", first_word(range), first_word(range + 4));
	unmap(range, handle);
	ask_importer("released", fd);
	code("import-own", import(&other, fd));
	range = map(other);
	value("import-own-content", "%08x %08x", first_word(range), first_word(range + 4));
	unmap(range, other);
	close(fd);
	code("import-closed", import(&other, fd));
	code("import-null", import(&other, null));
	from_another();
}
