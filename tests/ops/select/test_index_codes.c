/* SPDX-License-Identifier: Apache-2.0
 *
 * Codes of index queries and keys in either encoding of e4m3: indexer_q_prep
 * writes every bf16 number as its code, and scores take every code as its
 * value, in pages, in tiles and gathered, as f32 and bf16.
 */
#include <math.h>
#include <string.h>

#include "spmla/ops/ops.h"
#include "tests/harness/fixture.h"
#include "tests/harness/rng.h"
#include "tests/harness/themes.h"
#include "tests/reference/code_walk.h"
#include "tests/reference/narrow_ref.h"

enum { KEYS = 256, ENTRIES = 32, PAGES = KEYS / ENTRIES, HEADS = 2, DIM = 128 };
enum { D = 77 }; /* the one dimension that is not 0 */

static fixture f;

static void
setup(void)
{
	spmla_config config;

	ck_assert_int_eq(spmla_config_operations(&config), SPMLA_OK);
	fixture_open(&f, &config, 0);
}

static void
teardown(void)
{
	ck_assert_uint_eq(fixture_status(&f).count, 0);
	fixture_close(&f);
}

/* The code of 1; of -1 it is 0x80 more. */
static uint8_t
one_in(uint32_t encoding)
{
	return encoding == SPMLA_E4M3_FNUZ ? 0x40 : 0x38;
}

/* ---- Queries that are written -------------------------------------------- */

enum { TOKENS = 3, WALK_HEADS = 8 };

static _Alignas(16) uint16_t q16[TOKENS][WALK_HEADS][DIM];
static _Alignas(16) uint8_t q8[TOKENS][WALK_HEADS][DIM];
static float weights_in[TOKENS][WALK_HEADS], weights_out[TOKENS][WALK_HEADS];

static void
prepare(uint32_t scale_floor, uint32_t encoding)
{
	spmla_indexer_q_prep_args a = {.struct_bytes = sizeof a};
	uint32_t t, h;

	for (t = 0; t < TOKENS; t++)
		for (h = 0; h < WALK_HEADS; h++)
			weights_in[t][h] = 1;
	a.tokens = TOKENS;
	a.heads = WALK_HEADS;
	a.scale_floor = scale_floor;
	a.weights_dtype = SPMLA_DTYPE_F32;
	a.softmax_scale = a.head_scale = 1;
	a.q = &q16[0][0][0];
	a.q_token_stride_elems = WALK_HEADS * DIM;
	a.q_head_stride_elems = DIM;
	a.weights = weights_in;
	a.weights_stride_elems = WALK_HEADS;
	a.q_out = &q8[0][0][0];
	a.weights_out = &weights_out[0][0];
	a.q_encoding = encoding;
	memset(q8, 0xab, sizeof q8);
	ck_assert_int_eq(spmla_indexer_q_prep(f.ctx, &a, NULL), SPMLA_OK);
	fixture_drain(&f);
}

/* _i: the encoding. */
START_TEST(every_bf16_of_a_query_is_written_as_its_code)
{
	uint32_t t, h, i;
	code_walk w;

	code_walk_begin(&w, (uint32_t)_i, DIM);
	while (code_walk_more(&w)) {
		for (t = 0; t < TOKENS; t++)
			code_walk_row(&w, &q16[t][0][0], WALK_HEADS * DIM);
		prepare(SPMLA_Q_SCALE_FUSED, (uint32_t)_i);
		for (t = 0; t < TOKENS; t++)
			for (h = 0; h < WALK_HEADS; h++) {
				ck_assert(weights_out[t][h] == 1);
				for (i = 0; i < DIM; i++)
					code_walk_check(&w, q16[t][h][i],
							q8[t][h][i]);
			}
	}
	code_walk_end(&w);
}
END_TEST

/* The scale goes into the weight, which is 1. 224 = 7 * 2^5; 1e-10 / 224 =
 * 4.46e-13 is between 2^-42 and 2^-41, 1e-4 / 224 = 4.46e-7 between 2^-22 and
 * 2^-21, and 1e-10 between 2^-34 and 2^-33. 7 * 2^-29 / 224 = 2^-34. */
