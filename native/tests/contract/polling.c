// SPDX-License-Identifier: Apache-2.0
/* Which calls, made without a pause, survive that the driver takes the device away. */
#include "checkpoint.h"
#include "contract.h"
#include "spawn.h"

#include <stdio.h>
#include <sys/wait.h>

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
	if (gone(&c, 500, &status)) {
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
	/* Not "memory": with cuMemGetInfo driver 580 once killed the target, once hung in the checkpoint. */
	poll_through("pointer");
	poll_through("launch");
	poll_through("copy");
	poll_through("alloc");
}
