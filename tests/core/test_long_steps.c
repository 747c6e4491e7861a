/* SPDX-License-Identifier: Apache-2.0
 *
 * A step that is longer than any decode step is attended in pieces. It has the
 * bits and the reports of one piece, and all buffers of a piece are used.
 */
#include <stdlib.h>
#include <string.h>

#include "spmla/ops/inv_rope_quant.h"

#include "tests/harness/themes.h"
#include "tests/harness/v32_rig.h"
#include "tests/harness/v4_layer_rig.h"

enum { LONG = 1100, PIECE = 1024, PAGE = 64, COLUMNS = 18, POISON = 0xC7 };

static const spmla_shape prompt = {LONG, 8, LONG, 0};

/* In pieces; whole: a bucket as long as the step, which has too many tokens of
 * a request for it. */
static void
make_long(spmla_config *c, uint32_t whole, uint32_t flags)
{
	c->heads = 2;
	c->max_context_tokens = LONG;
	c->flags = flags;
	c->max_prefill_tokens = LONG;
	c->bucket_count = 1;
	c->buckets[0] = (spmla_shape){whole ? LONG : 16, 8, 1, 0};
}

/* Row 0 joins with a prompt, the last tokens of the context. Its pages are 1 and
 * up; a table of C128A without its last column lacks keys. */
static void
write_prompt(spmla_ctx *ctx, uint32_t short_by)
{
	static const uint32_t groups[] = {0, 1, 2, 4, 5};
	const spmla_plan *plan = spmla_ctx_plan(ctx);
	const spmla_request request = {0, LONG, plan->config.max_context_tokens,
				       SPMLA_REQUEST_JOIN};
	const uint32_t v32 = plan->config.model == SPMLA_MODEL_V32;
	spmla_step step = SPMLA_STEP_INIT;
	spmla_table_store stores[5];
	int32_t pages[COLUMNS + 1];
	uint64_t ticket;
	uint32_t i;

	for (i = 0; i <= COLUMNS; i++)
		pages[i] = (int32_t)(i + 1);
	for (i = 0; i < (v32 ? 1 : 5); i++) {
		const uint32_t g = groups[i], n = plan->group_columns[g];

		ck_assert_uint_le(n, COLUMNS + 1);
		stores[i] = (spmla_table_store){
			g, 0, 0, g == SPMLA_GROUP_C128A ? n - short_by : n,
			pages};
	}
	step.request_count = 1;
	step.requests = &request;
	step.store_count = i;
	step.stores = stores;
	v32_must(ctx, spmla_step_write(ctx, &step, &ticket, NULL));
	v32_must(ctx, spmla_step_prologue(ctx, &prompt, SPMLA_FROM_RING, NULL));
}

/* Bytes of a buffer that still are poison, of 100. */
static uint64_t
untouched(const fixture *f, spmla_buf buf)
{
	uint64_t bytes, left = 0, i;
	const uint8_t *p = spmla_view(f->ctx, buf, &bytes);

	ck_assert_ptr_nonnull(p);
	for (i = 0; i < bytes; i++)
		left += p[i] == POISON;
	return left * 100 / bytes;
}

static void
poison(const fixture *f, spmla_buf buf)
{
	uint64_t bytes;
	void *p = spmla_view(f->ctx, buf, &bytes);

	memset(p, POISON, bytes);
}

/* ---- V4 ------------------------------------------------------------------ */

static void
v4_config(spmla_config *c, uint32_t whole, uint32_t flags)
{
	static const uint32_t page_tokens[SPMLA_V4_GROUPS] = {PAGE, PAGE, 128,
							      0,    8,    128};
	uint32_t g;

	v4_layer_config(c);
	make_long(c, whole, flags);
	for (g = 0; g < SPMLA_V4_GROUPS; g++) {
		c->groups[g].page_tokens = page_tokens[g];
		c->groups[g].pool_pages = COLUMNS + 2;
	}
}

