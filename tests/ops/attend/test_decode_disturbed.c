/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels of sparse_decode whose warps have roles, disturbed: whatever pauses
 * where, results have the same bits; and where an arrival is lost, the debug
 * build (debug.h) reports that and ends. Other builds do not pause, but run as
 * often. On a device of 132 SMs every kernel for few tokens runs.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "spmla/internal/few.h"
#include "tests/emulator/machine.h"
#include "tests/harness/themes.h"
#include "tests/harness/v32_rig.h"
#include "tests/ops/attend/decode_world.h"
#include "tests/ops/attend/few_rig.h"
#include "tests/ops/attend/parts_rig.h"
#include "tests/ops/attend/v4_decode_world.h"

enum {
	SEEDS = 200,
	/* In the emulator, and of few tokens, which are slow in it. */
	EMULATOR_SEEDS = 12,
	FEW_SEEDS = 3,
	LOST = 24,  /* the first arrivals of a kernel */
	ON_GPU = 4, /* of them on a device: each costs a second */
	SPLITS = 3, /* of a token */
	TOKENS = 2
};

/* How parts are done: each by its own block or cluster, or, in the emulator, all
 * by one. */
enum { AT_ONCE = 1, IN_TURN };

/* A call, by what it takes: rows, heads and tokens, and whether it is in parts
 * whose blocks add up the splits, or few tokens in one launch. */
typedef struct kind {
	uint32_t layout, heads, tokens, parts, few;
} kind;

static const kind kinds[] = {
	{SPMLA_LAYOUT_FP8_DS_MLA, 20, TOKENS, 0, 0},
	{SPMLA_LAYOUT_FP8_DS_MLA, 64, TOKENS, 0, 0},
	{SPMLA_LAYOUT_FP8_DS_MLA, 72, TOKENS, 0, 0},
	{SPMLA_LAYOUT_V4_FP8, 20, TOKENS, 0, 0},
	{SPMLA_LAYOUT_V4_FP8, 64, TOKENS, 0, 0},
	{SPMLA_LAYOUT_V4_FP8, 72, TOKENS, 0, 0},
	{SPMLA_LAYOUT_MLA_BF16, 20, TOKENS, 0, 0},
	{SPMLA_LAYOUT_FP8_DS_MLA, 64, TOKENS, AT_ONCE, 0},
	{SPMLA_LAYOUT_FP8_DS_MLA, 72, TOKENS, AT_ONCE, 0},
	{SPMLA_LAYOUT_V4_FP8, 64, TOKENS, AT_ONCE, 0},
	{SPMLA_LAYOUT_FP8_DS_MLA, 64, TOKENS, IN_TURN, 0},
	{SPMLA_LAYOUT_FP8_DS_MLA, 72, TOKENS, IN_TURN, 0},
};

/* The kernels of the first kinds have mbarriers. The last kinds are the ways to
 * do few tokens. */
enum {
	OTHERS = sizeof kinds / sizeof kinds[0],
	KINDS = OTHERS + SPMLA_I_FEW_COUNT,
	WITH_MBARRIERS = 7,
	LATE = 2 /* ways */
};

static fixture f;
static decode_world w;
static v4_world v4;
static kind k;
static parts_rig p;

/* Splits of a token of `blocks` blocks. */
static void
cut(spmla_sparse_decode_args *a, uint32_t blocks)
{
	parts_lend(&p, a);
	parts_cut(&p, a, blocks, SPLITS);
}

/* Few tokens that take a way: on a device as many as leave no room for the blocks
 * of an earlier one, in the emulator one, with the heads of a block. */
