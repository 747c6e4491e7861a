/* SPDX-License-Identifier: Apache-2.0
 *
 * The branches of a V4 layer, on a driver of tests: in a capture and outside of
 * one the layer is the same ops with the same results as without, and every
 * branch is joined. What goes wrong is in test_v4_branches_failure.c.
 */

#include "spmla/platform/gpu/launch.h"
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

/* A step whose last token ends both groups, and the layer behind it. */
static spmla_status
enqueue(const spmla_v4_layer *layer, const spmla_v4_branches *branches)
{
	const spmla_status s = spmla_step_prologue(
		r.ctx, &shape, SPMLA_FROM_RING, main_stream());

	return s == SPMLA_OK ? spmla_v4_attn(r.ctx, layer, &shape, branches,
					     main_stream())
			     : s;
}

/* The ticket that is due. */
static uint64_t
due(void)
{
	return *(const uint64_t *)spmla_view(r.ctx, SPMLA_BUF_RING_CONSUMED,
					     NULL) +
	       1;
}

/* Calls of the driver that order streams, since the last look. */
static uint32_t
orders(void)
{
	const uint32_t n = fake.calls[CUDA_FAKE_event_record];

	ck_assert_uint_eq(fake.calls[CUDA_FAKE_stream_wait], n);
	fake.calls[CUDA_FAKE_event_record] = 0;
	fake.calls[CUDA_FAKE_stream_wait] = 0;
	return n;
}

/* A captured step, replayed; its nodes and what came out. */
static uint64_t
captured(const spmla_v4_layer *layer, const spmla_v4_branches *branches,
	 uint32_t *nodes)
{
	spmla_graph graph;

	v4_layer_reset(&rig, r.ctx);
	v32_must(r.ctx, spmla_graph_begin(r.ctx, main_stream()));
	v32_must(r.ctx, enqueue(layer, branches));
	v32_must(r.ctx, spmla_graph_end(r.ctx, &graph));
	*nodes = fake.nodes;
	v4_layer_write(r.ctx, 1, 128);
	v32_must(r.ctx, spmla_graph_replay(r.ctx, graph, due(), main_stream()));
	return v4_layer_hash(&rig, r.ctx);
}

/* Forks and joins of each ratio: none; two chains; one. */
static const uint32_t most_orders[3] = {0, 4, 2};

START_TEST(a_captured_layer_is_the_same_with_branches)
{
	const spmla_v4_branches b = v4_branches_both();
	uint32_t nodes[2], i;
	uint64_t hash[2];

	for (i = 0; i < 3; i++) {
		const spmla_v4_layer l = v4_layer_of(&rig, r.ctx, ratios[i]);

		hash[0] = captured(&l, NULL, &nodes[0]);
		ck_assert_uint_eq(orders(), 0);
		hash[1] = captured(&l, &b, &nodes[1]);
		ck_assert_uint_eq(orders(), most_orders[i]);
		ck_assert_uint_eq(nodes[0], nodes[1]);
		ck_assert_uint_eq(hash[0], hash[1]);
	}
}
END_TEST

START_TEST(a_layer_without_index_queries_has_one_branch)
{
	spmla_v4_layer l = v4_layer_of(&rig, r.ctx, 4);
	const spmla_v4_branches b = v4_branches_both();
	uint32_t nodes;

	l.index_q = NULL;
	(void)captured(&l, &b, &nodes);
	ck_assert_uint_eq(orders(), 2);
}
END_TEST

START_TEST(a_layer_outside_of_captures_is_the_same_with_branches)
{
	const spmla_v4_branches b = v4_branches_both();
	uint64_t hash[2];
	uint32_t i, k;

	for (i = 0; i < 3; i++) {
		const spmla_v4_layer l = v4_layer_of(&rig, r.ctx, ratios[i]);

		for (k = 0; k < 2; k++) {
			v4_layer_reset(&rig, r.ctx);
			v4_layer_write(r.ctx, 1, 128);
			v32_must(r.ctx, enqueue(&l, k ? &b : NULL));
			hash[k] = v4_layer_hash(&rig, r.ctx);
		}
		ck_assert_uint_eq(orders(), most_orders[i]);
		ck_assert_uint_eq(hash[0], hash[1]);
	}
}
END_TEST

