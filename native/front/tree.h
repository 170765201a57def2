/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DIAPAUSE_TREE_H
#define DIAPAUSE_TREE_H

/* Removes the directory open at `fd` with what is in it, one level of sub-directories included. Takes `fd`.
 */
void tree_remove(int fd, const char *path);

#endif
