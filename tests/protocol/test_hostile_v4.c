/* SPDX-License-Identifier: Apache-2.0
 *
 * V4 steps over buffers that hold anything, before the prologue and, as that
 * writes most of them anew, between it and the layers: they run to their end,
 * inside the regions. Layers of each ratio, decode and prefill, index keys of
 * both kinds, steps from every source.
 */

#include "tests/harness/soil.h"
#include "tests/harness/themes.h"
#include "tests/harness/v32_rig.h"
#include "tests/harness/v4_layer_rig.h"

enum { ROUNDS = 60, FEW_ROUNDS = 3, PROMPT = 40, ROWS = 8, LONGEST = 512 };

static fixture f;
static v4_layer_rig rig;
static spmla_config config;

/* _i: whether index keys are MXFP4. */
static void
open_world(uint32_t mxfp4)
{
	v4_layer_config(&config);
	config.max_prefill_tokens = PROMPT;
	config.prefill_workspace_tokens = LONGEST;
	config.flags |= SPMLA_CONFIG_APART;
	if (mxfp4)
		config.index_layout = SPMLA_LAYOUT_INDEX_MXFP4;
	fixture_open(&f, &config, 0);
	v4_layer_open(&rig, f.ctx, 3);
}

static void
close_world(void)
{
	v4_layer_close(&rig);
	fixture_close(&f);
}

/* Requests in STEP_DEVICE of which some are right, with their lengths there or
 * in ROW_LEN. */
static void
draw_requests(uint64_t *rng)
{
	spmla_step_device *d = spmla_view(f.ctx, SPMLA_BUF_STEP_DEVICE, NULL);
	spmla_request *requests = (spmla_request *)(d + 1);
	int32_t *row_len = spmla_view(f.ctx, SPMLA_BUF_ROW_LEN, NULL);
	const uint32_t lens = rng_below(rng, 2);
	uint32_t i;

	d->requests = rng_below(rng, ROWS + 1);
	d->flags = rng_below(rng, 2) ? SPMLA_STEP_LENS_ON_DEVICE : 0;
	for (i = 0; i < ROWS; i++) {
		requests[i].row = rng_below(rng, ROWS + 1);
		requests[i].query_tokens = rng_below(rng, 5);
		requests[i].seq_len_tokens = rng_below(rng, LONGEST + 8);
		requests[i].flags = 0;
		if (lens)
			row_len[i] = (int32_t)rng_below(rng, LONGEST + 8);
	}
}

static void
run_layers(const spmla_shape *shape)
{
	static const uint32_t ratios[3] = {1, 4, 128};
	uint32_t i;

	for (i = 0; i < 3; i++) {
		const spmla_v4_layer l = v4_layer_of(&rig, f.ctx, ratios[i]);

		v32_must(f.ctx, spmla_v4_attn(f.ctx, &l, shape, NULL, NULL));
	}
}

START_TEST(any_bytes_before_and_behind_the_prologue_give_an_end)
{
	static const spmla_source sources[3] = {
		SPMLA_FROM_RING, SPMLA_FROM_DEVICE, SPMLA_ADVANCE};
	static const spmla_shape prompt = {PROMPT, 2, PROMPT, 0};
	const uint32_t rounds = fixture_rounds(ROUNDS, FEW_ROUNDS);
	uint64_t rng = test_seed() + 78;
	uint32_t round, i;

	open_world((uint32_t)_i);
	for (round = 0; round < rounds; round++) {
		const spmla_shape *shape =
			rng_below(&rng, 4) ? &config.buckets[rng_below(&rng, 3)]
					   : &prompt;
		const uint64_t done = soil_begin(&f);

		soil_buffers(&f, &rng, 2);
		if (rng_below(&rng, 2))
			draw_requests(&rng);
		if (rng_below(&rng, 2))
			v4_layer_write(f.ctx, 1 + rng_below(&rng, 4),
				       128 + rng_below(&rng, 300));
		for (i = 0; i < 3; i++) {
			v32_must(f.ctx, spmla_step_prologue(f.ctx, shape,
							    sources[i], NULL));
			if (rng_below(&rng, 2))
				soil_buffers(&f, &rng, 4);
			run_layers(shape);
		}
		soil_end(&f, done);
	}
	ck_assert_uint_gt(fixture_status(&f).count, 0);
	close_world();
}
END_TEST

SUITE
{
	const theme_test hostile[] = {
		{any_bytes_before_and_behind_the_prologue_give_an_end, 2},
	};
	const theme themes[] = {THEME("hostile", NULL, NULL, hostile)};

	return RUN_THEMES(themes);
}
