// SPDX-License-Identifier: Apache-2.0
/* CRIU refuses a process with a live GPU state, and takes one whose state was evacuated. After the
 * restore the driver brings everything back. CRIU is
 * $DIAPAUSE_CRIU_PATH or the first in PATH. */
#include "role.h"
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char images[] = "/tmp/softgpu-criu-XXXXXX";

static int run(const char *const *argv)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);

		dup2(null, 0);
		dup2(null, 1);
		dup2(null, 2);
		unsetenv("LD_LIBRARY_PATH");
		execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	EXPECT(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static const char *criu(void)
{
	const char *path = getenv("DIAPAUSE_CRIU_PATH");

	return path && *path ? path : "criu";
}

static int dump(pid_t pid)
{
	char number[16];

	snprintf(number, sizeof(number), "%d", pid);
	return run((const char *[]){ criu(), "dump", "-t", number, "-D", images, "-v2", "-o", "dump.log",
				     "--shell-job", "--network-lock", "skip", NULL });
}

static int restore(void)
{
	return run((const char *[]){ criu(), "restore", "-D", images, "-v2", "-o", "restore.log",
				     "--shell-job", "--restore-detached", "--network-lock", "skip", NULL });
}

static void remove_images(void)
{
	run((const char *[]){ "rm", "-rf", images, NULL });
}

/* A child without pipes to the test: it counts and writes each count to a file. */
static void role_file(const char *path)
{
	struct array array;

	EXPECT(freopen("/dev/null", "r", stdin) && freopen("/dev/null", "w", stdout) &&
	       freopen("/dev/null", "w", stderr));
	setsid();
	gpu_open();
	array_make(&array, 1 << 17, 1, NULL);
	for (;;) {
		int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

		array_step(&array);
		array_sum(&array);
		array_verify(&array);
		dprintf(fd, "%llu\n", (unsigned long long)array.model.steps);
		close(fd);
		sleep_ms(5);
	}
}

static pid_t start_file_role(const char *path)
{
	pid_t pid = fork();

	if (pid == 0) {
		for (int fd = 3; fd < 64; fd++)
			close(fd);
		execl("/proc/self/exe", "test", "--role", path, (char *)NULL);
		_exit(127);
	}
	return pid;
}

static unsigned long long count(const char *path)
{
	unsigned long long n = 0;
	FILE *file = fopen(path, "r");

	if (file && fscanf(file, "%llu", &n) != 1)
		n = 0;
	if (file)
		fclose(file);
	return n;
}

static unsigned long long count_above(const char *path, unsigned long long old)
{
	double end = now_ms() + 10000;

	while (count(path) <= old && now_ms() < end)
		sleep_ms(10);
	EXPECT(count(path) > old);
	return count(path);
}

static void cycle(pid_t pid, const char *path)
{
	unsigned long long before;

	EXPECT_EQ(driver.lock(pid, NULL), CUDA_SUCCESS);
	EXPECT_EQ(driver.checkpoint(pid, NULL), CUDA_SUCCESS);
	before = count(path);
	EXPECT_EQ(dump(pid), 0);
	waitpid(pid, NULL, 0);
	EXPECT_EQ(restore(), 0);
	EXPECT_EQ(driver_state(pid), CU_PROCESS_STATE_CHECKPOINTED);
	EXPECT_EQ(driver.restore(pid, NULL), CUDA_SUCCESS);
	EXPECT_EQ(driver.unlock(pid, NULL), CUDA_SUCCESS);
	count_above(path, before);
}

int main(int argc, char **argv)
{
	char path[64];
	pid_t pid;

	if (role_of(argc, argv))
		role_file(role_of(argc, argv));
	driver_open();
	if (geteuid() != 0)
		test_skip("criu needs root");
	if (run((const char *[]){ criu(), "--version", NULL }) != 0)
		test_skip("no criu in PATH or DIAPAUSE_CRIU_PATH");
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	EXPECT(mkdtemp(images));
	snprintf(path, sizeof(path), "%s/count", images);
	pid = start_file_role(path);
	count_above(path, 2);
	EXPECT(dump(pid) != 0);
	count_above(path, count(path));
	for (int i = 0; i < 2; i++)
		cycle(pid, path);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	remove_images();
	return 0;
}
