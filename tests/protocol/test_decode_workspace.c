/* SPDX-License-Identifier: Apache-2.0
 *
 * DECODE_WORKSPACE, through which blocks of a decode combine their results, and
 * V4's STEP_UNITS, through which blocks of a prologue hand on tokens. Each is
 * all zero behind each call, behind a lost step and an aborted capture, and
 * when two contexts decode in turn. The layers of V4 use it in each way: the
 * first bucket is decoded in one launch, the second in parts whose splits are
 * added up, the third does not use it. The CPU has no such buffers.
 */
#include "tests/harness/attn_rig.h"
#include "tests/harness/bytes.h"
#include "tests/harness/engine.h"
#include "tests/harness/themes.h"
#include "tests/harness/v32_rig.h"
#include "tests/protocol/v4_replay_rig.h"

enum {
	STEPS = 60,    /* on a device */
	FEW_STEPS = 3, /* elsewhere: one of each bucket */
	V32_SMS = 32   /* room for the blocks of two tokens */
};

static v4_replay_rig r, twin, alone;

static void
expect_zeros_in(const fixture *f, spmla_buf buf, uint32_t is_there,
		const char *behind)
{
	uint64_t bytes = 0, i;
	const void *at = spmla_view(f->ctx, buf, &bytes);

	ck_assert_int_eq(bytes != 0, is_there);
	i = bytes_other(at, bytes, 0);
	if (i < bytes)
		ck_abort_msg("byte %llu of %llu of buffer %d is not 0 behind "
			     "%s",
			     (unsigned long long)i, (unsigned long long)bytes,
			     (int)buf, behind);
}

static void
expect_zeros(const fixture *f, const char *behind)
{
	const spmla_device *d = &f->plan.device;
	const uint32_t hopper = d->kind == SPMLA_BACKEND_CUDA && d->arch == 90;
	const uint32_t v4 = f->config.model != SPMLA_MODEL_V32;

	expect_zeros_in(f, SPMLA_BUF_DECODE_WORKSPACE, hopper, behind);
	expect_zeros_in(f, SPMLA_BUF_STEP_UNITS, hopper && v4, behind);
}

static void
open_rig(v4_replay_rig *rig, uint32_t native_flags)
{
	spmla_config config;

	fixture_multiprocessors(V4_MANY_SMS);
	v4_replay_config(&config, SPMLA_LAYOUT_INDEX_FP8);
	v4_replay_open(rig, &config, native_flags, test_seed());
	fixture_multiprocessors(0);
	expect_zeros(&rig->f, "init");
}

static void
close_rig(v4_replay_rig *rig)
{
	fixture_drain(&rig->f);
	v4_replay_close(rig);
}

static void
setup(void)
{
	open_rig(&r, SPMLA_NATIVE_DEFERRED);
	v4_replay_capture(&r);
}

static void
teardown(void)
{
	close_rig(&r);
}

/* ---- Steps ------------------------------------------------------------- */

static uint32_t
bucket_of(uint32_t step)
{
	return step % V4_BUCKETS;
}

/* Writes step `step`, with as many requests as its bucket has room for. All of
 * them join, and all values follow from the number. */
static uint64_t
write_step(v4_replay_rig *rig, uint32_t step)
{
	const spmla_shape *shape = &rig->f.config.buckets[bucket_of(step)];
	const uint32_t most = rig->f.plan.config.max_context_tokens;
	uint32_t i;
	v4_draft d;

	v4_draft_clear(&d);
	for (i = 0; i < shape->requests; i++) {
		const uint32_t len = most / 2 + (37 * step + 5 * i) % most / 4;

		v4_replay_fill(rig, i, 8 * step + i, len - 1);
		v4_replay_join(rig, &d, i, 1, len);
	}
	for (; i < rig->f.plan.max_tokens; i++)
		v4_replay_fill(rig, i, 0, i);
	v4_replay_forget(rig);
	return v4_replay_write(rig, &d, NULL);
}

static uint64_t
hash_of(const v4_replay_rig *rig)
{
	uint64_t hash = v4_replay_cache_hash(rig);
	uint32_t l;

	for (l = 0; l < V4_LAYERS; l++) {
		const v4_layer_rig *v = &rig->rig[l];

		hash = test_hash(hash, v->layer.out, v->out_bytes);
		hash = test_hash(hash, v->layer.lse,
				 (uint64_t)v->tokens * v->heads *
					 sizeof(float));
	}
	return hash;
}

/* Replays a step, and returns what it wrote. */
static uint64_t
run_step(uint32_t step)
{
	replay(&r.f, r.graph[bucket_of(step)], write_step(&r, step));
	fixture_drain(&r.f);
	expect_zeros(&r.f, "a step");
	return hash_of(&r);
}

/* ---- Calls ------------------------------------------------------------- */

