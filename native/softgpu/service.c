// SPDX-License-Identifier: Apache-2.0
/* The service thread, which is the restore thread: it locks, checkpoints, restores and unlocks
 * this process when another one asks. See the rules in softgpu.h. */
#include "service.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct control_page *page;
static int own_end = -1;
static _Atomic CUprocessState state;

static void pause_ms(unsigned ms)
{
	struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Blocks new calls, then waits for those inside and for the device; host functions included. */
static CUresult lock(const struct control_request *request)
{
	uint64_t end = now_ms() + request->timeout_ms;

	gate_close();
	while (!gate_quiet()) {
		if (request->timeout_ms && now_ms() >= end) {
			gate_open();
			return CUDA_ERROR_NOT_READY;
		}
		pause_ms(1);
	}
	return CUDA_SUCCESS;
}

static CUresult unlock(const struct control_request *request)
{
	gate_open();
	return CUDA_SUCCESS;
}

static CUresult checkpoint(const struct control_request *request)
{
	static bool refused;

	if (managed_any()) {
		refused = true;
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	/* The driver does not get over a refusal, even if the memory is gone by then. */
	return refused ? CUDA_ERROR_UNKNOWN : save_all();
}

static bool same(const CUuuid *a, const CUuuid *b)
{
	return __builtin_memcmp(a, b, sizeof(*a)) == 0;
}

/* There is one device, so the only good map is the one onto itself. */
static CUresult restore(const struct control_request *request)
{
	bool found = !request->pair_count;

	for (uint32_t i = 0; i < request->pair_count && i < MAX_PAIRS; i++) {
		if (!same(&request->pairs[i].newUuid, &device_uuid))
			return CUDA_ERROR_INVALID_VALUE;
		found |= same(&request->pairs[i].oldUuid, &device_uuid);
	}
	return found ? load_all() : CUDA_ERROR_INVALID_VALUE;
}

static const struct transition {
	CUresult (*run)(const struct control_request *request);
	CUprocessState from, to;
} transitions[OPERATIONS] = {
	[OP_LOCK] = { lock, CU_PROCESS_STATE_RUNNING, CU_PROCESS_STATE_LOCKED },
	[OP_CHECKPOINT] = { checkpoint, CU_PROCESS_STATE_LOCKED, CU_PROCESS_STATE_CHECKPOINTED },
	[OP_RESTORE] = { restore, CU_PROCESS_STATE_CHECKPOINTED, CU_PROCESS_STATE_LOCKED },
	[OP_UNLOCK] = { unlock, CU_PROCESS_STATE_LOCKED, CU_PROCESS_STATE_RUNNING },
};

static void lose(void)
{
	atomic_store(&state, CU_PROCESS_STATE_FAILED);
	gate_fail();
}

/* Says whether there is an answer at all. */
static bool serve(const struct control_request *request, CUresult *result)
{
	const struct transition *t = &transitions[request->operation];
	enum fault fault;

	*result = CUDA_SUCCESS;
	if (request->operation == OP_STATE)
		return true;
	*result = CUDA_ERROR_ILLEGAL_STATE;
	if (atomic_load(&state) != t->from)
		return true;
	fault = fault_take(request->operation);
	if (fault == FAULT_SLOW)
		pause_ms(1000);
	if (fault == FAULT_HANG)
		return false;
	while (fault == FAULT_STUCK)
		pause();
	*result = CUDA_ERROR_UNKNOWN;
	if (fault != FAULT_FAIL && fault != FAULT_FATAL)
		*result = t->run(request);
	if (*result == CUDA_SUCCESS)
		atomic_store(&state, t->to);
	else if (fault == FAULT_FATAL || *result == CUDA_ERROR_DEINITIALIZED ||
		 (request->operation == OP_RESTORE && *result != CUDA_ERROR_INVALID_VALUE))
		lose(); /* a restore that failed is final, as is memory lost on the way */
	return true;
}

/* Wait for a request. Returns the socket for its answer, or -1. */
static int receive(struct control_request *request)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec data = { request, sizeof(*request) };
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	ssize_t n = recvmsg(own_end, &message, MSG_CMSG_CLOEXEC);
	struct cmsghdr *header = n < 0 ? NULL : CMSG_FIRSTHDR(&message);
	int fd = -1;

	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
		__builtin_memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	if (fd >= 0 && (n != sizeof(*request) || request->operation > OP_STATE)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* A caller that gave up must not get its wish when nobody expects it any more. */
static bool gone(int fd)
{
	struct pollfd wait = { .fd = fd };

	return poll(&wait, 1, 0) == 1 && (wait.revents & (POLLHUP | POLLERR));
}

static void *service(void *unused)
{
	struct control_request request;
	struct control_answer answer;
	int hung = -1; /* the caller that a fault leaves without an answer */

	prctl(PR_SET_NAME, "cuda-softgpu");
	__atomic_store_n(&page->tid, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
	for (;;) {
		int fd = receive(&request);
		CUresult result;

		if (hung >= 0 && gone(hung)) {
			close(hung);
			hung = -1;
		}
		if (fd < 0)
			continue;
		if (gone(fd)) {
			close(fd);
		} else if (serve(&request, &result)) {
			answer.result = (int)result;
			answer.state = (int)atomic_load(&state);
			send(fd, &answer, sizeof(answer), MSG_NOSIGNAL | MSG_DONTWAIT);
			close(fd);
		} else {
			hung = fd;
		}
	}
	return unused;
}

static int make_page(int peer)
{
	int fd = memory_file(CONTROL_NAME, 4096);

	if (fd < 0)
		return fd;
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED) {
		close(fd);
		return -ENOMEM;
	}
	page->pid = (int)syscall(SYS_getpid);
	page->peer = peer;
	return 0;
}

/* Called once, at cuInit. Returns 0 or -errno. */
int service_start(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all, old;
	int ends[2], error, peer;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	own_end = fd_lift(ends[0]);
	peer = fd_lift(ends[1]);
	if (own_end < 0 || peer < 0)
		return -EMFILE;
	error = make_page(peer);
	if (error)
		return error;
	sigfillset(&all);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(&thread, &attributes, service, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attributes);
	if (error)
		return -error;
	while (!__atomic_load_n(&page->tid, __ATOMIC_ACQUIRE))
		pause_ms(1);
	__atomic_store_n(&page->magic, CONTROL_MAGIC, __ATOMIC_RELEASE);
	return 0;
}
