// SPDX-License-Identifier: Apache-2.0
/* Counts on the GPU and, according to --mode, does what a checkpoint would rather not meet. */
#include "gpu.h"
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct options options = { .interval = 20, .mib = 4, .threads = 8, .count = 1000 };
static atomic_uint surprises; /* SIGCONT that nobody of us sent */

static void pause_ms(long ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

static void start(void *(*work)(void *), void *argument)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, work, argument))
		exit(8);
	pthread_detach(thread);
}

static void count(void)
{
	struct array array;

	array_make(&array, (options.mib << 20) / sizeof(uint64_t), 3, NULL);
	report_ready(&options);
	do {
		if (atomic_load(&surprises))
			report_bad(array.model.steps, atomic_load(&surprises), 0);
		array_step(&array);
		array_sum(&array);
	} while (report_step(&options, array.model.steps, array_verify(&array)));
	exit(0);
}

static void *count_thread(void *none)
{
	CHECK(cuda.CtxSetCurrent(gpu.ctx));
	pause_ms(100); /* until the leader has ended */
	count();
	return none;
}

/* Imitations of the library's page, sealed and not, of every size. */
static void pages(void)
{
	for (unsigned i = 0; i < 64; i++) {
		int fd = (int)syscall(SYS_memfd_create, "diapause-control-v1", 2 /* MFD_ALLOW_SEALING */);
		uint32_t page[1024] = { 0x50414944, 0x31535541, 1, 0, (uint32_t)getpid(), i };

		if (i % 3 == 0)
			memset(page, 0xff, sizeof(page));
		if (i % 4 && write(fd, page, sizeof(page)) < 0)
			exit(8);
		if (i % 5 == 0 && ftruncate(fd, i % 2 ? 7 : 1ll << 40))
			exit(8);
		if (i % 2)
			fcntl(fd, 1033 /* F_ADD_SEALS */, 7 /* SEAL, SHRINK, GROW */);
	}
}

static void *fork_storm(void *none)
{
	for (;;) {
		pid_t pid = fork();

		if (pid == 0) {
			pause_ms(rand() % 10);
			_exit(0);
		}
		if (pid > 0)
			waitpid(pid, NULL, 0);
	}
	return none;
}

static void *exec_storm(void *none)
{
	for (;;) {
		pid_t pid = fork();

		if (pid == 0) {
			execl("/bin/busybox", "true", NULL);
			_exit(1);
		}
		if (pid > 0)
			waitpid(pid, NULL, 0);
	}
	return none;
}

static void *nothing(void *none)
{
	return none;
}

static void *thread_storm(void *none)
{
	pthread_t thread;

	for (;;) {
		if (!pthread_create(&thread, NULL, nothing, NULL))
			pthread_join(thread, NULL);
	}
	return none;
}

static volatile int stay = 1;

static void *vfork_long(void *none)
{
	if (vfork() == 0) {
		while (stay)
			pause_ms(1000);
		_exit(0);
	}
	return none;
}

static void surprise(int number)
{
	(void)number;
	atomic_fetch_add(&surprises, 1);
}

static void watch_signals(void)
{
	static const int numbers[] = {
		SIGCONT, SIGCHLD, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2, SIGHUP
	};
	struct sigaction action = { .sa_handler = surprise };

	for (unsigned i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		sigaction(numbers[i], &action, NULL);
}

static void block_all(void)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
}

static void many_processes(bool zombies)
{
	for (unsigned i = 0; i < options.count; i++) {
		if (fork() == 0) {
			if (zombies)
				_exit(0);
			for (;;)
				pause();
		}
	}
}

/* A child that counts, traced by its parent, which passes every stop on. */
static void traced(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		pause_ms(300);
		gpu_open();
		count();
	}
	if (ptrace(PTRACE_SEIZE, pid, 0, 0))
		exit(8);
	while (waitpid(pid, &status, __WALL) > 0 && !WIFEXITED(status)) {
		if (WIFSTOPPED(status))
			ptrace(PTRACE_CONT, pid, 0, 0);
	}
	exit(0);
}

static void inner_namespace(void)
{
	if (unshare(CLONE_NEWPID))
		exit(8);
	if (fork()) {
		wait(NULL);
		exit(0);
	}
	gpu_open();
	count();
}

static void close_all(void)
{
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
}

static void *exit_soon(void *none)
{
	pause_ms(options.count);
	_exit(3);
	return none;
}

static void *exec_soon(void *none)
{
	pause_ms(options.count);
	execl("/opt/counter", "counter", "--interval", "20", NULL);
	return none;
}

static bool is(const char *mode)
{
	return !strcmp(options.mode, mode);
}

int main(int argc, char **argv)
{
	options_parse(&options, argc, argv);
	if (!options.mode)
		return 2;
	if (is("traced"))
		traced();
	if (is("pid-namespace"))
		inner_namespace();
	if (is("processes") || is("zombies"))
		many_processes(is("zombies"));
	if (is("block-all"))
		block_all();
	gpu_open();
	if (is("pages"))
		pages();
	if (is("signals"))
		watch_signals();
	if (is("fork-storm"))
		start(fork_storm, NULL);
	if (is("exec-storm"))
		start(exec_storm, NULL);
	if (is("thread-storm"))
		start(thread_storm, NULL);
	if (is("vfork-long"))
		start(vfork_long, NULL);
	if (is("exit-soon"))
		start(exit_soon, NULL);
	if (is("exec-soon"))
		start(exec_soon, NULL);
	if (is("close-all"))
		close_all();
	if (is("undumpable"))
		prctl(PR_SET_DUMPABLE, 0);
	if (is("no-leader")) {
		start(count_thread, NULL);
		syscall(SYS_exit, 0); /* pthread_exit would want libgcc_s */
	}
	count();
	return 0;
}
