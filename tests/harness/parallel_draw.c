/* SPDX-License-Identifier: Apache-2.0
 *
 * See parallel_draw.h.
 */
#include "tests/harness/parallel_draw.h"

#include <check.h>
#include <string.h>

/* The next `bytes` of what is read, random. */
void *
par_in(par_world *w, uint64_t bytes)
{
	uint64_t *p = (uint64_t *)(void *)(w->in + w->in_used);
	uint64_t i;

	w->in_used += (bytes + 255) / 256 * 256;
	ck_assert_uint_le(w->in_used, w->in_bytes);
	for (i = 0; i < (bytes + 7) / 8; i++)
		p[i] = rng_next(&w->rng);
	return p;
}

/* The next `bytes` of what is written. */
void *
par_out(par_world *w, uint64_t bytes)
{
	void *p = w->out + w->out_used;

	w->out_used += (bytes + 255) / 256 * 256;
	ck_assert_uint_le(w->out_used, w->out_bytes);
	return p;
}

uint32_t
par_below(par_world *w, uint32_t bound)
{
	return rng_below(&w->rng, bound);
}

/* One in `rate`, where bad data is asked for. */
uint32_t
par_is_bad(par_world *w, uint32_t rate)
{
	return w->bad && par_below(w, rate) == 0;
}

float *
par_floats(par_world *w, uint32_t n)
{
	float *x = par_in(w, n * sizeof *x);
	uint32_t i;

	for (i = 0; i < n; i++)
		x[i] = rng_float(&w->rng);
	return x;
}

uint16_t *
par_bf16s(par_world *w, uint32_t n)
{
	uint16_t *x = par_in(w, n * sizeof *x);
	uint32_t i;

	for (i = 0; i < n; i++)
		x[i] = test_bf16(rng_float(&w->rng));
	return x;
}

/* n numbers of [0, bound); the bad ones are far off, on either side. */
int32_t *
par_numbers(par_world *w, uint32_t n, uint32_t bound, uint32_t rate)
{
	int32_t *x = par_in(w, n * sizeof *x);
	uint32_t i;

	for (i = 0; i < n; i++) {
		x[i] = (int32_t)par_below(w, bound);
		if (par_is_bad(w, rate))
			x[i] = par_below(w, 2) ? -1 - x[i] : x[i] + 1000000;
	}
	return x;
}

spmla_cache
par_cache_of(void *base, uint32_t layout)
{
	spmla_cache c = SPMLA_CACHE_INIT;

	c.layout = layout;
	c.entries_per_page = PAR_ENTRIES;
	c.pages = PAR_PAGES;
	c.page_stride_bytes = spmla_layout_page_bytes(layout, PAR_ENTRIES);
	c.base = base;
	return c;
}

/* A cache of any codes that are no NaN and scales around 1. */
spmla_cache
par_cache(par_world *w, uint32_t layout)
{
	const uint64_t page = spmla_layout_page_bytes(layout, PAR_ENTRIES);
	const uint32_t fp8 = layout == SPMLA_LAYOUT_FP8_DS_MLA;
	uint8_t *bytes = par_in(w, page * PAR_PAGES);
	const float scale = 0.7f;
	uint64_t p, i, at;

	for (i = 0; i < page * PAR_PAGES; i++)
		bytes[i] &= 0x77;
	for (p = 0; p < PAR_PAGES; p++)
		for (i = 0; i < PAR_ENTRIES * (fp8 ? 4 : 1); i++) {
			at = fp8 ? i / 4 * 656 + 512 + i % 4 * 4
				 : PAR_ENTRIES * 128 + i * 4;
			memcpy(bytes + p * page + at, &scale, 4);
		}
	return par_cache_of(bytes, layout);
}

/* e4m3 queries without NaN. */
uint8_t *
par_codes(par_world *w, uint32_t n)
{
	uint8_t *x = par_in(w, n);
	uint32_t i;

	for (i = 0; i < n; i++)
		x[i] &= 0xf7;
	return x;
}
