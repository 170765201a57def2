/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

enum side { NATIVE, LIBRARY, SIDES };

/* A line `check: value` of one side. */
void compare_take(enum side side, const char *line);
/* Prints what differs; returns the exit status. */
int compare_result(void);
