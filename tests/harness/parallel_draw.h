/* SPDX-License-Identifier: Apache-2.0
 *
 * Random data for the calls of a par_world.
 */
#ifndef TESTS_HARNESS_PARALLEL_DRAW_H
#define TESTS_HARNESS_PARALLEL_DRAW_H

#include "tests/harness/parallel_world.h"

/* The next `bytes` of what is read, random. */
void *par_in(par_world *w, uint64_t bytes);

/* The next `bytes` of what is written. */
void *par_out(par_world *w, uint64_t bytes);

uint32_t par_below(par_world *w, uint32_t bound);

/* One in `rate`, where bad data is asked for. */
uint32_t par_is_bad(par_world *w, uint32_t rate);

float *par_floats(par_world *w, uint32_t n);
uint16_t *par_bf16s(par_world *w, uint32_t n);

/* n numbers of [0, bound); the bad ones are far off, on either side. */
int32_t *par_numbers(par_world *w, uint32_t n, uint32_t bound, uint32_t rate);

/* e4m3 queries or keys without NaN. */
uint8_t *par_codes(par_world *w, uint32_t n);

/* PAR_PAGES pages at base; or a cache of any codes that are no NaN, with scales
 * around 1. */
spmla_cache par_cache_of(void *base, uint32_t layout);
spmla_cache par_cache(par_world *w, uint32_t layout);

#endif
