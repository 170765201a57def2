// SPDX-License-Identifier: Apache-2.0
/* What Lock waits for, what waits for it, and what is refused. */
#include "checkpoint.h"
#include "contract.h"
#include "spawn.h"

#include <stdio.h>

static void of_busy(const struct checkpoint *c)
{
	double begin;

	order_quietly(c, "spin 2000");
	begin = now_ms();
	request(c, "timeout", "lock", 300);
	yes("timeout-kept", now_ms() - begin < 1500);
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

/* Managed memory that is gone before anybody asks. */
static void never_refused(void)
{
	struct checkpoint c = checkpoint_start();

	order_quietly(&c, "open");
	order_quietly(&c, "managed");
	order_quietly(&c, "unmanaged");
	value("once-managed", "%d %d %d %d", quietly(&c, "lock", 10000), quietly(&c, "checkpoint", 0),
	      quietly(&c, "restore", 0), quietly(&c, "unlock", 0));
	order(&c, "once-managed-content", "check");
	checkpoint_end(&c);
}

static void onto_another_device(void)
{
	struct checkpoint c = checkpoint_start();

	order_quietly(&c, "open");
	quietly(&c, "lock", 10000);
	quietly(&c, "checkpoint", 0);
	request(&c, "restore-elsewhere", "restore-elsewhere", 0);
	state(&c, "restore-elsewhere-state");
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

	checkpoint_end(&c);
	never_refused();
	onto_another_device();
}
