// SPDX-License-Identifier: Apache-2.0
/* A container without a GPU: counts, keeps a checksum over its memory and prints both. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define WORDS (256 * 1024)

int main(void)
{
	unsigned long *memory = calloc(WORDS, sizeof(*memory)), expected = 0, sum;
	const struct timespec pause = { .tv_nsec = 20 * 1000 * 1000 };

	if (!memory)
		return 1;
	for (long step = 0;; step++) {
		for (long i = step % 64; i < WORDS; i += 64) {
			memory[i] += step;
			expected += step;
		}
		sum = 0;
		for (long i = 0; i < WORDS; i++)
			sum += memory[i];
		printf("step %ld sum %lx%s\n", step, sum, sum == expected ? "" : " BAD");
		fflush(stdout);
		nanosleep(&pause, NULL);
	}
}