START_TEST(scales_of_fnuz_worked_out_by_hand)
{
	static const struct {
		uint32_t scale_floor;
		float amax, scale;
		uint8_t code;
	} v[] = {
		{SPMLA_Q_SCALE_FUSED, 0, 0x1p-41f, 0x00},
		{SPMLA_Q_SCALE_GROUP, 0, 0x1p-33f, 0x00},
		{SPMLA_Q_SCALE_V4, 0, 0x1p-21f, 0x00},
		{SPMLA_Q_SCALE_FUSED, 0x7p-29f, 0x1p-34f, 0x7e},
		{SPMLA_Q_SCALE_GROUP, 0x7p-29f, 0x1p-33f, 0x76},
		{SPMLA_Q_SCALE_GROUP, 0x7p-28f, 0x1p-33f, 0x7e},
		{SPMLA_Q_SCALE_FUSED, -224, 1, 0xfe},
		{SPMLA_Q_SCALE_V4, 225, 2, 0x76}, /* 112.5 rounds to 112 */
		{SPMLA_Q_SCALE_V4, 7, 0x1p-5f, 0x7e},
		{SPMLA_Q_SCALE_V4, -INFINITY, INFINITY, 0x80},
	};
	uint32_t i;

	memset(q16, 0, sizeof q16);
	for (i = 0; i < sizeof v / sizeof *v; i++) {
		q16[1][3][D] = test_bf16(v[i].amax);
		prepare(v[i].scale_floor, SPMLA_E4M3_FNUZ);
		ck_assert_uint_eq(q8[1][3][D], v[i].code);
		ck_assert_uint_eq(q8[1][3][D - 1], 0);
		ck_assert(weights_out[1][3] == v[i].scale);
	}
}
END_TEST

/* ---- Scores -------------------------------------------------------------- */

static _Alignas(16) uint8_t pool[PAGES * ENTRIES * 132];
static _Alignas(16) uint8_t k8[KEYS * DIM], q[KEYS * DIM];
static float scales[KEYS], logits[TOKENS * KEYS];

/* Where dimension D of entry e is in a page of tiles. */
static uint32_t
place(uint32_t e)
{
	return e / SPMLA_INDEX_TILE * SPMLA_INDEX_TILE * DIM + D / 16 * 256 +
	       e % SPMLA_INDEX_TILE * 16 + D % 16;
}

/* Keys 0 .. n - 1 with codes in dimension D, in pages of rows or tiles, and
 * dense. */
static void
put_keys(const uint8_t *codes, uint32_t n, uint32_t tiled)
{
	uint32_t i;

	memset(pool, 0, sizeof pool);
	memset(k8, 0, sizeof k8);
	for (i = 0; i < n; i++) {
		uint8_t *page = pool + i / ENTRIES * ENTRIES * 132;
		const uint32_t e = i % ENTRIES;

		scales[i] = i % 3 ? 1 : 4;
		page[tiled ? place(e) : e * DIM + D] = codes[i];
		memcpy(page + ENTRIES * DIM + e * 4, &scales[i], 4);
		k8[i * DIM + D] = codes[i];
	}
}

/* What a call has: `tokens` of `heads`, which all see n keys. */
typedef struct call {
	uint32_t tokens, heads, n, tiled, bf16, q_encoding, k_encoding;
} call;

static const float weights[KEYS] = {1, 16}; /* of one token's heads */
static const int32_t zeros[KEYS];
static int32_t ends[KEYS];

static void
score_pages(const call *c, const float *w)
{
	static const int32_t table[PAGES] = {0, 1, 2, 3, 4, 5, 6, 7};
	spmla_mqa_logits_args a = {.struct_bytes = sizeof a};

	a.tokens = c->tokens;
	a.heads = c->heads;
	a.rows = 1;
	a.columns = a.table_stride_elems = PAGES;
	a.q = q;
	a.weights = w;
	a.token_row = zeros;
	a.context_lens = ends;
	a.block_table = table;
	a.logits = logits;
	a.logits_elems = c->tokens * (uint64_t)c->n;
	a.row_stride_elems = c->n;
	a.logits_dtype = c->bf16;
	a.q_encoding = c->q_encoding;
	a.cache = (spmla_cache)SPMLA_CACHE_INIT;
	a.cache.layout = c->tiled ? SPMLA_LAYOUT_INDEX_FP8_TILED
				  : SPMLA_LAYOUT_INDEX_FP8;
	a.cache.encoding = c->k_encoding;
	a.cache.entries_per_page = ENTRIES;
	a.cache.pages = PAGES;
	a.cache.page_stride_bytes = ENTRIES * 132;
	a.cache.base = pool;
	ck_assert_int_eq(spmla_mqa_logits(f.ctx, &a, NULL), SPMLA_OK);
}

static void
score_gathered(const call *c, const float *w)
{
	spmla_mqa_logits_gathered_args a = {.struct_bytes = sizeof a};

	a.tokens = c->tokens;
	a.heads = c->heads;
	a.keys = a.columns = c->n;
	a.q = q;
	a.weights = w;
	a.weights_stride_elems = c->heads;
	a.k = k8;
	a.k_scales = scales;
	a.starts = zeros;
	a.ends = ends;
	a.logits = logits;
	a.logits_stride_elems = c->n;
	a.logits_dtype = c->bf16;
	a.q_encoding = c->q_encoding;
	a.k_encoding = c->k_encoding;
	ck_assert_int_eq(spmla_mqa_logits_gathered(f.ctx, &a, NULL), SPMLA_OK);
}

