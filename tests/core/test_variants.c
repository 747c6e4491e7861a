/* SPDX-License-Identifier: Apache-2.0
 *
 * Which kernel an operation launches, by the device and the call. Kernels of an
 * operation have the same bits or meet the same bound, so no other suite would
 * see a call that takes the wrong one.
 */
#include <check.h>
#include <string.h>

#include "spmla/platform/gpu/launch.h"
#include "tests/harness/themes.h"

#define PREFIX "spmla_k_"

enum { RESIDENT = 528 }; /* blocks of a kernel that an H100 may hold */

static spmla_ctx ctx;
static uint32_t resident[SPMLA_KERNEL_COUNT];
static _Alignas(16) uint8_t memory[64];

/* The platform, if it is not CUDA. */
static uint32_t platform;

/* What the last call launched first. */
static struct {
	const char *name;
	uint32_t blocks;
	uint32_t count;
} launched;

static spmla_status
note(const spmla_i_gpu_queue *queue, spmla_i_kernel kernel, uint32_t blocks,
     const void *params)
{
	(void)queue;
	(void)params;
	if (launched.count++ == 0) {
		launched.name = spmla_i_gpu_kernels[kernel].name;
		launched.blocks = blocks;
	}
	return SPMLA_OK;
}

/* The stem of the kernel that a device of this arch launches. */
static const char *
kernel_on(uint32_t arch, spmla_op op, const void *args)
{
	const spmla_i_gpu_queue queue = {&ctx, NULL, note, resident};
	static spmla_plan plan;
	uint32_t i;

	plan.device.kind = platform ? platform : SPMLA_BACKEND_CUDA;
	plan.device.arch = arch;
	plan.config.flags = ctx.plan.config.flags;

	for (i = 0; i < SPMLA_KERNEL_COUNT; i++)
		resident[i] = spmla_i_gpu_runs((spmla_i_kernel)i, &plan)
				      ? RESIDENT
				      : 0;
	memset(&launched, 0, sizeof launched);
	ck_assert_int_eq(spmla_i_gpu_enqueue(&queue, op, args), SPMLA_OK);
	ck_assert_uint_ge(launched.count, 1);
	ck_assert(strncmp(launched.name, PREFIX, strlen(PREFIX)) == 0);
	return launched.name + strlen(PREFIX);
}

static const char *
decode(uint32_t arch, uint32_t layout, uint32_t tokens, uint32_t heads,
       uint32_t parts)
{
	spmla_sparse_decode_args a;

	memset(&a, 0, sizeof a);
	a.cache.layout = layout;
	a.tokens = tokens;
	a.heads = heads;
	a.parts = parts;
	return kernel_on(arch, SPMLA_OP_sparse_decode, &a);
}

START_TEST(decode_takes_the_instructions_of_its_device)
{
	static const struct {
		uint32_t arch, layout;
		const char *want;
		uint32_t blocks; /* of 8 tokens with 128 heads */
	} c[] = {
		{90, SPMLA_LAYOUT_FP8_DS_MLA, "sparse_decode_wgmma_pair", 16},
		{100, SPMLA_LAYOUT_FP8_DS_MLA, "sparse_decode_mma", 16},
		{80, SPMLA_LAYOUT_FP8_DS_MLA, "sparse_decode_mma", 16},
		/* No room for 64 heads. */
		{89, SPMLA_LAYOUT_FP8_DS_MLA, "sparse_decode_mma_few", 64},
		{75, SPMLA_LAYOUT_FP8_DS_MLA, "sparse_decode", 64},
		{90, SPMLA_LAYOUT_V4_FP8, "sparse_decode_wgmma_v4_pair", 16},
		{80, SPMLA_LAYOUT_V4_FP8, "sparse_decode_mma_v4", 16},
		{89, SPMLA_LAYOUT_V4_FP8, "sparse_decode_mma_v4_few", 64},
		{75, SPMLA_LAYOUT_V4_FP8, "sparse_decode", 64},
		{90, SPMLA_LAYOUT_MLA_BF16, "sparse_bf16_wgmma", 16},
		{80, SPMLA_LAYOUT_MLA_BF16, "sparse_bf16_mma", 64},
		{75, SPMLA_LAYOUT_MLA_BF16, "sparse_decode", 64},
	};
	uint32_t i;

	for (i = 0; i < SPMLA_I_COUNT(c); i++) {
		ck_assert_str_eq(decode(c[i].arch, c[i].layout, 8, 128, 0),
				 c[i].want);
		ck_assert_uint_eq(launched.blocks, c[i].blocks);
	}
}
END_TEST

START_TEST(small_decode_takes_16_heads_a_block)
{
	static const struct {
		uint32_t tokens, heads, parts;
		const char *want;
		uint32_t blocks;
	} c[] = {
		{2, 128, 66, "sparse_decode_mma_few", 528},    /* 66 * 8 */
		{3, 128, 66, "sparse_decode_wgmma_pair", 132}, /* 66 * 2 */
		{2, 128, 0, "sparse_decode_wgmma_pair", 4},
		{4, 64, 132, "sparse_decode_mma_few", 528},
		{5, 64, 132, "sparse_decode_wgmma", 132},
		{100, 33, 0, "sparse_decode_wgmma", 100},
		{100, 32, 0, "sparse_decode_wgmma_32", 100},
		{1, 1, 0, "sparse_decode_wgmma_32", 1},
		{16, 16, 132, "sparse_decode_mma_few", 132},
		{17, 16, 132, "sparse_decode_wgmma_32", 132},
	};
	uint32_t i;

	for (i = 0; i < SPMLA_I_COUNT(c); i++) {
		ck_assert_str_eq(decode(90, SPMLA_LAYOUT_FP8_DS_MLA,
					c[i].tokens, c[i].heads, c[i].parts),
				 c[i].want);
		ck_assert_uint_eq(launched.blocks, c[i].blocks);
	}
	ck_assert_str_eq(decode(90, SPMLA_LAYOUT_V4_FP8, 4, 64, 132),
			 "sparse_decode_mma_v4_few");
	/* On others with room for 64, up to 16 heads are always small. */
	ck_assert_str_eq(decode(80, SPMLA_LAYOUT_FP8_DS_MLA, 100, 16, 0),
			 "sparse_decode_mma_few");
	ck_assert_str_eq(decode(80, SPMLA_LAYOUT_FP8_DS_MLA, 100, 17, 0),
			 "sparse_decode_mma");
	ck_assert_str_eq(decode(90, SPMLA_LAYOUT_V4_FP8, 5, 64, 132),
			 "sparse_decode_wgmma_v4");
	ck_assert_str_eq(decode(90, SPMLA_LAYOUT_V4_FP8, 5, 16, 0),
			 "sparse_decode_wgmma_v4_32");
	ck_assert_str_eq(decode(90, SPMLA_LAYOUT_MLA_BF16, 5, 16, 0),
			 "sparse_bf16_wgmma");
}
END_TEST

