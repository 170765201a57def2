/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines against a file of expected ones. There, `~` in front of a line makes the value a pattern
 * (fnmatch, `@(a|b)` included), `#` starts a comment, and a comment that starts with `?` marks an
 * expectation that nobody has seen on hardware yet.
 */
#pragma once

void compare_open(const char *file);
/* Without a file all of these do nothing. */
void compare_line(const char *line);
void compare_group(const char *group); /* says which lines of the group are missing */
int compare_result(void);	       /* exit status */
