/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of sparse_decode for Hopper over kinds of rows that the library
 * does not have (tests/emulator/other_rows.h). The kernels are the library's
 * with other decode_formats, one for each list; so a new kind of row needs no
 * new kernel.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "spmla/internal/combine.h"
#include "tests/emulator/other_rows.h"
#include "tests/harness/themes.h"
#include "tests/ops/attend/few_rig.h"
#include "tests/reference/mxfp4_ref.h"
#include "tests/reference/reference.h"

enum {
	PAD = 8,
	SLOTS = 300,
	PAGE = 61,
	Q_HEAD = REF_DIM + PAD,
	OUT_HEAD = REF_LATENT + PAD,
	MOST_TOKENS = 16,
	MOST_HEADS = 128,
	WAYS = 6,     /* kernels */
	FEW = 3,      /* the first one with a workspace */
	SHAPES = 3,   /* other calls */
	MIXES = 4,    /* of two kinds of rows */
	FEW_ROWS = 2, /* kinds of rows that kernels with a workspace take */
	SMS = 3,      /* room for one cluster of two, which has all tokens */
	FEW_SMS = 16
};

/* A call, and the library's kernel that would do it: one of few tokens has a
 * workspace. */
typedef struct call {
	const char *instead_of;
	uint32_t tokens, heads, topk;
	uint32_t workspace;
	uint32_t extra_topk;
} call;

/* A call for each kernel, then other calls for the kernels without a
 * workspace. */
static const call calls[WAYS + SHAPES] = {
	{"sparse_decode_wgmma_32", 2, 17, 130, 0, 0},
	{"sparse_decode_wgmma", 2, 64, 200, 0, 0},
	{"sparse_decode_wgmma_pair", 2, 72, 130, 0, 0},
	{"sparse_decode_few_v32_16", 1, 16, 300, 1, 0},
	{"sparse_decode_few_v32_32", 1, 20, 129, 1, 0},
	{"sparse_decode_few_v32_64", 1, 60, 150, 1, 0},
	{"sparse_decode_wgmma_32", 3, 1, 70, 0, 0},
	{"sparse_decode_wgmma", 3, 33, 70, 0, 0},
	{"sparse_decode_wgmma_pair", 3, 128, 70, 0, 0},
};

/* Calls with two lists. There are more tokens than blocks or clusters. */
static const call mixed_calls[FEW] = {
	{"sparse_decode_wgmma_v4_32", 7, 17, 130, 0, 140},
	{"sparse_decode_wgmma_v4", 7, 40, 130, 0, 140},
	{"sparse_decode_wgmma_v4_pair", 7, 72, 130, 0, 140},
};

/* An encoding of values. */
typedef struct encoding {
	double (*value)(uint8_t code);
	uint8_t (*encode)(double x);
	uint32_t bits; /* of a code */
	int nan[2];    /* the codes that are NaN; -1: there is none */
} encoding;

static const encoding e4m3 = {ref_e4m3_value, ref_e4m3, 8, {0x7F, 0xFF}};
static const encoding fnuz = {ref_fnuz_value, ref_fnuz, 8, {0x80, -1}};
static const encoding e2m1 = {ref_e2m1_value, ref_e2m1, 4, {-1, -1}};

typedef enum scale { F32, UE8M0, E4M3 } scale;

/* A kind of row. */
typedef struct layout {
	other_row row;
	const encoding *code;
	scale scale;
	uint32_t scales;    /* of a row */
	uint32_t scales_at; /* the byte of the row; 0: behind the page's rows */
	uint32_t rope_at;   /* 64 values, bf16 or, of e2m1, e4m3; 0: none */
	uint32_t row_bytes;
} layout;