/* With a workspace, on 132 SMs; as many blocks as share the tokens' keys. */
START_TEST(decode_of_few_tokens_takes_one_launch)
{
	static const struct {
		uint32_t layout, tokens, heads, keys;
		const char *want;
		uint32_t blocks;
	} c[] = {
		{SPMLA_LAYOUT_FP8_DS_MLA, 1, 128, 2048,
		 "sparse_decode_few_v32_16", 128},
		{SPMLA_LAYOUT_FP8_DS_MLA, 2, 128, 2048,
		 "sparse_decode_few_v32_32", 128},
		{SPMLA_LAYOUT_FP8_DS_MLA, 3, 128, 2048,
		 "sparse_decode_few_v32_64", 96},
		{SPMLA_LAYOUT_FP8_DS_MLA, 4, 128, 2048,
		 "sparse_decode_few_v32_64", 128},
		{SPMLA_LAYOUT_FP8_DS_MLA, 8, 64, 2048,
		 "sparse_decode_few_v32_64", 128},
		{SPMLA_LAYOUT_FP8_DS_MLA, 5, 128, 2048,
		 "sparse_decode_wgmma_pair", 10},
		{SPMLA_LAYOUT_FP8_DS_MLA, 1, 128, 2049,
		 "sparse_decode_wgmma_pair", 2},
		{SPMLA_LAYOUT_FP8_DS_MLA, 8, 8, 2048,
		 "sparse_decode_few_v32_16", 128},
		{SPMLA_LAYOUT_FP8_DS_MLA, 9, 16, 2048,
		 "sparse_decode_few_v32_16", 144}, /* two on an SM */
		{SPMLA_LAYOUT_FP8_DS_MLA, 49, 16, 2048,
		 "sparse_decode_few_v32_16", 784},
		{SPMLA_LAYOUT_FP8_DS_MLA, 50, 16, 2048,
		 "sparse_decode_wgmma_32", 50},
		{SPMLA_LAYOUT_FP8_DS_MLA, 9, 17, 2048, "sparse_decode_wgmma_32",
		 9},
		{SPMLA_LAYOUT_V4_FP8, 2, 64, 640, "sparse_decode_few_v4_8",
		 128},
		{SPMLA_LAYOUT_V4_FP8, 4, 64, 640, "sparse_decode_few_v4_16",
		 128},
		{SPMLA_LAYOUT_V4_FP8, 8, 64, 640, "sparse_decode_few_v4_32",
		 128},
		{SPMLA_LAYOUT_V4_FP8, 9, 64, 640, "sparse_decode_few_v4_64",
		 72},
		{SPMLA_LAYOUT_V4_FP8, 16, 64, 640, "sparse_decode_few_v4_64",
		 128},
		{SPMLA_LAYOUT_V4_FP8, 17, 64, 640, "sparse_decode_wgmma_v4",
		 17},
		{SPMLA_LAYOUT_V4_FP8, 2, 128, 1152, "sparse_decode_few_long_16",
		 128},
		{SPMLA_LAYOUT_V4_FP8, 4, 128, 1152, "sparse_decode_few_long_32",
		 128},
		{SPMLA_LAYOUT_V4_FP8, 5, 128, 1152,
		 "sparse_decode_wgmma_v4_pair", 10},
		{SPMLA_LAYOUT_MLA_BF16, 1, 128, 2048, "sparse_bf16_wgmma", 2},
	};
	spmla_sparse_decode_args a;
	uint32_t i;

	for (i = 0; i < SPMLA_I_COUNT(c); i++) {
		memset(&a, 0, sizeof a);
		a.cache.layout = c[i].layout;
		a.tokens = c[i].tokens;
		a.heads = c[i].heads;
		a.topk = c[i].keys;
		a.workspace = (uint32_t *)(void *)memory;
		a.workspace_bytes = 16 << 20;
		ctx.plan.device.kind = SPMLA_BACKEND_CUDA;
		ctx.plan.device.arch = 90;
		ctx.plan.device.sm_count = 132;
		ck_assert_str_eq(kernel_on(90, SPMLA_OP_sparse_decode, &a),
				 c[i].want);
		ck_assert_uint_eq(launched.blocks, c[i].blocks);
		a.workspace_bytes = 4096;
		ck_assert(!strstr(kernel_on(90, SPMLA_OP_sparse_decode, &a),
				  "few_"));
	}
}
END_TEST

