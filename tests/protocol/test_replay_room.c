/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps where everything that a kernel touches lies in the device's own memory,
 * each buffer of the plan, each cache, input and output at the end of pages of
 * its own: they give the bits of steps in memory of the host, and nothing is
 * read or written past an end. Without a device there is no such memory:
 * SKIPPED.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/harness/attn_rig.h"
#include "tests/harness/cuda_world.h"
#include "tests/harness/themes.h"

enum { STEPS = 300, FEW_STEPS = 6, INPUTS = 16, OUTPUTS = 4 * ATTN_LAYERS };

/* A buffer of the host and the one on the device that kernels have for it. */
typedef struct mirror {
	void *host;
	void *room;
	uint64_t bytes;
} mirror;

static struct {
	attn_rig near;    /* in the host's memory, eager */
	attn_rig far_off; /* in the device's, replayed */
	attn_inputs in;
	mirror inputs[INPUTS], outputs[OUTPUTS], constants[INPUTS];
	uint32_t input_count, output_count, constant_count;
} w;

static void *
add(mirror *list, uint32_t *count, const void *host, uint64_t elems,
    uint64_t elem_bytes)
{
	mirror *m = &list[(*count)++];

	m->host = (void *)(uintptr_t)host;
	m->bytes = elems * elem_bytes;
	m->room = cuda_room_alloc(m->bytes, 16);
	cuda_room_put(m->room, host, m->bytes);
	return m->room;
}

static void *
input(const void *host, uint64_t elems, uint64_t elem_bytes)
{
	return add(w.inputs, &w.input_count, host, RIG_TOKENS * elems,
		   elem_bytes);
}

static void *
constant(const void *host, uint64_t elems)
{
	return add(w.constants, &w.constant_count, host, elems, sizeof(float));
}

static void *
output(void *host, uint64_t elems, uint64_t elem_bytes)
{
	return add(w.outputs, &w.output_count, host, RIG_TOKENS * elems,
		   elem_bytes);
}

/* Every pointer of the layer is of the device from here on. */
static void
move_layer(uint32_t l)
{
	const attn_tensors *t = &w.in.layer[l];
	spmla_v32_layer *a = &w.far_off.layer[l];
	attn_rig *r = &w.far_off;
	const attn_size *n = &r->size;

	a->kv_c = input(t->kv_c, SPMLA_MLA_LATENT, 2);
	a->k_pe = input(t->k_pe, SPMLA_MLA_ROPE, 2);
	a->index_k = input(t->index_k, SPMLA_INDEX_DIM, 2);
	a->index_q = input(t->index_q, n->index_heads * SPMLA_INDEX_DIM, 2);
	a->q = input(t->q, n->heads * SPMLA_MLA_DIM, 2);
	a->index_weights = input(t->weights, n->index_heads, 4);
	a->index_norm_weight = constant(w.in.norm_weight, SPMLA_INDEX_DIM);
	a->index_norm_bias = constant(w.in.norm_bias, SPMLA_INDEX_DIM);
	a->cos_sin = constant(w.in.cos_sin, RIG_CONTEXT * SPMLA_INDEX_ROPE);
	if (a->attn_sink)
		a->attn_sink = constant(w.in.sink, n->heads);
	a->out = output(r->out[l], n->heads * SPMLA_MLA_LATENT, 2);
	a->lse = output(r->lse[l], n->heads, 4);
	a->topk_indices = output(r->topk[l], n->topk, 4);
	a->topk_lens = output(r->topk_lens[l], 1, 4);
}

