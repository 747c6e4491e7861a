/* SPDX-License-Identifier: Apache-2.0
 *
 * The branches of a V4 layer where something goes wrong: a layer that is
 * refused leaves no branch unjoined. A failure at any of the driver's calls is
 * reported and spoils only the capture.
 */
#include <stdio.h>
#include <string.h>

#include "tests/core/cuda_branches_rig.h"
#include "tests/harness/themes.h"
#include "tests/harness/v32_rig.h"

static cuda_fake_rig r;
static v4_layer_rig rig;
static const spmla_shape shape = {4, 4, 1, 0};
static const uint32_t ratios[3] = {1, 4, 128};

static void
setup(void)
{
	v4_branches_open(&r, &rig);
}

static void
teardown(void)
{
	v4_branches_close(&r, &rig);
}

static spmla_stream
main_stream(void)
{
	return cuda_fake_stream(0);
}

/* One of a layer's ops refuses while its branches have work. The second time
 * the driver refuses the join, too. What comes next on the stream is behind all
 * that was enqueued. */
static void
expect_joined(const spmla_v4_layer *l, const char *want)
{
	const spmla_v4_layer good = v4_layer_of(&rig, r.ctx, l->ratio);
	const spmla_v4_branches b = v4_branches_both();
	uint32_t begun, last, round, calls = 0;

	for (round = 0; round < 2; round++) {
		cuda_fake_follow();
		v32_must(r.ctx,
			 spmla_step_prologue(r.ctx, &shape, SPMLA_FROM_DEVICE,
					     main_stream()));
		begun = fake.launches;
		fake.total = 0;
		fake.fail_at = calls; /* the last join; 0: none */
		ck_assert_int_ne(
			spmla_v4_attn(r.ctx, l, &shape, &b, main_stream()),
			SPMLA_OK);
		ck_assert_int_eq(fake.failed >= 0, round);
		fake.fail_at = 0;
		calls = fake.total;
		ck_assert_str_eq(test_diag_text(spmla_ctx_diag(r.ctx)), want);
		ck_assert_uint_gt(fake.launches, begun);
		v32_must(r.ctx,
			 spmla_v4_insert(r.ctx, &good, &shape, main_stream()));
		last = fake.launches - 1;
		if (round == 0)
			ck_assert(fake.launch[last].behind ==
				  (UINT64_C(1) << last) - 1);
	}
	fake.failed = -1;
}

START_TEST(a_layer_that_is_refused_leaves_no_branch_behind)
{
	const spmla_v4_layer four = v4_layer_of(&rig, r.ctx, 4);
	spmla_v4_layer l = v4_layer_of(&rig, r.ctx, 128);

	l.kv = NULL;
	expect_joined(&l, "SPMLA_E_NULL: v4_layer.kv: got NULL, "
			  "want a pointer");
	l = four;
	l.swa.pages = 0;
	expect_joined(&l, "SPMLA_E_RANGE: v4_layer.swa.pages: got 0, want at "
			  "least 24");
	l = four;
	l.index_weights = NULL;
	expect_joined(&l, "SPMLA_E_NULL: v4_layer.index_weights: got NULL, "
			  "want a pointer");
	l = four;
	l.index_ape = NULL;
	expect_joined(&l, "SPMLA_E_NULL: v4_layer.index_ape: got NULL, want a "
			  "pointer");
}
END_TEST

/* The second stream is one that may not be forked to: the first is joined. */
START_TEST(a_fork_that_is_refused_leaves_no_branch_behind)
{
	const spmla_v4_layer four = v4_layer_of(&rig, r.ctx, 4);
	spmla_v4_branches b = v4_branches_both();
	uint32_t waits;

	v32_must(r.ctx, spmla_step_prologue(r.ctx, &shape, SPMLA_FROM_DEVICE,
					    main_stream()));
	b.streams[1] = (spmla_stream)(uintptr_t)1; /* the legacy stream */
	waits = fake.calls[CUDA_FAKE_stream_wait];
	ck_assert_int_eq(spmla_v4_attn(r.ctx, &four, &shape, &b, main_stream()),
			 SPMLA_E_RANGE);
	ck_assert_str_eq(test_diag_text(spmla_ctx_diag(r.ctx)),
			 "SPMLA_E_RANGE: stream (of cuStreamCreate, or "
			 "CU_STREAM_PER_THREAD): got 1, want at least 2");
	ck_assert_uint_eq(fake.calls[CUDA_FAKE_stream_wait] - waits, 2);
}
END_TEST

/* ---- What is refused --------------------------------------------------- */

static void
expect(const spmla_v4_layer *l, const spmla_v4_branches *b, const char *want)
{
	spmla_graph graph;
	spmla_status s;

	fake.total = 0;
	s = spmla_v4_attn(r.ctx, l, &shape, b, main_stream());
	ck_assert_uint_eq(fake.total, 0);
	ck_assert_int_ne(s, SPMLA_OK);
	ck_assert_str_eq(test_diag_text(spmla_ctx_diag(r.ctx)), want);
	v32_must(r.ctx, spmla_graph_begin(r.ctx, main_stream()));
	ck_assert_int_eq(spmla_v4_attn(r.ctx, l, &shape, b, main_stream()), s);
	ck_assert_int_eq(spmla_graph_end(r.ctx, &graph), SPMLA_E_CAPTURE);
	v32_must(r.ctx, spmla_graph_abort(r.ctx));
}

