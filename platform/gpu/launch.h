/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns an operation's arguments into kernel launches, in the same way on every
 * GPU platform. A platform only loads the kernels, and launches one by its
 * number.
 */
#ifndef SPMLA_PLATFORM_GPU_LAUNCH_H
#define SPMLA_PLATFORM_GPU_LAUNCH_H

#include <math.h>

#include "spmla/internal/backend.h"
#include "spmla/internal/splits.h"
#include "spmla/platform/gpu/all_kernels.h"

typedef enum spmla_i_kernel {
#define SPMLA_KERNEL_LINE(stem, items, dynamic) SPMLA_KERNEL_##stem,
#include "spmla/platform/gpu/kernels.inc"
#undef SPMLA_KERNEL_LINE
	SPMLA_KERNEL_COUNT
} spmla_i_kernel;

#define SPMLA_KERNEL_LINE(stem, items, dynamic) SPMLA_KERNEL_PARAMS(stem)
#include "spmla/platform/gpu/kernels.inc"
#undef SPMLA_KERNEL_LINE

/* The device features that a kernel needs. */
typedef enum spmla_i_gpu_needs {
	SPMLA_GPU_NEEDS_NOTHING,
	SPMLA_GPU_NEEDS_MMA,   /* mma.h */
	SPMLA_GPU_NEEDS_TILE,  /* tile.h; unproven, as no GPU ran it */
	SPMLA_GPU_NEEDS_MFMA,  /* the same, on AMD's gfx9 */
	SPMLA_GPU_NEEDS_WGMMA, /* wgmma.h; only in binaries for sm_90a */
} spmla_i_gpu_needs;

/* A kernel as platforms see it. Its parameters are `pointers` pointers, then
 * one struct at scalars_offset. */
typedef struct spmla_i_gpu_kernel {
	const char *name; /* of the symbol */
	uint32_t items;   /* threads of a block */
	uint32_t pointers;
	uint32_t scalars_offset;
	uint32_t params_bytes;
	uint32_t dynamic_bytes; /* shared memory beyond the static part */
	uint32_t needs;         /* spmla_i_gpu_needs */
	uint32_t cluster;       /* blocks of a cluster, or 1 */
} spmla_i_gpu_kernel;

extern const spmla_i_gpu_kernel spmla_i_gpu_kernels[SPMLA_KERNEL_COUNT];

/* The target of an operation's launches. */
typedef struct spmla_i_gpu_queue {
	spmla_ctx *ctx;
	spmla_stream stream;
	/* Enqueues one kernel; params are copied. */
	spmla_status (*launch)(const struct spmla_i_gpu_queue *queue,
			       spmla_i_kernel kernel, uint32_t blocks,
			       const void *params);
	/* The resident blocks of each kernel on the device, in whole clusters;
	 * 0: the device does not have the kernel. */
	const uint32_t *resident_blocks;
} spmla_i_gpu_queue;

/* Whether a context of that plan may run a kernel: the device has what the
 * kernel needs, and the plan allows it if it is unproven. If not, the kernel
 * has no resident blocks. */
uint32_t spmla_i_gpu_runs(spmla_i_kernel kernel, const spmla_plan *plan);

/* Enqueues an operation. `args` are its arguments, checked. */
spmla_status spmla_i_gpu_enqueue(const spmla_i_gpu_queue *queue, spmla_op op,
				 const void *args);

/* Launches a kernel with one cluster for each of `rows` pieces of work, but
 * with at most as many blocks as the device holds at once. Nothing if rows is
 * 0. */
spmla_status spmla_i_gpu_launch(const spmla_i_gpu_queue *queue,
				spmla_i_kernel kernel, uint64_t rows,
				const void *params);

enum { SPMLA_GPU_ANY_KIND = 0x7fffffff };

/* One way to do an operation: a kernel, the calls that it takes, and a block's
 * share of a call. Each operation gives its own meaning to kinds, sizes,
 * alignments, rows and columns. */
typedef struct spmla_i_gpu_variant {
	spmla_i_kernel kernel;
	uint32_t kind;    /* of calls, or ANY_KIND: all but 0 */
	uint32_t most;    /* the largest size of a call; 0: any */
	uint32_t aligned; /* the least alignment of a call; 0: any */
	uint32_t rows;    /* that a block or cluster takes */
	uint32_t columns; /* the same; 0 if the op has none */
} spmla_i_gpu_variant;

/* The first of `count` variants that takes the call and whose kernel the device
 * has. The last variant takes every call, on every device. */
const spmla_i_gpu_variant *
spmla_i_gpu_choose(const spmla_i_gpu_queue *queue,
		   const spmla_i_gpu_variant *variants, uint32_t count,
		   uint32_t kind, uint32_t size, uint32_t aligned);

/* The kernel that mqa_logits chooses for such a call; mqa_logits_gathered
 * chooses alike. */
spmla_i_kernel spmla_i_gpu_mqa_logits_kernel(const spmla_i_gpu_queue *queue,
					     uint32_t layout, uint32_t heads,
					     uint32_t logits_dtype,
					     uint32_t q_encoding,
					     uint32_t k_encoding);

/* The scalars of a call of index_map. The kernels that do topk and index_map in
 * one launch take them, too. */
spmla_k_index_map_scalars
spmla_i_gpu_index_map_scalars(const spmla_index_map_args *a);

/* Fills the parameters of indexer_k_insert. */
void spmla_i_gpu_index_params(const spmla_i_gpu_queue *queue,
			      const spmla_indexer_k_insert_args *a,
			      spmla_k_indexer_k_insert_params *p);

/* Launches a kernel of sparse_decode for few tokens, if the call can use one;
 * *does says whether. `p` are the parameters of the other kernels. */