START_TEST(every_call_of_v4_leaves_zeros)
{
	spmla_ctx *ctx;
	uint32_t step, l;

	open_rig(&alone, 0);
	ctx = alone.f.ctx;
	for (step = 0; step < V4_BUCKETS; step++) {
		const spmla_shape *shape =
			&alone.f.config.buckets[bucket_of(step)];

		(void)write_step(&alone, step);
		v32_must(ctx, spmla_step_prologue(ctx, shape, SPMLA_FROM_RING,
						  NULL));
		for (l = 0; l < V4_LAYERS; l++) {
			v32_must(ctx, spmla_v4_attn(ctx, &alone.layer[l], shape,
						    NULL, NULL));
			expect_zeros(&alone.f, "a layer");
		}
	}
	ck_assert_uint_eq(fixture_status(&alone.f).count, 0);
	close_rig(&alone);
}
END_TEST

/* Two tokens are decoded in one launch; the buckets in parts, or whole. */
START_TEST(every_call_of_v32_leaves_zeros)
{
	const spmla_shape few = {2, 2, 1, 0};
	static attn_inputs in;
	static attn_rig v32;
	spmla_config config;
	uint32_t b, i;

	attn_config(&config, 4);
	config.max_update_pages = RIG_POOL;
	attn_inputs_open(&in);
	fixture_multiprocessors(V32_SMS);
	attn_open(&v32, &config, &in, 0);
	fixture_multiprocessors(0);
	for (b = 0; b <= 3; b++) {
		const spmla_shape *shape = b < 3 ? &rig_shapes[b] : &few;
		draft d;

		attn_fill_step(&in, b);
		draft_clear(&d);
		for (i = 0; i < shape->requests; i++) {
			const int32_t pages[2] = {2 * (int32_t)i,
						  2 * (int32_t)i + 1};

			draft_request(&d, i, 1, 20 + i, SPMLA_REQUEST_JOIN);
			draft_store(&d, i, 0, 2, pages);
		}
		(void)draft_write(&v32.f, &d);
		v32_must(v32.f.ctx, spmla_step_prologue(v32.f.ctx, shape,
							SPMLA_FROM_RING, NULL));
		for (i = 0; i < ATTN_LAYERS; i++) {
			v32_must(v32.f.ctx,
				 spmla_v32_attn(v32.f.ctx, &v32.layer[i], shape,
						NULL));
			expect_zeros(&v32.f, "a layer");
		}
	}
	ck_assert_uint_eq(fixture_status(&v32.f).count, 0);
	attn_close(&v32);
	attn_inputs_close(&in);
}
END_TEST

/* ---- Lost steps -------------------------------------------------------- */

/* A list of the engine's own of a bucket, which it may launch when it likes. */
static engine_list
capture_own(uint32_t bucket)
{
	engine_list list;

	ck_assert_int_eq(engine_capture_begin(r.f.ctx), SPMLA_OK);
	v32_must(r.f.ctx, v4_replay_enqueue(&r, &r.f.config.buckets[bucket],
					    SPMLA_FROM_RING));
	ck_assert_int_eq(engine_capture_end(r.f.ctx, &list), SPMLA_OK);
	return list;
}

/* A launch that finds no record, in front of record `ticket`. */
static void
launch_empty(engine_list list, uint64_t ticket)
{
	ck_assert_int_eq(engine_launch(r.f.ctx, list), SPMLA_OK);
	fixture_drain(&r.f);
	expect_zeros(&r.f, "a launch without a record");
	expect_status(&r.f, 1, SPMLA_FAULT_TICKET_MISSING, SPMLA_NO_INDEX,
		      ticket);
	v32_must(r.f.ctx, spmla_status_clear(r.f.ctx));
}

/* _i: the bucket. Behind each loss a step has the bits that it had before. */
START_TEST(a_lost_step_leaves_zeros)
{
	const uint32_t step = (uint32_t)_i;
	const engine_list own = capture_own(step);
	const uint64_t want = run_step(step);
	uint64_t ticket;

	/* Written and never launched. */
	ticket = write_step(&r, step + V4_BUCKETS);
	v32_must(r.f.ctx, spmla_step_undo(r.f.ctx, ticket));
	expect_zeros(&r.f, "undo");
	ck_assert_uint_eq(run_step(step), want);
	/* Launched and never written. */
	launch_empty(own, 3);
	ck_assert_uint_eq(run_step(step), want);
	/* Launched twice. */
	launch_empty(own, 4);
	ck_assert_uint_eq(run_step(step), want);
	/* Told as launched, which it was not. */
	ticket = write_step(&r, step + V4_BUCKETS);
	v32_must(r.f.ctx, spmla_step_launched(r.f.ctx, ticket));
	v32_must(r.f.ctx, spmla_step_resync(r.f.ctx));
	expect_zeros(&r.f, "resync");
	ck_assert_uint_eq(run_step(step), want);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
}
END_TEST

