/* SPDX-License-Identifier: Apache-2.0
 *
 * Decode steps of V4 that a GPU does in parts: their metadata, and that layers
 * of each kind give what they give as a whole. A backend without parts gives
 * the same bits either way.
 */
#include <stdlib.h>

#include "spmla/internal/few.h"
#include "spmla/internal/splits.h"

#include "tests/harness/themes.h"
#include "tests/harness/v32_rig.h"
#include "tests/protocol/parts_check.h"
#include "tests/protocol/v4_parts_rig.h"

static const uint32_t ratios[3] = {1, 4, 128};
static parts_rig r;

static void
setup(void)
{
	parts_rig_open(&r, 4, 512, 40, PARTS_LONGEST);
}

/* Parts of more than one token each. */
static void
setup_few(void)
{
	parts_rig_open(&r, 4, 1024, 16, PARTS_LONGEST);
}

/* Lists so long that 16 tokens do not fit a prologue of one launch. */
static void
setup_long(void)
{
	parts_rig_open(&r, 4, 512, 12, 1u << 19);
}

static void
teardown(void)
{
	parts_rig_close(&r);
}

static void
run_step(const spmla_shape *shape, const uint32_t *lens, uint32_t gone)
{
	parts_rig_step(&r, shape, lens, gone, ratios, 3);
}

START_TEST(layers_in_parts_give_what_they_give_as_a_whole)
{
	static const spmla_shape shapes[3] = {
		{4, 4, 1, 0}, {8, 4, 2, 0}, {16, 8, 2, 0}};
	const uint32_t rounds = fixture_rounds(12, 2);
	uint32_t i, k;

	for (i = 0; i < rounds; i++) {
		uint32_t lens[PARTS_ROWS];

		for (k = 0; k < PARTS_ROWS; k++)
			lens[k] = 2 +
				  rng_below(&r.rng, rng_below(&r.rng, 2)
							    ? PARTS_LONGEST - 2
							    : 600);
		lens[1] = i % 2 ? PARTS_LONGEST : 2;
		run_step(&shapes[i % 3], lens, 0);
		for (k = 0; k < BOTH; k++)
			ck_assert_uint_eq(fixture_status(&r.sides[k].f).count,
					  0);
	}
}
END_TEST

/* Sixteen tokens, on Hopper twelve whole ones, and twelve parts of the others. */
START_TEST(parts_share_the_tokens_behind_a_round)
{
	static const spmla_shape shape = {16, 8, 2, 0};
	static const uint32_t lens[PARTS_ROWS] = {200, 30,  2,   400,
						  900, 640, 700, 1100};
	uint32_t k;

	run_step(&shape, lens, 0);
	for (k = 0; k < BOTH; k++)
		ck_assert_uint_eq(fixture_status(&r.sides[k].f).count, 0);
}
END_TEST

/* Operations that an attend enqueues. */
static uint32_t
attend_ops(fixture *f, const spmla_v4_layer *layer, const spmla_shape *shape)
{
	const uint32_t before = fixture_pending(f);

	v32_must(f->ctx, spmla_v4_attend(f->ctx, layer, shape, NULL));
	return fixture_pending(f) - before;
}

/* Whether a layer's tokens are done in one launch. */
static uint32_t
is_few(const fixture *f, uint32_t ratio, uint32_t tokens)
{
	const spmla_config *c = &f->plan.config;
	const uint32_t keys = c->window_tokens +
			      (ratio == 128 ? spmla_i_c128a_width(c) : c->topk);

	return spmla_i_few_choose(&f->plan.device, c->kv_layout, tokens,
				  c->heads, keys) != SPMLA_I_FEW_COUNT;
}

/* A layer is done in parts if it has all tokens of its prologue. With ratio 4
 * its selection must be topk's, too: the layer's own, or what the planned
 * buffers hold, also if the caller passes these. */
START_TEST(a_layer_is_done_in_parts_by_what_its_metadata_are_of)
{
	static const spmla_shape shape = {4, 4, 1, 0}, fewer = {3, 3, 1, 0};
	int32_t *own = test_alloc(4 * 512 * sizeof(int32_t), 0);
	const parts_side *side = &r.sides[PARTS];
	const uint32_t adds = parts_launches(&side->f.plan.device);
	uint32_t i, four, more;
	v4_layer_rig rig;
	fixture f;

	/* Not enough for one launch of 4 * 8 blocks. */
	fixture_multiprocessors(24);
	fixture_open(&f, &side->f.config, SPMLA_NATIVE_DEFERRED);
	v4_layer_open(&rig, f.ctx, 1);
	v32_must(f.ctx,
		 spmla_step_prologue(f.ctx, &shape, SPMLA_FROM_DEVICE, NULL));
	for (i = 0; i < 6; i++) {
		spmla_v4_layer l = v4_layer_of(&rig, f.ctx, ratios[i / 2]);

		four = l.ratio == 4;
		more = is_few(&f, l.ratio, shape.tokens) ? 0 : adds;
		if (i % 2)
			l.index_q = NULL;
		ck_assert_uint_eq(attend_ops(&f, &l, &shape),
				  1 + four + (l.ratio == 1 ? 0 : more));
		ck_assert_uint_eq(attend_ops(&f, &l, &fewer), 1 + four);
		l.topk_indices =
			spmla_view(f.ctx, SPMLA_BUF_TOPK_INDICES, NULL);
		l.topk_lens = spmla_view(f.ctx, SPMLA_BUF_TOPK_LENS, NULL);
		ck_assert_uint_eq(attend_ops(&f, &l, &shape),
				  1 + four + (l.ratio == 1 ? 0 : more));
		l.topk_indices = own;
		l.topk_lens = own;
		ck_assert_uint_eq(
			attend_ops(&f, &l, &shape),
			1 + four +
				(l.ratio == 1 || (four && i % 2) ? 0 : more));
	}
	fixture_drain(&f);
	v4_layer_close(&rig);
	fixture_close(&f);
	free(own);
}
END_TEST

