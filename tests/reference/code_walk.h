/* SPDX-License-Identifier: Apache-2.0
 *
 * Every bf16 number once, in rows for a writer of e4m3, and the code that each
 * should become. The hard idea: the last value of each group is the largest, so
 * that the group's scale is 1 and a code follows from its number alone.
 */
#ifndef TESTS_REFERENCE_CODE_WALK_H
#define TESTS_REFERENCE_CODE_WALK_H

#include <stdint.h>

typedef struct code_walk {
	uint32_t encoding; /* spmla_e4m3 */
	uint32_t group;    /* values of a scale; 0: it is the caller's, 1 */
	uint32_t
		brief; /* 1: one of each binade that rounds to 0 or saturates */
	uint32_t next; /* bits */
	uint8_t seen[256];
} code_walk;

void code_walk_begin(code_walk *w, uint32_t encoding, uint32_t group);

/* Whether there are more. */
uint32_t code_walk_more(const code_walk *w);

/* The next n numbers, then zeros. */
void code_walk_row(code_walk *w, uint16_t *row, uint32_t n);

/* `code` is what x becomes; notes it. */
void code_walk_check(code_walk *w, uint16_t x, uint8_t code);

/* All are walked, and every code that a writer gives was there: in e4m3fn not
 * 0xff, the other NaN, in FNUZ with scales of its own not those of 240. */
void code_walk_end(const code_walk *w);

#endif
