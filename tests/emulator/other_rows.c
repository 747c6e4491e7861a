/* SPDX-License-Identifier: Apache-2.0
 *
 * See other_rows.h.
 */
#include "tests/emulator/other_rows.h"
#include "tests/emulator/emulator.h"

#include "spmla/internal/gpu_sizes.h"

/* K(kernel of the library, kernel that runs in its place) */
#define OTHER_KERNELS(K)                                               \
	K(sparse_decode_wgmma, sparse_decode_wgmma_other)              \
	K(sparse_decode_wgmma_32, sparse_decode_wgmma_other_32)        \
	K(sparse_decode_wgmma_pair, sparse_decode_wgmma_other_pair)    \
	K(sparse_decode_wgmma_v4, sparse_decode_wgmma_other)           \
	K(sparse_decode_wgmma_v4_32, sparse_decode_wgmma_other_32)     \
	K(sparse_decode_wgmma_v4_pair, sparse_decode_wgmma_other_pair) \
	K(sparse_decode_few_v32_16, sparse_decode_few_other_16)        \
	K(sparse_decode_few_v32_32, sparse_decode_few_other_32)        \
	K(sparse_decode_few_v32_64, sparse_decode_few_other_64)

#define OTHER_CALL(of, stem) void emulator_call_##stem(const void *params);
OTHER_KERNELS(OTHER_CALL)
#undef OTHER_CALL

/* By the library's kernels; NULL: there is none. */
static const struct {
	const char *of;
	const char *name;
	void (*call)(const void *params);
} kernels[SPMLA_KERNEL_COUNT] = {
#define OTHER_LINE(of, stem) \
	[SPMLA_KERNEL_##of] = {#of, "spmla_k_" #stem, emulator_call_##stem},
	OTHER_KERNELS(OTHER_LINE)
#undef OTHER_LINE
};

other_row emulator_rows[2];
static const char *ran;

static spmla_status
launch(const spmla_i_gpu_queue *queue, spmla_i_kernel kernel, uint32_t blocks,
       const void *params)
{
	const spmla_i_gpu_kernel *k = &spmla_i_gpu_kernels[kernel];
	const emulator_kernel own = {
		kernels[kernel].name, kernels[kernel].call, k->items,
		k->dynamic_bytes,     k->cluster,           1};

	(void)queue;
	if (!own.call)
		return SPMLA_E_UNSUPPORTED;
	emulator_run_kernel(&own, blocks, params);
	ran = kernels[kernel].of;
	return SPMLA_OK;
}

static const uint32_t *
resident_blocks(const spmla_ctx *ctx)
{
	const spmla_i_gpu_state *state = ctx->buf[SPMLA_BUF_BACKEND_STATE];

	return state->resident_blocks;
}

uint32_t
other_rows_run(const spmla_ctx *ctx)
{
	return ctx->backend == &spmla_emulator &&
	       resident_blocks(ctx)[SPMLA_KERNEL_sparse_decode_wgmma] != 0;
}

spmla_status
other_rows_decode(spmla_ctx *ctx, other_row row, other_row extra,
		  const spmla_sparse_decode_args *a, const char **instead_of)
{
	const spmla_i_gpu_queue queue = {ctx, NULL, launch,
					 resident_blocks(ctx)};
	spmla_status status;

	emulator_rows[0] = row;
	emulator_rows[1] = extra;
	ran = NULL;
	status = spmla_i_gpu_sparse_decode(&queue, a);
	*instead_of = ran;
	return status;
}
