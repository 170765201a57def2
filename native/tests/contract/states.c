// SPDX-License-Identifier: Apache-2.0
/* The states of a process and every order of calls, legal or not; what survives. */
#include "checkpoint.h"
#include "contract.h"
#include "spawn.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int pid_of_nobody(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	return pid;
}

static void without_driver(const struct checkpoint *c)
{
	state(c, "uninitialised-state");
	request(c, "uninitialised-lock", "lock", 1000);
	request(c, "uninitialised-restore-tid", "restore-tid", 0);
	request_for(c, "nobody-state", "state", pid_of_nobody());
	request_for(c, "nobody-lock", "lock", pid_of_nobody());
	request_for(c, "negative-state", "state", -1);
}

static void round_of_states(const struct checkpoint *c)
{
	state(c, "running");
	request(c, "running-checkpoint", "checkpoint", 0);
	request(c, "running-restore", "restore", 0);
	request(c, "running-unlock", "unlock", 0);
	yes("running-device", has_device(c));
	request(c, "lock", "lock", 10000);
	state(c, "locked");
	request(c, "locked-lock", "lock", 1000);
	request(c, "locked-restore", "restore", 0);
	yes("locked-device", has_device(c));
	request(c, "checkpoint", "checkpoint", 0);
	state(c, "checkpointed");
	yes("checkpointed-device", has_device(c));
	request(c, "checkpointed-lock", "lock", 1000);
	request(c, "checkpointed-checkpoint", "checkpoint", 0);
	request(c, "checkpointed-unlock", "unlock", 0);
	request(c, "restore", "restore", 0);
	state(c, "restored");
	yes("restored-device", has_device(c));
	request(c, "restored-restore", "restore", 0);
	request(c, "restored-lock", "lock", 1000);
	request(c, "restored-checkpoint", "checkpoint", 0);
	request(c, "restore-again", "restore", 0);
	request(c, "unlock", "unlock", 0);
	state(c, "unlocked");
	request(c, "unlocked-unlock", "unlock", 0);
	order(c, "content", "check");
	request(c, "lock-only", "lock", 10000);
	request(c, "unlock-only", "unlock", 0);
	order(c, "content-after-lock", "check");
}

static void without_arguments(const struct checkpoint *c)
{
	request(c, "null-lock", "lock-null", 0);
	request(c, "null-checkpoint", "checkpoint-null", 0);
	request(c, "null-restore", "restore-null", 0);
	request(c, "null-unlock", "unlock-null", 0);
	request(c, "null-state", "state-null", 0);
	order(c, "null-content", "check");
}

/* CRIU leaves this thread running while it stops the others. */
static void restore_thread(const struct checkpoint *c)
{
	int tid = restore_tid(c);
	char path[64], name[32] = "";
	FILE *comm;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", c->target->pid, tid);
	comm = fopen(path, "r");
	if (comm && !fgets(name, sizeof(name), comm))
		name[0] = '\0';
	if (comm)
		fclose(comm);
	yes("restore-tid-is-a-thread", comm != NULL);
	yes("restore-tid-not-main", tid != c->target->pid);
	yes("restore-tid-called-cuda", strncmp(name, "cuda", 4) == 0);
	quietly(c, "lock", 10000);
	quietly(c, "checkpoint", 0);
	yes("restore-tid-while-checkpointed", restore_tid(c) == tid);
	quietly(c, "restore", 0);
	quietly(c, "unlock", 0);
	yes("restore-tid-afterwards", restore_tid(c) == tid);
}

void group_states(void)
{
	struct checkpoint c = checkpoint_start();

	without_driver(&c);
	order_quietly(&c, "open");
	round_of_states(&c);
	without_arguments(&c);
	restore_thread(&c);
	checkpoint_end(&c);
}

static void two_rounds(const struct checkpoint *c)
{
	char check[32];

	for (int i = 1; i <= 2; i++) {
		snprintf(check, sizeof(check), "round-%d", i);
		value(check, "%d %d %d %d", quietly(c, "lock", 10000), quietly(c, "checkpoint", 0),
		      quietly(c, "restore", 0), quietly(c, "unlock", 0));
		snprintf(check, sizeof(check), "round-%d-content", i);
		order(c, check, "check");
	}
}

void group_contents(void)
{
	struct checkpoint c = checkpoint_start();
	struct process second;
	char how[64];

	order_quietly(&c, "open");
	order(&c, "before", "check");
	two_rounds(&c);
	value("same-device", "%d %d %d %d", quietly(&c, "lock", 10000), quietly(&c, "checkpoint", 0),
	      quietly(&c, "restore-same", 0), quietly(&c, "unlock", 0));
	order(&c, "same-device-content", "check");
	order_quietly(&c, "export");
	value("exported", "%d %d %d %d", quietly(&c, "lock", 10000), quietly(&c, "checkpoint", 0),
	      quietly(&c, "restore", 0), quietly(&c, "unlock", 0));
	order(&c, "exported-content", "check");

	/* Another process goes on with what one began. */
	quietly(&c, "lock", 10000);
	process_end(c.helper, how, sizeof(how), 10000);
	value("first-helper", "%s", how);
	process_start(&second, "helper", -1);
	*c.helper = second;
	value("second-helper", "%d %d %d", quietly(&c, "checkpoint", 0), quietly(&c, "restore", 0),
	      quietly(&c, "unlock", 0));
	order(&c, "second-helper-content", "check");

	quietly(&c, "lock", 10000);
	quietly(&c, "checkpoint", 0);
	checkpoint_end(&c);
}
