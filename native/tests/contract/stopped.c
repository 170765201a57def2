// SPDX-License-Identifier: Apache-2.0
/* A target whose threads are all stopped: what needs its restore thread has to wait for it. */
#include "checkpoint.h"
#include "contract.h"
#include "spawn.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

static void stop(const struct checkpoint *c)
{
	kill(c->target->pid, SIGSTOP);
	waitpid(c->target->pid, NULL, WUNTRACED);
}

/* Lines for what the helper says while the target is stopped and after it goes on. */
static void across_stop(const struct checkpoint *c, const char *check, const char *what)
{
	char answer[64], line[64];

	stop(c);
	snprintf(line, sizeof(line), "%s-while-stopped", check);
	process_ask(c->helper, answer, sizeof(answer), 500, "%s %d 300", what, c->target->pid);
	value(line, "[%s]", answer);
	kill(c->target->pid, SIGCONT);
	snprintf(line, sizeof(line), "%s-afterwards", check);
	process_read(c->helper, answer, sizeof(answer), 10000);
	value(line, "[%s]", answer);
}

static void find_thread(const struct checkpoint *c, const char *check)
{
	stop(c);
	yes(check, restore_tid(c) > 0);
	kill(c->target->pid, SIGCONT);
}

void group_stopped(void)
{
	struct checkpoint c = checkpoint_start();

	order_quietly(&c, "open");
	find_thread(&c, "restore-tid");
	across_stop(&c, "state", "state");
	across_stop(&c, "lock", "lock");
	across_stop(&c, "locked-state", "state");
	across_stop(&c, "checkpoint", "checkpoint");
	find_thread(&c, "checkpointed-restore-tid");
	across_stop(&c, "checkpointed-state", "state");
	across_stop(&c, "restore", "restore");
	across_stop(&c, "unlock", "unlock");
	order(&c, "content", "check");
	checkpoint_end(&c);
}