static kind
few_kind(uint32_t way)
{
	static const struct {
		uint32_t tokens, heads;
	} real[SPMLA_I_FEW_COUNT] = {
		[SPMLA_I_FEW_V32_16] = {1, 16},
		[SPMLA_I_FEW_V32_32] = {3, 64},
		[SPMLA_I_FEW_V32_64] = {5, 64},
		[SPMLA_I_FEW_V4_8] = {1, 16},
		[SPMLA_I_FEW_V4_16] = {3, 64},
		[SPMLA_I_FEW_V4_32] = {3, 128},
		[SPMLA_I_FEW_V4_64] = {5, 128},
		[SPMLA_I_FEW_LONG_16] = {3, 64},
		[SPMLA_I_FEW_LONG_32] = {3, 128},
	};
	const spmla_i_few of = spmla_i_few_of(way);

	if (fixture_on_gpu())
		return (kind){of.layout, real[way].heads, real[way].tokens, 0,
			      1};
	return (kind){of.layout, of.heads, 1, 0, 1};
}

static spmla_sparse_decode_args *
args(void)
{
	return k.layout == SPMLA_LAYOUT_V4_FP8 ? &v4.a : &w.a;
}

/* In the emulator one block, or a cluster, has both tokens of a call that is not
 * done in one launch; parts have one each, unless in turn. Few tokens have as
 * many SMs as they take blocks: no room for more blocks with fewer heads. */
static void
open_kind(int i)
{
	const uint32_t way = i < OTHERS ? 0 : (uint32_t)i - OTHERS;
	const spmla_i_few of = spmla_i_few_of(way);
	uint32_t keys, blocks;

	k = i < OTHERS ? kinds[i] : few_kind(way);
	few_open(&f, k.few ? of.ranks : k.parts == AT_ONCE ? 16 : 1);
	if (k.layout == SPMLA_LAYOUT_V4_FP8) {
		keys = k.few && of.keys > 640 ? 600 : 50;
		blocks = 2 + 1;
		v4_open_tokens(&v4, k.tokens, k.heads, 64, 70, 2, keys);
		v4_choose(&v4);
	} else {
		keys = fixture_on_real_gpu(&f) ? 1000 : 130;
		blocks = (keys + 63) / 64;
		decode_open_tokens(&w, k.layout, k.tokens, k.heads, 64, keys);
		decode_choose(&w);
	}
	if (k.parts)
		cut(args(), blocks);
	if (!k.few)
		return;
	few_lend(args());
	few_expect(&f, args(), way);
}

static void
close_kind(void)
{
	if (k.few)
		few_take_back();
	if (k.parts)
		parts_take_back(&p, args());
	if (k.layout == SPMLA_LAYOUT_V4_FP8)
		v4_close(&v4);
	else
		decode_close(&w);
	few_close(&f);
}

/* Runs the call; a hash of its results. */
static uint64_t
run(void)
{
	uint64_t hash;

	if (k.layout == SPMLA_LAYOUT_V4_FP8) {
		memset(v4.out, 0xAB, v4.out_elems * sizeof *v4.out);
		v4_run(&f, &v4);
		hash = test_hash(1, v4.out, v4.out_elems * sizeof *v4.out);
		return test_hash(hash, v4.lse, v4.lse_elems * sizeof *v4.lse);
	}
	memset(w.out, 0xAB, w.out_elems * sizeof *w.out);
	decode_run(&f, &w);
	hash = test_hash(1, w.out, w.out_elems * sizeof *w.out);
	return test_hash(hash, w.lse, w.lse_elems * sizeof *w.lse);
}

/* _i: the kind. */
START_TEST(any_seed_of_pauses_gives_the_same_bits)
{
	uint32_t seeds, seed;
	uint64_t want;

	open_kind(_i);
	seeds = fixture_rounds(SEEDS, k.few ? FEW_SEEDS : EMULATOR_SEEDS);
	want = run();
	for (seed = 1; seed <= seeds; seed++) {
		fixture_disturb(&f, seed, 0);
		if (run() != want)
			ck_abort_msg("other bits with seed %u", seed);
	}
	ck_assert_uint_eq(fixture_status(&f).count, 0);
	close_kind();
}
END_TEST

/* _i: the kind. Nobody may wait for a late arrival, and then results are right.
 */
