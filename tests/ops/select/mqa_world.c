/* SPDX-License-Identifier: Apache-2.0
 *
 * See mqa_world.h.
 */
#include "tests/ops/select/mqa_world.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/reference/mxfp4_ref.h"
#include "tests/reference/reference.h"

static uint32_t
value_bytes(const spmla_cache *c)
{
	return c->layout == SPMLA_LAYOUT_INDEX_MXFP4 ? 64 : 128;
}

static uint8_t
random_code(uint64_t *rng)
{
	const uint8_t code = (uint8_t)rng_next(rng);

	return (code & 0x7f) == REF_E4M3_NAN ? code - 1 : code;
}

uint8_t *
mqa_entry(const spmla_cache *c, uint32_t page, uint32_t i)
{
	return (uint8_t *)c->base + page * c->page_stride_bytes +
	       (uint64_t)i * value_bytes(c);
}

uint8_t *
mqa_scales(const spmla_cache *c, uint32_t page, uint32_t i)
{
	return mqa_entry(c, page, c->entries_per_page) + i * 4;
}

void
mqa_put_scale(const spmla_cache *c, uint32_t page, uint32_t i, float scale)
{
	memcpy(mqa_scales(c, page, i), &scale, 4);
}

static void
fill_cache(const spmla_cache *c, uint64_t *rng)
{
	uint32_t p, i, d;

	for (p = 0; p < c->pages; p++)
		for (i = 0; i < c->entries_per_page; i++) {
			for (d = 0; d < 128; d++)
				mqa_entry(c, p, i)[d] = random_code(rng);
			mqa_put_scale(c, p, i,
				      ldexpf(1, (int)rng_below(rng, 9) - 8));
		}
}

void
mqa_open(mqa_world *w, uint32_t heads, uint32_t entries)
{
	uint64_t rng = test_seed() + heads * 100 + entries;
	const uint32_t columns = (150 + entries - 1) / entries;
	const uint32_t stride = columns + 3, pages = 3 * columns + 1;
	const uint64_t page = (uint64_t)entries * 132 + 15 + 48;
	uint32_t i;

	memset(w, 0, sizeof *w);
	w->q = test_alloc(MQA_TOKENS * heads * 128, 0);
	w->weights = test_alloc(MQA_TOKENS * heads * 4, 0);
	w->table = test_alloc(3 * stride * 4, 0x77);
	w->pages = test_alloc(pages * page, 0xFF);
	w->logits = test_alloc(MQA_LOGITS * 4, 0);
	w->a = (spmla_mqa_logits_args){
		sizeof w->a,  MQA_TOKENS, heads,      3,
		columns,      stride,     w->q,       w->weights,
		w->token_row, w->lens,    w->starts,  w->table,
		NULL,         w->logits,  MQA_LOGITS, SPMLA_CACHE_INIT,
		NULL,         0,          0,          0};
	w->a.cache.layout = SPMLA_LAYOUT_INDEX_FP8;
	w->a.cache.entries_per_page = entries;
	w->a.cache.pages = pages;
	w->a.cache.page_stride_bytes = page / 16 * 16;
	w->a.cache.base = w->pages;
	fill_cache(&w->a.cache, &rng);
	for (i = 0; i < MQA_TOKENS * heads * 128; i++)
		w->q[i] = random_code(&rng);
	for (i = 0; i < MQA_TOKENS * heads; i++)
		w->weights[i] = rng_float(&rng);
	for (i = 0; i < 3 * columns; i++)
		w->table[i / columns * stride + i % columns] =
			(int32_t)(i * 2 % (3 * columns + 1));
	for (i = 0; i < MQA_TOKENS; i++) {
		w->token_row[i] = i == 1 ? 0 : 2;
		w->lens[i] = i == 2 ? 1 : 150 - (int32_t)i;
		w->starts[i] = i * (150 + MQA_GAP) + MQA_GAP;
	}
}

/* Any codes; scales 2^-9 .. 2^4. */
static void
random_mxfp4(uint64_t *rng, uint8_t *codes, uint8_t *scales)
{
	uint32_t i;

	for (i = 0; i < 64; i++)
		codes[i] = (uint8_t)rng_next(rng);
	for (i = 0; i < 4; i++)
		scales[i] = (uint8_t)(118 + rng_below(rng, 14));
}