/* V3.2 with up to 16 heads: 16 blocks a token, more than run at once. */
START_TEST(batch_invariant_decode_of_few_heads_takes_one_launch)
{
	static const struct {
		uint32_t layout, tokens, heads, keys, blocks; /* 0: none */
	} c[] = {
		{SPMLA_LAYOUT_FP8_DS_MLA, 1, 16, 2048, 16},
		{SPMLA_LAYOUT_FP8_DS_MLA, 300, 8, 64, 4800},
		{SPMLA_LAYOUT_FP8_DS_MLA, 1, 17, 2048, 0},
		{SPMLA_LAYOUT_FP8_DS_MLA, 1, 16, 2049, 0},
		{SPMLA_LAYOUT_V4_FP8, 1, 16, 640, 0},
		{SPMLA_LAYOUT_MLA_BF16, 1, 16, 2048, 0},
	};
	spmla_sparse_decode_args a;
	uint32_t i;

	ctx.plan.config.flags = SPMLA_CONFIG_BATCH_INVARIANT;
	for (i = 0; i < SPMLA_I_COUNT(c); i++) {
		const uint64_t bytes = UINT64_C(266368) * c[i].tokens;

		memset(&a, 0, sizeof a);
		a.cache.layout = c[i].layout;
		a.tokens = c[i].tokens;
		a.heads = c[i].heads;
		a.topk = c[i].keys;
		a.workspace = (uint32_t *)(void *)memory;
		/* 17 heads would take twice as much. */
		a.workspace_bytes = c[i].blocks ? bytes : 2 * bytes;
		ctx.plan.device.kind = SPMLA_BACKEND_CUDA;
		ctx.plan.device.arch = 90;
		ctx.plan.device.sm_count = 132;
		ck_assert_int_eq(
			strcmp(kernel_on(90, SPMLA_OP_sparse_decode, &a),
			       "sparse_decode_few_v32_16") == 0,
			c[i].blocks > 0);
		if (c[i].blocks)
			ck_assert_uint_eq(launched.blocks, c[i].blocks);
		a.workspace_bytes = bytes - 1;
		ck_assert(!strstr(kernel_on(90, SPMLA_OP_sparse_decode, &a),
				  "few_"));
	}
	ctx.plan.config.flags = 0;
}
END_TEST

static const char *
prefill(uint32_t arch, uint32_t dim, const uint8_t *kv)
{
	spmla_sparse_prefill_args a;

	memset(&a, 0, sizeof a);
	a.tokens = 1;
	a.heads = 64;
	a.dim = dim;
	a.kv = (const uint16_t *)(const void *)kv;
	a.kv_stride_elems = dim;
	return kernel_on(arch, SPMLA_OP_sparse_prefill, &a);
}

START_TEST(prefill_of_aligned_rows_takes_matrix_instructions)
{
	ck_assert_str_eq(prefill(90, 576, memory), "sparse_bf16_wgmma");
	ck_assert_str_eq(prefill(90, 512, memory), "sparse_bf16_wgmma_512");
	ck_assert_str_eq(prefill(89, 576, memory), "sparse_bf16_mma");
	ck_assert_uint_eq(launched.blocks, 4); /* 64 / 16 */
	ck_assert_str_eq(prefill(89, 512, memory), "sparse_bf16_mma_512");
	ck_assert_str_eq(prefill(90, 576, memory + 8), "sparse_prefill");
	ck_assert_str_eq(prefill(75, 576, memory), "sparse_prefill");
}
END_TEST

static const char *
logits_to(uint32_t dtype, uint32_t arch, uint32_t layout, uint32_t heads)
{
	spmla_mqa_logits_args a;

	memset(&a, 0, sizeof a);
	a.cache.layout = layout;
	a.tokens = 1;
	a.heads = heads;
	a.q = memory;
	a.weights = (const float *)(const void *)memory;
	a.token_row = (const int32_t *)(const void *)memory;
	a.context_lens = (const int32_t *)(const void *)memory;
	a.row_starts = (const int64_t *)(const void *)memory;
	a.q_scales = (const int32_t *)(const void *)memory;
	a.logits_dtype = dtype;
	return kernel_on(arch, SPMLA_OP_mqa_logits, &a);
}

static const char *
logits(uint32_t arch, uint32_t layout, uint32_t heads)
{
	return logits_to(SPMLA_REAL_F32, arch, layout, heads);
}

static const char *
logits_gathered(uint32_t arch, uint32_t layout, uint32_t heads)
{
	spmla_mqa_logits_gathered_args a;

	memset(&a, 0, sizeof a);
	a.tokens = 1;
	a.heads = heads;
	a.layout = layout;
	a.q_scales = (const int32_t *)(const void *)memory;
	return kernel_on(arch, SPMLA_OP_mqa_logits_gathered, &a);
}

/* Matrix instructions need pages at multiples of 16 bytes, e4m3fn and logits of
 * f32. */
