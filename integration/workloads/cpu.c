// SPDX-License-Identifier: Apache-2.0
/* The counter without a GPU: the same steps in host memory. */
#include "model.h"
#include "report.h"

#include <stdlib.h>

int main(int argc, char **argv)
{
	struct options options = { .interval = 100, .mib = 1 };
	struct model model;
	uint64_t *words;

	options_parse(&options, argc, argv);
	model = model_fill((options.mib << 20) / sizeof(*words), 1);
	words = malloc(model.words * sizeof(*words));
	if (!words)
		return 8;
	for (uint64_t i = 0; i < model.words; i++)
		words[i] = (i + model.seed) * KERNEL_MULTIPLIER + KERNEL_INCREMENT;
	report_ready(&options);
	do {
		for (uint64_t i = 0; i < model.words; i++)
			words[i] = words[i] * KERNEL_MULTIPLIER + KERNEL_INCREMENT;
		model_step(&model);
		if (checksum_words(words, model.words) != model.sum)
			report_bad(model.steps, checksum_words(words, model.words), model.sum);
	} while (report_step(&options, model.steps, model.sum));
	return 0;
}
