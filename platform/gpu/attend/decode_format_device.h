/* SPDX-License-Identifier: Apache-2.0
 *
 * What differs between the kernels for Hopper: the rows of a cache, how many
 * heads a block has, and whether tokens may be split. A decode_format says it,
 * whose fields are all constants of a kernel. Each list of a token may have one
 * of its own. The two differ in nothing but where a row's bytes lie, their
 * encoding and their scales: both or none have rope, a bf16 tail, bf16 codes.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_DECODE_FORMAT_DEVICE_H
#define SPMLA_PLATFORM_GPU_ATTEND_DECODE_FORMAT_DEVICE_H

#include "spmla/platform/gpu/attend/decode_work_device.h"
#include "spmla/platform/gpu/dialect/wgmma.h"

/* The encoding of a row's values. Of bf16 rows, which have no scales, keys are
 * the rows, unchanged. */
enum { DECODE_BF16, DECODE_E4M3, DECODE_FNUZ, DECODE_E2M1 };

/* The type of its scales. Swizzled are 32 in e4m3, of which group s has number
 * 8 (s % 4) + s / 4. */
enum {
	DECODE_SCALE_NONE,
	DECODE_SCALE_F32,
	DECODE_SCALE_UE8M0,
	DECODE_SCALE_E4M3,
	DECODE_SCALE_SWIZZLED
};

/* A kind of row. Either 512 values with scales, and maybe 64 values of rope for
 * scores only; or 448 values with scales, and 64 bf16 values; or bf16 values
 * alone. Its scales have 16 bytes at most, beside e2m1 32. */
typedef struct decode_format {
	uint32_t row_bytes;   /* from row to row of a page */
	uint32_t code;        /* DECODE_BF16, .. */
	uint32_t group;       /* values that share a scale: 128 .. 16 */
	uint32_t scale;       /* DECODE_SCALE_NONE, .. */
	uint32_t scales_byte; /* where a row's scales begin; 0: they lie behind
			       * the page's rows */
	uint32_t rope_byte;   /* 64 values for scores only, in bf16, beside
			       * e2m1 in e4m3; 0: none */
	uint32_t bf16_tail;   /* the last 64 values are bf16 */
	uint32_t lists;       /* a token's lists of keys, at most */
	uint32_t heads;       /* whose queries a block has: DECODE_HEADS, or
			       * DECODE_FEW_HEADS */
	uint32_t whole;       /* there are no parts, so no token is split */
} decode_format;

enum { DECODE_FEW_HEADS = 32 };

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

FN decode_format
decode_fp8_ds_mla(void)
{
	decode_format f;

	f.row_bytes = SPMLA_FP8_DS_MLA_BYTES;
	f.code = DECODE_E4M3;
	f.group = SPMLA_MLA_SCALE_GROUP;
	f.scale = DECODE_SCALE_F32;
	f.scales_byte = SPMLA_FP8_DS_MLA_SCALE_BYTE;
	f.rope_byte = SPMLA_FP8_DS_MLA_ROPE_BYTE;
	f.bf16_tail = 0;
	f.lists = 1;
	f.heads = DECODE_HEADS;
	f.whole = 0;
	return f;
}

FN decode_format
decode_v4_fp8(void)
{
	decode_format f;

	f.row_bytes = SPMLA_V4_VALUE_BYTES;
	f.code = DECODE_E4M3;
	f.group = SPMLA_V4_SCALE_GROUP;
	f.scale = DECODE_SCALE_UE8M0;
	f.scales_byte = 0;
	f.rope_byte = 0;
	f.bf16_tail = 1;
	f.lists = 2;
	f.heads = DECODE_HEADS;
	f.whole = 0;
	return f;
}