/* The end of a prompt may have as few tokens as a decode step, and its prologue
 * makes no metadata: the buffer still has the last step's. */
START_TEST(a_prefill_is_done_whole)
{
	static const spmla_shape decode = {4, 4, 1, 0}, prompt = {6, 1, 6, 0};
	static const uint32_t lens[4] = {700, 300, 1, 130};

	run_step(&decode, lens, 0);
	run_step(&prompt, lens, 0);
}
END_TEST

/* On 132 multiprocessors a round is 132 tokens with 64 heads and 66 with 128.
 * Where the kernel combines the splits, parts share the tokens behind whole
 * rounds, too, if they are at most half a round. */
START_TEST(a_step_is_done_in_parts_if_its_rounds_would_idle)
{
	static const struct {
		uint32_t arch, at_a_time, tokens, whole, parts;
	} cases[] = {
		{90, 132, 66, 0, 132},    {90, 132, 67, 0, 0},
		{90, 132, 132, 0, 0},     {90, 132, 133, 132, 16},
		{90, 132, 140, 132, 128}, {90, 132, 198, 132, 132},
		{90, 132, 199, 0, 0},     {90, 132, 270, 264, 96},
		{100, 132, 66, 0, 132},   {100, 132, 140, 0, 0},
		{90, 66, 33, 0, 66},      {90, 66, 34, 0, 0},
		{90, 66, 66, 0, 0},       {90, 66, 67, 66, 16},
		{90, 66, 96, 66, 60},     {90, 66, 100, 0, 0},
		{90, 66, 296, 264, 64},   {100, 66, 33, 0, 66},
		{100, 66, 67, 0, 0},      {90, 1, 5, 0, 0},
	};
	spmla_device device = {.kind = SPMLA_BACKEND_CUDA};
	uint32_t i;

	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		spmla_i_cut cut;

		device.arch = cases[i].arch;
		cut = spmla_i_cut_tokens(&device, 1, cases[i].tokens,
					 cases[i].at_a_time, 1);
		ck_assert_uint_eq(cut.whole, cases[i].whole);
		ck_assert_uint_eq(cut.parts, cases[i].parts);
	}
	/* Tokens that share a length are not divided. */
	device.arch = 90;
	ck_assert_uint_eq(spmla_i_cut_tokens(&device, 1, 140, 132, 5).whole,
			  130);
}
END_TEST

/* The metadata count keys of which there are fewer then. That the page is
 * missing is reported once, and nothing else. */
static void
without_a_page(const uint32_t *lens)
{
	static const spmla_shape shape = {4, 4, 1, 0};
	uint32_t i;

	run_step(&shape, lens, 1);
	for (i = 0; i < BOTH; i++) {
		const spmla_device_status status =
			fixture_status(&r.sides[i].f);

		ck_assert_uint_eq(status.count, 1);
		ck_assert_uint_eq(status.fault, SPMLA_FAULT_PAGE);
		ck_assert_uint_eq(status.row, 0);
	}
}

START_TEST(a_token_without_a_page_is_empty_in_parts_too)
{
	static const uint32_t lens[4] = {4000, 4000, 1, 130};

	without_a_page(lens);
}
END_TEST

/* A part begins behind the token's one block that is left, and goes on. */
START_TEST(a_part_goes_on_behind_a_token_without_a_page)
{
	static const uint32_t lens[4] = {600, PARTS_LONGEST, PARTS_LONGEST,
					 PARTS_LONGEST};

	without_a_page(lens);
}
END_TEST

SUITE
{
	const theme_test many[] = {
		{layers_in_parts_give_what_they_give_as_a_whole, 1},
		{a_layer_is_done_in_parts_by_what_its_metadata_are_of, 1},
		{a_prefill_is_done_whole, 1},
		{a_step_is_done_in_parts_if_its_rounds_would_idle, 1},
		{a_token_without_a_page_is_empty_in_parts_too, 1},
	};
	const theme_test few[] = {
		{a_part_goes_on_behind_a_token_without_a_page, 1},
	};
	const theme_test long_lists[] = {
		{parts_share_the_tokens_behind_a_round, 1},
	};
	const theme themes[] = {
		THEME("many parts", setup, teardown, many),
		THEME("few parts", setup_few, teardown, few),
		THEME("long lists", setup_long, teardown, long_lists),
	};

	return RUN_THEMES(themes);
}
