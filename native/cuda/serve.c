// SPDX-License-Identifier: Apache-2.0
/* The control thread: one frame in, one frame out, for as long as the process lives.
 *
 * It never waits for a tool: an answer that nobody fetches is dropped. What arrives is checked as if
 * anyone had sent it; file descriptors that no op asked for are closed. */
#include "library.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define MARK 1145653328 /* seconds */

struct answer {
	struct diapause_frame frame;
	union {
		struct diapause_hello hello;
		uint64_t counters[DIAPAUSE_COUNTERS];
	};
};

union message {
	struct diapause_frame frame;
	char bytes[DIAPAUSE_FRAME_MAX];
};

/* Of the one thread that serves; a child after fork starts a thread of its own. */
static union message message;
static struct answer last; /* the last one sent, for a request that comes again */
static uint32_t epoch;

static int close_fds(struct msghdr *header)
{
	int n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
		int count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (int i = 0; i < count; i++, n++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			close(fd);
		}
	}
	return n;
}

/* Our end carries a send timeout that nobody else would choose (we never wait to send, so it has no
 * other effect, and CRIU keeps it): a program that closed the number behind our back and uses it
 * itself is not read from. */
bool serve_mark(int fd)
{
	struct timeval mark = { .tv_sec = MARK };

	return !setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &mark, sizeof(mark));
}

static bool still_ours(int fd)
{
	struct timeval mark = { 0 };
	socklen_t length = sizeof(mark);

	return !getsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &mark, &length) && mark.tv_sec == MARK;
}

/* One message: its length, or -1 when there will be none any more. Extra fds are closed, and counted. */
static ssize_t receive(int fd, int *fds)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(DIAPAUSE_FRAME_FDS * sizeof(int))];
	} control;
	struct iovec part = { &message, sizeof(message) };
	struct msghdr header = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n;

	do {
		if (!still_ours(fd))
			return -1;
		n = recvmsg(fd, &header, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -1;
	*fds = close_fds(&header);
	if (n == 0) { /* an empty message, or the end */
		struct pollfd end = { .fd = fd, .events = POLLIN };

		return poll(&end, 1, 0) == 1 && end.revents & (POLLHUP | POLLNVAL) ? -1 : 0;
	}
	return header.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ? 0 : n;
}

static uint32_t answer(const struct diapause_hello *self, const struct diapause_frame *in, size_t length,
		       int fds, struct answer *out)
{
	_Atomic uint64_t *counters = atomic_load(&control_counters);

	if (in->major < DIAPAUSE_MAJOR_OLDEST || in->major > DIAPAUSE_MAJOR)
		return DIAPAUSE_BAD_MAJOR;
	out->frame.major = in->major;
	if (in->len != length - sizeof(*in) || in->len || in->nfds != fds || fds || in->status ||
	    in->reserved)
		return DIAPAUSE_BAD_FRAME;
	if (in->op == DIAPAUSE_OP_HELLO) {
		epoch = in->epoch;
		out->hello = *self;
		out->frame.len = sizeof(out->hello);
		return DIAPAUSE_OK;
	}
	if (in->op != DIAPAUSE_OP_COUNTERS)
		return DIAPAUSE_BAD_OP;
	if (in->epoch != epoch)
		return DIAPAUSE_BAD_EPOCH;
	for (int i = 0; i < DIAPAUSE_COUNTERS; i++)
		out->counters[i] = atomic_load_explicit(&counters[i], memory_order_relaxed);
	out->frame.len = sizeof(out->counters);
	return DIAPAUSE_OK;
}

static void send_answer(int fd)
{
	ssize_t n;

	if (!still_ours(fd))
		return;
	do
		n = send(fd, &last, sizeof(last.frame) + last.frame.len, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
}

static bool comes_again(const struct diapause_frame *in)
{
	return last.frame.magic && last.frame.status == DIAPAUSE_OK && in->epoch == epoch &&
	       in->epoch == last.frame.epoch && in->seq == last.frame.seq && in->op == last.frame.op &&
	       in->major == last.frame.major && !in->len && !in->nfds;
}

void serve(const struct channel *channel)
{
	int fd = channel->own, fds;
	ssize_t length;

	epoch = 0;
	last = (struct answer){ 0 };
	while ((length = receive(fd, &fds)) >= 0) {
		const struct diapause_frame *in = &message.frame;

		if (length < (ssize_t)sizeof(*in) || in->magic != DIAPAUSE_FRAME_MAGIC) {
			count(DIAPAUSE_COUNT_DROPPED);
			continue;
		}
		if (!comes_again(in)) {
			struct answer next = { .frame = {
						       .magic = DIAPAUSE_FRAME_MAGIC,
						       .major = DIAPAUSE_MAJOR,
						       .minor = DIAPAUSE_MINOR,
						       .op = in->op,
						       .epoch = in->epoch,
						       .seq = in->seq,
					       } };

			next.frame.status = answer(&channel->self, in, length, fds, &next);
			last = next;
		}
		count(last.frame.status ? DIAPAUSE_COUNT_REJECTED : DIAPAUSE_COUNT_ANSWERED);
		send_answer(fd);
	}
	channel->page->peer = -1;
}