void
mqa_open_mxfp4(mqa_world *w, uint32_t heads, uint32_t entries)
{
	uint64_t rng = test_seed() + heads * 100 + entries;
	spmla_cache *c = &w->a.cache;
	uint32_t p, i;

	mqa_open(w, heads, entries);
	c->layout = SPMLA_LAYOUT_INDEX_MXFP4;
	c->page_stride_bytes = ((uint64_t)entries * 68 + 15 + 48) / 16 * 16;
	memset(w->pages, 0xFF, c->pages * c->page_stride_bytes);
	for (p = 0; p < c->pages; p++)
		for (i = 0; i < entries; i++)
			random_mxfp4(&rng, mqa_entry(c, p, i),
				     mqa_scales(c, p, i));
	w->q_scales = test_alloc(MQA_TOKENS * heads * 4, 0);
	for (i = 0; i < MQA_TOKENS * heads; i++)
		random_mxfp4(&rng, w->q + i * 64, (uint8_t *)(w->q_scales + i));
	w->a.q_scales = w->q_scales;
}

void
mqa_close(mqa_world *w)
{
	free(w->q_scales);
	free(w->q);
	free(w->weights);
	free(w->table);
	free(w->pages);
	free(w->logits);
}

/* Half a unit of 2^16 in the last place is 2^-8. 256 * 256 is in head 0; its
 * other products are 1.875 * 2^-9, and the other heads' sums, 256, weigh 0.99 *
 * 2^-16. */
void
mqa_steep(uint8_t *q, float *weights, uint32_t heads, uint8_t *key)
{
	const uint8_t c256 = 0x78, c1 = 0x38, eighth = 0x20, small = 0x0F;
	uint32_t h, d;

	memset(q, 0, (size_t)heads * 128);
	memset(key, small, 128); /* 1.875 * 2^-6 */
	key[0] = q[0] = c256;
	for (d = 16; d < 128; d += 16) /* of the first of 16 lanes */
		q[d] = eighth;
	for (d = 8; d > 0; d /= 2) /* of its tree */
		q[d] = eighth;
	weights[0] = 1;
	for (h = 1; h < heads; h++) {
		q[h * 128] = c1;
		weights[h] = 0.99f * 0x1p-16f;
	}
}

/* Sums that are cut lose different things: 0 and 2 lose small terms beside 256
 * * 256 or 256, which cancel in 2; 1 loses low bits of equal terms beside their
 * sum. */
void
mqa_adverse(uint8_t *q, float *weights, uint32_t heads, uint8_t *key,
	    uint32_t which)
{
	const uint8_t c256 = 0x78, minus = 0x80, c1 = 0x38, c1_875 = 0x3F;
	const uint8_t small = 0x0F; /* 1.875 * 2^-6 */
	uint32_t h;

	memset(q, which == 1 ? c1_875 : c1, (size_t)heads * 128);
	memset(key, which == 1 ? c1_875 : small, 128);
	for (h = 0; h < heads; h++) {
		weights[h] = 1;
		if (which == 2) {
			q[h * 128] = c256;
			q[h * 128 + 1] = c256 | minus;
		}
	}
	if (which != 1)
		key[0] = c256;
	if (which == 2)
		key[1] = c256;
}

double
mqa_adverse_score(uint32_t heads, uint32_t which)
{
	const double small = 1.875 / 64;

	return heads * (which == 1   ? 128 * 1.875 * 1.875
			: which == 2 ? 126 * small
				     : 256 + 127 * small);
}

/* The key that the table gives for a position; NULL: none. */
static const ref_index_key *
find_key(const spmla_mqa_logits_args *a, uint32_t row, uint32_t n,
	 ref_index_key *key)
{
	const uint32_t col = n / a->cache.entries_per_page;
	const uint32_t i = n % a->cache.entries_per_page;
	int32_t page;
	float scale;
	uint32_t d;

	if (col >= a->columns ||
	    (a->table_cols && (int32_t)col >= a->table_cols[row]))
		return NULL;
	page = a->block_table[row * a->table_stride_elems + col];
	if (page < 0 || (int64_t)page >= (int64_t)a->cache.pages)
		return NULL;
	if (a->cache.layout == SPMLA_LAYOUT_INDEX_MXFP4) {
		for (d = 0; d < 128; d++)
			key->value[d] = ref_mxfp4_value(
				mqa_entry(&a->cache, (uint32_t)page, i),
				mqa_scales(&a->cache, (uint32_t)page, i), d);
		key->scale = 1;
		return key;
	}
	for (d = 0; d < 128; d++)
		key->value[d] = ref_e4m3_value(
			mqa_entry(&a->cache, (uint32_t)page, i)[d]);
	memcpy(&scale, mqa_scales(&a->cache, (uint32_t)page, i), 4);
	key->scale = scale;
	return key;
}

