// SPDX-License-Identifier: Apache-2.0
/* A process with the channel is dumped and restored, twice, and says the same about itself. Skipped
 * without root or a CRIU (DIAPAUSE_CRIU_PATH, a file or its folder, else in PATH). */
#include "check.h"

#include "diapause_control.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define PIDFD_OPEN 434
#define PIDFD_GETFD 438

static int take(pid_t pid, int number)
{
	int pidfd = syscall(PIDFD_OPEN, pid, 0);
	int fd = syscall(PIDFD_GETFD, pidfd, number, 0);

	CHECK(fd >= 0, "fd %d of %d: %s", number, pid, strerror(errno));
	close(pidfd);
	return fd;
}

/* Wait for the page of `pid` to be valid; -1 when it takes too long. */
static bool find_page(pid_t pid, struct diapause_page *page)
{
	for (int i = 0; i < 1000; i++) {
		char path[64], target[64] = "";
		int fd;

		snprintf(path, sizeof(path), "/proc/%d/fd/900", pid);
		if (readlink(path, target, sizeof(target) - 1) > 0 && strstr(target, DIAPAUSE_PAGE_NAME)) {
			fd = take(pid, 900);
			CHECK(pread(fd, page, sizeof(*page), 0) == sizeof(*page), "page");
			CHECK(fcntl(fd, 1034 /* F_GET_SEALS */) == 7, "sealed");
			close(fd);
			if (page->magic == DIAPAUSE_PAGE_MAGIC)
				return true;
		}
		usleep(5000);
	}
	return false;
}

static struct diapause_hello hello(pid_t pid)
{
	struct {
		struct diapause_frame frame;
		struct diapause_hello hello;
	} reply = { 0 };
	struct diapause_frame request = {
		.magic = DIAPAUSE_FRAME_MAGIC,
		.major = DIAPAUSE_MAJOR,
		.op = DIAPAUSE_OP_HELLO,
		.epoch = getpid(),
	};
	struct diapause_page page = { 0 };
	struct pollfd wait = { .events = POLLIN };

	CHECK(find_page(pid, &page) && page.pid == pid, "page");
	wait.fd = take(pid, page.peer);
	CHECK(send(wait.fd, &request, sizeof(request), 0) == sizeof(request), "send");
	CHECK(poll(&wait, 1, 10000) == 1, "no answer");
	CHECK(recv(wait.fd, &reply, sizeof(reply), 0) == sizeof(reply), "a short answer");
	CHECK(reply.frame.status == DIAPAUSE_OK, "status %u", reply.frame.status);
	close(wait.fd);
	return reply.hello;
}

static int run(const char *program, char *const argv[])
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		execvp(program, argv);
		_exit(127);
	}
	CHECK(waitpid(child, &status, 0) == child, "wait");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static pid_t start_workload(void)
{
	char *path, *real;
	pid_t child;

	CHECK(asprintf(&path, "LD_LIBRARY_PATH=%s", out("cuda-tests/replaced")) > 0, "memory");
	CHECK(asprintf(&real, "DIAPAUSE_REAL_LIBCUDA=%s", out("cuda-tests/stub/libcuda.so.1")) > 0, "memory");
	child = fork();
	if (child == 0) {
		int null = open("/dev/null", O_RDWR);

		setsid();
		for (int i = 0; i < 3; i++)
			dup2(null, i);
		for (int i = 3; i < 900; i++)
			close(i);
		putenv(path);
		putenv(real);
		execl("/proc/self/exe", "probe", "probe", "wait", NULL);
		_exit(127);
	}
	return child;
}

static int probe(void)
{
	void *handle = dlopen("libcuda.so.1", RTLD_NOW);

	((int (*)(unsigned int))dlsym(handle, "cuInit"))(0);
	for (;;)
		pause();
}

static const char *find_criu(void)
{
	static char path[PATH_MAX];
	const char *wanted = getenv("DIAPAUSE_CRIU_PATH") ?: "criu";
	struct stat stat_;

	snprintf(path, sizeof(path), "%s", wanted);
	if (!stat(path, &stat_) && S_ISDIR(stat_.st_mode))
		snprintf(path, sizeof(path), "%s/criu", wanted);
	return path;
}

int main(int argc, char **argv)
{
	const char *criu = find_criu();
	char folder[] = "/tmp/cuda_criu.XXXXXX", *remove[] = { "rm", "-rf", folder, NULL };
	struct diapause_hello before, after;
	char number[16];
	pid_t pid;

	if (argc > 2)
		return probe();
	if (geteuid() || run(criu, (char *[]){ "criu", "--version", NULL })) {
		puts("needs root and criu");
		return 77;
	}
	CHECK(mkdtemp(folder), "folder");
	CHECK(!prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "subreaper");
	pid = start_workload();
	snprintf(number, sizeof(number), "%d", pid);
	before = hello(pid);
	for (int round = 0; round < 2; round++) {
		CHECK(!run(criu, (char *[]){ "criu", "dump", "-t", number, "-D", folder, "-o", "dump.log",
					     "-v4", "--network-lock", "skip", NULL }),
		      "round %d: dump, see %s/dump.log", round, folder);
		CHECK(waitpid(pid, NULL, 0) == pid, "the dumped one");
		CHECK(!run(criu, (char *[]){ "criu", "restore", "-d", "-D", folder, "-o", "restore.log",
					     "-v4", NULL }),
		      "round %d: restore, see %s/restore.log", round, folder);
		after = hello(pid);
		CHECK(!memcmp(&before, &after, sizeof(before)), "round %d", round);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	run("rm", remove);
	return 0;
}
