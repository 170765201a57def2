/* SPDX-License-Identifier: Apache-2.0
 *
 * A tool's end of the control channel, for tests: of this process or of another one.
 */
#ifndef TOOL_H
#define TOOL_H

#include "check.h"

#include "diapause_control.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

#define TOOL_EPOCH 7
#define TOOL_LIST 4096

/* The library behind ours: the software GPU, or a driver that the environment names. */
__attribute__((unused)) static const char *tool_driver(void)
{
	const char *named = getenv("DIAPAUSE_TEST_LIBCUDA");

	return named ? named : out("softgpu/libcuda.so.1");
}

struct tool {
	int end;
	uint32_t seq;
	struct diapause_frame frame; /* of the last answer */
	union {
		char payload[DIAPAUSE_FRAME_MAX];
		uint64_t ids[DIAPAUSE_IDS];
		struct diapause_hello hello;
		struct diapause_quiet quiet;
		struct diapause_memory memory[DIAPAUSE_FRAME_MAX / sizeof(struct diapause_memory)];
		struct diapause_device devices[1];
		struct diapause_dropped dropped;
		struct diapause_failure failure;
		struct diapause_stats stats;
	};
	int fds[DIAPAUSE_FRAME_FDS];
	unsigned int n_fds;
	struct diapause_memory all[TOOL_LIST]; /* tool_list() */
	unsigned int n_all;
};

static int tool_getfd(pid_t pid, int number)
{
	int pidfd = syscall(SYS_pidfd_open, pid, 0), fd;

	CHECK(pidfd >= 0, "pidfd of %d", pid);
	fd = syscall(SYS_pidfd_getfd, pidfd, number, 0);
	close(pidfd);
	return fd;
}

static bool tool_page(pid_t pid, struct diapause_page *page)
{
	char path[64];
	struct dirent *entry;
	bool found = false;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	folder = opendir(path);
	while (folder && !found && (entry = readdir(folder))) {
		char target[256] = "";
		int fd;

		if (readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1) < 0 ||
		    !strstr(target, "memfd:" DIAPAUSE_PAGE_NAME))
			continue;
		fd = tool_getfd(pid, atoi(entry->d_name));
		found = fd >= 0 && pread(fd, page, sizeof(*page), 0) == sizeof(*page) &&
			page->magic == DIAPAUSE_PAGE_MAGIC && page->pid == pid;
		close(fd);
	}
	if (folder)
		closedir(folder);
	return found;
}

static void tool_receive(struct tool *tool)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(DIAPAUSE_FRAME_FDS * sizeof(int))];
	} control;
	struct iovec parts[] = { { &tool->frame, sizeof(tool->frame) },
				 { tool->payload, sizeof(tool->payload) } };
	struct msghdr header = {
		.msg_iov = parts, .msg_iovlen = 2, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	struct pollfd wait = { .fd = tool->end, .events = POLLIN };
	ssize_t n;

	CHECK(poll(&wait, 1, 20000) == 1, "no answer");
	n = recvmsg(tool->end, &header, MSG_CMSG_CLOEXEC);
	CHECK(n == (ssize_t)(sizeof(tool->frame) + tool->frame.len), "length %zd", n);
	tool->n_fds = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&header); c; c = CMSG_NXTHDR(&header, c)) {
		tool->n_fds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(tool->fds, CMSG_DATA(c), tool->n_fds * sizeof(int));
	}
	CHECK(tool->n_fds == tool->frame.nfds, "%u fds, %u announced", tool->n_fds, tool->frame.nfds);
}

