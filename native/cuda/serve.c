// SPDX-License-Identifier: Apache-2.0
/* The control thread: one frame in, one frame out, for as long as the process lives.
 *
 * It never waits for a tool: an answer that nobody fetches is dropped. What arrives is checked as if
 * anyone had sent it; file descriptors that no op asked for are closed. */
#include "library.h"

#include "gate.h"
#include "memory.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define MARK 1145653328 /* seconds */

#define ROOM (DIAPAUSE_FRAME_MAX - sizeof(struct diapause_frame))

/* A frame, and what travels with it: as requests come and as answers go. */
struct message {
	union {
		struct diapause_frame frame;
		char bytes[DIAPAUSE_FRAME_MAX];
	};
	int n_fds;
	int fds[DIAPAUSE_FRAME_FDS];
};

/* Of the one thread that serves; a child after fork starts a thread of its own. */
static struct message request;
static struct message last; /* the last one sent, for a request that comes again */
static uint32_t epoch;

static void *payload(struct message *message)
{
	return message->bytes + sizeof(message->frame);
}

static void close_fds(struct message *message)
{
	while (message->n_fds)
		close(message->fds[--message->n_fds]);
}

/* More than there is room for the kernel has closed itself. */
static void take_fds(struct message *message, struct msghdr *header)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
		int count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (int i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (message->n_fds < DIAPAUSE_FRAME_FDS)
				message->fds[message->n_fds++] = fd;
			else
				close(fd);
		}
	}
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

/* One message: its length, or -1 when there will be none any more. What is no frame brings no fds. */
static ssize_t receive(int fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(DIAPAUSE_FRAME_FDS * sizeof(int))];
	} control;
	struct iovec part = { request.bytes, sizeof(request.bytes) };
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
	take_fds(&request, &header);
	if (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC) || n < (ssize_t)sizeof(request.frame))
		close_fds(&request);
	if (n == 0) { /* an empty message, or the end */
		struct pollfd end = { .fd = fd, .events = POLLIN };

		return poll(&end, 1, 0) == 1 && end.revents & (POLLHUP | POLLNVAL) ? -1 : 0;
	}
	return header.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ? 0 : n;
}

/* The answers: each finds the request checked for its form, and fills the payload. */

static enum diapause_status hello(const struct diapause_hello *self, struct message *out)
{
	struct diapause_hello *answer = payload(out);

	epoch = request.frame.epoch;
	*answer = *self;
	answer->gate = gate_state();
	out->frame.len = sizeof(*answer);
	return DIAPAUSE_OK;
}

static enum diapause_status counters(struct message *out)
{
	_Atomic uint64_t *now = atomic_load(&control_counters);
	uint64_t *answer = payload(out);

	for (int i = 0; i < DIAPAUSE_COUNTERS; i++)
		answer[i] = atomic_load_explicit(&now[i], memory_order_relaxed);
	out->frame.len = DIAPAUSE_COUNTERS * sizeof(*answer);
	return DIAPAUSE_OK;
}

static enum diapause_status told(struct message *out, enum diapause_status status, size_t length,
				 const struct diapause_failure *failure)
{
	if (status == DIAPAUSE_OK || status == DIAPAUSE_BUSY)
		out->frame.len = length;
	if (status == DIAPAUSE_GPU) {
		memcpy(payload(out), failure, sizeof(*failure));
		out->frame.len = sizeof(*failure);
	}
	return status;
}

static enum diapause_status quiet(struct message *out)
{
	const struct diapause_quiesce *wish = payload(&request);
	struct diapause_failure failure;

	if (wish->flags)
		return DIAPAUSE_BAD_FRAME;
	return told(out, quiesce(wish->timeout_ms, payload(out), &failure), sizeof(struct diapause_quiet),
		    &failure);
}

static enum diapause_status memory(struct message *out)
{
	const uint64_t *first = payload(&request);

	out->frame.len = list_memory(*first, payload(out), ROOM / sizeof(struct diapause_memory)) *
			 sizeof(struct diapause_memory);
	return DIAPAUSE_OK;
}

