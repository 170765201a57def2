// SPDX-License-Identifier: Apache-2.0
/*
 * diapause-cudactl --libcuda FILE
 *
 * Makes the driver's checkpoint calls for the engine, several at a time, so that a call that hangs
 * hangs here. Says `ready <CUresult of cuInit> <driver version>` first, or `failed <why>`; then reads
 * requests, a line each,
 *
 *	<seq> lock PID TIMEOUT_MS | <seq> checkpoint|restore|unlock|state|restore-tid PID
 *
 * and answers each, in the order they finish, with `<seq> <CUresult> <microseconds> <value>`.
 * The end of stdin is the end of the program, once no call is in flight: a driver call must not be
 * cut off in the middle, so neither a signal to the process group nor the death of the engine does.
 */
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "driver.h"

struct request {
	unsigned long seq;
	char verb[16];
	int pid;
	unsigned int argument;
};

static struct driver driver;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;
static unsigned int in_flight;

/* One write a line: shorter than PIPE_BUF, so answers never mix. */
__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	char line[512];
	va_list list;
	int n;

	va_start(list, format);
	n = vsnprintf(line, sizeof(line) - 1, format, list);
	va_end(list);
	if (n < 0)
		return;
	if ((size_t)n > sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n++] = '\n';
	if (write(STDOUT_FILENO, line, n) != n)
		return; /* nobody listens any more; the call itself was made */
}

static long long microseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

static void serve(const struct request *r)
{
	long long start = microseconds();
	int value, result;

	result = driver_call(&driver, r->verb, r->pid, r->argument, &value);
	say("%lu %d %lld %d", r->seq, result, microseconds() - start, value);
}

static void *serve_thread(void *arg)
{
	serve(arg);
	free(arg);
	pthread_mutex_lock(&mutex);
	if (--in_flight == 0)
		pthread_cond_signal(&idle);
	pthread_mutex_unlock(&mutex);
	return NULL;
}

static void start(const struct request *r)
{
	struct request *copy = malloc(sizeof(*copy));
	pthread_t thread;

	if (copy) {
		*copy = *r;
		pthread_mutex_lock(&mutex);
		in_flight++;
		pthread_mutex_unlock(&mutex);
		if (!pthread_create(&thread, NULL, serve_thread, copy)) {
			pthread_detach(thread);
			return;
		}
		pthread_mutex_lock(&mutex);
		in_flight--;
		pthread_mutex_unlock(&mutex);
		free(copy);
	}
	serve(r); /* no memory for a thread: one after the other is better than not at all */
}

static void serve_requests(void)
{
	char line[128];

	while (fgets(line, sizeof(line), stdin)) {
		struct request r = { .argument = 0 };

		if (sscanf(line, "%lu %15s %d %u", &r.seq, r.verb, &r.pid, &r.argument) >= 3)
			start(&r);
	}
	pthread_mutex_lock(&mutex);
	while (in_flight)
		pthread_cond_wait(&idle, &mutex);
	pthread_mutex_unlock(&mutex);
}

int main(int argc, char **argv)
{
	static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE };
	const char *wrong;
	int result, version = 0;

	if (argc != 3 || strcmp(argv[1], "--libcuda")) {
		fprintf(stderr, "usage: diapause-cudactl --libcuda FILE\n");
		return 2;
	}
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);

	wrong = driver_load(&driver, argv[2]);
	if (wrong) {
		say("failed %s", wrong);
		return 1;
	}
	result = driver.init(0);
	if (driver.version)
		driver.version(&version);
	driver_resolve(&driver);
	say("ready %d %d", result, version);
	serve_requests();
	/* The driver's exit handlers may wait for threads of its own: nothing of ours needs them. */
	_exit(0);
}