/* The status of the answer to one request; `n` fds go with it and stay the caller's. */
static uint32_t tool_ask_with(struct tool *tool, int op, const void *payload, uint32_t length, const int *fds,
			      unsigned int n)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(DIAPAUSE_FRAME_FDS * sizeof(int))];
	} control = { 0 };
	struct diapause_frame frame = { .magic = DIAPAUSE_FRAME_MAGIC,
					.major = DIAPAUSE_MAJOR,
					.op = op,
					.nfds = n,
					.epoch = TOOL_EPOCH,
					.seq = ++tool->seq,
					.len = length };
	struct iovec parts[] = { { &frame, sizeof(frame) }, { (void *)payload, length } };
	struct msghdr header = { .msg_iov = parts, .msg_iovlen = 2 };

	if (n) {
		header.msg_control = &control;
		header.msg_controllen = CMSG_SPACE(n * sizeof(int));
		control.align = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
						  .cmsg_type = SCM_RIGHTS,
						  .cmsg_len = CMSG_LEN(n * sizeof(int)) };
		memcpy(CMSG_DATA(&control.align), fds, n * sizeof(int));
	}
	CHECK(sendmsg(tool->end, &header, 0) == (ssize_t)(sizeof(frame) + length), "send");
	tool_receive(tool);
	CHECK(tool->frame.seq == frame.seq && tool->frame.op == op, "an answer to something else");
	return tool->frame.status;
}

static uint32_t tool_ask(struct tool *tool, int op, const void *payload, uint32_t length)
{
	return tool_ask_with(tool, op, payload, length, NULL, 0);
}

__attribute__((unused)) static struct tool *tool_open(pid_t pid)
{
	struct tool *tool = calloc(1, sizeof(*tool));
	struct diapause_page page;

	CHECK(tool_page(pid, &page), "process %d has no page", pid);
	tool->end = tool_getfd(pid, page.peer);
	CHECK(tool->end >= 0, "its end");
	CHECK(tool_ask(tool, DIAPAUSE_OP_HELLO, NULL, 0) == DIAPAUSE_OK, "hello");
	return tool;
}

__attribute__((unused)) static void tool_close(struct tool *tool)
{
	close(tool->end);
	free(tool);
}

__attribute__((unused)) static uint32_t tool_quiesce(struct tool *tool, uint32_t milliseconds)
{
	struct diapause_quiesce wish = { .timeout_ms = milliseconds };

	return tool_ask(tool, DIAPAUSE_OP_QUIESCE, &wish, sizeof(wish));
}

/* tool->all: every allocation. */
__attribute__((unused)) static void tool_list(struct tool *tool)
{
	uint64_t first = 1;

	tool->n_all = 0;
	for (;;) {
		unsigned int n;

		CHECK(tool_ask(tool, DIAPAUSE_OP_MEMORY, &first, sizeof(first)) == DIAPAUSE_OK, "memory");
		n = tool->frame.len / sizeof(struct diapause_memory);
		if (!n)
			return;
		CHECK(tool->n_all + n <= TOOL_LIST, "more than %d allocations", TOOL_LIST);
		memcpy(&tool->all[tool->n_all], tool->memory, tool->frame.len);
		tool->n_all += n;
		first = tool->all[tool->n_all - 1].id + 1;
	}
}

/* `op` for every listed allocation with these flags, a request each; EXPORT fills `fds`, ATTACH takes them.
 */
__attribute__((unused)) static uint32_t tool_each(struct tool *tool, int op, uint32_t set, uint32_t clear,
						  int *fds)
{
	for (unsigned int i = 0; i < tool->n_all; i++) {
		const struct diapause_memory *memory = &tool->all[i];
		uint32_t status;

		if ((memory->flags & set) != set || memory->flags & clear)
			continue;
		status = tool_ask_with(tool, op, &memory->id, sizeof(memory->id), &fds[i],
				       op == DIAPAUSE_OP_ATTACH);
		if (status)
			return status;
		if (op == DIAPAUSE_OP_EXPORT) {
			CHECK(tool->n_fds == 1 && tool->ids[0] == memory->id, "export of %lu", memory->id);
			fds[i] = tool->fds[0];
		}
	}
	return DIAPAUSE_OK;
}

__attribute__((unused)) static void tool_close_fds(int *fds, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		close(fds[i]);
}

#endif
