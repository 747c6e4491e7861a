/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_insert with index keys: the same bytes and reports as kv_insert and then
 * indexer_k_insert, for numbers of tokens that fill tiles and that do not.
 */
#include <stdlib.h>

#include "spmla/ops/kv_insert.h"
#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"

enum {
	TOKENS = 300,
	PAGE = 64,
	PAGES = 6,
	POSITIONS = 400,
	KV_BYTES = PAGES * PAGE * SPMLA_FP8_DS_MLA_BYTES,
	INDEX_BYTES = PAGES * PAGE * SPMLA_INDEX_FP8_BYTES
};

/* What a call writes. */
typedef struct result {
	_Alignas(16) uint8_t kv[KV_BYTES];
	_Alignas(16) uint8_t index[INDEX_BYTES];
	spmla_device_status status;
} result;

static fixture f;
static result both, one;
static _Alignas(16) uint16_t kv_c[TOKENS * 512], k_pe[TOKENS * 64];
static _Alignas(16) uint16_t index_k[TOKENS * 128];
static float norm[2 * 128], cos_sin[POSITIONS * 64];
static int32_t positions[TOKENS];
static int64_t slots[TOKENS];

static void
fill(uint64_t *rng, uint32_t bad)
{
	uint32_t i;

	for (i = 0; i < TOKENS * 512; i++)
		kv_c[i] = test_bf16(rng_float(rng));
	for (i = 0; i < TOKENS * 64; i++)
		k_pe[i] = test_bf16(rng_float(rng));
	for (i = 0; i < TOKENS * 128; i++)
		index_k[i] = test_bf16(rng_float(rng));
	for (i = 0; i < 2 * 128; i++)
		norm[i] = rng_float(rng);
	for (i = 0; i < POSITIONS * 64; i++)
		cos_sin[i] = rng_float(rng);
	for (i = 0; i < TOKENS; i++) {
		positions[i] = (int32_t)rng_below(rng, POSITIONS);
		slots[i] = i % 11 == 3 ? -1 : (int64_t)(TOKENS - 1 - i);
	}
	if (!bad)
		return;
	slots[0] = PAGES * PAGE;
	slots[5] = INT64_MAX;
	positions[1] = POSITIONS;
	positions[4] = -1;
}

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
}

static void
teardown(void)
{
	fixture_close(&f);
}

static spmla_cache
cache_of(uint32_t layout, uint8_t *base)
{
	spmla_cache c = SPMLA_CACHE_INIT;

	c.layout = layout;
	c.entries_per_page = PAGE;
	c.pages = PAGES;
	c.page_stride_bytes = spmla_layout_page_bytes(layout, PAGE);
	c.base = base;
	return c;
}

static spmla_kv_insert_args
args_of(uint32_t tokens, result *to)
{
	spmla_kv_insert_args a = {.struct_bytes = sizeof a, .tokens = tokens};
	spmla_indexer_k_insert_args *k = &a.index;

	a.scale_mode = SPMLA_SCALE_POW2;
	a.kv_c = kv_c;
	a.k_pe = k_pe;
	a.kv_c_stride_elems = 512;
	a.k_pe_stride_elems = 64;
	a.slot_mapping = slots;
	a.cache = cache_of(SPMLA_LAYOUT_FP8_DS_MLA, to->kv);
	k->struct_bytes = sizeof *k;
	k->tokens = tokens;
	k->scale_mode = SPMLA_SCALE_POW2;
	k->rope_style = SPMLA_ROPE_NEOX;
	k->cos_sin_rows = POSITIONS;
	k->norm_eps = 1e-6f;
	k->k = index_k;
	k->k_stride_elems = 128;
	k->slot_mapping = slots;
	k->norm_weight = norm;
	k->norm_bias = norm + 128;
	k->positions = positions;
	k->cos_sin = cos_sin;
	k->cache = cache_of(SPMLA_LAYOUT_INDEX_FP8, to->index);
	return a;
}

START_TEST(one_call_inserts_what_two_calls_do)
{
	static const uint32_t tokens[6] = {1, 7, 8, 9, 100, TOKENS};
	uint64_t rng = test_seed() + (uint64_t)_i;
	uint32_t bad;

	for (bad = 0; bad < 2; bad++) {
		spmla_kv_insert_args a = args_of(tokens[_i], &one);
		spmla_indexer_k_insert_args k;

		fill(&rng, bad);
		memset(&one, 0x5A, sizeof one);
		memset(&both, 0x5A, sizeof both);
		ck_assert_int_eq(spmla_status_clear(f.ctx), SPMLA_OK);
		ck_assert_int_eq(spmla_kv_insert(f.ctx, &a, NULL), SPMLA_OK);
		one.status = fixture_status(&f);
		ck_assert_int_eq(spmla_status_clear(f.ctx), SPMLA_OK);
		a = args_of(tokens[_i], &both);
		k = a.index;
		a.index.struct_bytes = 0;
		ck_assert_int_eq(spmla_kv_insert(f.ctx, &a, NULL), SPMLA_OK);
		ck_assert_int_eq(spmla_indexer_k_insert(f.ctx, &k, NULL),
				 SPMLA_OK);
		both.status = fixture_status(&f);
		ck_assert_mem_eq(&one, &both, sizeof one);
		ck_assert_uint_eq(one.status.count > 0, bad);
	}
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{one_call_inserts_what_two_calls_do, 6},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
	};

	return RUN_THEMES(themes);
}
