/* SPDX-License-Identifier: Apache-2.0
 *
 * Loops that a caller may lend to the CPU backend (spmla_native.parallel_for):
 * one with threads, and some that keep to the contract as badly as it allows.
 */
#ifndef TESTS_HARNESS_LENT_H
#define TESTS_HARNESS_LENT_H

#include "spmla/spmla.h"

typedef enum lent_way {
	LENT_THREADS = 0,  /* a thread a body; all start at once */
	LENT_TWO = 1,      /* two threads share the bodies */
	LENT_REVERSED = 2, /* no thread: the last body first */
	LENT_SHUFFLED = 3, /* no thread, in random order */
	LENT_TWICE = 4,    /* a thread a body, and another for the same index */
	LENT_LAST = 5,     /* the last body only */
	LENT_NONE = 6,     /* no body at all */
	LENT_PAST = 7,     /* threads; every index is past the last */
	LENT_WAYS = 8
} lent_way;

/* spmla_native.parallel_user of lent_for. */
typedef struct lent {
	lent_way way;
	uint32_t calls;
	uint32_t most; /* bodies of one call */
	uint64_t rng;
} lent;

void lent_for(void *user, uint32_t count, spmla_parallel_body body, void *arg);

#endif