/* First those of FEW_ROWS. */
static const layout layouts[OTHER_ROWS] = {
	{ROW_NO_ROPE, &e4m3, F32, 4, 512, 0, 528},
	{ROW_FNUZ, &fnuz, F32, 4, 512, 528, 656},
	{ROW_V41, &e4m3, UE8M0, 16, 512, 0, 528},
	{ROW_V41_PLANAR, &e4m3, UE8M0, 16, 0, 0, 512},
	{ROW_FP4, &e2m1, E4M3, 32, 256, 0, 288},
	{ROW_FP4_PLANAR, &e2m1, E4M3, 32, 0, 0, 256},
	{ROW_NVFP4, &e2m1, E4M3, 32, 320, 256, 352},
};

/* What the two lists of a call have: V4.1's, per token and planar; codes of any
 * size in turn; and rope parts of two encodings. */
static const other_row mixes[MIXES][2] = {{ROW_V41, ROW_FP4},
					  {ROW_V41_PLANAR, ROW_FP4_PLANAR},
					  {ROW_FP4, ROW_NO_ROPE},
					  {ROW_FNUZ, ROW_NVFP4}};

/* The values of a row. */
typedef enum kind {
	ANY_CODE,  /* but NaN */
	SUBNORMAL, /* codes */
	LARGE,     /* a scale that f16 does not hold, in some rows */
	NEGATIVE,  /* a scale, where there are negative ones */
	SMALL,     /* all scales of some rows */
	TINY,      /* a scale that is subnormal or 0, in some rows */
	KINDS
} kind;

/* A list of a call, and its cache. */
typedef struct list {
	const layout *rows; /* NULL: there is no second list */
	uint32_t topk;
	const int32_t *lens;
	int32_t *slots;
	uint8_t *pages;
	uint64_t page_stride_bytes;
} list;

static list lists[2];
/* Of the list that is used. */
static const layout *rows;
static int32_t *slots;
static uint8_t *pages;

static fixture f;
static spmla_sparse_decode_args a;
static uint16_t *q, *out;
static int32_t lens[2][MOST_TOKENS];
static float *lse, sink[MOST_HEADS];
static ref_work work;
static ref_kv_row *keys;
static double sizes[REF_DIM];
static uint64_t rng;

/* ---- Calls ------------------------------------------------------------- */

static list *
use(uint32_t i)
{
	rows = lists[i].rows;
	slots = lists[i].slots;
	pages = lists[i].pages;
	return &lists[i];
}

static uint32_t
list_count(void)
{
	return lists[1].rows ? 2 : 1;
}

static void
run(const call *c)
{
	const char *instead_of;

	memset(out, 0x5A, (size_t)a.tokens * MOST_HEADS * OUT_HEAD * 2);
	memset(lse, 0x5A, (size_t)a.tokens * MOST_HEADS * 4);
	ck_assert_int_eq(other_rows_decode(f.ctx, lists[0].rows->row,
					   lists[1].rows ? lists[1].rows->row
							 : OTHER_ROWS,
					   &a, &instead_of),
			 SPMLA_OK);
	ck_assert_str_eq(instead_of, c->instead_of);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}

/* Every byte of the cache is 0xFF, a NaN code. No slot is chosen. */
static void
open_list(uint32_t i, const layout *of, uint32_t topk, spmla_cache *cache)
{
	const uint32_t page_bytes =
		PAGE * (of->row_bytes + (of->scales_at ? 0 : of->scales));
	const uint32_t pages_n = (SLOTS + PAGE - 1) / PAGE;

	lists[i].rows = of;
	lists[i].topk = topk;
	lists[i].lens = NULL;
	lists[i].page_stride_bytes = page_bytes + 48;
	lists[i].slots = test_alloc((size_t)a.tokens * topk * 4, 0xFF);
	lists[i].pages = test_alloc(pages_n * lists[i].page_stride_bytes, 0xFF);
	*cache = (spmla_cache)SPMLA_CACHE_INIT;
	cache->layout = SPMLA_LAYOUT_FP8_DS_MLA;
	cache->entries_per_page = PAGE;
	cache->pages = pages_n;
	cache->page_stride_bytes = lists[i].page_stride_bytes;
	cache->base = lists[i].pages;
}

