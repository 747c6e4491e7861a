/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of sparse_decode for Hopper over a kind of row that the library
 * does not have: V3.2's without the rope part (tests/emulator/no_rope.h). The
 * kernels are the library's with another decode_format; so a new kind of row
 * needs no new kernel.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "spmla/internal/combine.h"
#include "tests/emulator/no_rope.h"
#include "tests/harness/themes.h"
#include "tests/ops/attend/few_rig.h"
#include "tests/reference/reference.h"

enum {
	PAD = 8,
	SLOTS = 300,
	PAGE = 61,
	Q_HEAD = REF_LATENT + PAD,
	OUT_HEAD = REF_LATENT + PAD,
	MOST_TOKENS = 3,
	MOST_HEADS = 128,
	WAYS = 6,   /* kernels */
	FEW = 3,    /* the first one with a workspace */
	SHAPES = 3, /* other calls */
	SMS = 3,    /* room for one cluster of two, which has all tokens */
	FEW_SMS = 16
};

/* A call, and the library's kernel that would do it: one of few tokens has a
 * workspace. */
typedef struct call {
	const char *instead_of;
	uint32_t tokens, heads, topk;
	uint32_t workspace;
} call;

/* A call for each kernel, then other calls for the kernels without a
 * workspace. */
static const call calls[WAYS + SHAPES] = {
	{"sparse_decode_wgmma_32", 2, 17, 130, 0},
	{"sparse_decode_wgmma", 2, 64, 200, 0},
	{"sparse_decode_wgmma_pair", 2, 72, 130, 0},
	{"sparse_decode_few_v32_16", 1, 16, 300, 1},
	{"sparse_decode_few_v32_32", 1, 20, 129, 1},
	{"sparse_decode_few_v32_64", 1, 60, 150, 1},
	{"sparse_decode_wgmma_32", 3, 1, 70, 0},
	{"sparse_decode_wgmma", 3, 33, 70, 0},
	{"sparse_decode_wgmma_pair", 3, 128, 70, 0},
};

/* The values of a row. */
typedef enum kind {
	ANY_CODE,  /* but NaN */
	SUBNORMAL, /* codes */
	LARGE,     /* a scale that f16 does not hold, in some rows */
	SMALL,     /* all scales of some rows */
	TINY,      /* an f32 scale that is subnormal, in some rows */
	KINDS
} kind;

static fixture f;
static spmla_sparse_decode_args a;
static uint16_t *q, *out;
static int32_t *slots, lens[MOST_TOKENS];
static float *lse, sink[MOST_HEADS];
static uint8_t *pages;
static ref_work work;
static ref_kv_row *keys;
static uint64_t rng;

/* ---- Calls ------------------------------------------------------------- */

static void
run(const call *c)
{
	const char *instead_of;

	memset(out, 0x5A, (size_t)a.tokens * MOST_HEADS * OUT_HEAD * 2);
	memset(lse, 0x5A, (size_t)a.tokens * MOST_HEADS * 4);
	ck_assert_int_eq(no_rope_decode(f.ctx, &a, &instead_of), SPMLA_OK);
	ck_assert_str_eq(instead_of, c->instead_of);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}

/* Queries are random, and NaN between heads. Every byte of the cache is 0xFF, a
 * NaN code. No slot is chosen. */
static void
open_call(const call *c)
{
	const size_t heads = (size_t)c->tokens * MOST_HEADS;
	size_t i;

	few_open(&f, c->workspace ? FEW_SMS : SMS);
	rng = test_seed() + c->heads * 1000 + c->topk;
	q = test_alloc(heads * Q_HEAD * 2, 0);
	out = test_alloc(heads * OUT_HEAD * 2, 0);
	lse = test_alloc(heads * 4, 0);
	slots = test_alloc((size_t)c->tokens * c->topk * 4, 0xFF);
	keys = malloc(c->topk * sizeof *keys);
	ck_assert(keys && ref_work_open(&work, c->topk, 1));
	for (i = 0; i < heads * Q_HEAD; i++)
		q[i] = i % Q_HEAD < REF_LATENT ? test_bf16(rng_float(&rng))
					       : 0x7FC0;
	a = (spmla_sparse_decode_args){.struct_bytes = sizeof a,
				       .tokens = c->tokens,
				       .heads = c->heads,
				       .topk = c->topk,
				       .softmax_scale = 0.0721687824f,
				       .q = q,
				       .slots = slots,
				       .out = out,
				       .lse = lse};
	a.q_token_stride_elems = MOST_HEADS * Q_HEAD;
	a.q_head_stride_elems = Q_HEAD;
	a.slots_stride_elems = c->topk;
	a.out_token_stride_elems = MOST_HEADS * OUT_HEAD;
	a.out_head_stride_elems = OUT_HEAD;
	a.lse_token_stride_elems = MOST_HEADS;
	a.lse_head_stride_elems = 1;
	a.cache = (spmla_cache)SPMLA_CACHE_INIT;
	a.cache.layout = SPMLA_LAYOUT_FP8_DS_MLA;
	a.cache.entries_per_page = PAGE;
	a.cache.pages = (SLOTS + PAGE - 1) / PAGE;
	a.cache.page_stride_bytes = PAGE * NO_ROPE_ROW_BYTES + 48;
	pages = test_alloc(a.cache.pages * a.cache.page_stride_bytes, 0xFF);
	a.cache.base = pages;
	if (c->workspace)
		few_lend(&a);
}

