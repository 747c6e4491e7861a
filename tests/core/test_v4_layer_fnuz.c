/* SPDX-License-Identifier: Apache-2.0
 *
 * A V4 layer whose caches are in FNUZ: their rows have the codes of e4m3fn with
 * scales of twice that, so they are the same keys, and the layer's results the
 * same bits wherever the same kernel reads both.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/harness/v32_rig.h"
#include "tests/harness/v4_layer_rig.h"

typedef struct side {
	fixture f;
	v4_layer_rig rig;
} side;

static side sides[2]; /* e4m3fn, FNUZ */

/* Bits of `which`: window, compressed keys, index keys. */
static void
run_side(side *s, uint32_t which, const spmla_shape *shape, uint32_t query,
	 uint32_t ratio)
{
	spmla_v4_layer layer;
	spmla_config config;

	v4_layer_config(&config);
	config.max_prefill_tokens = 20;
	fixture_open(&s->f, &config, SPMLA_NATIVE_DEFERRED);
	v4_layer_open(&s->rig, s->f.ctx, 1);
	layer = v4_layer_of(&s->rig, s->f.ctx, ratio);
	layer.swa.encoding = which & 1;
	layer.compressed.encoding = which >> 1 & 1;
	layer.index.encoding = which >> 2 & 1;
	v4_layer_write(s->f.ctx, query, query);
	v32_must(s->f.ctx,
		 spmla_step_prologue(s->f.ctx, shape, SPMLA_FROM_RING, NULL));
	v32_must(s->f.ctx, spmla_v4_attn(s->f.ctx, &layer, shape, NULL, NULL));
	fixture_drain(&s->f);
	ck_assert_uint_eq(fixture_status(&s->f).count, 0);
}

/* Matrix instructions read e4m3fn alone, and add in another order. */
static uint32_t
one_kernel_reads_both(void)
{
	const char *width = getenv("SPMLA_TEST_EMULATOR");

	return fixture_on_cpu() ||
	       (!fixture_on_gpu() && width && strcmp(width, "32") != 0);
}

/* Each cache alone, and all. */
START_TEST(caches_in_fnuz_give_the_same_results)
{
	static const spmla_shape shapes[2] = {{16, 8, 4, 0}, {20, 8, 20, 0}};
	static const uint32_t query[2] = {4, 18}, ratios[3] = {1, 4, 128};
	static const uint32_t which[4] = {1, 2, 4, 7};
	const uint32_t set = which[_i / 6];
	const uint8_t *window[2];
	uint64_t bytes, i, differ = 0;
	uint32_t k;

	for (k = 0; k < 2; k++) {
		run_side(&sides[k], k ? set : 0, &shapes[_i % 2], query[_i % 2],
			 ratios[_i / 2 % 3]);
		window[k] =
			spmla_view(sides[k].f.ctx, SPMLA_BUF_KV_CACHE, &bytes);
	}
	for (i = 0; i < bytes; i++)
		differ += window[0][i] != window[1][i];
	if (set & 1)
		ck_assert_uint_ge(differ, 7 * query[_i % 2]); /* scales */
	else
		ck_assert_uint_eq(differ, 0);
	if (one_kernel_reads_both())
		ck_assert_mem_eq(sides[0].rig.layer.out, sides[1].rig.layer.out,
				 sides[0].rig.out_bytes);
	for (k = 0; k < 2; k++)
		v4_layer_end(&sides[k].f, &sides[k].rig);
}
END_TEST

START_TEST(other_encodings_and_layouts_are_refused)
{
	static const spmla_shape shape = {4, 4, 1, 0};
	const char *want = "SPMLA_E_RANGE: v4_layer.compressed.encoding: got "
			   "2, want at most 1";
	side *s = &sides[0];

	v4_layer_begin(&s->f, &s->rig, &shape);
	s->rig.layer.swa.encoding = 2;
	v4_layer_expect(&s->f, spmla_v4_insert, &s->rig.layer, &shape, 0,
			"SPMLA_E_RANGE: v4_layer.swa.encoding: got 2, want at "
			"most 1");
	s->rig.layer.swa.encoding = SPMLA_E4M3_FNUZ;
	s->rig.layer.compressed.encoding = 2;
	v4_layer_expect(&s->f, spmla_v4_compress, &s->rig.layer, &shape, 0,
			want);
	v4_layer_end(&s->f, &s->rig);
}
END_TEST

SUITE
{
	const theme_test c[] = {
		{caches_in_fnuz_give_the_same_results, 24},
		{other_encodings_and_layouts_are_refused, 1},
	};
	const theme themes[] = {
		THEME("fnuz", NULL, NULL, c),
	};

	return RUN_THEMES(themes);
}