START_TEST(other_caches_and_logits_take_portable_kernels)
{
	spmla_sparse_decode_args d;
	spmla_mqa_logits_args l;
	spmla_topk_args k;
	uint32_t i;

	for (i = 0; i < 4; i++) {
		memset(&d, 0, sizeof d);
		d.tokens = d.heads = d.extra_topk = 1;
		d.cache.layout = d.extra_cache.layout = SPMLA_LAYOUT_V4_FP8;
		d.cache.page_stride_bytes = i == 0 ? 584 : 1168;
		d.extra_cache.page_stride_bytes = i == 1 ? 584 : 1168;
		d.cache.encoding = i == 2;
		d.extra_cache.encoding = i == 3;
		ck_assert_str_eq(kernel_on(90, SPMLA_OP_sparse_decode, &d),
				 "sparse_decode");
	}
	memset(&l, 0, sizeof l);
	l.tokens = l.heads = 1;
	l.q = memory;
	l.q_scales = (const int32_t *)(const void *)memory;
	l.row_stride_elems = 1;
	for (i = 0; i < 4; i++) {
		const uint32_t fp4 = i / 2;

		l.cache.layout =
			fp4 ? SPMLA_LAYOUT_INDEX_MXFP4 : SPMLA_LAYOUT_INDEX_FP8;
		l.cache.page_stride_bytes = i % 2 ? 144 : 132;
		l.logits_dtype = i % 2;
		ck_assert_str_eq(kernel_on(90, SPMLA_OP_mqa_logits, &l),
				 fp4 ? "mqa_logits_mxfp4" : "mqa_logits");
	}
	l.logits_dtype = 0;
	l.cache.layout = SPMLA_LAYOUT_INDEX_FP8_TILED;
	ck_assert_str_eq(kernel_on(90, SPMLA_OP_mqa_logits, &l), "mqa_logits");
	l.cache.layout = SPMLA_LAYOUT_INDEX_FP8;
	ck_assert_str_eq(kernel_on(90, SPMLA_OP_mqa_logits, &l),
			 "mqa_logits_wgmma");
	l.cache.encoding = SPMLA_E4M3_FNUZ;
	ck_assert_str_eq(kernel_on(90, SPMLA_OP_mqa_logits, &l), "mqa_logits");
	memset(&k, 0, sizeof k);
	k.rows = 1;
	k.logits_dtype = SPMLA_REAL_BF16;
	ck_assert_str_eq(kernel_on(90, SPMLA_OP_topk, &k), "topk_bf16");
}
END_TEST

START_TEST(logits_of_64_heads_take_matrix_instructions)
{
	const uint32_t fp8 = SPMLA_LAYOUT_INDEX_FP8;
	const uint32_t fp4 = SPMLA_LAYOUT_INDEX_MXFP4;

	ck_assert_str_eq(logits(90, fp8, 64), "mqa_logits_wgmma");
	ck_assert_str_eq(logits(89, fp8, 64), "mqa_logits_mma");
	ck_assert_str_eq(logits(90, fp8, 65), "mqa_logits");
	ck_assert_str_eq(logits(75, fp8, 64), "mqa_logits");
	ck_assert_str_eq(logits(90, fp4, 64), "mqa_logits_mxfp4_mma");
	ck_assert_str_eq(logits(90, fp4, 65), "mqa_logits_mxfp4");
	ck_assert_str_eq(logits(75, fp4, 64), "mqa_logits_mxfp4");
	ck_assert_str_eq(logits_gathered(90, fp4, 64),
			 "mqa_logits_gathered_mxfp4");
	ck_assert_str_eq(logits_gathered(90, fp8, 64),
			 "mqa_logits_gathered_wgmma");
	ck_assert_str_eq(logits_gathered(89, fp8, 64),
			 "mqa_logits_gathered_mma");
	ck_assert_str_eq(logits_gathered(90, fp8, 65), "mqa_logits_gathered");
	ck_assert_str_eq(logits_gathered(75, fp8, 64), "mqa_logits_gathered");
}
END_TEST

/* The index scores of an AMD GPU. */
static void
unproven_logits(uint32_t arch)
{
	const uint32_t fp8 = SPMLA_LAYOUT_INDEX_FP8;
	const uint32_t tiled = SPMLA_LAYOUT_INDEX_FP8_TILED;
	const uint32_t fp4 = SPMLA_LAYOUT_INDEX_MXFP4;

	ck_assert_str_eq(logits(arch, fp8, 64), "mqa_logits");
	ctx.plan.config.flags = SPMLA_CONFIG_ALLOW_UNPROVEN;
	ck_assert_str_eq(logits(arch, fp8, 64), "mqa_logits_tile");
	ck_assert_str_eq(logits(arch, tiled, 64), "mqa_logits_tile");
	ck_assert_str_eq(logits(arch, fp8, 65), "mqa_logits");
	ck_assert_str_eq(logits_gathered(arch, fp8, 64),
			 "mqa_logits_gathered_tile");
	ck_assert_str_eq(logits_gathered(arch, fp8, 65), "mqa_logits_gathered");
	ck_assert_str_eq(logits(arch, fp4, 64), "mqa_logits_mxfp4_tile");
	ck_assert_str_eq(logits(arch, fp4, 65), "mqa_logits_mxfp4");
	ck_assert_str_eq(logits_gathered(arch, fp4, 64),
			 "mqa_logits_gathered_mxfp4_tile");
	ck_assert_str_eq(logits_gathered(arch, fp4, 65),
			 "mqa_logits_gathered_mxfp4");
	ctx.plan.config.flags = 0;
	ck_assert_str_eq(logits(arch, fp4, 64), "mqa_logits_mxfp4");
	ck_assert_str_eq(logits_gathered(arch, fp4, 64),
			 "mqa_logits_gathered_mxfp4");
}

/* More than 16 heads are 32 or 64 a block, unless a call is small. */
static void
tiles_of_many_heads(uint32_t arch, uint32_t mfma)
{
	static const uint32_t layouts[] = {SPMLA_LAYOUT_FP8_DS_MLA,
					   SPMLA_LAYOUT_V4_FP8,
					   SPMLA_LAYOUT_MLA_BF16};
	const uint32_t rows = mfma ? 64 : 32;
	uint32_t l;

	for (l = 0; l < SPMLA_I_COUNT(layouts); l++) {
		ck_assert_str_eq(decode(arch, layouts[l], 8, 17, 0),
				 "sparse_decode_tile_32");
		ck_assert_uint_eq(launched.blocks, 8);
		ck_assert_str_eq(decode(arch, layouts[l], 8, 33, 0),
				 mfma ? "sparse_decode_tile_64"
				      : "sparse_decode_tile_32");
		(void)decode(arch, layouts[l], 8, 128, 0);
		ck_assert_uint_eq(launched.blocks, 8 * 128 / rows);
	}
	/* In parts, two tokens of 128 heads are small, and three are not. */
	for (l = 0; l < 2; l++) {
		ck_assert_str_eq(decode(arch, layouts[l], 2, 128, 8),
				 "sparse_decode_tile");
		ck_assert_uint_eq(launched.blocks, 8 * 8);
		(void)decode(arch, layouts[l], 3, 128, 8);
		ck_assert_uint_eq(launched.blocks, 8 * 128 / rows);
	}
	ck_assert_str_eq(prefill(arch, 576, memory),
			 mfma ? "sparse_prefill_tile_64"
			      : "sparse_prefill_tile_32");
	(void)prefill(arch, 512, memory + 2);
	ck_assert_uint_eq(launched.blocks, 64 / rows);
}