static void
close_call(const call *c)
{
	if (c->workspace)
		few_take_back();
	free(pages);
	ref_work_close(&work);
	free(keys);
	free(slots);
	free(lse);
	free(out);
	free(q);
	few_close(&f);
}

/* ---- Rows -------------------------------------------------------------- */

static uint8_t *
row_of(int32_t slot)
{
	return pages + (uint32_t)slot / PAGE * a.cache.page_stride_bytes +
	       (uint32_t)slot % PAGE * NO_ROPE_ROW_BYTES;
}

static uint8_t
draw_code(kind k)
{
	const uint32_t sign = rng_below(&rng, 2) * 0x80u;

	if (k == ANY_CODE)
		return (uint8_t)(sign | rng_below(&rng, REF_E4M3_NAN));
	if (k == SUBNORMAL)
		return (uint8_t)(sign | rng_below(&rng, 8));
	return ref_e4m3(rng_float(&rng));
}

/* Writes a row. Scales are no powers of two, so that values are rounded. */
static void
draw_row(kind k, int32_t slot)
{
	static const float scales[KINDS] = {0x1p-10f, 1.0f, 40.0f, 1e-9f,
					    1e-38f};
	const uint32_t odd = rng_below(&rng, 2 * REF_SCALES);
	uint8_t *row = row_of(slot);
	uint32_t i;

	for (i = 0; i < REF_LATENT; i++)
		row[i] = draw_code(k);
	for (i = 0; i < REF_SCALES; i++) {
		float scale = 1.5f + 0.5f * rng_float(&rng);

		if (k < LARGE || i == odd || (k == SMALL && odd < REF_SCALES))
			scale *= scales[k];
		memcpy(row + REF_LATENT + 4 * i, &scale, 4);
	}
}

/* Random slots; one entry in seven stays -1. */
static void
choose(kind k)
{
	uint32_t i;

	for (i = 0; i < a.tokens * a.topk; i++) {
		if (rng_below(&rng, 7) == 0)
			continue;
		slots[i] = (int32_t)rng_below(&rng, SLOTS);
		draw_row(k, slots[i]);
	}
}

/* ---- Dense attention --------------------------------------------------- */

/* The exact keys of a token; returns how many. What the reference has beside
 * the latent is 0. */
static uint32_t
keys_of(uint32_t t)
{
	const uint32_t len = a.topk_lens ? (uint32_t)lens[t] : a.topk;
	uint32_t i, d, n = 0;
	float scale;

	for (i = 0; i < len; i++) {
		const int32_t slot = slots[t * a.topk + i];
		const uint8_t *row;

		if (slot < 0)
			continue;
		row = row_of(slot);
		memset(&keys[n], 0, sizeof keys[n]);
		for (d = 0; d < REF_LATENT; d++) {
			memcpy(&scale, row + REF_LATENT + d / 128 * 4, 4);
			keys[n].k[d] = ref_e4m3_value(row[d]) * (double)scale;
		}
		work.kv_rows[n] = &keys[n];
		n++;
	}
	return n;
}

/* Kernels that multiply f16 round keys and queries by 2^-12 of themselves,
 * which makes up less than 2^-13 of the terms of a score. */
static void
check_head(uint32_t t, uint32_t h, uint32_t n)
{
	const uint32_t at = t * MOST_HEADS + h;
	uint16_t query[REF_DIM] = {0};
	ref_attend_result want;
	uint32_t d;

	memcpy(query, q + (size_t)at * Q_HEAD, REF_LATENT * 2);
	ref_attend(&work, query, work.kv_rows, n, (double)a.softmax_scale,
		   a.attn_sink ? &sink[h] : NULL, &want);
	ck_assert_msg(ref_close_lse((double)lse[at], want.lse) ||
			      fabs((double)lse[at] - want.lse) <=
				      0x1p-13 * want.terms,
		      "token %u head %u lse: got %.9g, want %.9g", t, h,
		      (double)lse[at], want.lse);
	for (d = 0; d < REF_LATENT; d++) {
		const double got =
			ref_bf16_value(out[(size_t)at * OUT_HEAD + d]);

		ck_assert_msg(
			n ? ref_close_out(got, want.out[d], want.magnitude[d])
			  : got == 0,
			"token %u head %u dim %u: got %g, want %g", t, h, d,
			got, want.out[d]);
	}
}