/* One layer over the prompt; a hash of all that it writes. *count: reports. */
static uint64_t
v4_prompt(uint32_t whole, uint32_t flags, uint32_t ratio, uint32_t short_by,
	  uint32_t *count)
{
	spmla_config config;
	spmla_v4_layer l;
	v4_layer_rig rig;
	uint64_t hash;
	fixture f;

	v4_config(&config, whole, flags);
	fixture_open(&f, &config, SPMLA_NATIVE_DEFERRED);
	v4_layer_open(&rig, f.ctx, 1);
	v4_layer_reset(&rig, f.ctx);
	write_prompt(f.ctx, short_by);
	l = v4_layer_of(&rig, f.ctx, ratio);
	/* Again: a layer leaves its last piece for the next. */
	v32_must(f.ctx, spmla_v4_attn(f.ctx, &l, &prompt, NULL, NULL));
	v32_must(f.ctx, spmla_v4_attend(f.ctx, &l, &prompt, NULL));
	fixture_drain(&f);
	*count = fixture_status(&f).count;
	hash = test_hash(v4_layer_hash(&rig, f.ctx), l.lse,
			 LONG * config.heads * sizeof *l.lse);
	v4_layer_end(&f, &rig);
	return hash;
}

/* In a plan for e4m3, bf16 output has two pieces for 16 tokens of a bucket and
 * three for a prompt. */
START_TEST(output_wider_than_the_plan_has_the_same_bits)
{
	const spmla_shape shapes[2] = {{16, 8, 1, 0}, prompt};
	uint64_t hash[2];
	uint32_t i;

	for (i = 0; i < 2; i++) {
		spmla_config config;
		v4_layer_rig rig;
		fixture f;

		v4_config(&config, 0, 0);
		config.max_prefill_tokens = _i ? LONG : 0;
		config.output_quant = i ? SPMLA_O_FP8 : SPMLA_O_BF16;
		fixture_open(&f, &config, 0);
		v4_layer_open(&rig, f.ctx, 3);
		memcpy(rig.layer.out, rig.layer.q, rig.out_bytes);
		poison(&f, SPMLA_BUF_OUTPUT_SCALES); /* behind OUTPUT_O */
		v32_must(f.ctx, spmla_step_prologue(f.ctx, &shapes[_i],
						    SPMLA_FROM_DEVICE, NULL));
		v32_must(f.ctx,
			 spmla_v4_output(f.ctx, &rig.layer, &shapes[_i], NULL));
		hash[i] = test_hash(1, rig.layer.z, rig.z_bytes);
		ck_assert_uint_eq(untouched(&f, SPMLA_BUF_OUTPUT_SCALES), 100);
		v4_layer_end(&f, &rig);
	}
	ck_assert(hash[0] == hash[1]);
}
END_TEST

START_TEST(pieces_of_v4_have_the_bits_of_the_whole)
{
	static const uint32_t ratios[3] = {1, 4, 128};
	const uint32_t ratio = ratios[_i % 3];
	const uint32_t flags = _i / 3 ? SPMLA_CONFIG_RAGGED : 0;
	uint32_t count[2];

	ck_assert(v4_prompt(1, flags, ratio, 0, &count[0]) ==
		  v4_prompt(0, flags, ratio, 0, &count[1]));
	ck_assert_uint_eq(count[0], 0);
	ck_assert_uint_eq(count[1], 0);
}
END_TEST

/* Key 7 has no page: tokens that see it are empty, and reported by the prologue
 * alone. */
START_TEST(token_without_a_page_is_empty_in_pieces_too)
{
	uint32_t count[2];

	ck_assert(v4_prompt(1, 0, 128, 2, &count[0]) ==
		  v4_prompt(0, 0, 128, 2, &count[1]));
	ck_assert_uint_ge(count[0], LONG % 128);
	ck_assert_uint_eq(count[0], count[1]);
}
END_TEST

/* ---- V3.2 ---------------------------------------------------------------- */