START_TEST(unproven_kernels_run_only_if_they_are_allowed)
{
	static const uint32_t archs[] = {0x90a, 0x942, 0x950, 0x1100, 0x1201};
	static const uint32_t layouts[] = {SPMLA_LAYOUT_FP8_DS_MLA,
					   SPMLA_LAYOUT_V4_FP8,
					   SPMLA_LAYOUT_MLA_BF16};
	const uint32_t allow = SPMLA_CONFIG_ALLOW_UNPROVEN;
	uint32_t i, l;

	platform = SPMLA_BACKEND_HIP;
	for (i = 0; i < SPMLA_I_COUNT(archs); i++)
		for (l = 0; l < SPMLA_I_COUNT(layouts); l++) {
			ck_assert_str_eq(decode(archs[i], layouts[l], 8, 40, 0),
					 "sparse_decode");
			ctx.plan.config.flags = allow;
			ck_assert_str_eq(decode(archs[i], layouts[l], 8, 16, 0),
					 "sparse_decode_tile");
			ck_assert_uint_eq(launched.blocks, 8);
			ctx.plan.config.flags = 0;
		}
	for (i = 0; i < SPMLA_I_COUNT(archs); i++) {
		ck_assert_str_eq(prefill(archs[i], 576, memory),
				 "sparse_prefill");
		ctx.plan.config.flags = allow;
		tiles_of_many_heads(archs[i], archs[i] < 0x1000);
		ctx.plan.config.flags = 0;
	}
	for (i = 0; i < SPMLA_I_COUNT(archs); i++)
		unproven_logits(archs[i]);
	ctx.plan.config.flags = allow;
	ck_assert_str_eq(
		logits_to(SPMLA_REAL_BF16, 0x942, SPMLA_LAYOUT_INDEX_MXFP4, 64),
		"mqa_logits_mxfp4_tile");
	/* Intel's GPUs whose dpas has 16 lanes, and one with 8. */
	platform = SPMLA_BACKEND_LEVEL_ZERO;
	ck_assert_str_eq(logits(0x0bd5, SPMLA_LAYOUT_INDEX_FP8, 64),
			 "mqa_logits_tile");
	ck_assert_str_eq(logits(0xe20b, SPMLA_LAYOUT_INDEX_FP8, 64),
			 "mqa_logits_tile");
	ck_assert_str_eq(logits(0x56a0, SPMLA_LAYOUT_INDEX_FP8, 64),
			 "mqa_logits");
	ck_assert_str_eq(decode(0x0bd5, SPMLA_LAYOUT_FP8_DS_MLA, 8, 64, 0),
			 "sparse_decode_tile_32");
	ck_assert_str_eq(prefill(0xe20b, 576, memory),
			 "sparse_prefill_tile_32");
	platform = 0;
	ck_assert_str_eq(decode(75, SPMLA_LAYOUT_V4_FP8, 8, 40, 0),
			 "sparse_decode");
	ctx.plan.config.flags = 0;
}
END_TEST

/* Every kernel that no GPU ran, on every kind of device. */
START_TEST(no_device_has_an_unproven_kernel_that_is_not_allowed)
{
	static const struct {
		uint32_t kind, arch, tiles, mfma;
	} devices[] = {
		{SPMLA_BACKEND_CUDA, 80, 0, 0},
		{SPMLA_BACKEND_CUDA, 90, 0, 0},
		{SPMLA_BACKEND_CUDA, 120, 0, 0},
		{SPMLA_BACKEND_HIP, 0x90a, 1, 1},
		{SPMLA_BACKEND_HIP, 0x942, 1, 1},
		{SPMLA_BACKEND_HIP, 0x950, 1, 1},
		{SPMLA_BACKEND_HIP, 0x1100, 1, 0},
		{SPMLA_BACKEND_HIP, 0x1201, 1, 0},
		{SPMLA_BACKEND_LEVEL_ZERO, 0x0bd5, 1, 0},
		{SPMLA_BACKEND_LEVEL_ZERO, 0xe20b, 1, 0},
		{SPMLA_BACKEND_LEVEL_ZERO, 0x56a0, 0, 0},
		{SPMLA_BACKEND_LEVEL_ZERO, 0x942, 0, 0},
	};
	const uint32_t allow = SPMLA_CONFIG_ALLOW_UNPROVEN;
	static spmla_plan plan;
	uint32_t i, k, unproven = 0;

	for (i = 0; i < SPMLA_I_COUNT(devices); i++)
		for (k = 0; k < SPMLA_KERNEL_COUNT; k++) {
			const uint32_t needs = spmla_i_gpu_kernels[k].needs;

			if (needs != SPMLA_GPU_NEEDS_TILE &&
			    needs != SPMLA_GPU_NEEDS_MFMA)
				continue;
			unproven++;
			plan.device.kind = devices[i].kind;
			plan.device.arch = devices[i].arch;
			plan.config.flags = ~allow;
			ck_assert(!spmla_i_gpu_runs((spmla_i_kernel)k, &plan));
			plan.config.flags = allow;
			ck_assert_int_eq(
				spmla_i_gpu_runs((spmla_i_kernel)k, &plan) != 0,
				needs == SPMLA_GPU_NEEDS_TILE
					? devices[i].tiles
					: devices[i].mfma);
		}
	ck_assert_uint_ge(unproven, 10 * SPMLA_I_COUNT(devices));
}
END_TEST