/* Queries are random, and NaN between heads. */
static void
open_call(const layout *of, const call *c)
{
	const uint32_t dims = of->rope_at ? REF_DIM : REF_LATENT;
	const size_t heads = (size_t)c->tokens * MOST_HEADS;
	const uint32_t most = c->topk + c->extra_topk;
	size_t i;

	few_open(&f, c->workspace ? FEW_SMS : SMS);
	rng = test_seed() + c->heads * 1000 + c->topk;
	q = test_alloc(heads * Q_HEAD * 2, 0);
	out = test_alloc(heads * OUT_HEAD * 2, 0);
	lse = test_alloc(heads * 4, 0);
	keys = malloc(most * sizeof *keys);
	ck_assert(keys && ref_work_open(&work, most, 1));
	for (i = 0; i < heads * Q_HEAD; i++)
		q[i] = i % Q_HEAD < dims ? test_bf16(rng_float(&rng)) : 0x7FC0;
	a = (spmla_sparse_decode_args){.struct_bytes = sizeof a,
				       .tokens = c->tokens,
				       .heads = c->heads,
				       .topk = c->topk,
				       .softmax_scale = 0.0721687824f,
				       .q = q,
				       .out = out,
				       .lse = lse};
	a.q_token_stride_elems = MOST_HEADS * Q_HEAD;
	a.q_head_stride_elems = Q_HEAD;
	a.slots_stride_elems = c->topk;
	a.out_token_stride_elems = MOST_HEADS * OUT_HEAD;
	a.out_head_stride_elems = OUT_HEAD;
	a.lse_token_stride_elems = MOST_HEADS;
	a.lse_head_stride_elems = 1;
	lists[1].rows = NULL;
	open_list(0, of, c->topk, &a.cache);
	a.slots = lists[0].slots;
	use(0);
	if (c->workspace)
		few_lend(&a);
}

/* A call with two lists, of a mix of rows. */
static void
open_mix(const other_row *mix, const call *c)
{
	open_call(&layouts[mix[0]], c);
	open_list(1, &layouts[mix[1]], c->extra_topk, &a.extra_cache);
	a.extra_topk = c->extra_topk;
	a.extra_slots = lists[1].slots;
	a.extra_slots_stride_elems = c->extra_topk;
	a.cache.layout = a.extra_cache.layout = SPMLA_LAYOUT_V4_FP8;
}

static void
close_call(const call *c)
{
	uint32_t i;

	if (c->workspace)
		few_take_back();
	for (i = 0; i < list_count(); i++) {
		free(lists[i].pages);
		free(lists[i].slots);
	}
	ref_work_close(&work);
	free(keys);
	free(lse);
	free(out);
	free(q);
	few_close(&f);
}

/* ---- Rows -------------------------------------------------------------- */

static uint8_t *
page_of(int32_t slot)
{
	const list *of = &lists[pages == lists[1].pages];

	return pages + (uint32_t)slot / PAGE * of->page_stride_bytes;
}

static uint8_t *
row_of(int32_t slot)
{
	return page_of(slot) + (uint32_t)slot % PAGE * rows->row_bytes;
}

static void
put_code(int32_t slot, uint32_t d, uint32_t code)
{
	uint8_t *byte = row_of(slot) + d * rows->code->bits / 8;

	if (rows->code->bits == 8)
		*byte = (uint8_t)code;
	else if (d % 2)
		*byte = (uint8_t)((*byte & 0xF) | code << 4);
	else
		*byte = (uint8_t)((*byte & 0xF0) | code);
}

static uint8_t
code_at(int32_t slot, uint32_t d)
{
	const uint8_t byte = row_of(slot)[d * rows->code->bits / 8];

	return rows->code->bits == 8 ? byte : d % 2 ? byte >> 4 : byte & 0xF;
}