static void
open_world(void)
{
	static const attn_size wide = {64, 64, 256};
	spmla_config config;
	uint32_t l;

	memset(&w, 0, sizeof w);
	attn_inputs_open_size(&w.in, &wide);
	attn_config_size(&config, 4, &wide);
	attn_open(&w.near, &config, &w.in, 0);
	fixture_room(1);
	attn_open(&w.far_off, &config, &w.in, 0);
	fixture_room(0);
	/* Not the plan's, which the host cannot read. */
	w.far_off.topk[1] = test_alloc(RIG_TOKENS * wide.topk * 4, 0xAB);
	w.far_off.topk_lens[1] = test_alloc(RIG_TOKENS * 4, 0xAB);
	for (l = 0; l < ATTN_LAYERS; l++)
		move_layer(l);
	attn_capture(&w.far_off);
}

static void
close_list(mirror *list, uint32_t count)
{
	while (count--)
		cuda_room_free(list[count].room);
}

static void
close_world(void)
{
	free(w.far_off.topk[1]);
	free(w.far_off.topk_lens[1]);
	attn_close(&w.far_off);
	attn_close(&w.near);
	close_list(w.inputs, w.input_count);
	close_list(w.constants, w.constant_count);
	close_list(w.outputs, w.output_count);
	attn_inputs_close(&w.in);
}

static void
replay_far(uint32_t bucket, draft *d)
{
	uint32_t i;

	for (i = 0; i < w.input_count; i++)
		cuda_room_put(w.inputs[i].room, w.inputs[i].host,
			      w.inputs[i].bytes);
	for (i = 0; i < w.output_count; i++) {
		memset(w.outputs[i].host, 0xAB, w.outputs[i].bytes);
		cuda_room_put(w.outputs[i].room, w.outputs[i].host,
			      w.outputs[i].bytes);
	}
	replay(&w.far_off.f, w.far_off.graph[bucket],
	       draft_write(&w.far_off.f, d));
	for (i = 0; i < w.output_count; i++)
		cuda_room_get(w.outputs[i].host, w.outputs[i].room,
			      w.outputs[i].bytes);
}

static void
expect_equal(uint32_t bucket)
{
	const size_t t = rig_shapes[bucket].tokens;
	const attn_rig *a = &w.near, *b = &w.far_off;
	const size_t heads = a->size.heads;
	uint32_t l;

	for (l = 0; l < ATTN_LAYERS; l++) {
		ck_assert_mem_eq(a->out[l], b->out[l],
				 t * heads * SPMLA_MLA_LATENT * 2);
		ck_assert_mem_eq(a->lse[l], b->lse[l], t * heads * 4);
		ck_assert_mem_eq(a->topk[l], b->topk[l], t * a->size.topk * 4);
		ck_assert_mem_eq(a->topk_lens[l], b->topk_lens[l], t * 4);
	}
}

START_TEST(steps_in_memory_of_the_device_give_the_same_bits)
{
	const uint32_t steps = fixture_rounds(STEPS, FEW_STEPS);
	uint64_t s;
	sim sched;

	open_world();
	sim_open(&sched, &w.near.f.plan, test_seed());
	for (s = 1; s <= steps; s++) {
		const uint32_t b = (uint32_t)s % 3;
		draft d;

		sim_draft(&sched, &rig_shapes[b], &d);
		attn_fill_step(&w.in, s);
		attn_forget(&w.near);
		(void)draft_write(&w.near.f, &d);
		ck_assert_int_eq(
			attn_enqueue(&w.near, &rig_shapes[b], SPMLA_FROM_RING),
			SPMLA_OK);
		replay_far(b, &d);
		expect_equal(b);
	}
	ck_assert_uint_eq(fixture_status(&w.near.f).count, 0);
	ck_assert_uint_eq(fixture_status(&w.far_off.f).count, 0);
	close_world();
}
END_TEST

SUITE
{
	const theme_test room[] = {
		{steps_in_memory_of_the_device_give_the_same_bits, 1},
	};
	const theme themes[] = {
		THEME("memory of the device", NULL, NULL, room),
	};

	if (!fixture_on_gpu() || !cuda_room_open())
		return SKIP_SUITE("no memory of a device");
	return RUN_THEMES(themes);
}
