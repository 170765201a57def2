/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A child with 1 MiB of words: 'v' steps and verifies them (answers 'v', or dies with 9), 's' keeps
 * the device busy for half a second, 'h' with a host function that takes as long. Says 'r' first. */
void role_counter(void);