/* ---- Captures ---------------------------------------------------------- */

static spmla_status
enqueue(uint32_t bucket)
{
	return v4_replay_enqueue(&r, &r.f.config.buckets[bucket],
				 SPMLA_FROM_RING);
}

/* _i: the bucket. */
START_TEST(an_aborted_capture_leaves_zeros)
{
	const uint32_t step = (uint32_t)_i;
	const uint64_t want = run_step(step);
	spmla_v4_layer bad = r.layer[1];
	spmla_graph graph;

	/* Aborted though nothing is wrong. */
	v32_must(r.f.ctx, spmla_graph_begin(r.f.ctx, NULL));
	v32_must(r.f.ctx, enqueue(step));
	v32_must(r.f.ctx, spmla_graph_abort(r.f.ctx));
	expect_zeros(&r.f, "an aborted capture");
	ck_assert_uint_eq(run_step(step), want);
	/* The engine's own. */
	ck_assert_int_eq(engine_capture_begin(r.f.ctx), SPMLA_OK);
	v32_must(r.f.ctx, enqueue(step));
	ck_assert_int_eq(engine_capture_abort(r.f.ctx), SPMLA_OK);
	expect_zeros(&r.f, "an aborted capture of the engine");
	ck_assert_uint_eq(run_step(step), want);
	/* Behind an operation that failed, with a record in the ring. */
	bad.struct_bytes = 0;
	v32_must(r.f.ctx, spmla_graph_begin(r.f.ctx, NULL));
	v32_must(r.f.ctx, enqueue(step));
	ck_assert_int_ne(spmla_v4_attn(r.f.ctx, &bad, &r.f.config.buckets[step],
				       NULL, NULL),
			 SPMLA_OK);
	ck_assert_int_eq(spmla_graph_end(r.f.ctx, &graph), SPMLA_E_CAPTURE);
	v32_must(r.f.ctx, spmla_graph_abort(r.f.ctx));
	expect_zeros(&r.f, "a failed capture");
	ck_assert_uint_eq(run_step(step), want);
	/* Ended and never launched. */
	(void)capture_own(step);
	expect_zeros(&r.f, "a capture that nobody launches");
	ck_assert_uint_eq(run_step(step), want);
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
}
END_TEST

/* ---- Two contexts ------------------------------------------------------ */

/* The twin is a step behind, so that both rarely do the same. Each has the bits
 * of a context that is alone. */
START_TEST(two_contexts_in_turn_do_not_disturb_each_other)
{
	const uint32_t steps =
		fixture_rounds(fixture_on_gpu() ? STEPS : FEW_STEPS, FEW_STEPS);
	static uint64_t want[STEPS];
	uint32_t step;

	open_rig(&alone, SPMLA_NATIVE_DEFERRED);
	v4_replay_capture(&alone);
	for (step = 0; step < steps; step++) {
		replay(&alone.f, alone.graph[bucket_of(step)],
		       write_step(&alone, step));
		fixture_drain(&alone.f);
		want[step] = hash_of(&alone);
	}
	close_rig(&alone);
	open_rig(&twin, SPMLA_NATIVE_DEFERRED);
	v4_replay_capture(&twin);
	for (step = 0; step <= steps; step++) {
		if (step < steps)
			replay(&r.f, r.graph[bucket_of(step)],
			       write_step(&r, step));
		if (step > 0)
			replay(&twin.f, twin.graph[bucket_of(step - 1)],
			       write_step(&twin, step - 1));
		fixture_drain(&r.f);
		expect_zeros(&r.f, "one context");
		fixture_drain(&twin.f);
		expect_zeros(&twin.f, "the other context");
		expect_zeros(&r.f, "the other context's step");
		ck_assert(step == steps || hash_of(&r) == want[step]);
		ck_assert(step == 0 || hash_of(&twin) == want[step - 1]);
	}
	ck_assert_uint_eq(fixture_status(&r.f).count, 0);
	ck_assert_uint_eq(fixture_status(&twin.f).count, 0);
	close_rig(&twin);
}
END_TEST

SUITE
{
	const theme_test calls[] = {
		{every_call_of_v4_leaves_zeros, 1},
		{every_call_of_v32_leaves_zeros, 1},
	};
	const theme_test steps[] = {
		{a_lost_step_leaves_zeros, V4_BUCKETS - 1},
		{an_aborted_capture_leaves_zeros, V4_BUCKETS - 1},
		{two_contexts_in_turn_do_not_disturb_each_other, 1},
	};
	const theme themes[] = {
		THEME("calls", NULL, NULL, calls),
		THEME("steps", setup, teardown, steps),
	};

	return RUN_THEMES(themes);
}
