/* SPDX-License-Identifier: Apache-2.0
 *
 * What the metadata of a decode step in parts must be: every block of every
 * token belongs to just one part, parts are alike, the splits are counted, and
 * tokens that are alike share no part if there are as many for each.
 */
#ifndef TESTS_PROTOCOL_PARTS_CHECK_H
#define TESTS_PROTOCOL_PARTS_CHECK_H

#include <stdint.h>

#include "spmla/spmla.h"

/* Tokens with contexts of lens[t], up to 16. A token sees up to `near` keys
 * and, in a second cache with one key for every `ratio` positions, up to `far`.
 */
typedef struct parts_step {
	const int32_t *rows;   /* [parts][8] */
	const int32_t *splits; /* [tokens + 1] */
	const int32_t *lens;
	int32_t tokens;
	int32_t parts;
	int32_t near;
	int32_t far;
	int32_t ratio;
} parts_step;

void parts_check(const parts_step *step);

/* The same of fixed splits: each has `each` blocks and is a part. */
void parts_check_fixed(const parts_step *step, int32_t each);

/* The launches that add up the splits of a layer's decode: 0 on the CPU, which
 * has no parts, and where kernels of Hopper's own do that themselves. */
uint32_t parts_launches(const spmla_device *device);

#endif