static void
check(const call *c)
{
	uint32_t t, h;

	run(c);
	for (t = 0; t < a.tokens; t++) {
		const uint32_t n = keys_of(t);

		for (h = 0; h < a.heads; h++)
			check_head(t, h, n);
	}
}

/* ---- Tests ------------------------------------------------------------- */

static void
draw_sinks(void)
{
	uint32_t h;

	for (h = 0; h < a.heads; h++)
		sink[h] = 4 * rng_float(&rng);
	sink[2] = INFINITY;
	sink[5] = -INFINITY;
	a.attn_sink = sink;
}

START_TEST(every_kernel_takes_rows_without_rope)
{
	const call *c = &calls[_i];

	open_call(c);
	choose(ANY_CODE);
	draw_sinks();
	check(c);
	close_call(c);
}
END_TEST

/* A token of one key more than a tile, one of none and one of one. */
START_TEST(lengths_count)
{
	static const int32_t some[MOST_TOKENS] = {65, 0, 1};
	const call *c = &calls[WAYS + _i];

	open_call(c);
	choose(ANY_CODE);
	memcpy(lens, some, sizeof lens);
	a.topk_lens = lens;
	check(c);
	close_call(c);
}
END_TEST

/* Each token is two splits, of which one has two tiles; the kernel adds them
 * up. The only cluster does a token's splits in turn. */
START_TEST(splits_of_a_token_are_added_up)
{
	static const int32_t metadata[4][8] = {{0, 0, 0, 2, 0},
					       {0, 0, 2, 9, 1},
					       {1, 1, 0, 1, 0},
					       {1, 1, 1, 9, 1}};
	static const int32_t num_splits[3] = {0, 2, 4};
	static uint32_t counts[2 * 2 * 2];
	const call *c = &calls[_i];

	open_call(c);
	choose(ANY_CODE);
	memset(counts, 0, sizeof counts);
	a.parts = 4;
	a.tile_scheduler_metadata = &metadata[0][0];
	a.num_splits = num_splits;
	a.split_rows = 4;
	a.split_out = test_alloc((size_t)4 * a.heads * REF_LATENT * 4, 0xFF);
	a.split_lse = test_alloc((size_t)4 * a.heads * 4, 0xFF);
	a.combine = 1;
	a.workspace = counts;
	a.workspace_bytes = sizeof counts;
	ck_assert(spmla_i_combines(&f.plan.device, &a));
	check(c);
	free(a.split_lse);
	free(a.split_out);
	close_call(c);
}
END_TEST

/* Each kind, by each kernel without a workspace; and large scales by one with
 * it, which has code of its own for them. */
START_TEST(codes_and_scales_of_any_size_count)
{
	const int all = SHAPES * (KINDS - 1);
	const kind k = _i < all ? (kind)(1 + _i / SHAPES) : LARGE;
	const call *c = &calls[_i < all ? WAYS + _i % SHAPES : WAYS - 1];

	open_call(c);
	a.tokens = 1;
	choose(k);
	check(c);
	close_call(c);
}
END_TEST

/* One of two keys has it. */
START_TEST(nan_code_that_counts_is_not_hidden)
{
	const call *c = &calls[_i];
	uint32_t h, d;

	open_call(c);
	a.tokens = 1;
	for (d = 0; d < 2; d++) {
		slots[70 + d] = 7 + (int32_t)d;
		draw_row(ANY_CODE, 7 + (int32_t)d);
	}
	row_of(7)[300] = _i % 2 ? 0x7F : 0xFF;
	run(c);
	for (h = 0; h < a.heads; h++) {
		ck_assert_float_nan(lse[h]);
		for (d = 0; d < REF_LATENT; d++)
			ck_assert_float_nan(
				test_bf16_value(out[h * OUT_HEAD + d]));
	}
	close_call(c);
}
END_TEST

static uint32_t
has_kernels(void)
{
	uint32_t has;

	few_open(&f, SMS);
	has = no_rope_runs(f.ctx);
	few_close(&f);
	return has;
}

SUITE
{
	const theme_test shape[] = {
		{every_kernel_takes_rows_without_rope, WAYS},
		{lengths_count, SHAPES},
		{splits_of_a_token_are_added_up, FEW},
	};
	const theme_test values[] = {
		{codes_and_scales_of_any_size_count, SHAPES * (KINDS - 1) + 1},
		{nan_code_that_counts_is_not_hidden, FEW},
	};
	const theme themes[] = {
		THEME("shape", NULL, NULL, shape),
		THEME("values", NULL, NULL, values),
	};

	if (!has_kernels())
		return SKIP_SUITE("kernels for Hopper, in the emulator");
	return RUN_THEMES(themes);
}