static const char *
output(uint32_t arch, uint32_t quant, uint32_t tokens, const uint8_t *o,
       const uint8_t *w)
{
	spmla_o_group_proj_args a;

	memset(&a, 0, sizeof a);
	a.tokens = tokens;
	a.groups = 1;
	a.columns = 128;
	a.quant = quant;
	a.o = o;
	a.w = w;
	return kernel_on(arch, SPMLA_OP_o_group_proj, &a);
}

START_TEST(output_of_aligned_operands_takes_matrix_instructions)
{
	const uint32_t fp8 = SPMLA_O_FP8_PACKED, bf16 = SPMLA_O_BF16;

	ck_assert_str_eq(output(80, fp8, 17, memory, memory),
			 "o_group_proj_mma");
	ck_assert_uint_eq(launched.blocks, 4); /* 17 / 16, 128 / 64 */
	ck_assert_str_eq(output(80, bf16, 17, memory, memory),
			 "o_group_proj_bf16_mma");
	ck_assert_str_eq(output(80, fp8, 17, memory + 8, memory),
			 "o_group_proj");
	ck_assert_uint_eq(launched.blocks, 12); /* 17 / 8, 128 / 32 */
	ck_assert_str_eq(output(80, fp8, 17, memory, memory + 8),
			 "o_group_proj");
	ck_assert_str_eq(output(75, bf16, 17, memory, memory),
			 "o_group_proj_bf16");
}
END_TEST

START_TEST(output_of_many_tokens_takes_warpgroups_instructions)
{
	static const struct {
		uint32_t quant, tokens;
		const char *want;
		uint32_t blocks;
	} c[] = {
		{SPMLA_O_FP8, 16, "o_group_proj_mma", 2},
		{SPMLA_O_FP8, 17, "o_group_proj_wgmma64", 2},
		{SPMLA_O_FP8, 128, "o_group_proj_wgmma64", 2},
		{SPMLA_O_FP8, 129, "o_group_proj_wgmma", 2},
		{SPMLA_O_BF16, 16, "o_group_proj_bf16_mma", 2},
		{SPMLA_O_BF16, 17, "o_group_proj_bf16_wgmma64", 2},
		{SPMLA_O_BF16, 128, "o_group_proj_bf16_wgmma64", 2},
		{SPMLA_O_BF16, 129, "o_group_proj_bf16_wgmma", 2},
	};
	uint32_t i;

	for (i = 0; i < SPMLA_I_COUNT(c); i++) {
		ck_assert_str_eq(
			output(90, c[i].quant, c[i].tokens, memory, memory),
			c[i].want);
		ck_assert_uint_eq(launched.blocks, c[i].blocks);
	}
	ck_assert_str_eq(output(100, SPMLA_O_FP8, 129, memory, memory),
			 "o_group_proj_mma");
	ck_assert_str_eq(output(100, SPMLA_O_BF16, 129, memory, memory),
			 "o_group_proj_bf16_mma");
}
END_TEST

START_TEST(output_that_is_batch_invariant_takes_the_kernel_of_few_tokens)
{
	ctx.plan.config.flags = SPMLA_CONFIG_BATCH_INVARIANT;
	ck_assert_str_eq(output(90, SPMLA_O_FP8, 129, memory, memory),
			 "o_group_proj_mma");
	ck_assert_str_eq(output(90, SPMLA_O_BF16, 129, memory, memory),
			 "o_group_proj_bf16_mma");
	ck_assert_str_eq(output(90, SPMLA_O_FP8, 129, memory + 8, memory),
			 "o_group_proj");
	ck_assert_str_eq(output(90, SPMLA_O_BF16, 129, memory + 8, memory),
			 "o_group_proj_bf16");
	ctx.plan.config.flags = 0;
}
END_TEST

static const char *
absorb(uint32_t arch, uint32_t tokens, const uint8_t *q)
{
	spmla_q_absorb_args a;

	memset(&a, 0, sizeof a);
	a.tokens = tokens;
	a.heads = 2;
	a.q_nope = (const uint16_t *)(const void *)q;
	a.q_pe_token_stride_elems = 65; /* there is none */
	return kernel_on(arch, SPMLA_OP_q_absorb, &a);
}

static const char *
value(uint32_t arch, uint32_t tokens, const uint8_t *latent)
{
	spmla_v_up_args a;

	memset(&a, 0, sizeof a);
	a.tokens = tokens;
	a.heads = 2;
	a.latent = (const uint16_t *)(const void *)latent;
	return kernel_on(arch, SPMLA_OP_v_up, &a);
}

START_TEST(projections_of_aligned_rows_take_matrix_instructions)
{
	ck_assert_str_eq(absorb(80, 16, memory), "q_absorb_mma_few");
	ck_assert_uint_eq(launched.blocks, 8); /* 2 heads, 512 / 128 */
	ck_assert_str_eq(absorb(80, 129, memory), "q_absorb_mma");
	ck_assert_uint_eq(launched.blocks, 16); /* and 129 / 128 */
	ck_assert_str_eq(absorb(90, 17, memory), "q_absorb_wgmma");
	ck_assert_uint_eq(launched.blocks, 2);
	ck_assert_str_eq(absorb(90, 129, memory), "q_absorb_wgmma");
	ck_assert_uint_eq(launched.blocks, 6); /* 2 heads, 129 / 64 */
	ck_assert_str_eq(absorb(90, (1 << 24) + 1, memory), "q_absorb_mma");
	ck_assert_str_eq(absorb(90, 65, memory + 8), "q_absorb");
	ck_assert_str_eq(absorb(75, 65, memory), "q_absorb");
	ck_assert_str_eq(value(80, 16, memory), "v_up_mma_few");
	ck_assert_uint_eq(launched.blocks, 2);
	ck_assert_str_eq(value(80, 129, memory), "v_up_mma");
	ck_assert_uint_eq(launched.blocks, 6);
	ck_assert_str_eq(value(90, 128, memory), "v_up_mma");
	ck_assert_str_eq(value(90, 129, memory), "v_up_wgmma");
	ck_assert_uint_eq(launched.blocks, 6);
	ck_assert_str_eq(value(90, (1 << 24) + 1, memory), "v_up_mma");
	ck_assert_str_eq(value(90, 65, memory + 8), "v_up");
	ck_assert_str_eq(value(75, 65, memory), "v_up");
}
END_TEST

