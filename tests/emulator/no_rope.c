/* SPDX-License-Identifier: Apache-2.0
 *
 * See no_rope.h.
 */
#include "tests/emulator/no_rope.h"
#include "tests/emulator/emulator.h"

#include "spmla/internal/gpu_sizes.h"

/* K(kernel of the library, kernel that runs in its place) */
#define NO_ROPE_KERNELS(K)                                            \
	K(sparse_decode_wgmma, sparse_decode_wgmma_no_rope)           \
	K(sparse_decode_wgmma_32, sparse_decode_wgmma_no_rope_32)     \
	K(sparse_decode_wgmma_pair, sparse_decode_wgmma_no_rope_pair) \
	K(sparse_decode_few_v32_16, sparse_decode_few_no_rope_16)     \
	K(sparse_decode_few_v32_32, sparse_decode_few_no_rope_32)     \
	K(sparse_decode_few_v32_64, sparse_decode_few_no_rope_64)

#define NO_ROPE_CALL(of, stem) void emulator_call_##stem(const void *params);
NO_ROPE_KERNELS(NO_ROPE_CALL)
#undef NO_ROPE_CALL

/* By the library's kernels; NULL: there is none. */
static const struct {
	const char *of;
	const char *name;
	void (*call)(const void *params);
} kernels[SPMLA_KERNEL_COUNT] = {
#define NO_ROPE_LINE(of, stem) \
	[SPMLA_KERNEL_##of] = {#of, "spmla_k_" #stem, emulator_call_##stem},
	NO_ROPE_KERNELS(NO_ROPE_LINE)
#undef NO_ROPE_LINE
};

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
no_rope_runs(const spmla_ctx *ctx)
{
	return ctx->backend == &spmla_emulator &&
	       resident_blocks(ctx)[SPMLA_KERNEL_sparse_decode_wgmma] != 0;
}

spmla_status
no_rope_decode(spmla_ctx *ctx, const spmla_sparse_decode_args *a,
	       const char **instead_of)
{
	const spmla_i_gpu_queue queue = {ctx, NULL, launch,
					 resident_blocks(ctx)};
	spmla_status status;

	ran = NULL;
	status = spmla_i_gpu_sparse_decode(&queue, a);
	*instead_of = ran;
	return status;
}
