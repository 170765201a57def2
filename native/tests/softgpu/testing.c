// SPDX-License-Identifier: Apache-2.0
#include "testing.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct driver driver;

void test_failed(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: %s\n", file, line, what);
	exit(1);
}

void test_skip(const char *reason)
{
	fprintf(stderr, "skipped: %s\n", reason);
	exit(77);
}

void sleep_ms(unsigned ms)
{
	struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

struct child child_start(const char *role)
{
	struct child child;
	int down[2], up[2];

	EXPECT(pipe(down) == 0 && pipe(up) == 0);
	child.pid = fork();
	EXPECT(child.pid >= 0);
	if (child.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(down[0], 0);
		dup2(up[1], 3);
		for (int fd = 4; fd < 64; fd++)
			close(fd);
		execl("/proc/self/exe", "test", "--role", role, (char *)NULL);
		_exit(127);
	}
	close(down[0]);
	close(up[1]);
	child.to = down[1];
	child.from = up[0];
	EXPECT_EQ(child_hear(&child), 'r');
	return child;
}

void child_say(const struct child *child, char byte)
{
	EXPECT(write(child->to, &byte, 1) == 1);
}

char child_hear(const struct child *child)
{
	char byte = 0;

	return read(child->from, &byte, 1) == 1 ? byte : 0;
}

char child_do(const struct child *child, char byte)
{
	child_say(child, byte);
	return child_hear(child);
}

int child_end(const struct child *child)
{
	int status = 0;

	close(child->to);
	while (child_hear(child))
		;
	close(child->from);
	waitpid(child->pid, &status, 0);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

void child_kill(const struct child *child)
{
	kill(child->pid, SIGKILL);
	child_end(child);
}

const char *role_of(int argc, char **argv)
{
	return argc == 3 && strcmp(argv[1], "--role") == 0 ? argv[2] : NULL;
}

void role_answer(char byte)
{
	if (write(3, &byte, 1) != 1)
		exit(0);
}

char role_next(void)
{
	char byte;

	return read(0, &byte, 1) == 1 ? byte : 0;
}

void *driver_symbol(const char *name)
{
	static void *library;
	void *address;

	if (!library)
		library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library)
		test_skip(dlerror());
	address = dlsym(library, name);
	if (!address)
		test_failed(name, 0, "no such function");
	return address;
}

void driver_open(void)
{
	CUresult (*init)(unsigned);

	/* A test that hangs is a test that failed. */
	alarm(60);
	*(void **)&init = driver_symbol("cuInit");
	*(void **)&driver.lock = driver_symbol("cuCheckpointProcessLock");
	*(void **)&driver.checkpoint = driver_symbol("cuCheckpointProcessCheckpoint");
	*(void **)&driver.restore = driver_symbol("cuCheckpointProcessRestore");
	*(void **)&driver.unlock = driver_symbol("cuCheckpointProcessUnlock");
	*(void **)&driver.get_state = driver_symbol("cuCheckpointProcessGetState");
	*(void **)&driver.get_tid = driver_symbol("cuCheckpointProcessGetRestoreThreadId");
	driver_symbol("diapause_softgpu_version");
	EXPECT_EQ(init(0), CUDA_SUCCESS);
}

int driver_state(int pid)
{
	CUprocessState state;

	EXPECT_EQ(driver.get_state(pid, &state), CUDA_SUCCESS);
	return (int)state;
}

CUresult lock_within(int pid, unsigned ms)
{
	CUcheckpointLockArgs args = { .timeoutMs = ms };

	return driver.lock(pid, &args);
}

unsigned fds_like(pid_t pid, const char *text)
{
	char path[64], link[256];
	struct dirent *entry;
	unsigned count = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	EXPECT(dir);
	while ((entry = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, link, sizeof(link) - 1);

		link[n > 0 ? n : 0] = 0;
		count += strstr(link, text) != NULL;
	}
	closedir(dir);
	return count;
}

size_t mapped_like(pid_t pid, const char *text)
{
	unsigned long start, end;
	char path[64], line[512];
	size_t size = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "r");
	EXPECT(maps);
	while (fgets(line, sizeof(line), maps)) {
		if (strstr(line, text) && sscanf(line, "%lx-%lx", &start, &end) == 2)
			size += end - start;
	}
	fclose(maps);
	return size;
}
