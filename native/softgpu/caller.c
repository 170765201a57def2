// SPDX-License-Identifier: Apache-2.0
/* cuCheckpointProcess*: the caller's side. Nothing here holds a lock of this process or passes its
 * gate, because a process may ask for itself. */
#include "service.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

#define FD __attribute__((cleanup(close_fd))) int

/* The last number of a NSpid line: the id that a process or thread has for itself. */
static int inner_id(const char *status_path)
{
	FILE *file = fopen(status_path, "re");
	char line[256];
	int id = -1;

	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, "NSpid:", 6) == 0)
			id = atoi(strrchr(line, '\t') + 1);
	}
	if (file)
		fclose(file);
	return id;
}

static bool is_page(int dir, const char *name)
{
	char link[64] = "";
	const char want[] = "/memfd:" CONTROL_NAME;

	return readlinkat(dir, name, link, sizeof(link) - 1) > 0 &&
	       strncmp(link, want, sizeof(want) - 1) == 0;
}

/* A forked child has copies of its parent's descriptors: the page must name this process. */
static bool read_page(int fd, int inner_pid, struct control_page *page)
{
	return fd >= 0 && pread(fd, page, sizeof(*page), 0) == sizeof(*page) &&
	       page->magic == CONTROL_MAGIC && page->pid == inner_pid;
}

/* Find the control page of a process. Returns its descriptor, or -1 with `result`: the driver says
 * 304 of a process that is not there and 3 of one that does not use it. */
static int find_page(int pid, struct control_page *page, CUresult *result)
{
	char path[64];
	struct dirent *entry;
	int fd = -1, inner_pid;
	DIR *dir;

	*result = CUDA_ERROR_OPERATING_SYSTEM;
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	inner_pid = inner_id(path);
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	if (!dir)
		return -1;
	*result = CUDA_ERROR_NOT_INITIALIZED;
	while ((entry = readdir(dir))) {
		if (!is_page(dirfd(dir), entry->d_name))
			continue;
		fd = openat(dirfd(dir), entry->d_name, O_RDWR | O_CLOEXEC);
		if (read_page(fd, inner_pid, page))
			break;
		close_fd(&fd);
		fd = -1;
	}
	closedir(dir);
	return fd;
}

/* Send the request and one end of a new socket; returns the other end, or -1. */
static int send_request(int sock, const struct control_request *request)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { { 0 } };
	struct iovec data = { (void *)request, sizeof(*request) };
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	int ends[2];
	ssize_t n;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -1;
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &ends[1], sizeof(int));
	n = sendmsg(sock, &message, MSG_NOSIGNAL);
	close(ends[1]);
	if (n < 0) {
		close(ends[0]);
		return -1;
	}
	return ends[0];
}

static CUresult wait_answer(int sock, int *state)
{
	struct pollfd closed = { .fd = sock, .events = POLLIN };
	struct control_answer answer;
	ssize_t n;

	do
		n = recv(sock, &answer, sizeof(answer), 0);
	while (n < 0 && errno == EINTR);
	if (n != sizeof(answer))
		return CUDA_ERROR_OPERATING_SYSTEM; /* the process is gone */
	/* Whoever freezes the process now must not find our socket in it: CRIU cannot dump that one. A
	 * child that it forked meanwhile may have a copy, so not for ever. */
	poll(&closed, 1, 1000);
	if (state)
		*state = answer.state;
	return (CUresult)answer.result;
}

/* As the driver's own call, this one waits for as long as it takes. */
static CUresult ask(int pid, const struct control_request *request, int *state)
{
	struct control_page page;
	CUresult result;
	FD control = -1, pidfd = -1, sock = -1, answer = -1;

	control = find_page(pid, &page, &result);
	if (control < 0)
		return result;
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd >= 0)
		sock = (int)syscall(SYS_pidfd_getfd, pidfd, page.peer, 0);
	if (sock < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	answer = send_request(sock, request);
	if (answer < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	close(sock);
	sock = -1;
	return wait_answer(answer, state);
}

/* All but the queries want the caller to have used cuInit. */
static CUresult change(int pid, const struct control_request *request)
{
	CUresult result = gate_peek();

	return result ? result : ask(pid, request, NULL);
}

static bool zeros(const void *p, size_t size)
{
	const char *bytes = p;

	while (size && !bytes[size - 1])
		size--;
	return !size;
}

CUDA_API(cuCheckpointProcessLock, int pid, CUcheckpointLockArgs *args)
{
	struct control_request request = { .operation = OP_LOCK };

	if (args && (args->reserved0 || !zeros(args->reserved1, sizeof(args->reserved1))))
		return CUDA_ERROR_INVALID_VALUE;
	if (args)
		request.timeout_ms = args->timeoutMs;
	return change(pid, &request);
}

CUDA_API(cuCheckpointProcessCheckpoint, int pid, CUcheckpointCheckpointArgs *args)
{
	struct control_request request = { .operation = OP_CHECKPOINT };

	if (args && !zeros(args, sizeof(*args)))
		return CUDA_ERROR_INVALID_VALUE;
	return change(pid, &request);
}

CUDA_API(cuCheckpointProcessRestore, int pid, CUcheckpointRestoreArgs *args)
{
	struct control_request request = { .operation = OP_RESTORE };

	if (args) {
		if (args->gpuPairsCount > MAX_PAIRS || (args->gpuPairsCount && !args->gpuPairs) ||
		    !zeros(args->reserved, sizeof(args->reserved)) || args->reserved1)
			return CUDA_ERROR_INVALID_VALUE;
		request.pair_count = args->gpuPairsCount;
		for (unsigned i = 0; i < args->gpuPairsCount; i++)
			request.pairs[i] = args->gpuPairs[i];
	}
	return change(pid, &request);
}

CUDA_API(cuCheckpointProcessUnlock, int pid, CUcheckpointUnlockArgs *args)
{
	struct control_request request = { .operation = OP_UNLOCK };

	if (args && !zeros(args, sizeof(*args)))
		return CUDA_ERROR_INVALID_VALUE;
	return change(pid, &request);
}

/* As on hardware this waits until the process's driver thread runs. */
CUDA_API(cuCheckpointProcessGetState, int pid, CUprocessState *state)
{
	struct control_request request = { .operation = OP_STATE };
	CUresult result;
	int value;

	if (!state)
		return CUDA_ERROR_INVALID_VALUE;
	result = ask(pid, &request, &value);
	if (!result)
		*state = (CUprocessState)value;
	return result;
}

/* Read from the page: no thread of the process has to run for it. The page has the thread's own id; the
 * caller wants the one of its pid namespace. */
static int outer_tid(int pid, int inner_tid)
{
	char path[64];
	struct dirent *entry;
	int tid = -1;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && tid < 0 && (entry = readdir(dir))) {
		int candidate = atoi(entry->d_name);

		snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, candidate);
		if (candidate > 0 && inner_id(path) == inner_tid)
			tid = candidate;
	}
	if (dir)
		closedir(dir);
	return tid;
}

CUDA_API(cuCheckpointProcessGetRestoreThreadId, int pid, int *tid)
{
	struct control_page page;
	CUresult result;
	FD control = -1;

	if (!tid)
		return CUDA_ERROR_INVALID_VALUE;
	control = find_page(pid, &page, &result);
	if (control < 0)
		return result;
	*tid = outer_tid(pid, page.tid);
	return *tid < 0 ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}