static const char *
compress(uint32_t ratio, uint32_t layout, uint32_t tokens, uint32_t *split)
{
	spmla_kv_compress_args a;

	memset(&a, 0, sizeof a);
	a.ratio = ratio;
	a.state.layout = layout;
	a.tokens = tokens;
	a.split_keys = split;
	return kernel_on(90, SPMLA_OP_kv_compress, &a);
}

START_TEST(compressor_takes_many_blocks_a_key_for_few_tokens)
{
	uint32_t split[1] = {0};

	ck_assert_str_eq(compress(128, SPMLA_LAYOUT_STATE_512, 16, split),
			 "kv_compress_few");
	ck_assert_uint_eq(launched.blocks, 512); /* 16 * 32 */
	ck_assert_str_eq(compress(128, SPMLA_LAYOUT_STATE_512, 17, split),
			 "kv_compress_c128");
	ck_assert_uint_eq(launched.blocks, 272); /* 17 * 16 */
	ck_assert_str_eq(compress(128, SPMLA_LAYOUT_STATE_512, 16, NULL),
			 "kv_compress_c128");
	ck_assert_uint_eq(launched.blocks, 16);
	ck_assert_str_eq(compress(4, SPMLA_LAYOUT_STATE_1024, 16, split),
			 "kv_compress");
	ck_assert_str_eq(compress(4, SPMLA_LAYOUT_STATE_256, 3000, split),
			 "kv_compress_index");
	ck_assert_uint_eq(launched.blocks, 375); /* 3000 / 8 */
}
END_TEST

START_TEST(topk_maps_in_its_own_launch_what_layers_ask_for)
{
	static const int64_t slots[1] = {0};
	static int32_t words[2];
	spmla_topk_args a;
	uint32_t i;

	memset(&a, 0, sizeof a);
	a.rows = 1;
	a.map.struct_bytes = sizeof a.map;
	a.map.tokens = 1;
	a.map.compact = a.map.whole = 1;
	for (i = 0; i < 6; i++) {
		spmla_topk_args b = a;

		b.map.indptr = i == 1 ? words : NULL;
		b.map.workspace_ids = i == 2 ? words : NULL;
		b.map.first_cols = i == 3 ? words : NULL;
		b.map.slot_mapping = i == 4 ? slots : NULL;
		b.map.entries_before = i == 5;
		(void)kernel_on(90, SPMLA_OP_topk, &b);
		ck_assert_uint_eq(launched.count, i ? 2 : 1);
		(void)kernel_on(80, SPMLA_OP_topk, &b);
		ck_assert_uint_eq(launched.count, 2);
	}
	for (i = 0; i < 6; i++) {
		static const uint32_t rows[6] = {132, 133, 16, 66, 132, 133};
		static const char *const want[6] = {
			"topk_map_short", "topk_map_by_half",
			"topk_map_by_8",  "topk_map_by_2",
			"topk_map_by_1",  "topk_map_by_half",
		};

		a.rows = rows[i];
		a.row_stride_elems = i < 2 ? 8192 : 8193;
		ck_assert_str_eq(kernel_on(90, SPMLA_OP_topk, &a), want[i]);
	}
	a.logits_dtype = SPMLA_REAL_BF16;
	ck_assert_str_eq(kernel_on(90, SPMLA_OP_topk, &a), "topk_bf16");
	ck_assert_uint_eq(launched.count, 2);
}
END_TEST

START_TEST(index_keys_are_inserted_in_the_launch_of_other_keys)
{
	spmla_kv_insert_args a;

	memset(&a, 0, sizeof a);
	a.tokens = a.index.tokens = 9;
	a.cache.layout = SPMLA_LAYOUT_FP8_DS_MLA;
	ck_assert_str_eq(kernel_on(90, SPMLA_OP_kv_insert, &a), "kv_insert");
	ck_assert_uint_eq(launched.blocks, 2);
	a.index.struct_bytes = sizeof a.index;
	ck_assert_str_eq(kernel_on(90, SPMLA_OP_kv_insert, &a),
			 "kv_insert_index");
	ck_assert_uint_eq(launched.blocks, 4);
	ck_assert_uint_eq(launched.count, 1);
	a.cache.layout = SPMLA_LAYOUT_V4_FP8;
	ck_assert_str_eq(kernel_on(90, SPMLA_OP_kv_insert, &a), "kv_insert_v4");
	ck_assert_uint_eq(launched.count, 2);
}
END_TEST