static enum diapause_status devices(struct message *out)
{
	out->frame.len = list_devices(payload(out), ROOM / sizeof(struct diapause_device)) *
			 sizeof(struct diapause_device);
	return DIAPAUSE_OK;
}

static enum diapause_status stats(struct message *out)
{
	list_stats(payload(out));
	out->frame.len = sizeof(struct diapause_stats);
	return DIAPAUSE_OK;
}

static enum diapause_status export(struct message *out)
{
	unsigned int n = request.frame.len / sizeof(uint64_t);
	struct diapause_failure failure;
	enum diapause_status status = handover_export(payload(&request), n, out->fds, &failure);

	if (status == DIAPAUSE_OK) {
		memcpy(payload(out), payload(&request), request.frame.len);
		out->n_fds = out->frame.nfds = n;
	}
	return told(out, status, request.frame.len, &failure);
}

static enum diapause_status drop(struct message *out)
{
	struct diapause_failure failure;

	return told(out, handover_drop(payload(out), &failure), sizeof(struct diapause_dropped), &failure);
}

static enum diapause_status attach(struct message *out)
{
	unsigned int n = request.frame.len / sizeof(uint64_t);
	struct diapause_failure failure;

	return told(out, handover_attach(payload(&request), n, request.fds, &failure), 0, &failure);
}

static enum diapause_status rehome(struct message *out)
{
	unsigned int n = request.frame.len / sizeof(uint64_t);
	struct diapause_failure failure;

	return told(out, handover_rehome(payload(&request), n, &failure), 0, &failure);
}

static enum diapause_status open_gates(void)
{
	if (!handover_complete())
		return DIAPAUSE_STATE;
	gate_open();
	return DIAPAUSE_OK;
}

/* What may come with an op, and what state it needs. */
struct form {
	uint32_t length; /* of the payload, or, with `ids`, of each of up to DIAPAUSE_IDS */
	bool ids, fds;	 /* fds: one for each id */
	bool closed;	 /* the gates have to be */
};

static const struct form forms[] = {
	[DIAPAUSE_OP_HELLO] = { 0 },
	[DIAPAUSE_OP_COUNTERS] = { 0 },
	[DIAPAUSE_OP_QUIESCE] = { .length = sizeof(struct diapause_quiesce) },
	[DIAPAUSE_OP_MEMORY] = { .length = sizeof(uint64_t) },
	[DIAPAUSE_OP_DEVICES] = { 0 },
	[DIAPAUSE_OP_EXPORT] = { .length = sizeof(uint64_t), .ids = true, .closed = true },
	[DIAPAUSE_OP_DROP] = { .closed = true },
	[DIAPAUSE_OP_ATTACH] = { .length = sizeof(uint64_t), .ids = true, .fds = true, .closed = true },
	[DIAPAUSE_OP_OPEN] = { 0 },
	[DIAPAUSE_OP_STATS] = { 0 },
	[DIAPAUSE_OP_REHOME] = { .length = sizeof(uint64_t), .ids = true, .closed = true },
};

#define FORMS (sizeof(forms) / sizeof(forms[0]))

static bool is_known(uint16_t op)
{
	return op >= DIAPAUSE_OP_HELLO && op < FORMS;
}

static bool is_well_formed(size_t length)
{
	const struct diapause_frame *in = &request.frame;
	const struct form *form = is_known(in->op) ? &forms[in->op] : &forms[DIAPAUSE_OP_HELLO];
	uint32_t n = form->ids ? in->len / sizeof(uint64_t) : 1;

	if (in->len != length - sizeof(*in) || in->nfds != request.n_fds || in->status || in->reserved)
		return false;
	return n >= 1 && n <= DIAPAUSE_IDS && in->len == n * form->length &&
	       request.n_fds == (form->fds ? (int)n : 0);
}

static enum diapause_status answer(const struct diapause_hello *self, size_t length, struct message *out)
{
	const struct diapause_frame *in = &request.frame;

