/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines against those of contract.expected, which is part of the program. There, `~` in front of a
 * line makes the value a pattern (fnmatch, `@(a|b)` included), `#` starts a comment, and a comment
 * that starts with `?` marks an expectation that nobody has seen on hardware yet.
 */
#pragma once

void compare_begin(const char *what); /* `what` begins the messages about differences */
void compare_line(const char *line);
void compare_group(const char *group); /* says which lines of the group are missing */
int compare_result(void);	       /* exit status */