START_TEST(branches_are_of_an_engines_own_capture_too)
{
	const spmla_v4_branches b = v4_branches_both();
	uint32_t nodes, i;
	uint64_t hash;

	for (i = 0; i < 3; i++) {
		const spmla_v4_layer l = v4_layer_of(&rig, r.ctx, ratios[i]);
		spmla_gpu_graph graph;

		hash = captured(&l, NULL, &nodes);
		v4_layer_reset(&rig, r.ctx);
		ck_assert_int_eq(
			cuda_fake_driver.gpu.capture_begin(
				main_stream(), SPMLA_GPU_CAPTURE_THREAD_LOCAL),
			0);
		v32_must(r.ctx, enqueue(&l, &b));
		ck_assert_int_eq(
			cuda_fake_driver.gpu.capture_end(main_stream(), &graph),
			0);
		ck_assert_uint_eq(fake.nodes, nodes);
		v4_layer_write(r.ctx, 1, 128);
		cuda_fake_capture_launch(graph);
		ck_assert_uint_eq(v4_layer_hash(&rig, r.ctx), hash);
		ck_assert_int_eq(cuda_fake_driver.gpu.graph_destroy(graph), 0);
	}
}
END_TEST

/* ---- What waits for what ----------------------------------------------- */

/* The side chains of a layer and what runs beside them; 0: alone. */
static uint32_t
chain_of(uint32_t kernel)
{
	switch (kernel) {
	case SPMLA_KERNEL_qnorm_rope_kv_insert:
		return 1;
	case SPMLA_KERNEL_kv_compress:
	case SPMLA_KERNEL_kv_compress_c128:
	case SPMLA_KERNEL_kv_compress_few:
	case SPMLA_KERNEL_kv_compress_index:
	case SPMLA_KERNEL_compress_state_save:
		return 2;
	case SPMLA_KERNEL_indexer_q_prep:
		return 3;
	}
	return 0;
}

/* Launch j is behind launch i, or, in different chains of a layer, is not. */
static void
expect_order(uint32_t i, uint32_t j, uint32_t same_layer)
{
	const cuda_fake_launch *x = &fake.launch[i], *y = &fake.launch[j];
	const uint32_t a = chain_of(x->kernel), b = chain_of(y->kernel);
	const uint32_t apart = same_layer && a && b && a != b;

	if ((y->behind >> i & 1) == apart)
		ck_abort_msg("%s is %sbehind %s",
			     spmla_i_gpu_kernels[y->kernel].name,
			     apart ? "" : "not ",
			     spmla_i_gpu_kernels[x->kernel].name);
}

/* A layer of each ratio, one behind the other. */
static void
expect_orders(void)
{
	const spmla_v4_branches b = v4_branches_both();
	uint32_t chains[4] = {0}, i, j, k;

	cuda_fake_follow();
	v32_must(r.ctx, spmla_step_prologue(r.ctx, &shape, SPMLA_FROM_RING,
					    main_stream()));
	for (k = 0; k < 3; k++) {
		const spmla_v4_layer l = v4_layer_of(&rig, r.ctx, ratios[k]);
		const uint32_t first = fake.launches;

		v32_must(r.ctx,
			 spmla_v4_attn(r.ctx, &l, &shape, &b, main_stream()));
		ck_assert_uint_le(fake.launches, CUDA_FAKE_LAUNCHES);
		for (j = first; j < fake.launches; j++) {
			chains[chain_of(fake.launch[j].kernel)]++;
			for (i = 0; i < j; i++)
				expect_order(i, j, i >= first);
		}
	}
	/* Three inserts, three compressors' two, one layer's queries. */
	ck_assert_uint_eq(chains[1], 3);
	ck_assert_uint_eq(chains[2], 6);
	ck_assert_uint_eq(chains[3], 1);
}

START_TEST(readers_wait_for_all_chains_and_chains_for_none)
{
	spmla_graph graph;

	v4_layer_write(r.ctx, 1, 128);
	expect_orders();
	v32_must(r.ctx, spmla_graph_begin(r.ctx, main_stream()));
	expect_orders();
	v32_must(r.ctx, spmla_graph_end(r.ctx, &graph));
}
END_TEST

SUITE
{
	const theme_test tests[] = {
		{a_captured_layer_is_the_same_with_branches, 1},
		{a_layer_without_index_queries_has_one_branch, 1},
		{a_layer_outside_of_captures_is_the_same_with_branches, 1},
		{branches_are_of_an_engines_own_capture_too, 1},
		{readers_wait_for_all_chains_and_chains_for_none, 1},
	};
	const theme themes[] = {THEME("branches", setup, teardown, tests)};

	return RUN_THEMES(themes);
}