/* Where scale i of a row lies. */
static uint8_t *
scale_of(int32_t slot, uint32_t i)
{
	const uint32_t bytes = rows->scale == F32 ? 4 : 1;
	uint8_t *first = rows->scales_at
				 ? row_of(slot) + rows->scales_at
				 : page_of(slot) + PAGE * rows->row_bytes +
					   (uint32_t)slot % PAGE * rows->scales;

	if (rows->row == ROW_NVFP4)
		return first + 8 * (i & 3) + (i >> 2);
	return first + i * bytes;
}

static void
put_scale(int32_t slot, uint32_t i, uint32_t bits)
{
	memcpy(scale_of(slot, i), &bits, rows->scale == F32 ? 4 : 1);
}

static double
scale_at(int32_t slot, uint32_t i)
{
	const uint8_t *at = scale_of(slot, i);
	float x;

	if (rows->scale == UE8M0)
		return *at == 255 ? (double)NAN : ldexp(1, *at - 127);
	if (rows->scale == E4M3)
		return ref_e4m3_value(*at);
	memcpy(&x, at, 4);
	return (double)x;
}

/* Value d of a row, of 512 and maybe 64 of rope. */
static double
value_at(int32_t slot, uint32_t d)
{
	const uint8_t *rope = row_of(slot) + rows->rope_at;
	uint16_t bits;

	if (d < REF_LATENT)
		return rows->code->value(code_at(slot, d)) *
		       scale_at(slot, d * rows->scales / REF_LATENT);
	if (!rows->rope_at)
		return 0;
	if (rows->code->bits == 4)
		return ref_e4m3_value(rope[d - REF_LATENT]);
	memcpy(&bits, rope + 2 * (d - REF_LATENT), 2);
	return ref_bf16_value(bits);
}

static int
is_nan_code(uint32_t code)
{
	return (int)code == rows->code->nan[0] ||
	       (int)code == rows->code->nan[1];
}

static uint32_t
draw_code(kind k)
{
	const uint32_t signs = 1u << (rows->code->bits - 1);
	uint32_t code;

	if (k == SUBNORMAL)
		return rng_below(&rng, 2) * signs |
		       (1 + rng_below(&rng, signs / 16 ? 7 : 1));
	if (k != ANY_CODE)
		return rows->code->encode(rng_float(&rng));
	do
		code = rng_below(&rng, 2 * signs);
	while (is_nan_code(code));
	return code;
}

/* A scale of a row, or a scale that makes up the kind. f32 scales are no powers
 * of two, so that values are rounded. */
static uint32_t
draw_scale(kind k, int special)
{
	static const float f32[KINDS] = {0x1p-10f, 1.0f,  40.0f,
					 -1.0f,    1e-9f, 1e-38f};
	static const uint8_t bytes[2][KINDS] = {
		/* UE8M0. None is negative: again some are large. */
		{117, 127, 131, 130, 97, 0},
		{0x18, 0x38, 0x78, 0xB8, 0x01, 0}};
	const int is = special || k < LARGE;
	float x = 1.5f + 0.5f * rng_float(&rng);
	uint32_t bits;

	if (rows->scale != F32) {
		bits = bytes[rows->scale == E4M3][is ? k : SUBNORMAL];
		return k == TINY && is ? bits : bits + rng_below(&rng, 3);
	}
	x *= is ? f32[k] : 1.0f;
	memcpy(&bits, &x, 4);
	return bits;
}

