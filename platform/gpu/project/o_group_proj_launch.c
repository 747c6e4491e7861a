/* SPDX-License-Identifier: Apache-2.0
 *
 * o_group_proj: from its args to its kernels.
 */
#include "spmla/platform/gpu/launch.h"

#define SAME(stem)                                                   \
	SPMLA_STATIC_ASSERT(sizeof(spmla_k_o_group_proj_params) ==   \
				    sizeof(spmla_k_##stem##_params), \
			    "one struct binds all kernels")
SAME(o_group_proj_bf16);
SAME(o_group_proj_mma);
SAME(o_group_proj_bf16_mma);
SAME(o_group_proj_bf16_wgmma);
SAME(o_group_proj_bf16_wgmma64);
SAME(o_group_proj_wgmma);
SAME(o_group_proj_wgmma64);

/* Kinds: BF16, or 0 for e4m3. Sizes: tokens; in batch-invariant mode all calls
 * have size 1. Rows and columns: of a tile. Example: on Hopper, 16 tokens
 * take mma.sync, 17 to 128 take tiles of 128 tokens by 64 columns by wgmma, and
 * 129 take tiles of 128 tokens by 128 columns. */
enum { BF16 = 1 };

static const spmla_i_gpu_variant variants[] = {
	{.kernel = SPMLA_KERNEL_o_group_proj_bf16_mma,
	 .kind = BF16,
	 .most = O_MMA_TOKENS,
	 .aligned = 1,
	 .rows = O_MMA_TOKENS,
	 .columns = O_MMA_COLUMNS},
	{.kernel = SPMLA_KERNEL_o_group_proj_bf16_wgmma64,
	 .kind = BF16,
	 .most = O_WGMMA_TOKENS,
	 .aligned = 1,
	 .rows = O_WGMMA_TOKENS,
	 .columns = O_WGMMA_FEW},
	{.kernel = SPMLA_KERNEL_o_group_proj_bf16_wgmma,
	 .kind = BF16,
	 .aligned = 1,
	 .rows = O_WGMMA_TOKENS,
	 .columns = O_WGMMA_COLUMNS},
	{.kernel = SPMLA_KERNEL_o_group_proj_bf16_mma,
	 .kind = BF16,
	 .aligned = 1,
	 .rows = O_MMA_TOKENS,
	 .columns = O_MMA_COLUMNS},
	{.kernel = SPMLA_KERNEL_o_group_proj_bf16,
	 .kind = BF16,
	 .rows = O_PROJ_TOKENS,
	 .columns = O_PROJ_COLUMNS},
	{.kernel = SPMLA_KERNEL_o_group_proj_mma,
	 .most = O_MMA_TOKENS,
	 .aligned = 1,
	 .rows = O_MMA_TOKENS,
	 .columns = O_MMA_COLUMNS},
	{.kernel = SPMLA_KERNEL_o_group_proj_wgmma64,
	 .most = O_WGMMA_TOKENS,
	 .aligned = 1,
	 .rows = O_WGMMA_TOKENS,
	 .columns = O_WGMMA_FEW},
	{.kernel = SPMLA_KERNEL_o_group_proj_wgmma,
	 .aligned = 1,
	 .rows = O_WGMMA_TOKENS,
	 .columns = O_WGMMA_COLUMNS},
	{.kernel = SPMLA_KERNEL_o_group_proj_mma,
	 .aligned = 1,
	 .rows = O_MMA_TOKENS,
	 .columns = O_MMA_COLUMNS},
	{.kernel = SPMLA_KERNEL_o_group_proj,
	 .rows = O_PROJ_TOKENS,
	 .columns = O_PROJ_COLUMNS},
};

static uint32_t
token_tiles(const spmla_o_group_proj_args *a, uint32_t rows)
{
	return (a->tokens - 1) / rows + 1;
}

static uint64_t
tiles_of(const spmla_o_group_proj_args *a, uint32_t rows, uint32_t columns)
{
	return (uint64_t)token_tiles(a, rows) * a->groups *
	       (a->columns / columns);
}

/* Whether the kernels with matrix instructions take a call: they load 16 bytes
 * of a row at a time, and g_divide takes tiles of 31 bits. */
static uint32_t
by_matrix(const spmla_o_group_proj_args *a, uint32_t bytes, uint32_t w_aligned)
{
	return w_aligned &&
	       spmla_i_gpu_aligned(a->o, a->o_token_stride_elems,
				   a->o_group_stride_elems, bytes, 16) &&
	       tiles_of(a, O_MMA_TOKENS, O_MMA_COLUMNS) < UINT32_MAX / 2;
}

spmla_status
spmla_i_gpu_o_group_proj(const spmla_i_gpu_queue *queue, const void *args)
{
	const spmla_o_group_proj_args *a = args;
	const uint32_t bf16 = a->quant == SPMLA_O_BF16;
	const uint32_t bytes = bf16 ? 2 : 1;
	const spmla_i_gpu_variant *by;
	spmla_k_o_group_proj_params p;
	uint32_t size = a->tokens;

	memset(&p, 0, sizeof p);
	p.o = a->o;
	p.o_scales = a->o_scales;
	p.w = a->w;
	p.w_scales = a->w_scales;
	p.z = a->z;
	p.s.o_token_stride = a->o_token_stride_elems;
	p.s.o_group_stride = a->o_group_stride_elems;
	p.s.o_scale_stride = a->o_scale_stride_elems;
	p.s.o_scale_group_stride = a->o_scale_group_stride_elems;
	p.s.w_group_stride = a->w_group_stride_elems;
	p.s.w_row_stride = a->w_row_stride_elems;
	p.s.w_scale_group_stride = a->w_scale_group_stride_elems;
	p.s.w_scale_row_stride = a->w_scale_row_stride_elems;
	p.s.z_token_stride = a->z_token_stride_elems;
	p.s.z_group_stride = a->z_group_stride_elems;
	p.s.tokens = a->tokens;
	p.s.inner = a->inner;
	p.s.columns = a->columns;
	p.s.packed = a->quant == SPMLA_O_FP8_PACKED;
	p.s.w_aligned = spmla_i_gpu_aligned(a->w, a->w_row_stride_elems,
					    a->w_group_stride_elems, bytes, 16);
	p.s.z_aligned = spmla_i_gpu_aligned(a->z, a->z_token_stride_elems,
					    a->z_group_stride_elems, 2, 16);
	if (queue->ctx->plan.config.flags & SPMLA_CONFIG_BATCH_INVARIANT)
		size = 1;
	by = spmla_i_gpu_choose(queue, variants, SPMLA_I_COUNT(variants),
				bf16 ? BF16 : 0, size,
				by_matrix(a, bytes, p.s.w_aligned));
	p.s.token_tiles = spmla_i_gpu_divisor(token_tiles(a, by->rows));
	p.s.column_tiles = spmla_i_gpu_divisor(a->columns / by->columns);
	p.s.tiles = tiles_of(a, by->rows, by->columns);
	return spmla_i_gpu_launch(queue, by->kernel, p.s.tiles, &p);
}
