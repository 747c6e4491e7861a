/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels of sparse_decode whose warps have roles, disturbed: whatever pauses
 * where, results have the same bits; and where an arrival is lost, the debug
 * build (debug.h) reports that and ends. Other builds do not pause, but run as
 * often.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/emulator/machine.h"
#include "tests/harness/themes.h"
#include "tests/harness/v32_rig.h"
#include "tests/ops/attend/decode_world.h"
#include "tests/ops/attend/few_rig.h"
#include "tests/ops/attend/parts_rig.h"
#include "tests/ops/attend/v4_decode_world.h"

enum {
	SEEDS = 200,
	/* In the emulator, and of calls that are slow in it. */
	EMULATOR_SEEDS = 12,
	SLOW_SEEDS = 4,
	LOST = 24,  /* the first arrivals of a kernel */
	ON_GPU = 4, /* of them on a device: each costs a second */
	SPLITS = 3, /* of a token */
	TOKENS = 2
};

/* How parts are done: each by its own block or cluster, or, in the emulator, all
 * by one. */
enum { AT_ONCE = 1, IN_TURN };

/* A call, by what it takes: rows and heads, and whether few tokens are done in
 * one launch, or parts whose blocks add up the splits. */
typedef struct kind {
	uint32_t layout, heads, few, parts;
} kind;

static const kind kinds[] = {{SPMLA_LAYOUT_FP8_DS_MLA, 20, 0, 0},
			     {SPMLA_LAYOUT_FP8_DS_MLA, 64, 0, 0},
			     {SPMLA_LAYOUT_FP8_DS_MLA, 72, 0, 0},
			     {SPMLA_LAYOUT_V4_FP8, 20, 0, 0},
			     {SPMLA_LAYOUT_V4_FP8, 64, 0, 0},
			     {SPMLA_LAYOUT_V4_FP8, 72, 0, 0},
			     {SPMLA_LAYOUT_MLA_BF16, 20, 0, 0},
			     {SPMLA_LAYOUT_FP8_DS_MLA, 16, 1, 0},
			     {SPMLA_LAYOUT_FP8_DS_MLA, 64, 1, 0},
			     {SPMLA_LAYOUT_V4_FP8, 16, 1, 0},
			     {SPMLA_LAYOUT_FP8_DS_MLA, 64, 0, AT_ONCE},
			     {SPMLA_LAYOUT_FP8_DS_MLA, 72, 0, AT_ONCE},
			     {SPMLA_LAYOUT_V4_FP8, 64, 0, AT_ONCE},
			     {SPMLA_LAYOUT_FP8_DS_MLA, 64, 0, IN_TURN},
			     {SPMLA_LAYOUT_FP8_DS_MLA, 72, 0, IN_TURN}};

/* The kernels of the first kinds have mbarriers. */
enum { KINDS = sizeof kinds / sizeof kinds[0], WITH_MBARRIERS = 7 };

static fixture f;
static decode_world w;
static v4_world v4;
static const kind *k;
static parts_rig p;

/* Splits of a token of `blocks` blocks. */
static void
cut(spmla_sparse_decode_args *a, uint32_t blocks)
{
	parts_lend(&p, a);
	parts_cut(&p, a, blocks, SPLITS);
}

/* In the emulator one block, or a cluster, has both tokens of a call that is not
 * done in one launch; parts have one each, unless in turn. Where few tokens are
 * done in one launch, 64 heads share blocks: there is room for no more blocks. */
static void
open_kind(int i)
{
	uint32_t tokens = kinds[i].few ? 1 : TOKENS, keys;

	k = &kinds[i];
	few_open(&f, k->few || k->parts == AT_ONCE ? 16 : 1);
	keys = fixture_on_real_gpu(&f) ? 1000 : 130;
	if (k->few && k->heads == 64 && fixture_on_real_gpu(&f))
		tokens = 5;
	if (k->layout == SPMLA_LAYOUT_V4_FP8) {
		v4_open(&v4, k->heads, 64, 70, 2, 50);
		v4.a.tokens = tokens;
		if (k->few)
			few_lend(&v4.a);
		if (k->parts)
			cut(&v4.a, 2 + 1);
		v4_choose(&v4);
		return;
	}
	decode_open_tokens(&w, k->layout, tokens, k->heads, 64, keys);
	if (k->few)
		few_lend(&w.a);
	if (k->parts)
		cut(&w.a, (keys + 63) / 64);
	decode_choose(&w);
}

static void
close_kind(void)
{
	if (k->few)
		few_take_back();
	if (k->parts)
		parts_take_back(&p, k->layout == SPMLA_LAYOUT_V4_FP8 ? &v4.a
								     : &w.a);
	if (k->layout == SPMLA_LAYOUT_V4_FP8)
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

	if (k->layout == SPMLA_LAYOUT_V4_FP8) {
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
	const uint32_t slow =
		kinds[_i].few && kinds[_i].layout == SPMLA_LAYOUT_FP8_DS_MLA;
	const uint32_t seeds =
		fixture_rounds(SEEDS, slow ? SLOW_SEEDS : EMULATOR_SEEDS);
	uint64_t want;
	uint32_t seed;

	open_kind(_i);
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
	};
	const theme themes[] = {
		THEME("pauses", NULL, NULL, pauses),
		THEME("lost", setup_debug, teardown_debug, lost),
	};

	if (fixture_on_cpu())
		return SKIP_SUITE("the CPU has no such kernels");
	return RUN_THEMES(themes);
}
