/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of C128A end where their keys end. V4's prologue of a step that is
 * attended in pieces has the lengths of all tokens, but no room for these keys,
 * which the layers list.
 */
#include "tests/harness/themes.h"
#include "tests/harness/v32_rig.h"
#include "tests/harness/v4_layer_rig.h"

enum { LONG = 1030, PIECE = 1024, POISON = 0x5A5A5A5A };

static fixture f;

static void
setup(void)
{
	spmla_config config;

	v4_layer_config(&config);
	config.max_context_tokens = LONG;
	config.max_prefill_tokens = LONG;
	config.groups[SPMLA_GROUP_SWA].page_tokens = 64;
	config.groups[SPMLA_GROUP_C4A].page_tokens = 64;
	fixture_open(&f, &config, 0);
}

static void
teardown(void)
{
	fixture_close(&f);
}

/* The last `tokens` of a request of `len`. */
static void
run(uint32_t tokens, uint32_t len)
{
	const spmla_shape shape = {tokens, 8, tokens, 0};
	int32_t *rows;
	uint64_t bytes, i;

	rows = spmla_view(f.ctx, SPMLA_BUF_C128A_INDICES, &bytes);
	ck_assert_uint_eq(bytes, PIECE * 128 * sizeof *rows);
	for (i = 0; i < PIECE * 128; i++)
		rows[i] = POISON;
	v4_layer_write(f.ctx, tokens, len);
	v32_must(f.ctx,
		 spmla_step_prologue(f.ctx, &shape, SPMLA_FROM_RING, NULL));
	fixture_drain(&f);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
}

/* Key e of row 0 is entry e % 2 of page e / 2 + 1. */
START_TEST(keys_of_a_piece_are_listed_and_those_of_more_are_not)
{
	const uint32_t tokens = _i ? PIECE : LONG;
	const int32_t *lens, *rows;
	uint32_t t, e;

	run(tokens, tokens);
	lens = spmla_view(f.ctx, SPMLA_BUF_C128A_LENS, NULL);
	rows = spmla_view(f.ctx, SPMLA_BUF_C128A_INDICES, NULL);
	for (t = 0; t < tokens; t++)
		ck_assert_int_eq(lens[t], (int32_t)((t + 1) / 128));
	for (t = 0; t < PIECE; t++)
		for (e = 0; e < 128; e++) {
			const uint32_t listed = _i && e < (t + 1) / 128;

			ck_assert_int_eq(rows[t * 128 + e],
					 listed ? (int32_t)(e + 2) : POISON);
		}
}
END_TEST

/* Four tokens are a decode: its prologue is one launch on Hopper. */
START_TEST(lists_of_few_tokens_end_with_their_keys)
{
	const uint32_t len = 1 + 128 * (uint32_t)(_i + 1), tokens = 4;
	const int32_t *rows;
	uint32_t t, e;

	run(tokens, len);
	rows = spmla_view(f.ctx, SPMLA_BUF_C128A_INDICES, NULL);
	for (t = 0; t < tokens; t++)
		for (e = 0; e < 128; e++) {
			const uint32_t keys = (len - tokens + t + 1) / 128;

			ck_assert_int_eq(rows[t * 128 + e],
					 e < keys ? (int32_t)(e + 2) : POISON);
		}
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{lists_of_few_tokens_end_with_their_keys, 7},
		{keys_of_a_piece_are_listed_and_those_of_more_are_not, 2},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
	};

	return RUN_THEMES(themes);
}
