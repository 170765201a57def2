// SPDX-License-Identifier: Apache-2.0
/* Making the control channel (diapause_control.h) at the first successful cuInit.
 *
 * A step that fails leaves the process without a channel and otherwise as it was: every call is
 * forwarded all the same, and the tools see a process that nobody can talk to. */
#include "library.h"

#include "gate.h"
#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MFD_CLOEXEC
#define MFD_CLOEXEC 1u
#define MFD_ALLOW_SEALING 2u
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif
#ifndef F_ADD_SEALS
#define F_ADD_SEALS 1033
#define F_SEAL_SEAL 1
#define F_SEAL_SHRINK 2
#define F_SEAL_GROW 4
#endif

#define HIGH_FD 900	  /* out of the way of select() users and of loops over low numbers */
#define STACK (256 << 10) /* glibc puts static TLS there as well; untouched pages cost nothing */

enum { NONE, STARTING, STARTED };

static atomic_int state;
static bool fork_handled;
static int memfd = -1, peer = -1;
static struct channel channel = { .own = -1 };

static _Atomic uint64_t early[DIAPAUSE_COUNTERS]; /* until there is a page */
_Atomic(_Atomic uint64_t *) control_counters = early;

static void forget(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void tear_down(void)
{
	atomic_store(&control_counters, early);
	gate_use_word(NULL);
	forget(&memfd);
	forget(&peer);
	forget(&channel.own);
	if (channel.page)
		munmap(channel.page, DIAPAUSE_PAGE_SIZE);
	channel.page = NULL;
}

/* Runs in the only thread of the child: the channel is the parent's. */
static void forked(void)
{
	if (atomic_load(&state) == NONE)
		return;
	memory_forget();
	inherit_no_gpu();
	tear_down();
	atomic_store(&state, NONE);
}

/* Move `fd` up, below the limit that is in force; it stays where it is if that does not work. */
static int raise_fd(int fd)
{
	struct rlimit limit;
	int floor = HIGH_FD, high;

	if (fd < 0)
		return fd;
	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < HIGH_FD + 16)
		floor = limit.rlim_cur > 32 ? (int)limit.rlim_cur - 16 : 0;
	high = fcntl(fd, F_DUPFD_CLOEXEC, floor);
	if (high < 0)
		return fd;
	close(fd);
	return high;
}

static int make_memfd(void)
{
	int fd = syscall(SYS_memfd_create, DIAPAUSE_PAGE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 && errno == EACCES) /* sysctl vm.memfd_noexec=2 */
		fd = syscall(SYS_memfd_create, DIAPAUSE_PAGE_NAME,
			     MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
	return raise_fd(fd);
}

static bool make_page(void)
{
	void *page;

	memfd = make_memfd();
	if (memfd < 0 || ftruncate(memfd, DIAPAUSE_PAGE_SIZE) ||
	    fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return false;
	page = mmap(NULL, DIAPAUSE_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	if (page == MAP_FAILED)
		return false;
	channel.page = page;
	return true;
}

static bool make_pair(void)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return false;
	channel.own = raise_fd(ends[0]);
	peer = raise_fd(ends[1]);
	return serve_mark(channel.own);
}

static void *run(void *argument)
{
	prctl(PR_SET_NAME, "diapause-ctl");
	gate_exempt();
	channel.self.thread = syscall(SYS_gettid);
	serve(argument);
	return NULL;
}

static bool make_thread(void)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	pthread_t thread;
	int error;

	if (pthread_attr_init(&attributes))
		return false;
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, STACK);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before); /* inherited: no handler of the program runs there */
	error = pthread_create(&thread, &attributes, run, &channel);
	if (error == EINVAL) { /* a stack too small for the TLS of this process */
		pthread_attr_setstacksize(&attributes, 8 << 20);
		error = pthread_create(&thread, &attributes, run, &channel);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return !error;
}

static uint64_t fnv1a(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325ull;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3ull;
	return hash;
}

/* Asked here, in the thread that called cuInit: ours makes no CUDA call. */
static void describe(struct diapause_hello *hello)
{
	CUresult (*version)(int *) = real_function(ENTRY_cuDriverGetVersion);
	struct object self;

	*hello = (struct diapause_hello){
		.pid = getpid(),
		.functions = real_functions(),
		.real_path = fnv1a(real_path()),
	};
	if (version(&hello->driver) != CUDA_SUCCESS)
		hello->driver = 0;
	if (real_defines("diapause_softgpu_version"))
		hello->flags |= DIAPAUSE_HELLO_SOFTWARE;
	if (object_of(diapause_entries_begin, &self))
		object_build_id(&self, hello->build_id);
}

static bool handle_fork(void)
{
	if (!fork_handled)
		fork_handled = !pthread_atfork(NULL, NULL, forked);
	return fork_handled;
}

/* The page becomes valid with its magic, when everything behind it is there. */
static void publish(void)
{
	struct diapause_page *page = channel.page;

	page->major = DIAPAUSE_MAJOR;
	page->minor = DIAPAUSE_MINOR;
	page->pid = channel.self.pid;
	page->peer = peer;
	for (int i = 0; i < DIAPAUSE_COUNTERS; i++)
		page->counters[i] = atomic_load_explicit(&early[i], memory_order_relaxed);
	atomic_store(&control_counters, (_Atomic uint64_t *)page->counters);
	gate_use_word((_Atomic uint32_t *)&page->gate);
	__atomic_store_n(&page->magic, DIAPAUSE_PAGE_MAGIC, __ATOMIC_RELEASE);
}

void control_start(void)
{
	int saved = errno, expected = NONE;

	/* A thread that loses the race goes on without waiting; so does a child of a bare clone(),
	 * which took the state along but no thread: its parent's page tells another pid. */
	if (!atomic_compare_exchange_strong(&state, &expected, STARTING))
		return;
	describe(&channel.self);
	if (handle_fork() && make_page() && make_pair() && make_thread()) {
		quiesce_prepare();
		publish();
	} else {
		tear_down();
	}
	atomic_store(&state, STARTED);
	errno = saved;
}