START_TEST(branches_that_are_wrong_are_named_before_anything)
{
	char text[100];
	uint32_t i, k;

	v4_layer_write(r.ctx, 1, 128);
	v32_must(r.ctx, spmla_step_prologue(r.ctx, &shape, SPMLA_FROM_RING,
					    main_stream()));
	for (k = 0; k < 3; k++) {
		const spmla_v4_layer l = v4_layer_of(&rig, r.ctx, ratios[k]);
		spmla_v4_branches b = v4_branches_both();

		b.struct_bytes = 40;
		expect(&l, &b,
		       "SPMLA_E_STRUCT_SIZE: branches.struct_bytes: got 40, "
		       "want 48");
		for (i = 0; i < 5; i++) {
			b = v4_branches_both();
			if (i < 2)
				b.streams[i] = NULL;
			else
				b.events[i - 2] = NULL;
			snprintf(text, sizeof text,
				 "SPMLA_E_NULL: branches.%s[%u]: got NULL, "
				 "want a pointer",
				 i < 2 ? "streams" : "events",
				 i < 2 ? i : i - 2);
			expect(&l, &b, text);
		}
	}
}
END_TEST

/* A stream that the driver cannot tell of is taken for one outside. */
static void
expect_told(spmla_status s)
{
	const cuda_fake_call call = (cuda_fake_call)fake.failed;
	char text[200], want[100];

	if (call == CUDA_FAKE_stream_capturing)
		snprintf(want, sizeof want,
			 "SPMLA_E_STATE: stream (outside the capture)");
	else
		snprintf(want, sizeof want, "SPMLA_E_DEVICE: %s",
			 cuda_fake_name(call));
	ck_assert_int_eq(s, call == CUDA_FAKE_stream_capturing
				    ? SPMLA_E_STATE
				    : SPMLA_E_DEVICE);
	spmla_diag_text(spmla_ctx_diag(r.ctx), text, sizeof text);
	ck_assert_msg(strncmp(text, want, strlen(want)) == 0, "%s", text);
}

/* Every call of the driver that a layer of two branches makes, one after the
 * other. */
START_TEST(a_failure_at_any_call_is_told_and_spoils_the_capture_only)
{
	const spmla_v4_layer l = v4_layer_of(&rig, r.ctx, 4);
	const spmla_v4_branches b = v4_branches_both();
	uint32_t fail, seen[CUDA_FAKE_CALLS] = {0};
	spmla_graph graph;
	spmla_status s = SPMLA_E_DEVICE;

	for (fail = 1; s != SPMLA_OK; fail++) {
		v32_must(r.ctx, spmla_graph_begin(r.ctx, main_stream()));
		v32_must(r.ctx,
			 spmla_step_prologue(r.ctx, &shape, SPMLA_FROM_RING,
					     main_stream()));
		fake.total = 0;
		fake.fail_at = fail;
		s = spmla_v4_attn(r.ctx, &l, &shape, &b, main_stream());
		fake.fail_at = 0;
		if (s != SPMLA_OK) {
			expect_told(s);
			seen[fake.failed]++;
			ck_assert_int_eq(spmla_graph_end(r.ctx, &graph),
					 SPMLA_E_CAPTURE);
		}
		v32_must(r.ctx, spmla_graph_abort(r.ctx));
	}
	ck_assert_uint_eq(seen[CUDA_FAKE_event_record], 4);
	ck_assert_uint_eq(seen[CUDA_FAKE_stream_wait], 4);
	ck_assert_uint_ge(seen[CUDA_FAKE_launch_kernel], 11);
	/* Nothing of it is left: the next capture is whole, with the prologue. */
	v32_must(r.ctx, spmla_graph_begin(r.ctx, main_stream()));
	v32_must(r.ctx, spmla_step_prologue(r.ctx, &shape, SPMLA_FROM_RING,
					    main_stream()));
	v32_must(r.ctx, spmla_v4_attn(r.ctx, &l, &shape, &b, main_stream()));
	v32_must(r.ctx, spmla_graph_end(r.ctx, &graph));
	ck_assert_uint_eq(fake.nodes, seen[CUDA_FAKE_launch_kernel] + 1);
}
END_TEST

SUITE
{
	const theme_test tests[] = {
		{a_layer_that_is_refused_leaves_no_branch_behind, 1},
		{a_fork_that_is_refused_leaves_no_branch_behind, 1},
		{branches_that_are_wrong_are_named_before_anything, 1},
		{a_failure_at_any_call_is_told_and_spoils_the_capture_only, 1},
	};
	const theme themes[] = {THEME("failure", setup, teardown, tests)};

	return RUN_THEMES(themes);
}