/* Into logits. */
static void
score(const call *c, uint32_t gathered, const float *w)
{
	uint32_t t;

	for (t = 0; t < c->tokens; t++)
		ends[t] = (int32_t)c->n;
	memset(logits, 0xab, sizeof logits);
	(gathered ? score_gathered : score_pages)(c, w);
	fixture_drain(&f);
}

/* A logit is the value that it should be, which has four bits. */
static void
check(const call *c, uint32_t at, uint32_t code, double want)
{
	const float got =
		c->bf16 ? test_bf16_value(((const uint16_t *)logits)[at])
			: logits[at];

	if (got != (float)want)
		ck_abort_msg("code 0x%02x: %g, want %g", code, (double)got,
			     want);
}

/* Key n is code n; queries are 1 and -1, so the score is relu(v) + 16
 * relu(-v), and 0 for NaN. _i: the bits say which. */
START_TEST(every_code_of_a_key_scores_as_its_value)
{
	const uint32_t gathered = (uint32_t)_i >> 4;
	const call c = {1,           HEADS,       KEYS,  _i >> 3 & 1,
			_i >> 2 & 1, _i >> 1 & 1, _i & 1};
	uint8_t codes[KEYS];
	uint32_t n;

	memset(q, 0, sizeof q);
	q[D] = one_in(c.q_encoding);
	q[DIM + D] = one_in(c.q_encoding) | 0x80;
	for (n = 0; n < KEYS; n++)
		codes[n] = (uint8_t)n;
	put_keys(codes, KEYS, c.tiled);
	score(&c, gathered, weights);
	for (n = 0; n < KEYS; n++) {
		const double v = code_value((uint8_t)n, c.k_encoding);

		check(&c, n, n,
		      isnan(v) ? 0 : (v < 0 ? -16 * v : v) * (double)scales[n]);
	}
}
END_TEST

/* Token n has code n; keys are 1 and -1. _i: as above. */
START_TEST(every_code_of_a_query_scores_as_its_value)
{
	const uint32_t gathered = (uint32_t)_i >> 4;
	const call c = {KEYS,        1,           2,     _i >> 3 & 1,
			_i >> 2 & 1, _i >> 1 & 1, _i & 1};
	static float ones[KEYS];
	uint8_t codes[2];
	uint32_t n;

	memset(q, 0, sizeof q);
	for (n = 0; n < KEYS; n++) {
		q[n * DIM + D] = (uint8_t)n;
		ones[n] = 1;
	}
	codes[0] = one_in(c.k_encoding);
	codes[1] = one_in(c.k_encoding) | 0x80;
	put_keys(codes, 2, c.tiled);
	score(&c, gathered, ones);
	for (n = 0; n < KEYS; n++) {
		const double v = code_value((uint8_t)n, c.q_encoding);

		check(&c, 2 * n, n, v > 0 ? v * (double)scales[0] : 0);
		check(&c, 2 * n + 1, n, v < 0 ? -v * (double)scales[1] : 0);
	}
}
END_TEST

/* Half the value of each code, and twice the weight: layers need one encoding
 * only. In FNUZ the keys have the same kernel with both queries. */
START_TEST(queries_of_either_encoding_score_alike)
{
	const call c = {TOKENS, WALK_HEADS, KEYS, 0, 0, 0, SPMLA_E4M3_FNUZ};
	static float first[TOKENS * KEYS];
	uint64_t rng = test_seed();
	uint8_t codes[KEYS];
	call now = c;
	uint32_t i;

	for (i = 0; i < TOKENS * WALK_HEADS * DIM; i++)
		(&q16[0][0][0])[i] = test_bf16(rng_float(&rng));
	for (i = 0; i < KEYS; i++)
		codes[i] = (uint8_t)rng_next(&rng);
	put_keys(codes, KEYS, 0);
	for (i = 0; i < KEYS * DIM; i++)
		k8[i] = (uint8_t)rng_next(&rng);
	for (now.q_encoding = 0; now.q_encoding < 2; now.q_encoding++) {
		prepare(SPMLA_Q_SCALE_GROUP, now.q_encoding);
		memcpy(q, q8, sizeof q8);
		score(&now, 1, &weights_out[0][0]);
		if (now.q_encoding == 0)
			memcpy(first, logits, sizeof first);
	}
	ck_assert_mem_eq(first, logits, sizeof first);
}
END_TEST

SUITE
{
	/* Gathered keys have no tiles. */
	const theme_test codes[] = {
		{every_bf16_of_a_query_is_written_as_its_code, 2},
		{scales_of_fnuz_worked_out_by_hand, 1},
		{every_code_of_a_key_scores_as_its_value, 24},
		{every_code_of_a_query_scores_as_its_value, 24},
		{queries_of_either_encoding_score_alike, 1},
	};
	const theme themes[] = {
		THEME("codes", setup, teardown, codes),
	};

	return RUN_THEMES(themes);
}
