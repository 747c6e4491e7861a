/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels of sparse_decode whose warps have roles, disturbed: where an arrival
 * is lost, the debug build (debug.h) reports that and ends.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/emulator/machine.h"
#include "tests/harness/themes.h"
#include "tests/harness/v32_rig.h"
#include "tests/ops/attend/decode_world.h"
#include "tests/ops/attend/few_rig.h"
#include "tests/ops/attend/v4_decode_world.h"

enum {
	LOST = 24, /* the first arrivals of a kernel */
	ON_GPU = 4 /* of them on a device: each costs a second */
};

/* A call, by its rows and heads. */
typedef struct kind {
	uint32_t layout, heads;
} kind;

static const kind kinds[] = {
	{SPMLA_LAYOUT_FP8_DS_MLA, 20}, {SPMLA_LAYOUT_FP8_DS_MLA, 64},
	{SPMLA_LAYOUT_FP8_DS_MLA, 72}, {SPMLA_LAYOUT_V4_FP8, 20},
	{SPMLA_LAYOUT_V4_FP8, 64},     {SPMLA_LAYOUT_V4_FP8, 72},
	{SPMLA_LAYOUT_MLA_BF16, 20}};

enum { KINDS = sizeof kinds / sizeof kinds[0] };

static fixture f;
static decode_world w;
static v4_world v4;
static const kind *k;

/* In the emulator one block, or a cluster, has both tokens. */
static void
open_kind(int i)
{
	const uint32_t tokens = 2;

	k = &kinds[i];
	few_open(&f, 1);
	if (k->layout == SPMLA_LAYOUT_V4_FP8) {
		v4_open(&v4, k->heads, 64, 70, 2, 50);
		v4.a.tokens = tokens;
		v4_choose(&v4);
		return;
	}
	decode_open_tokens(&w, k->layout, tokens, k->heads, 64,
			   fixture_on_real_gpu(&f) ? 1000 : 130);
	decode_choose(&w);
}

static void
close_kind(void)
{
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
	const theme_test lost[] = {
		{a_lost_arrival_is_reported_and_the_kernel_ends, KINDS},
	};
	const theme themes[] = {
		THEME("lost", setup_debug, teardown_debug, lost),
	};

	if (fixture_on_cpu())
		return SKIP_SUITE("the CPU has no such kernels");
	return RUN_THEMES(themes);
}