static void
draw_row(kind k, int32_t slot)
{
	const uint32_t odd = rng_below(&rng, 2 * rows->scales);
	uint8_t *rope = row_of(slot) + rows->rope_at;
	uint32_t i;

	for (i = 0; i < REF_LATENT; i++)
		put_code(slot, i, draw_code(k));
	for (i = 0; i < rows->scales; i++)
		put_scale(slot, i,
			  draw_scale(k, i == odd || (k == SMALL &&
						     odd < rows->scales)));
	for (i = 0; rows->rope_at && i < REF_DIM - REF_LATENT; i++) {
		const uint16_t x = test_bf16(rng_float(&rng));

		if (rows->code->bits == 4)
			rope[i] = ref_e4m3((double)rng_float(&rng));
		else
			memcpy(rope + 2 * i, &x, 2);
	}
}

/* Random slots of the list in use; one entry in seven stays -1. */
static void
choose(kind k)
{
	const uint32_t topk = rows == lists[1].rows ? a.extra_topk : a.topk;
	uint32_t i;

	for (i = 0; i < a.tokens * topk; i++) {
		if (rng_below(&rng, 7) == 0)
			continue;
		slots[i] = (int32_t)rng_below(&rng, SLOTS);
		draw_row(k, slots[i]);
	}
}

/* ---- Dense attention --------------------------------------------------- */

/* The exact keys of a token in the list in use, behind n others, and the sums of
 * their sizes; returns how many they all are. */
static uint32_t
keys_of_list(const list *of, uint32_t t, uint32_t n)
{
	const uint32_t len = of->lens ? (uint32_t)of->lens[t] : of->topk;
	uint32_t i, d;

	for (i = 0; i < len; i++) {
		const int32_t slot = slots[t * of->topk + i];

		if (slot < 0)
			continue;
		memset(&keys[n], 0, sizeof keys[n]);
		for (d = 0; d < REF_DIM; d++) {
			keys[n].k[d] = value_at(slot, d);
			sizes[d] += fabs(keys[n].k[d]);
		}
		work.kv_rows[n] = &keys[n];
		n++;
	}
	return n;
}

static uint32_t
keys_of(uint32_t t)
{
	uint32_t i, n = 0;

	memset(sizes, 0, sizeof sizes);
	for (i = 0; i < list_count(); i++)
		n = keys_of_list(use(i), t, n);
	return n;
}

/* Kernels that multiply f16 round keys and queries by 2^-12 of themselves,
 * which makes up less than 2^-13 of the terms of a score. Of a tile with a row
 * that f16 does not hold they round weights by 2^-18 of the largest. */
