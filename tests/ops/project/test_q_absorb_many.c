/* SPDX-License-Identifier: Apache-2.0
 *
 * q_absorb of many tokens: the same bits as of few, and several heads a block.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/ops/project/q_absorb_rig.h"
#include "tests/reference/project_ref.h"

enum { TOKENS = 200 };

static q_absorb_rig r;

static void
setup(void)
{
	q_absorb_open(&r);
}

static void
teardown(void)
{
	q_absorb_close(&r);
}

/* Which of 200 tokens have no row of the rope table. */
static uint32_t
is_bad_token(uint32_t t, uint32_t many)
{
	return t == 190 || (many && (t == 5 || t == 30 || t == 77));
}

/* Positions and the rope table, in each form. */
static int32_t narrow[TOKENS];
static int64_t wide[TOKENS];
static uint16_t table[64 * ROPE_POSITIONS];
static float odd[64 * ROPE_POSITIONS + 1];

static void
fill_cases(uint32_t many)
{
	uint32_t t, i;

	fill_positions(&r.rng, narrow, TOKENS);
	for (t = 0; t < TOKENS; t++) {
		narrow[t] = is_bad_token(t, many) ? -1 : narrow[t];
		wide[t] = narrow[t];
	}
	for (i = 0; i < 64 * ROPE_POSITIONS; i++) {
		table[i] = test_bf16(r.cos_sin[i]);
		odd[i + 1] = r.cos_sin[i];
	}
}

/* One head, with rope parts: all tokens have the bits that they have among 16,
 * and each that has no row of the rope table is reported once. The cases differ
 * in the rope's style, in how positions and the table lie in memory, and in how
 * many tokens are bad; the last one has no rope. Token 3 is zeros, and column 9
 * of the matrix is negative: its products are -0. */
START_TEST(tokens_have_the_bits_that_they_have_among_16)
{
	enum { MOST = TOKENS, NOPE = 128, PE = 64, OUT = 576 };
	const uint16_t zeros[OUT] = {0};
	const uint32_t many = _i == 0, has_rope = _i < 3;
	uint16_t *x = test_alloc(2 * MOST * (NOPE + PE + 2 * OUT), 0);
	uint16_t *pe = x + MOST * NOPE, *all = pe + MOST * PE;
	uint16_t *some = all + MOST * OUT;
	uint32_t t, i;

	project_fill(&r.rng, pe, MOST * PE);
	project_cancel(&r.rng, x, NOPE, MOST, r.w, r.a.w_row_stride_elems, NOPE,
		       512);
	memset(x + 3 * NOPE, 0, 2 * NOPE);
	for (i = 0; i < NOPE; i++)
		r.w[i * r.a.w_row_stride_elems + 9] |= 0x8000;
	fill_cases(many);
	r.a.tokens = MOST;
	r.a.heads = 1;
	r.a.rope_style = _i == 0   ? SPMLA_ROPE_INTERLEAVED
			 : _i == 3 ? SPMLA_ROPE_NONE
				   : SPMLA_ROPE_NEOX;
	r.a.positions_dtype = _i == 1 ? SPMLA_INT64 : SPMLA_INT32;
	r.a.positions = _i == 1 ? (const void *)wide : narrow;
	r.a.cos_sin_dtype = _i == 1 ? SPMLA_REAL_BF16 : SPMLA_REAL_F32;
	r.a.cos_sin = _i == 1   ? (const void *)table
		      : _i == 2 ? odd + 1
				: r.cos_sin;
	if (!has_rope)
		r.a.positions = r.a.cos_sin = NULL;
	r.a.q_nope = x;
	r.a.q_nope_token_stride_elems = NOPE;
	r.a.q_pe = pe;
	r.a.q_pe_token_stride_elems = PE;
	r.a.q = all;
	r.a.q_token_stride_elems = OUT;
	q_absorb_run(&r);
	ck_assert_uint_eq(fixture_status(&r.f).count, !has_rope ? 0
						      : many    ? 4
								: 1);
	if (has_rope && !many)
		ck_assert_uint_eq(fixture_status(&r.f).row, 190);
	for (t = 0; t < MOST; t++)
		if (has_rope && is_bad_token(t, many))
			ck_assert_mem_eq(all + t * OUT, zeros, sizeof zeros);
	for (t = 0; t < MOST; t += r.a.tokens) {
		r.a.tokens = MOST - t < 16 ? MOST - t : 16;
		if (has_rope)
			r.a.positions =
				_i == 1 ? (const void *)(wide + t) : narrow + t;
		r.a.q_nope = x + t * NOPE;
		r.a.q_pe = pe + t * PE;
		r.a.q = some + t * OUT;
		q_absorb_run(&r);
	}
	ck_assert_mem_eq(some, all, 2 * MOST * OUT);
	free(x);
}
END_TEST

/* Blocks have several heads, one after another, and a head has more tokens than
 * the ring holds. Matrices overlap: the one of the next head begins a row
 * further on. Cases: with a rope part, without, and with heads outermost. */
START_TEST(more_heads_than_blocks_take_turns)
{
	enum { MOST = 330, NOPE = 128, PE = 64, ROW = 520 };
	const uint32_t heads = r.f.plan.device.sm_count + 1 + (_i == 1);
	const uint32_t out = _i == 1 ? 512 : 576;
	const uint32_t by_head = _i == 2 ? MOST : 1;
	const uint32_t by_token = _i == 2 ? 1 : heads;
	uint16_t *x = test_alloc(2 * MOST * heads * (NOPE + PE + out), 0);
	uint16_t *pe = x + MOST * heads * NOPE, *q = pe + MOST * heads * PE;
	uint16_t *w = test_alloc(2 * (heads + NOPE) * ROW, 0);
	static int32_t positions[MOST];
	uint32_t t, h;

	project_fill(&r.rng, x, MOST * heads * (NOPE + PE));
	project_fill(&r.rng, w, (heads + NOPE) * ROW);
	fill_positions(&r.rng, positions, MOST);
	r.a.tokens = MOST;
	r.a.heads = heads;
	r.a.rope_style = _i == 1 ? SPMLA_ROPE_NONE : SPMLA_ROPE_NEOX;
	r.a.positions = positions;
	r.a.q_nope = x;
	r.a.q_nope_token_stride_elems = by_token * NOPE;
	r.a.q_nope_head_stride_elems = by_head * NOPE;
	r.a.w_uk_t = w;
	r.a.w_head_stride_elems = r.a.w_row_stride_elems = ROW;
	r.a.q_pe = _i == 1 ? NULL : pe;
	r.a.q_pe_token_stride_elems = by_token * PE;
	r.a.q_pe_head_stride_elems = by_head * PE;
	r.a.q = q;
	r.a.q_token_stride_elems = by_token * out;
	r.a.q_head_stride_elems = by_head * out;
	q_absorb_run(&r);
	for (t = 0; t < MOST; t += t % 16 == 15 ? 1 : 5)
		for (h = 0; h < heads; h++) {
			const uint32_t at = t * by_token + h * by_head;
			const uint16_t *got = q + at * out;

			project_check(got, x + at * NOPE, w + h * ROW, ROW,
				      NOPE, 512, q_absorb_slack(&r));
			if (_i != 1)
				q_absorb_check_rope(&r, t, h, got + 512);
		}
	free(x);
	free(w);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{more_heads_than_blocks_take_turns, 3},
	};
	const theme_test determinism[] = {
		{tokens_have_the_bits_that_they_have_among_16, 4},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("determinism", setup, teardown, determinism),
	};

	return RUN_THEMES(themes);
}
