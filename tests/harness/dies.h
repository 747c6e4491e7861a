/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of what ends a program.
 */
#ifndef TESTS_HARNESS_DIES_H
#define TESTS_HARNESS_DIES_H

/* Fails the test unless `call`, in a process of its own, aborts and has said
 * `text` on stderr. */
void must_die(void (*call)(void), const char *text);

#endif
