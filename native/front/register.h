/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DIAPAUSE_REGISTER_H
#define DIAPAUSE_REGISTER_H

#include <stdbool.h>

/* Registers the container of `directory` if all is as the verb left it. False: nothing was done, Python has
 * to look, and stdin can be read once more. */
bool register_container(const char *directory);

#endif