static void
check_head(uint32_t t, uint32_t h, uint32_t n)
{
	const uint32_t at = t * MOST_HEADS + h;
	uint16_t query[REF_DIM] = {0};
	ref_attend_result want;
	uint32_t d;

	memcpy(query, q + (size_t)at * Q_HEAD,
	       (rows->rope_at ? REF_DIM : REF_LATENT) * 2);
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
		const double off = fabs(got - want.out[d]);

		ck_assert_msg(n ? ref_close_out(got, want.out[d],
						want.magnitude[d]) ||
					      off <= 1e-3 + 0x1p-18 * sizes[d]
				: got == 0,
			      "token %u head %u dim %u: got %g, want %g", t, h,
			      d, got, want.out[d]);
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

/* Each kind of row by each of its kernels, those with a workspace last. */
enum { CASES = FEW * OTHER_ROWS + (WAYS - FEW) * FEW_ROWS };

static const layout *
layout_of(int i)
{
	const int few = i - FEW * OTHER_ROWS;

	return &layouts[few < 0 ? i / FEW : few / (WAYS - FEW)];
}

static const call *
call_of(int i)
{
	const int few = i - FEW * OTHER_ROWS;

	return &calls[few < 0 ? i % FEW : FEW + few % (WAYS - FEW)];
}

START_TEST(every_kernel_takes_every_kind_of_row)
{
	const call *c = call_of(_i);

	open_call(layout_of(_i), c);
	choose(ANY_CODE);
	draw_sinks();
	check(c);
	close_call(c);
}
END_TEST

/* A token of one key more than a tile, one of none and one of one. */
START_TEST(lengths_count)
{
	static const int32_t some[] = {65, 0, 1};
	const call *c = &calls[WAYS + _i % SHAPES];

	open_call(&layouts[_i / SHAPES], c);
	choose(ANY_CODE);
	memcpy(lens[0], some, sizeof some);
	a.topk_lens = lists[0].lens = lens[0];
	check(c);
	close_call(c);
}
END_TEST

/* Checks a call of two tokens, each in two of the four parts, which add up their
 * splits. */
static void
check_parts(const call *c, const int32_t *metadata)
{
	static const int32_t num_splits[3] = {0, 2, 4};
	static uint32_t counts[2 * 2 * 2];

	memset(counts, 0, sizeof counts);
	a.parts = 4;
	a.tile_scheduler_metadata = metadata;
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
}

/* Each token is two splits, of which one has two tiles; the kernel adds them
 * up. The only cluster does a token's splits in turn. */
START_TEST(splits_of_a_token_are_added_up)
{
	static const int32_t metadata[4][8] = {{0, 0, 0, 2, 0},
					       {0, 0, 2, 9, 1},
					       {1, 1, 0, 1, 0},
					       {1, 1, 1, 9, 1}};
	const call *c = &calls[_i % FEW];

	open_call(&layouts[_i / FEW], c);
	choose(ANY_CODE);
	check_parts(c, &metadata[0][0]);
	close_call(c);
}
END_TEST

enum { MORE_KINDS = KINDS - 1, SIZES = OTHER_ROWS * MORE_KINDS };

/* Each kind of values in each kind of rows, by the kernels without a workspace in
 * turn; and large scales by one with it, which has code of its own for them. */
START_TEST(codes_and_scales_of_any_size_count)
{
	const int few = _i - SIZES;
	const uint32_t row = (uint32_t)(few < 0 ? _i / MORE_KINDS : few);
	const kind k = few < 0 ? (kind)(1 + _i % MORE_KINDS) : LARGE;
	const call *c = &calls[few < 0 ? WAYS + (row + k) % SHAPES : WAYS - 1];

	open_call(&layouts[row], c);
	a.tokens = 1;
	choose(k);
	check(c);
	close_call(c);
}
END_TEST

/* The bits of scale i of row t: together every scale of 8 bits that is no NaN
 * (up to 2^103), or a range of f32. One row ends with 2^1, or in e4m3 2^7, the
 * largest with which f16 holds every key. The last row's are twice that. */
static uint32_t
walked_scale(uint32_t t, uint32_t i)
{
	const uint32_t n = t * rows->scales + i;
	const int last = t == MOST_TOKENS - 1;
	float x = ldexpf(1.37f, (int)n - 40);
	uint32_t bits;

	if (rows->scale == UE8M0)
		return last ? 129 : n < 230 ? n + 1 : 230;
	if (rows->scale == E4M3)
		return last                        ? 0x78
		       : (n + 0x11) % 0x80 == 0x7F ? 0
						   : (n + 0x11) & 0xFF;
	if (last)
		x = rows->row == ROW_FNUZ ? 7.9f : 3.9f;
	memcpy(&bits, &x, 4);
	return bits;
}

/* A query of zeros, and one key a token: a result is the key. It is off by the
 * last bit of bf16 and that of f16. f16 has multiples of 2^-24, of keys that are
 * multiplied by 64. */
START_TEST(every_code_and_scale_has_its_value)
{
	const call walk = {calls[_i % FEW].instead_of,
			   MOST_TOKENS,
			   calls[_i % FEW].heads,
			   1,
			   0,
			   0};
	uint32_t t, h, d, i;

	open_call(&layouts[_i / FEW], &walk);
	memset(q, 0, (size_t)MOST_TOKENS * MOST_HEADS * Q_HEAD * 2);
	for (t = 0; t < MOST_TOKENS; t++) {
		slots[t] = (int32_t)(SLOTS / MOST_TOKENS * t);
		draw_row(ANY_CODE, slots[t]);
		for (d = 0; d < REF_LATENT; d++) {
			const uint32_t code =
				(d + 37 * t) & ((1u << rows->code->bits) - 1);

			put_code(slots[t], d, is_nan_code(code) ? 0 : code);
		}
		for (i = 0; i < rows->scales; i++)
			put_scale(slots[t], i, walked_scale(t, i));
	}
	run(&walk);
	for (i = 0; i < MOST_TOKENS * a.heads * REF_LATENT; i++) {
		t = i / REF_LATENT / a.heads;
		h = i / REF_LATENT % a.heads;
		d = i % REF_LATENT;
		const double want = value_at(slots[t], d);
		const double got = test_bf16_value(
			out[(size_t)(t * MOST_HEADS + h) * OUT_HEAD + d]);
		const double code = rows->code->value(code_at(slots[t], d));

		ck_assert_msg(fabs(got - want) <= 0x1.2p-8 * fabs(want) +
							  0x1p-30 +
							  0x1p-31 * fabs(code),
			      "token %u head %u dim %u: got %g, want %g", t, h,
			      d, got, want);
	}
	close_call(&walk);
}
END_TEST

/* Makes part of a row NaN: the n-th way. Returns 0 if there are fewer. */
static int
make_nan(int32_t slot, uint32_t n)
{
	static const uint32_t scales[3][2] = {
		{0x7FC00000, 0xFFFFFFFF}, {255, 255}, {0x7F, 0xFF}};

	if (n < 2 && rows->code->nan[n] >= 0)
		put_code(slot, 300 + n, (uint32_t)rows->code->nan[n]);
	else if (n < 4)
		put_scale(slot, rows->scales - n % 2 - 1,
			  scales[rows->scale][n % 2]);
	else if (n == 4 && rows->rope_at && rows->code->bits == 4)
		row_of(slot)[rows->rope_at + 63] = 0xFF;
	else
		return 0;
	return 1;
}

/* One of two keys has it. */
START_TEST(nan_that_counts_is_not_hidden)
{
	const call *c = call_of(_i);
	uint32_t n, h, d;

	open_call(layout_of(_i), c);
	a.tokens = 1;
	for (n = 0;; n++) {
		for (d = 0; d < 2; d++) {
			slots[70 + d] = 7 + (int32_t)d;
			draw_row(ANY_CODE, 7 + (int32_t)d);
		}
		if (!make_nan(7, n))
			break;
		run(c);
		for (h = 0; h < a.heads; h++) {
			ck_assert_float_nan(lse[h]);
			for (d = 0; d < REF_LATENT; d++)
				ck_assert_float_nan(
					test_bf16_value(out[h * OUT_HEAD + d]));
		}
	}
	ck_assert_uint_ge(n, 4);
	close_call(c);
}
END_TEST

/* ---- Lists with rows of their own -------------------------------------- */

/* Lists with part of a tile, with whole ones, and without any. Blocks go from a
 * token's second list to another's first one. */
static void
set_lens(void)
{
	static const int32_t some[2][7] = {{70, 0, 64, 1, 130, 0, 65},
					   {65, 33, 0, 128, 1, 0, 140}};

	memcpy(lens[0], some[0], sizeof some[0]);
	memcpy(lens[1], some[1], sizeof some[1]);
	a.topk_lens = lists[0].lens = lens[0];
	a.extra_topk_lens = lists[1].lens = lens[1];
}

START_TEST(each_list_has_its_own_kind_of_row)
{
	const call *c = &mixed_calls[_i % FEW];

	open_mix(mixes[_i / FEW], c);
	choose(ANY_CODE);
	use(1);
	choose(ANY_CODE);
	set_lens();
	draw_sinks();
	check(c);
	close_call(c);
}
END_TEST

/* A split that ends in the first list's last tile, one that begins with the
 * second list, and one that has parts of both. */
START_TEST(splits_of_two_lists_are_added_up)
{
	static const int32_t metadata[4][8] = {{0, 0, 0, 3, 0},
					       {0, 0, 3, 9, 1},
					       {1, 1, 0, 1, 0},
					       {1, 1, 1, 9, 1}};
	const call *c = &mixed_calls[_i % FEW];

	open_mix(mixes[_i / FEW], c);
	a.tokens = 2;
	choose(ANY_CODE);
	use(1);
	choose(ANY_CODE);
	check_parts(c, &metadata[0][0]);
	close_call(c);
}
END_TEST

/* Rows of one of the lists have scales that f16 does not hold, or small ones. */
START_TEST(scales_of_any_size_count_in_each_list)
{
	static const kind kinds[2] = {LARGE, SMALL};
	const uint32_t which = (uint32_t)_i / 2 % 2;
	const call *c = &mixed_calls[_i % FEW];

	open_mix(mixes[_i / 4], c);
	a.tokens = 2;
	use(which);
	choose(kinds[_i % 2]);
	use(!which);
	choose(ANY_CODE);
	check(c);
	close_call(c);
}
END_TEST

/* One key of one of the lists has it. Tokens before and behind it, done by the
 * same block, do not. */
START_TEST(nan_in_a_list_counts_for_its_token)
{
	const call *c = &mixed_calls[_i % FEW];
	uint32_t i, n, t, h, d;

	open_mix(mixes[_i / FEW], c);
	for (i = 0; i < 2; i++) {
		for (n = 0;; n++) {
			for (t = 0; t < 2 * a.tokens; t++) {
				const list *of = use(t % 2);

				d = t / 2 * of->topk + 70;
				slots[d] = (int32_t)t;
				draw_row(ANY_CODE, (int32_t)t);
			}
			use(i);
			if (!make_nan(6 + (int32_t)i, n))
				break;
			run(c);
			for (t = 0; t < a.tokens; t++)
				for (h = 0; h < a.heads; h++) {
					const size_t at = t * MOST_HEADS + h;

					ck_assert_int_eq(isnan(lse[at]) != 0,
							 t == 3);
					for (d = 0; d < REF_LATENT; d++)
						ck_assert_int_eq(
							isnan(test_bf16_value(
								out[at * OUT_HEAD +
								    d])) != 0,
							t == 3);
				}
		}
		ck_assert_uint_ge(n, 2);
	}
	close_call(c);
}
END_TEST

static uint32_t
has_kernels(void)
{
	uint32_t has;

	few_open(&f, SMS);
	has = other_rows_run(f.ctx);
	few_close(&f);
	return has;
}

SUITE
{
	const theme_test shape[] = {
		{every_kernel_takes_every_kind_of_row, CASES},
		{lengths_count, SHAPES * OTHER_ROWS},
		{splits_of_a_token_are_added_up, FEW * OTHER_ROWS},
	};
	const theme_test values[] = {
		{codes_and_scales_of_any_size_count, SIZES + FEW_ROWS},
		{every_code_and_scale_has_its_value, FEW * OTHER_ROWS},
		{nan_that_counts_is_not_hidden, CASES},
	};
	const theme_test mixed[] = {
		{each_list_has_its_own_kind_of_row, FEW * MIXES},
		{splits_of_two_lists_are_added_up, FEW * MIXES},
		{scales_of_any_size_count_in_each_list, 4 * MIXES},
		{nan_in_a_list_counts_for_its_token, FEW * MIXES},
	};
	const theme themes[] = {
		THEME("shape", NULL, NULL, shape),
		THEME("values", NULL, NULL, values),
		THEME("mixed", NULL, NULL, mixed),
	};

	if (!has_kernels())
		return SKIP_SUITE("kernels for Hopper, in the emulator");
	return RUN_THEMES(themes);
}