START_TEST(other_ops_take_the_kernel_of_their_format)
{
	spmla_index_map_args map;
	spmla_indexer_q_prep_args q;
	spmla_kv_gather_args g;

	memset(&map, 0, sizeof map);
	memset(&q, 0, sizeof q);
	memset(&g, 0, sizeof g);
	map.tokens = q.tokens = g.keys = 64;
	q.heads = 17;
	ck_assert_str_eq(kernel_on(90, SPMLA_OP_index_map, &map), "index_map");
	map.compact = 1;
	ck_assert_str_eq(kernel_on(90, SPMLA_OP_index_map, &map),
			 "index_map_compact");
	ck_assert_str_eq(kernel_on(90, SPMLA_OP_indexer_q_prep, &q),
			 "indexer_q_prep");
	ck_assert_uint_eq(launched.blocks, 128); /* 64 * 2 */
	q.q_format = SPMLA_INDEX_Q_MXFP4;
	ck_assert_str_eq(kernel_on(90, SPMLA_OP_indexer_q_prep, &q),
			 "indexer_q_prep_mxfp4");
	g.cache.layout = SPMLA_LAYOUT_FP8_DS_MLA;
	ck_assert_str_eq(kernel_on(90, SPMLA_OP_kv_gather, &g), "kv_gather");
	ck_assert_uint_eq(launched.blocks, 2); /* 64 / 32 */
	g.cache.layout = SPMLA_LAYOUT_MLA_BF16;
	ck_assert_str_eq(kernel_on(90, SPMLA_OP_kv_gather, &g), "kv_gather");
	g.cache.layout = SPMLA_LAYOUT_V4_E4M3;
	ck_assert_str_eq(kernel_on(90, SPMLA_OP_kv_gather, &g), "kv_gather_v4");
	ck_assert_uint_eq(launched.blocks, 4); /* 64 / 16 */
}
END_TEST

/* The wide one is for more requests than a block has items, and for prefill. */
static const char *
prologue(uint32_t groups, uint32_t requests, uint32_t piece)
{
	spmla_table_config *g = ctx.plan.config.groups;
	spmla_step_prologue_args a;
	uint32_t i;

	memset(&a, 0, sizeof a);
	spmla_config_preset(&ctx.plan.config, groups == 1
						      ? SPMLA_MODEL_V32
						      : SPMLA_MODEL_V4_FLASH);
	for (i = 0; i < SPMLA_MAX_TABLE_GROUPS; i++)
		g[i].page_tokens = 256;
	a.shape.tokens = a.shape.requests = requests;
	a.piece_tokens = piece;
	return kernel_on(90, SPMLA_OP_step_prologue, &a);
}

/* V4's of `tokens` tokens, where STEP_UNITS has room for `room`. */
static const char *
prologue_of(uint32_t arch, uint32_t tokens, uint32_t room)
{
	spmla_step_prologue_args a;

	memset(&a, 0, sizeof a);
	(void)prologue(7, 1, 0);
	ctx.buf_bytes[SPMLA_BUF_STEP_UNITS] = 4 * spmla_i_unit_words(room);
	a.shape.tokens = tokens;
	a.shape.requests = 1;
	return kernel_on(arch, SPMLA_OP_step_prologue, &a);
}

START_TEST(prologue_has_an_item_a_request)
{
	const uint32_t items = SPMLA_ITEMS_step_prologue;

	ck_assert_str_eq(prologue(1, items, 0), "step_prologue");
	ck_assert_str_eq(prologue(1, items + 1, 0), "step_prologue_wide");
	ck_assert_str_eq(prologue(1, 1, 64), "step_prologue_wide");
	ck_assert_str_eq(prologue(7, items, 0), "step_prologue_v4");
	ck_assert_str_eq(prologue(7, 1, 64), "step_prologue_wide");
}
END_TEST

/* A block for each token, and one before them. */
START_TEST(prologue_of_a_decode_is_one_launch_on_hopper)
{
	ck_assert_str_eq(prologue_of(90, 1, 256), "step_prologue_fused");
	ck_assert_uint_eq(launched.blocks, 2);
	ck_assert_uint_eq(launched.count, 1);
	ck_assert_str_eq(prologue_of(90, 256, 256), "step_prologue_fused");
	ck_assert_uint_eq(launched.blocks, 257);
	ck_assert_str_eq(prologue_of(90, 257, 256), "step_prologue_v4");
	ck_assert_uint_eq(launched.count, 2);
	ck_assert_str_eq(prologue_of(90, 512, 512), "step_prologue_fused");
	ck_assert_str_eq(prologue_of(90, 513, 1024), "step_prologue_v4");
	ck_assert_str_eq(prologue_of(80, 1, 256), "step_prologue_v4");
	ctx.buf_bytes[SPMLA_BUF_STEP_UNITS] = 0;
}
END_TEST

SUITE
{
	const theme_test attend[] = {
		{unproven_kernels_run_only_if_they_are_allowed, 1},
		{no_device_has_an_unproven_kernel_that_is_not_allowed, 1},
		{decode_takes_the_instructions_of_its_device, 1},
		{small_decode_takes_16_heads_a_block, 1},
		{decode_of_few_tokens_takes_one_launch, 1},
		{batch_invariant_decode_of_few_heads_takes_one_launch, 1},
		{prefill_of_aligned_rows_takes_matrix_instructions, 1},
	};
	const theme_test others[] = {
		{other_caches_and_logits_take_portable_kernels, 1},
		{logits_of_64_heads_take_matrix_instructions, 1},
		{output_of_aligned_operands_takes_matrix_instructions, 1},
		{output_of_many_tokens_takes_warpgroups_instructions, 1},
		{output_that_is_batch_invariant_takes_the_kernel_of_few_tokens,
		 1},
		{projections_of_aligned_rows_take_matrix_instructions, 1},
		{compressor_takes_many_blocks_a_key_for_few_tokens, 1},
		{topk_maps_in_its_own_launch_what_layers_ask_for, 1},
		{index_keys_are_inserted_in_the_launch_of_other_keys, 1},
		{other_ops_take_the_kernel_of_their_format, 1},
		{prologue_has_an_item_a_request, 1},
		{prologue_of_a_decode_is_one_launch_on_hopper, 1},
	};
	const theme themes[] = {
		THEME("attend", NULL, NULL, attend),
		THEME("others", NULL, NULL, others),
	};

	return RUN_THEMES(themes);
}