static uint64_t
v32_prompt(uint32_t whole, uint32_t flags)
{
	spmla_config config;
	uint64_t hash;
	v32_rig rig;
	fixture f;

	fixture_config(&config);
	make_long(&config, whole, flags);
	config.groups[0].page_tokens = PAGE;
	config.groups[0].pool_pages = COLUMNS + 2;
	fixture_open(&f, &config, SPMLA_NATIVE_DEFERRED);
	v32_rig_open(&rig, f.ctx, 0, 5);
	write_prompt(f.ctx, 0);
	v32_must(f.ctx, spmla_v32_prefill(f.ctx, &rig.layer, &prompt, NULL));
	fixture_drain(&f);
	ck_assert_uint_eq(fixture_status(&f).count, 0);
	hash = test_hash(test_hash(1, rig.out, rig.out_bytes), rig.lse,
			 rig.lse_bytes);
	v32_rig_close(&rig);
	fixture_close(&f);
	return hash;
}

START_TEST(pieces_of_v32_have_the_bits_of_the_whole)
{
	const uint32_t flags = _i ? SPMLA_CONFIG_RAGGED : 0;

	ck_assert(v32_prompt(1, flags) == v32_prompt(0, flags));
}
END_TEST

/* ---- What is touched ----------------------------------------------------- */

/* As e4m3 the output fills its half. The scales and the sign of zeros do not
 * matter: the weights are any. */
static void
output_as(const v4_layer_rig *rig, spmla_v4_layer *l, uint32_t quant)
{
	l->output_quant = quant;
	if (quant == SPMLA_O_BF16)
		return;
	l->wo_scales = rig->layer.cos_sin;
	l->wo_scale_group_stride_elems = 4;
	l->wo_scale_row_stride_elems = 4;
}

/* The longest step leaves little of the buffers of a piece alone. The last
 * tokens of the context have 119 to 128 keys of C128A in rows of 128. */
START_TEST(buffers_of_a_piece_are_all_used)
{
	static const struct {
		spmla_buf buf;
		uint64_t most;
	} bufs[] = {
		{SPMLA_BUF_TOPK_SLOTS, 5},
		{SPMLA_BUF_C4A_LENS, 5},
		{SPMLA_BUF_C128A_INDICES, 5},
		{SPMLA_BUF_OUTPUT_O, 5},
	};
	static const uint32_t ratios[2] = {4, 128};
	spmla_config config;
	v4_layer_rig rig;
	uint32_t i;
	fixture f;

	v4_config(&config, 0, SPMLA_CONFIG_APART);
	config.max_context_tokens = 128 * 128;
	config.groups[SPMLA_GROUP_C4A].page_tokens = 1024;
	config.groups[SPMLA_GROUP_C128A].page_tokens = 1024;
	config.output_quant = (uint32_t)_i;
	fixture_open(&f, &config, SPMLA_NATIVE_DEFERRED);
	v4_layer_open(&rig, f.ctx, 1);
	for (i = 0; i < sizeof bufs / sizeof bufs[0]; i++)
		poison(&f, bufs[i].buf);
	write_prompt(f.ctx, 0);
	for (i = 0; i < 2; i++) {
		spmla_v4_layer l = v4_layer_of(&rig, f.ctx, ratios[i]);

		output_as(&rig, &l, config.output_quant);
		v32_must(f.ctx, spmla_v4_attn(f.ctx, &l, &prompt, NULL, NULL));
		fixture_drain(&f);
	}
	for (i = 0; i < sizeof bufs / sizeof bufs[0]; i++)
		ck_assert_uint_le(untouched(&f, bufs[i].buf), bufs[i].most);
	v4_layer_end(&f, &rig);
}
END_TEST

SUITE
{
	const theme_test determinism[] = {
		{output_wider_than_the_plan_has_the_same_bits, 2},
		{pieces_of_v4_have_the_bits_of_the_whole, 6},
		{pieces_of_v32_have_the_bits_of_the_whole, 2},
	};
	const theme_test error[] = {
		{token_without_a_page_is_empty_in_pieces_too, 1},
	};
	const theme_test layout[] = {
		{buffers_of_a_piece_are_all_used, 2},
	};
	const theme themes[] = {
		THEME("determinism", NULL, NULL, determinism),
		THEME("error", NULL, NULL, error),
		THEME("layout", NULL, NULL, layout),
	};

	return RUN_THEMES(themes);
}
