/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode at the shapes that models have, every value compared with dense
 * attention in double: 128 and 64 heads, 2048 keys of V3.2, 128 + 512 and 128 +
 * 1024 of V4, 1 to 128 tokens, in each way that a device has for them. Needles
 * with 16 and 8 heads, too. Elsewhere the same program runs on small shapes.
 */
#include <stdlib.h>

#include "tests/harness/themes.h"
#include "tests/ops/attend/shape_rig.h"

enum {
	MODELS = 3,
	HEADS = 2,
	NEEDLE_HEADS = 4,
	BATCHES = 8,
	CASES = MODELS * HEADS,
	NEEDLE_CASES = MODELS * NEEDLE_HEADS
};

static fixture f;
static shape_rig r;
static const uint32_t *batches;

static void
open_shape(uint32_t model, uint32_t nth_heads)
{
	static const uint32_t real[BATCHES] = {1, 2, 4, 8, 12, 33, 67, 128};
	static const uint32_t small[BATCHES] = {1, 3, 0};
	static const uint32_t keys[2][MODELS][2] = {
		{{200, 0}, {70, 130}, {70, 600}},
		{{2048, 0}, {128, 512}, {128, 1024}}};
	static const uint32_t heads[2][NEEDLE_HEADS] = {{40, 16, 8, 8},
							{128, 64, 16, 8}};
	const uint32_t *of;
	spmla_config config;

	ck_assert_int_eq(spmla_config_operations(&config), SPMLA_OK);
	fixture_open(&f, &config, 0);
	of = keys[fixture_on_real_gpu(&f)][model];
	batches = fixture_on_real_gpu(&f) ? real : small;
	shape_open(&r, &f,
		   model ? SPMLA_LAYOUT_V4_FP8 : SPMLA_LAYOUT_FP8_DS_MLA,
		   heads[fixture_on_real_gpu(&f)][nth_heads], of[0], of[1],
		   fixture_on_real_gpu(&f) ? 128 : 3);
}

/* Case n: the model, then the heads. */
static void
open_case(int n)
{
	open_shape((uint32_t)n / HEADS, (uint32_t)n % HEADS);
}

static void
close_case(void)
{
	shape_close(&r);
	fixture_close(&f);
}

START_TEST(every_value_is_that_of_dense_attention)
{
	uint32_t i, way;

	open_case(_i);
	shape_reference(&r, fixture_on_real_gpu(&f) ? 128 : 3);
	for (i = 0; i < BATCHES && batches[i]; i++)
		for (way = 0; way < SHAPE_WAYS; way++) {
			if (!shape_has(&r, &f, batches[i], (shape_way)way))
				continue;
			shape_run(&r, &f, batches[i], (shape_way)way);
			shape_check(&r, batches[i], (shape_way)way);
		}
	close_case();
}
END_TEST

/* The first, the last and some keys between, each dropped and each doubled: on a
 * device in every way, else in one of them. */
START_TEST(a_key_that_is_dropped_or_doubled_is_seen)
{
	char text[160];
	uint32_t n, i, way;

	open_case(_i);
	shape_reference(&r, 1);
	n = r.keys[0] + r.keys[1];
	for (i = 0; i < 8; i++) {
		const uint32_t at = i * (n - 1) / 7;
		int32_t *entry = shape_entry(&r, 0, at);
		const int32_t slot = *entry;
		/* A neighbour in the same list is what the other becomes. */
		const int32_t other = *shape_entry(
			&r, 0, at == 0 || at == r.keys[0] ? at + 1 : at - 1);

		for (way = 0; way < SHAPE_WAYS; way++) {
			if (!fixture_on_real_gpu(&f) && way != i % SHAPE_WAYS)
				continue;
			*entry = -1;
			shape_run(&r, &f, 1, (shape_way)way);
			ck_assert_uint_gt(shape_wrong(&r, 1, text, sizeof text),
					  0);
			*entry = other;
			shape_run(&r, &f, 1, (shape_way)way);
			ck_assert_uint_gt(shape_wrong(&r, 1, text, sizeof text),
					  0);
			*entry = slot;
		}
	}
	close_case();
}
END_TEST

/* Places for a needle: all of them on a device, else the borders of blocks. */
static uint32_t
next_place(uint32_t at)
{
	for (at++; !fixture_on_real_gpu(&f) && at % 64 > 0 && at % 64 < 63;
	     at++)
		;
	return at;
}

/* Token t has it at the t-th place from `first` on; returns the place behind
 * the last token's. */
static uint32_t
put_needles(uint32_t tokens, uint32_t first, uint32_t *place, int32_t *was)
{
	const uint32_t n = r.keys[0] + r.keys[1];
	uint32_t t;

	for (t = 0; t < tokens; t++) {
		place[t] = first < n ? first : n - 1;
		was[t] = *shape_entry(&r, t, place[t]);
		*shape_entry(&r, t, place[t]) = shape_needle(&r, place[t]);
		first = next_place(first);
	}
	return first;
}

/* _i: the model, then the heads; 16 and 8 on a device only. */
START_TEST(a_needle_is_found_wherever_it_lies)
{
	static const uint32_t real[4] = {2, 4, 12, 66};
	const uint32_t nth = (uint32_t)_i % NEEDLE_HEADS;
	uint32_t place[128], i, t, way, at;
	int32_t was[128];

	if (nth >= HEADS && !fixture_on_gpu())
		return;
	open_shape((uint32_t)_i / NEEDLE_HEADS, nth);
	r.a.attn_sink = NULL;
	for (i = 0; i < (fixture_on_real_gpu(&f) ? 4 : nth < HEADS); i++) {
		const uint32_t tokens = fixture_on_real_gpu(&f) ? real[i] : 3;
		/* For the kernels with the workspace alone. */
		const int few = tokens == 4 || tokens == 12;
		const uint32_t first = few ? SHAPE_WORKSPACE : 0;
		const uint32_t last = few ? SHAPE_WORKSPACE : SHAPE_WAYS - 1;

		for (at = 0; at < r.keys[0] + r.keys[1];) {
			at = put_needles(tokens, at, place, was);
			for (way = first; way <= last; way++) {
				if (!shape_has(&r, &f, tokens, (shape_way)way))
					continue;
				shape_run(&r, &f, tokens, (shape_way)way);
				for (t = 0; t < tokens; t++)
					ck_assert_msg(
						shape_is_needle(&r, t),
						"%u tokens, way %u, token %u: "
						"needle at %u",
						tokens, way, t, place[t]);
			}
			for (t = 0; t < tokens; t++)
				*shape_entry(&r, t, place[t]) = was[t];
		}
	}
	close_case();
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{every_value_is_that_of_dense_attention, CASES},
		{a_key_that_is_dropped_or_doubled_is_seen, CASES},
		{a_needle_is_found_wherever_it_lies, NEEDLE_CASES},
	};
	const theme themes[] = {THEME("shape", NULL, NULL, shape)};

	return RUN_THEMES(themes);
}