/* One score against the reference. */
static void
check_score(const spmla_mqa_logits_args *a, uint32_t t, uint32_t n,
	    ref_sums sums)
{
	static double q[MQA_HEADS * 128], weights[MQA_HEADS];
	const float got = ((const float *)a->logits)[a->row_starts[t] + n];
	const ref_index_key *found;
	ref_index_key key;
	double want, tolerance;
	uint32_t i;

	for (i = 0; n == 0 && i < a->heads * 128; i++) {
		const uint32_t head = t * a->heads + i / 128;

		if (a->q_scales)
			q[i] = ref_mxfp4_value(
				a->q + head * 64,
				(const uint8_t *)&a->q_scales[head], i % 128);
		else
			q[i] = ref_e4m3_value(a->q[head * 128 + i % 128]);
	}
	for (i = 0; n == 0 && i < a->heads; i++)
		weights[i] = a->weights[t * a->heads + i];
	found = find_key(a, (uint32_t)a->token_row[t], n, &key);
	ref_logits(q, weights, a->heads, &found, 1, sums, &want, &tolerance);
	if (isnan(want) || isinf(want))
		ck_assert_msg(isnan(want) ? isnan(got) : got == want,
			      "token %u key %u: got %g, want %g", t, n, got,
			      want);
	else
		ck_assert_msg(got == want || fabs(got - want) <= tolerance,
			      "token %u key %u: got %.9g, want %.9g +- %g", t,
			      n, got, want, tolerance);
}

/* Whether an element belongs to a row that has to be written. */
static int
written(const spmla_mqa_logits_args *a, int64_t i)
{
	uint32_t t;

	for (t = 0; t < a->tokens; t++) {
		const int64_t start = a->row_starts[t],
			      len = a->context_lens[t];

		if (a->token_row[t] < 0 || a->token_row[t] >= (int)a->rows ||
		    start < 0 || len > (int64_t)a->logits_elems ||
		    start > (int64_t)a->logits_elems - len)
			continue;
		if (i >= start && i < start + len)
			return 1;
	}
	return 0;
}

void
mqa_check(fixture *f, const mqa_world *w)
{
	const spmla_mqa_logits_args *a = &w->a;
	const ref_sums sums =
		a->cache.layout == SPMLA_LAYOUT_INDEX_FP8 &&
				!a->cache.encoding && a->heads <= 64 &&
				a->cache.page_stride_bytes % 16 == 0 &&
				fixture_cuts(f)
			? REF_SUMS_CUT
			: REF_SUMS_F32;
	int64_t i;
	uint32_t t, n;

	memset(a->logits, 0x5A, MQA_LOGITS * sizeof(float));
	ck_assert_int_eq(spmla_mqa_logits(f->ctx, a, NULL), SPMLA_OK);
	for (i = 0; i < MQA_LOGITS; i++)
		if (!written(a, i))
			ck_assert_mem_eq((const float *)a->logits + i,
					 "\x5A\x5A\x5A\x5A", 4);
	for (t = 0; t < a->tokens; t++)
		for (n = 0; written(a, a->row_starts[t]) &&
			    (int32_t)n < a->context_lens[t];
		     n++)
			check_score(a, t, n, sums);
}

uint32_t
mqa_first_page(const mqa_world *w)
{
	return (uint32_t)w->table[2 * w->a.table_stride_elems];
}

void
mqa_expect_status(fixture *f, spmla_fault fault, uint32_t row)
{
	const spmla_device_status s = fixture_status(f);

	ck_assert_uint_ge(s.count, 1);
	ck_assert_str_eq(spmla_fault_name(s.fault), spmla_fault_name(fault));
	ck_assert_uint_eq(s.row, row);
	ck_assert_int_eq(spmla_status_clear(f->ctx), SPMLA_OK);
}