START_TEST(a_lost_arrival_is_reported_and_the_kernel_ends)
{
	const uint32_t most = fixture_on_gpu() ? ON_GPU : LOST;
	uint32_t lost, late = 0;
	spmla_device_status s;
	uint64_t want, got;

	if (!fixture_kernel_debug())
		return;
	open_kind(_i);
	want = run();
	for (lost = 1; lost <= most; lost++) {
		fixture_disturb(&f, 1, lost);
		got = run();
		s = fixture_status(&f);
		if (s.count == 0) {
			ck_assert_uint_eq(got, want);
			continue;
		}
		ck_assert_str_eq(spmla_fault_name(s.fault), "TIMEOUT");
		ck_assert_uint_lt(s.row, 2); /* block 0, or its peer */
		late++;
		ck_assert_int_eq(spmla_status_clear(f.ctx), SPMLA_OK);
		fixture_disturb(&f, 1, 0);
		ck_assert_uint_eq(run(), want);
		ck_assert_uint_eq(fixture_status(&f).count, 0);
	}
	ck_assert_uint_gt(late, most / 2);
	close_kind();
}
END_TEST

/* How many heads are NaN, lse and out. */
static uint32_t
nan_heads(void)
{
	const uint32_t v = k.layout == SPMLA_LAYOUT_V4_FP8;
	uint32_t count = 0, h, d;

	for (h = 0; h < k.heads; h++) {
		const uint16_t *out =
			v ? v4_out(&v4, 0, h) : decode_out(&w, 0, h);

		if (!isnan(v ? v4_lse(&v4, 0, h) : decode_lse(&w, 0, h)))
			continue;
		for (d = 0; d < SPMLA_MLA_LATENT; d++)
			ck_assert_float_nan(test_bf16_value(out[d]));
		count++;
	}
	return count;
}

/* One block runs at a time, and counts say that all have counted in: the first
 * block waits for results that never come. _i: a way in which a warp adds up a
 * part of a head, or all of it. */
START_TEST(what_never_comes_is_nan_and_the_debug_build_reports_it)
{
	static const uint32_t ways[LATE] = {SPMLA_I_FEW_V4_8,
					    SPMLA_I_FEW_V4_64};
	const spmla_i_few of = spmla_i_few_of(ways[_i]);
	spmla_device_status s;
	uint32_t debug, r;
	uint64_t want;

	if (fixture_on_gpu())
		return;
	open_kind(OTHERS + (int)ways[_i]);
	want = run();
	for (debug = 0; debug < 2; debug++) {
		emulator_debug(debug);
		emulator_live(1);
		for (r = 0; r < of.ranks; r++)
			args()->workspace[r] = of.ranks - 1;
		(void)run();
		ck_assert_uint_eq(nan_heads(), of.heads / of.ranks);
		s = fixture_status(&f);
		ck_assert_uint_eq(s.count > 0, debug);
		if (debug)
			ck_assert_str_eq(spmla_fault_name(s.fault), "TIMEOUT");
		ck_assert_int_eq(spmla_status_clear(f.ctx), SPMLA_OK);
		memset(args()->workspace, 0, args()->workspace_bytes);
		emulator_live(0);
		ck_assert_uint_eq(run(), want);
		ck_assert_uint_eq(fixture_status(&f).count, 0);
	}
	close_kind();
}
END_TEST

/* The emulator has both builds. */
static void
setup_debug(void)
{
	emulator_debug(1);
}

static void
teardown_debug(void)
{
	emulator_debug(getenv("SPMLA_TEST_KERNEL_DEBUG") != NULL);
}

SUITE
{
	const theme_test pauses[] = {
		{any_seed_of_pauses_gives_the_same_bits, KINDS},
	};
	const theme_test lost[] = {
		{a_lost_arrival_is_reported_and_the_kernel_ends,
		 WITH_MBARRIERS},
		{what_never_comes_is_nan_and_the_debug_build_reports_it, LATE},
	};
	const theme themes[] = {
		THEME("pauses", NULL, NULL, pauses),
		THEME("lost", setup_debug, teardown_debug, lost),
	};

	if (fixture_on_cpu())
		return SKIP_SUITE("the CPU has no such kernels");
	return RUN_THEMES(themes);
}