spmla_status spmla_i_gpu_decode_few(const spmla_i_gpu_queue *queue,
				    const spmla_sparse_decode_args *a,
				    const spmla_k_sparse_decode_params *p,
				    uint32_t *does);

/* The divisor for g_divide. */
spmla_g_divisor spmla_i_gpu_divisor(uint32_t by);

/* After a prologue: launches what gives its first `tokens` tokens fixed splits,
 * if the plan has fixed splits. */
spmla_status spmla_i_gpu_fixed_splits(const spmla_i_gpu_queue *queue,
				      uint32_t tokens);

/* The second launch of V4's prologue. */
spmla_status spmla_i_gpu_step_prologue_windows(const spmla_i_gpu_queue *queue,
					       uint32_t tokens,
					       spmla_i_cut cut);

/* Both launches of V4's prologue as one; `first` has what the first one would
 * take. */
spmla_status
spmla_i_gpu_step_prologue_fused(const spmla_i_gpu_queue *queue,
				const spmla_k_step_prologue_params *first,
				const spmla_step_prologue_args *a,
				spmla_i_cut cut);

/* Adds what the second launch would take. */
void spmla_i_gpu_fused_windows(const spmla_i_gpu_queue *queue, uint32_t tokens,
			       spmla_i_cut cut,
			       spmla_k_step_prologue_fused_params *p);

/* Sets the two parameters of SPMLA_K_FAULT. */
#define SPMLA_I_GPU_FAULT(p, queue)                                  \
	((p)->fault_state = (queue)->ctx->buf[SPMLA_BUF_STEP_STATE], \
	 (p)->fault_status = (queue)->ctx->buf[SPMLA_BUF_DEVICE_STATUS])

/* The lse of a head without keys. */
static inline float
spmla_i_gpu_empty_lse(uint32_t empty_lse)
{
	if (empty_lse == SPMLA_EMPTY_LSE_LOWEST)
		return -1e30f;
	return empty_lse == SPMLA_EMPTY_LSE_PLUS_INF ? INFINITY : -INFINITY;
}

/* The form of a list of slots, as decode_list_of takes it. */
static inline uint32_t
spmla_i_gpu_list_form(const int32_t *lens, const int32_t *indptr)
{
	return indptr ? DECODE_RAGGED : lens ? DECODE_LENS : DECODE_ROWS;
}

/* Whether rows with this stride all begin at multiples of `bytes`, so that a
 * kernel can load that many bytes at once. */
static inline uint32_t
spmla_i_gpu_aligned(const void *base, int64_t stride, int64_t other_stride,
		    uint32_t elem_bytes, uint32_t bytes)
{
	return SPMLA_I_PTR(base) % bytes == 0 &&
	       (uint64_t)stride * elem_bytes % bytes == 0 &&
	       (uint64_t)other_stride * elem_bytes % bytes == 0;
}

/* How many tiles a call of q_absorb or v_up has for the kernels with matrix
 * instructions, whose larger tile has `many` tokens. 0: these kernels cannot
 * take the call; it has too many tiles, or `aligned` is 0. */
static inline uint32_t
spmla_i_gpu_project_tiles(uint32_t tokens, uint32_t heads, uint32_t columns,
			  uint32_t many, uint32_t aligned)
{
	const uint32_t rows =
		tokens <= PROJECT_MMA_FEW ? PROJECT_MMA_FEW : many;
	const uint64_t tiles = (uint64_t)heads *
			       (columns / PROJECT_MMA_COLUMNS) *
			       ((tokens - 1) / rows + 1);

	return aligned && tiles < UINT32_MAX / 2 ? (uint32_t)tiles : 0;
}

/* The most tokens of a call by wgmma: the number of a token past the last,
 * which is computed and not used, does not wrap. */
enum { PROJECT_WGMMA_MOST = 1 << 24 };

/* The tokens of a range of q_absorb and v_up by wgmma: a head has as many
 * ranges as there are blocks for it. Example: on 132 SMs, 128 heads have one
 * block each, however many tokens there are; 16 heads have 8 blocks each, and
 * 1000 tokens are 8 ranges of 128. */
static inline uint32_t
spmla_i_gpu_project_range(uint32_t tokens, uint32_t heads, uint32_t blocks)
{
	const uint32_t tiles = (tokens - 1) / PROJECT_WGMMA_TOKENS + 1;
	const uint32_t most = blocks > heads ? blocks / heads : 1;
	const uint32_t ranges = most < tiles ? most : tiles;

	return ((tiles - 1) / ranges + 1) * PROJECT_WGMMA_TOKENS;
}

/* The units of such a call by `kernel`: ranges of heads. Sets *range. */
static inline uint32_t
spmla_i_gpu_project_units(const spmla_i_gpu_queue *queue, spmla_i_kernel kernel,
			  uint32_t tokens, uint32_t heads, uint32_t *range)
{
	*range = spmla_i_gpu_project_range(tokens, heads,
					   queue->resident_blocks[kernel]);
	return heads * ((tokens - 1) / *range + 1);
}

/* How a kernel reads floats by g_reals4. */
static inline uint32_t
spmla_i_gpu_reals(const void *base, uint32_t dtype)
{
	if (dtype == SPMLA_REAL_BF16)
		return G_REALS_BF16;
	return SPMLA_I_PTR(base) % 16 == 0 ? G_REALS_WIDE : G_REALS_F32;
}

/* The host side of each operation, one file each. */
typedef spmla_status spmla_i_gpu_op(const spmla_i_gpu_queue *queue,
				    const void *args);

#define SPMLA_GPU_OP(stem) spmla_i_gpu_op spmla_i_gpu_##stem;
#include "spmla/platform/gpu/ops.inc"
#undef SPMLA_GPU_OP

#endif
