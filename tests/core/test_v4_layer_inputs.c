/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers of both models with inputs of bf16: the tables, the norms' weights and
 * the compressor's rows. What they write are the bits of the same values as
 * f32.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/harness/v32_rig.h"
#include "tests/harness/v4_layer_rig.h"

static void *copies[16];
static uint32_t copy_count;

/* Rounds n floats to bf16 where they lie; returns a copy of bf16. */
static const void *
narrow(const void *floats, uint32_t n)
{
	float *x = (float *)(uintptr_t)floats;
	uint16_t *copy = test_alloc(n * sizeof *copy, 0);
	uint32_t i;

	for (i = 0; i < n; i++) {
		copy[i] = test_bf16(x[i]);
		x[i] = test_bf16_value(copy[i]);
	}
	copies[copy_count++] = copy;
	return copy;
}

static void
free_copies(void)
{
	while (copy_count > 0)
		free(copies[--copy_count]);
}

/* The layer with copies of bf16 in place of floats, which it rounds. */
static spmla_v4_layer
narrow_v4(const v4_layer_rig *r, const spmla_config *c)
{
	spmla_v4_layer l = r->layer;

	l.cos_sin = narrow(l.cos_sin, c->max_context_tokens * 64);
	l.norm_weight = narrow(l.norm_weight, 512);
	l.index_norm_weight = narrow(l.index_norm_weight, 128);
	l.compress_kv = narrow(l.compress_kv, r->tokens * 1024);
	l.compress_score = narrow(l.compress_score, r->tokens * 1024);
	l.index_kv = narrow(l.index_kv, r->tokens * 256);
	l.index_score = narrow(l.index_score, r->tokens * 256);
	l.cos_sin_dtype = SPMLA_REAL_BF16;
	l.norm_dtype = SPMLA_REAL_BF16;
	l.compress_dtype = SPMLA_REAL_BF16;
	return l;
}

/* A step of 4 tokens that ends groups of both ratios, by either layer. */
static uint64_t
run_v4(fixture *f, v4_layer_rig *rig, const spmla_v4_layer *layer,
       uint32_t ratio)
{
	const spmla_shape shape = {16, 8, 4, 0};
	v4_layer_rig as = *rig;
	spmla_v4_layer l;

	as.layer = *layer;
	l = v4_layer_of(&as, f->ctx, ratio);
	v4_layer_reset(rig, f->ctx);
	v4_layer_write(f->ctx, 4, 128);
	v32_must(f->ctx,
		 spmla_step_prologue(f->ctx, &shape, SPMLA_FROM_RING, NULL));
	v32_must(f->ctx, spmla_v4_attn(f->ctx, &l, &shape, NULL, NULL));
	fixture_drain(f);
	ck_assert_uint_eq(fixture_status(f).count, 0);
	return v4_layer_hash(rig, f->ctx);
}

START_TEST(layers_of_v4_have_the_bits_of_f32)
{
	static const uint32_t ratios[3] = {1, 4, 128};
	spmla_v4_layer other;
	spmla_config config;
	v4_layer_rig rig;
	uint64_t before, want;
	fixture f;

	v4_layer_config(&config);
	fixture_open(&f, &config, SPMLA_NATIVE_DEFERRED);
	v4_layer_open(&rig, f.ctx, 1);
	before = run_v4(&f, &rig, &rig.layer, ratios[_i]);
	other = narrow_v4(&rig, &config);
	want = run_v4(&f, &rig, &rig.layer, ratios[_i]);
	ck_assert(before != want); /* the values were rounded */
	ck_assert(run_v4(&f, &rig, &other, ratios[_i]) == want);
	v4_layer_end(&f, &rig);
	free_copies();
}
END_TEST

START_TEST(a_layer_of_v32_has_the_bits_of_f32)
{
	uint64_t hash[3];
	uint32_t i;

	for (i = 0; i < 3; i++) {
		spmla_config config;
		spmla_v32_layer l;
		v32_rig rig;
		fixture f;

		fixture_config(&config);
		fixture_open(&f, &config, 0);
		v32_rig_open(&rig, f.ctx, 0, 9);
		l = rig.layer;
		if (i > 0) {
			l.cos_sin = narrow(l.cos_sin, l.cos_sin_rows * 64);
			l.index_norm_weight = narrow(l.index_norm_weight, 128);
			l.index_norm_bias = narrow(l.index_norm_bias, 128);
			l.cos_sin_dtype = SPMLA_REAL_BF16;
			l.index_norm_dtype = SPMLA_REAL_BF16;
		}
		if (i == 2)
			rig.layer = l;
		hash[i] = v32_rig_decode(&rig, f.ctx, 4);
		hash[i] = test_hash(hash[i], l.index.base,
				    l.index.pages * l.index.page_stride_bytes);
		v32_rig_close(&rig);
		fixture_close(&f);
		free_copies();
	}
	ck_assert(hash[0] != hash[1]);
	ck_assert(hash[1] == hash[2]);
}
END_TEST

SUITE
{
	const theme_test determinism[] = {
		{layers_of_v4_have_the_bits_of_f32, 3},
		{a_layer_of_v32_has_the_bits_of_f32, 1},
	};
	const theme themes[] = {THEME("determinism", NULL, NULL, determinism)};

	return RUN_THEMES(themes);
}
