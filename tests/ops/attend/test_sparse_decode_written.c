/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode over rows that kv_insert wrote, and without an lse.
 */
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/ops/attend/decode_world.h"

#include "spmla/ops/kv_insert.h"

static fixture f;
static decode_world w;

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	config.heads = 8;
	fixture_open(&f, &config, 0);
	decode_open(&w, SPMLA_LAYOUT_MLA_BF16, 8, 64, 20);
}

static void
teardown(void)
{
	decode_close(&w);
	fixture_close(&f);
}

START_TEST(what_is_optional_may_be_missing)
{
	spmla_sparse_decode_args none = {.struct_bytes = sizeof none};

	ck_assert_int_eq(spmla_sparse_decode(f.ctx, &none, NULL), SPMLA_OK);
	decode_choose(&w);
	w.a.lse = NULL;
	w.a.lse_head_stride_elems = w.a.lse_token_stride_elems = 0;
	decode_check(&f, &w);
}
END_TEST

/* What kv_insert writes with each scale rule, and zero queries read back from
 * one key. Tile 0 is full of 336: POW2 gives scale 1 and a tie of 320 and 352,
 * 320; RAW 0.75 and 448. Tile 1 is zeros. Tile 2 has 448 and 3.3 (bf16
 * 3.296875): scale 1, and 3.25 in steps of 1/4; tile 3 is -7: scale 2^-6 and
 * -448, by both rules. */
START_TEST(inserted_row_is_read_as_it_was_written)
{
	static uint16_t latent[512], rope[64];
	static const int64_t slot[1] = {77};
	const float want[4] = {_i ? 336 : 320, 0, 3.25f, -7};
	spmla_kv_insert_args in = {.struct_bytes = sizeof in,
				   .tokens = 1,
				   .scale_mode = _i ? SPMLA_SCALE_RAW
						    : SPMLA_SCALE_POW2,
				   .kv_c = latent,
				   .k_pe = rope,
				   .kv_c_stride_elems = 512,
				   .k_pe_stride_elems = 64,
				   .slot_mapping = slot};
	uint32_t i;

	decode_close(&w);
	decode_open(&w, SPMLA_LAYOUT_FP8_DS_MLA, 8, 64, 20);
	for (i = 0; i < 512; i++)
		latent[i] = test_bf16(i < 128   ? 336
				      : i < 256 ? 0
				      : i < 384 ? 3.3f
						: -7);
	latent[256] = test_bf16(448);
	in.cache = w.a.cache;
	ck_assert_int_eq(spmla_kv_insert(f.ctx, &in, NULL), SPMLA_OK);
	memset(w.q, 0, 8 * (REF_DIM + 8) * 2);
	w.slots[13] = 77;
	decode_check(&f, &w);
	ck_assert_uint_eq(decode_out(&w, 0, 5)[256], test_bf16(448));
	for (i = 0; i < 512; i++)
		if (i != 256)
			ck_assert_uint_eq(decode_out(&w, 0, 5)[i],
					  test_bf16(want[i / 128]));
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{inserted_row_is_read_as_it_was_written, 2},
	};
	const theme_test error[] = {
		{what_is_optional_may_be_missing, 1},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
		THEME("error", setup, teardown, error),

	};

	return RUN_THEMES(themes);
}
