// SPDX-License-Identifier: Apache-2.0
/* What threads do inside the gate and what the closer does while it is closed are ordered: plain memory
 * is read by the ones and written by the other. By hand, with ThreadSanitizer (build.mk), which says
 * when they are not; without it only lost writes are seen. */
#include "gate_test.h"

#define THREADS 8
#define ROUNDS 2000

static long shared[64];
static long inside_only[THREADS];
static atomic_int done;

/* The rest of the library is not in this program. */
uint32_t gate_captures(void)
{
	return 0;
}

void gate_forget_captures(void)
{
}

static void *call(void *argument)
{
	long i = (long)argument, sum = 0;

	for (unsigned int n = 0; !atomic_load(&done); n++) {
		gate_enter();
		for (int j = 0; j < 64; j++)
			sum += shared[j];
		CHECK(sum % 64 == 0, "half a write");
		inside_only[i]++;
		gate_leave();
		if (n % 64 == 0)
			nap();
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];
	long before = 0;

	for (long i = 0; i < THREADS; i++)
		threads[i] = begin(call, (void *)i);
	for (long round = 1; round <= ROUNDS; round++) {
		must_close();
		for (int j = 0; j < 64; j++) {
			CHECK(shared[j] == before, "somebody else has written");
			shared[j] = round;
		}
		before = round;
		for (int i = 0; i < THREADS; i++)
			inside_only[i]++;
		gate_open();
	}
	atomic_store(&done, 1);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