	if (in->major < DIAPAUSE_MAJOR_OLDEST || in->major > DIAPAUSE_MAJOR)
		return DIAPAUSE_BAD_MAJOR;
	out->frame.major = in->major;
	if (!is_known(in->op) && !in->len && !request.n_fds)
		return DIAPAUSE_BAD_OP;
	if (!is_well_formed(length))
		return DIAPAUSE_BAD_FRAME;
	if (in->op == DIAPAUSE_OP_HELLO)
		return hello(self, out);
	if (in->epoch != epoch)
		return DIAPAUSE_BAD_EPOCH;
	if (forms[in->op].closed && gate_state() != GATE_CLOSED)
		return DIAPAUSE_STATE;
	switch (in->op) {
	case DIAPAUSE_OP_COUNTERS:
		return counters(out);
	case DIAPAUSE_OP_QUIESCE:
		return quiet(out);
	case DIAPAUSE_OP_MEMORY:
		return memory(out);
	case DIAPAUSE_OP_DEVICES:
		return devices(out);
	case DIAPAUSE_OP_EXPORT:
		return export(out);
	case DIAPAUSE_OP_DROP:
		return drop(out);
	case DIAPAUSE_OP_ATTACH:
		return attach(out);
	case DIAPAUSE_OP_OPEN:
		return open_gates();
	case DIAPAUSE_OP_STATS:
		return stats(out);
	default:
		return rehome(out);
	}
}

static void send_answer(int fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(DIAPAUSE_FRAME_FDS * sizeof(int))];
	} control = { 0 };
	struct iovec part = { last.bytes, sizeof(last.frame) + last.frame.len };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };
	size_t size = last.n_fds * sizeof(int);
	ssize_t n = 0;

	if (last.n_fds) {
		header.msg_control = &control;
		header.msg_controllen = CMSG_SPACE(size);
		control.align = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
						  .cmsg_type = SCM_RIGHTS,
						  .cmsg_len = CMSG_LEN(size) };
		memcpy(CMSG_DATA(&control.align), last.fds, size);
	}
	while (still_ours(fd) && (n = sendmsg(fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL)) < 0 &&
	       errno == EINTR)
		;
	close_fds(&last);
}

/* A request with file descriptors, or for some, is made anew: nothing of it is done twice. */
static bool comes_again(void)
{
	const struct diapause_frame *in = &request.frame, *known = &last.frame;

	return known->magic && known->status == DIAPAUSE_OK && in->epoch == epoch &&
	       in->epoch == known->epoch && in->seq == known->seq && in->op == known->op &&
	       in->major == known->major && !request.n_fds && !in->nfds && !known->nfds &&
	       in->op != DIAPAUSE_OP_ATTACH;
}

void serve(const struct channel *channel)
{
	static struct message next;
	int fd = channel->own;
	ssize_t length;

	epoch = 0;
	last.frame = (struct diapause_frame){ 0 };
	while ((length = receive(fd)) >= 0) {
		const struct diapause_frame *in = &request.frame;

		if (length < (ssize_t)sizeof(*in) || in->magic != DIAPAUSE_FRAME_MAGIC) {
			count(DIAPAUSE_COUNT_DROPPED);
			close_fds(&request);
			continue;
		}
		if (!comes_again()) {
			next.frame = (struct diapause_frame){
				.magic = DIAPAUSE_FRAME_MAGIC,
				.major = DIAPAUSE_MAJOR,
				.minor = DIAPAUSE_MINOR,
				.op = in->op,
				.epoch = in->epoch,
				.seq = in->seq,
			};
			next.n_fds = 0;
			next.frame.status = answer(&channel->self, length, &next);
			last = next;
		}
		close_fds(&request);
		count(last.frame.status ? DIAPAUSE_COUNT_REJECTED : DIAPAUSE_COUNT_ANSWERED);
		send_answer(fd);
	}
	channel->page->peer = -1;
}