/* Rows of 512 bf16 values, followed by 64 of rope if `dim` is 576. */
FN decode_format
decode_bf16(uint32_t dim)
{
	decode_format f;

	f.row_bytes = 2 * dim;
	f.code = DECODE_BF16;
	f.group = SPMLA_MLA_LATENT;
	f.scale = DECODE_SCALE_NONE;
	f.scales_byte = 0;
	f.rope_byte = dim > SPMLA_MLA_LATENT ? 2 * SPMLA_MLA_LATENT : 0;
	f.bf16_tail = 0;
	f.lists = 1;
	f.heads = DECODE_HEADS;
	f.whole = 0;
	return f;
}

/* Format f, with few heads a block. */
FN decode_format
decode_few_heads(decode_format f)
{
	f.heads = DECODE_FEW_HEADS;
	return f;
}

/* Format f, for calls without parts. */
FN decode_format
decode_whole_tokens(decode_format f)
{
	f.whole = 1;
	return f;
}

/* Whether both formats of a kernel are the same. */
FN uint32_t
decode_same_rows(decode_format a, decode_format b)
{
	return a.row_bytes == b.row_bytes && a.code == b.code &&
	       a.group == b.group && a.scale == b.scale &&
	       a.scales_byte == b.scales_byte && a.rope_byte == b.rope_byte;
}

/* Whether the rope part of queries is kept in registers, because its type
 * differs from the other values'. Otherwise it is a panel. */
FN uint32_t
decode_rope_in_registers(decode_format f)
{
	return f.rope_byte && f.code != DECODE_BF16;
}

/* Whether splits of a token are done in turn. Only fixed splits need it, and
 * they cut tokens of one list only. With bf16 rows, whose kernel also serves
 * sparse_prefill, the code of it costs every call a fifth. */
FN uint32_t
decode_in_turn(decode_format f)
{
	return f.lists == 1 && f.code != DECODE_BF16;
}

/* Values of a row that have scales. */
FN uint32_t
decode_coded(decode_format f)
{
	return f.bf16_tail ? 448 : 512;
}

/* How many scales a row has. */
FN uint32_t
decode_groups(decode_format f)
{
	return decode_coded(f) / f.group;
}

/* Bytes of a scale. */
FN uint32_t
decode_scale_size(decode_format f)
{
	return f.scale == DECODE_SCALE_F32 ? 4 : 1;
}

/* The byte of group s's scale, from the row's first scale on. */
FN uint32_t
decode_scale_byte(decode_format f, uint32_t s)
{
	return f.scale == DECODE_SCALE_SWIZZLED ? 8 * (s % 4) + s / 4
						: decode_scale_size(f) * s;
}

/* Bytes of a row's scales. V4's have one that is not used. */
FN uint32_t
decode_scale_bytes(decode_format f)
{
	return (decode_groups(f) * decode_scale_size(f) + 7) / 8 * 8;
}

/* Bytes of 16 values that have scales. */
FN uint32_t
decode_code_bytes(decode_format f)
{
	return f.code == DECODE_E2M1 ? 8 : 16;
}

/* Values 2 i and 2 i + 1 as f16, exact, from codes that begin in x[0]. */
FN uint32_t
decode_code_pair(decode_format f, const PRIVATE uint32_t *x, uint32_t i)
{
	if (f.code == DECODE_E2M1)
		return g_e2m1x2_to_f16x2(x[i / 4] >> 8 * (i % 4));
	if (f.code == DECODE_FNUZ)
		return g_fnuzx2_to_f16x2(x[i / 2] >> 16 * (i % 2));
	return g_e4m3x2_to_f16x2(x[i / 2] >> 16 * (i % 2));
}

/* Four e4m3 or FNUZ values as f16, exact; x[0] has the lower two. */
FN void
decode_code_quad(decode_format f, uint32_t codes, PRIVATE uint32_t *x)
{
	if (f.code == DECODE_FNUZ) {
		x[0] = g_fnuzx2_to_f16x2(codes);
		x[1] = g_fnuzx2_to_f16x2(codes >> 16);
	} else {
		g_e4m3x4_to_f16x4(codes, x);
	}
}

#endif
#endif
