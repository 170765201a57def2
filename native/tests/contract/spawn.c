// SPDX-License-Identifier: Apache-2.0
#include "spawn.h"

#include "contract.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

void process_start(struct process *process, const char *role, int fd)
{
	int in[2], out[2];
	char number[16];

	snprintf(number, sizeof(number), "%d", fd);
	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || (process->pid = fork()) < 0)
		need("spawn", CUDA_ERROR_OPERATING_SYSTEM);
	if (process->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		if (fd >= 0)
			fcntl(fd, F_SETFD, 0);
		execl("/proc/self/exe", "contract", role, contract_library, number, NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	process->to = in[1];
	process->from = out[0];
}

static bool send_line(struct process *process, const char *format, va_list arguments)
{
	char line[256];
	int length = vsnprintf(line, sizeof(line) - 1, format, arguments);

	line[length++] = '\n';
	return write(process->to, line, (size_t)length) == length;
}

bool process_send(struct process *process, const char *format, ...)
{
	va_list arguments;
	bool sent;

	va_start(arguments, format);
	sent = send_line(process, format, arguments);
	va_end(arguments);
	return sent;
}

void process_read(struct process *process, char *answer, size_t size, unsigned ms)
{
	double end = now_ms() + ms;
	size_t length = 0;

	while (length + 1 < size) {
		struct pollfd ready = { .fd = process->from, .events = POLLIN };
		double left = end - now_ms();

		if (left <= 0 || poll(&ready, 1, (int)left + 1) <= 0)
			break;
		if (read(process->from, answer + length, 1) != 1 || answer[length] == '\n')
			break;
		length++;
	}
	answer[length] = '\0';
}

void process_ask(struct process *process, char *answer, size_t size, unsigned ms, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	send_line(process, format, arguments);
	va_end(arguments);
	process_read(process, answer, size, ms);
}

static void close_pipes(struct process *process)
{
	close(process->to);
	close(process->from);
	process->to = process->from = -1;
}

void process_end(struct process *process, char *how, size_t size, unsigned ms)
{
	double end = now_ms() + ms;
	int status;

	close(process->to);
	process->to = -1;
	while (waitpid(process->pid, &status, WNOHANG) == 0) {
		if (now_ms() > end) {
			process_kill(process);
			snprintf(how, size, "hangs");
			return;
		}
		sleep_ms(2);
	}
	if (WIFSIGNALED(status))
		snprintf(how, size, "signal %d", WTERMSIG(status));
	else
		snprintf(how, size, "exit %d", WEXITSTATUS(status));
	close_pipes(process);
}

void process_kill(struct process *process)
{
	kill(process->pid, SIGKILL);
	waitpid(process->pid, NULL, 0);
	close_pipes(process);
}
