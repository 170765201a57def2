// SPDX-License-Identifier: Apache-2.0
/* What Lock waits for, what waits for it, what is refused, and what dies. */
#include "checkpoint.h"
#include "contract.h"
#include "spawn.h"

#include <stdio.h>
#include <sys/wait.h>

static void of_busy(const struct checkpoint *c)
{
	double begin;

	order_quietly(c, "spin 2500");
	begin = now_ms();
	request(c, "timeout", "lock", 300);
	yes("timeout-kept", now_ms() - begin < 2000);
	state(c, "timeout-state");
	quietly(c, "unlock", 0);
	order(c, "timeout-content", "check");

	order_quietly(c, "spin 800");
	begin = now_ms();
	request(c, "waits", "lock", 0);
	yes("waits-for-kernel", now_ms() - begin > 500);
	quietly(c, "unlock", 0);

	order_quietly(c, "hostfunc 800");
	begin = now_ms();
	request(c, "waits-too", "lock", 10000);
	yes("waits-for-host-function", now_ms() - begin > 500);
	quietly(c, "unlock", 0);
}

static void of_calls(const struct checkpoint *c)
{
	char answer[64];

	quietly(c, "lock", 10000);
	process_ask(c->target, answer, sizeof(answer), 500, "alloc");
	value("call-while-locked", "[%s]", answer);
	request(c, "checkpoint-with-waiting-call", "checkpoint", 0);
	process_read(c->target, answer, sizeof(answer), 500);
	value("call-while-checkpointed", "[%s]", answer);
	request(c, "restore-with-waiting-call", "restore", 0);
	process_read(c->target, answer, sizeof(answer), 500);
	value("call-while-restored", "[%s]", answer);
	request(c, "unlock-with-waiting-call", "unlock", 0);
	process_read(c->target, answer, sizeof(answer), 10000);
	value("call-after-unlock", "[%s]", answer);
	order(c, "call-content", "check");
}

void group_lock(void)
{
	struct checkpoint c = checkpoint_start();

	order_quietly(&c, "open");
	of_busy(&c);
	of_calls(&c);
	checkpoint_end(&c);
}

void group_refusal(void)
{
	struct checkpoint c = checkpoint_start();

	order_quietly(&c, "open");
	order(&c, "managed", "managed");
	request(&c, "managed-lock", "lock", 10000);
	request(&c, "managed-checkpoint", "checkpoint", 0);
	state(&c, "managed-state");
	yes("managed-device", has_device(&c));
	request(&c, "managed-unlock", "unlock", 0);
	order(&c, "managed-content", "check");
	order(&c, "managed-free", "unmanaged");
	value("unmanaged", "%d %d %d %d", quietly(&c, "lock", 10000), quietly(&c, "checkpoint", 0),
	      quietly(&c, "restore", 0), quietly(&c, "unlock", 0));
	order(&c, "unmanaged-content", "check");

	quietly(&c, "lock", 10000);
	quietly(&c, "checkpoint", 0);
	request(&c, "restore-elsewhere", "restore-elsewhere", 0);
	state(&c, "restore-elsewhere-state");
	checkpoint_end(&c);
}

static bool gone(const struct checkpoint *c, unsigned ms, int *status)
{
	for (double end = now_ms() + ms; now_ms() < end; sleep_ms(5)) {
		if (waitpid(c->target->pid, status, WNOHANG) == c->target->pid)
			return true;
	}
	return false;
}

/* A thread that polls without a pause while the driver takes the device away. */
static void poll_through(const char *what)
{
	struct checkpoint c = checkpoint_start();
	char check[64], command[64];
	int status = 0;

	order_quietly(&c, "open");
	snprintf(command, sizeof(command), "poll %s", what);
	order_quietly(&c, command);
	snprintf(check, sizeof(check), "%s-lock", what);
	request(&c, check, "lock", 10000);
	snprintf(check, sizeof(check), "%s-checkpoint", what);
	request(&c, check, "checkpoint", 0);
	snprintf(check, sizeof(check), "%s-target", what);
	if (gone(&c, 1000, &status)) {
		value(check, "signal %d", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	} else {
		value(check, "alive");
		snprintf(check, sizeof(check), "%s-back", what);
		value(check, "%d %d", quietly(&c, "restore", 0), quietly(&c, "unlock", 0));
		snprintf(check, sizeof(check), "%s-goes-on", what);
		order(&c, check, "polling");
		snprintf(check, sizeof(check), "%s-content", what);
		order(&c, check, "check");
	}
	checkpoint_end(&c);
}

void group_polling(void)
{
	poll_through("event");
	poll_through("stream");
	poll_through("context");
	poll_through("memory");
}
