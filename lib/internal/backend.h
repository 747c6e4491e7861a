/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of a platform, and the context that they work on. An operation
 * reaches a platform by one path: host checks, then enqueue(op, args). The
 * platform decides whether to run, queue or record it.
 */
#ifndef SPMLA_INTERNAL_BACKEND_H
#define SPMLA_INTERNAL_BACKEND_H

#include "spmla/internal/atomic.h"
#include "spmla/internal/check.h"
#include "spmla/internal/step_layout.h"
#include "spmla/ops/ops.h"

#include <string.h>

typedef enum spmla_op {
#define SPMLA_OP(stem) SPMLA_OP_##stem,
#include "spmla/ops/ops.inc"
#undef SPMLA_OP
	SPMLA_OP_COUNT
} spmla_op;

#define SPMLA_I_OP_BIT(op) (UINT64_C(1) << (uint32_t)(op))

/* Arguments of the two operations that only the protocol enqueues. */
typedef struct spmla_step_prologue_args {
	spmla_shape shape;
	uint32_t source; /* spmla_source */
	/* Prefill: its index logits are made in pieces of this many tokens,
	 * with rows this far apart. 0: a decode step. */
	uint32_t piece_tokens;
	uint64_t piece_stride_elems;
} spmla_step_prologue_args;

typedef struct spmla_table_write_args {
	uint32_t group;
	uint32_t row;
	uint32_t first_col;
	uint32_t count;
} spmla_table_write_args;

/* Room for the arguments of any operation. */
typedef union spmla_i_args {
#define SPMLA_OP(stem) spmla_##stem##_args stem;
#include "spmla/ops/ops.inc"
#undef SPMLA_OP
} spmla_i_args;

enum {
	SPMLA_I_MAX_GRAPHS = 256,
	SPMLA_I_BUF_LIMIT = 128 /* above every spmla_buf */
};

struct spmla_backend {
	const char *name;
	uint32_t kind; /* spmla_backend_kind */
	uint64_t ops;  /* bit i: op i is there */
	spmla_status (*query)(const spmla_native *native, spmla_device *device,
			      spmla_diag *diag);
	spmla_status (*init)(spmla_ctx *ctx, const spmla_native *native,
			     spmla_diag *diag);
	void (*fini)(spmla_ctx *ctx);
	/* Zeroes the DEVICE buffers that live as long as the context, and
	 * waits. init has already done the same. */
	spmla_status (*zero)(spmla_ctx *ctx, spmla_diag *diag);
	/* Copies `bytes` bytes of args. On E_SPACE nothing is added. */
	spmla_status (*enqueue)(spmla_ctx *ctx, spmla_op op, const void *args,
				uint32_t bytes, spmla_stream stream);
	/* Whether calls are recorded now instead of run. */
	uint32_t (*capturing)(const spmla_ctx *ctx, spmla_stream stream);
	spmla_status (*capture_begin)(spmla_ctx *ctx, spmla_stream stream);
	/* Makes graph `index` (0-based) of the recorded calls. */
	spmla_status (*capture_end)(spmla_ctx *ctx, uint32_t index);
	/* On an error the capture stays open. */
	spmla_status (*capture_abort)(spmla_ctx *ctx);
	spmla_status (*launch)(spmla_ctx *ctx, uint32_t index,
			       spmla_stream stream);
	/* Orders later work of `to` behind earlier work of `from`. NULL: there
	 * is one timeline. */
	spmla_status (*order)(spmla_ctx *ctx, spmla_stream from,
			      spmla_stream to, void *event);
	/* Clears the device's part of the sticky status; the pinned part is
	 * zeroed afterwards. */
	spmla_status (*status_clear)(spmla_ctx *ctx);
	/* Queued work that has not run. */
	uint32_t (*pending)(const spmla_ctx *ctx);
	/* Whether the device is lost; NULL: never. */
	uint32_t (*lost)(const spmla_ctx *ctx);
	/* The number of consumed records; NULL: as RING_CONSUMED says, which
	 * the host may read at any time. */
	uint64_t (*consumed)(const spmla_ctx *ctx);
	/* Whether the host may read now what the device writes to PINNED
	 * memory; NULL: at any time. */
	uint32_t (*readable)(const spmla_ctx *ctx);
};

typedef enum spmla_i_graph_kind {
	SPMLA_I_GRAPH_ENGINE = 1,    /* the engine's own list */
	SPMLA_I_GRAPH_NO_TICKET = 2, /* no FROM_RING prologue in it */
	SPMLA_I_GRAPH_TICKET = 3
} spmla_i_graph_kind;

typedef struct spmla_i_graph {
	uint32_t kind; /* spmla_i_graph_kind */
	/* The layer calls before the graph's first prologue: their most tokens
	 * (0: no such call), and the step that they were recorded in. A replay
	 * needs a step of at least as many tokens. If exact, it needs as many
	 * tokens as that step had, and in a prefill the same shape. */
	uint32_t tokens;
	uint32_t exact;
	spmla_step_prologue_args under;
	spmla_step_prologue_args prologue; /* the last in it; zeros: none */
	spmla_shape ring; /* of its FROM_RING prologue; zeros: it has none */
} spmla_i_graph;

typedef struct spmla_i_table {
	const int32_t *device; /* the engine's table of a DEVICE group */
	uint32_t stride_elems;
	uint32_t reserved;
} spmla_i_table;

struct spmla_ctx {
	uint32_t magic;
	uint32_t reserved;
	const spmla_backend *backend;
	/* The last prologue that was enqueued, alone or by a replay; zeros:
	 * none. */
	spmla_step_prologue_args prologue;
	/* The last prologue of a capture, the engine's own included, if no step
	 * began since: a capture may continue that step. Zeros: none. */
	spmla_step_prologue_args recorded;
	/* The step that the current call of a layer belongs to. */
	const spmla_step_prologue_args *step;
	/* The host's side of the protocol. launched <= written. */
	uint64_t written;
	uint64_t launched;
	uint32_t capture_open;
	uint32_t capture_rings;  /* FROM_RING prologues in the capture */
	uint32_t capture_failed; /* spmla_status of its first failed op */
	uint32_t graph_count;
	/* `recorded` before the capture */
	spmla_step_prologue_args capture_before;
	/* [graph_count] is the open capture's. */
	spmla_i_graph graphs[SPMLA_I_MAX_GRAPHS];
	spmla_i_table tables[SPMLA_MAX_TABLE_GROUPS];
	void *buf[SPMLA_I_BUF_LIMIT]; /* by spmla_buf */
	uint64_t buf_bytes[SPMLA_I_BUF_LIMIT];
	spmla_diag diag;
	spmla_plan plan;
};

#define SPMLA_I_CTX_MAGIC 0x53504d4cu

/* Whether ctx is there and has not ended. */
static inline uint32_t
spmla_i_lives(const spmla_ctx *ctx)
{
	return ctx && ctx->magic == SPMLA_I_CTX_MAGIC;
}

/* The same in memory that the host writes. */
static inline void
spmla_i_zero_device(spmla_ctx *ctx)
{
	uint32_t i;

	for (i = 0; i < ctx->plan.row_count; i++) {
		const spmla_extent *e = &ctx->plan.extents[i];

		if (e->memory == SPMLA_MEMORY_DEVICE &&
		    e->life == SPMLA_LIFE_CONTEXT)
			memset(ctx->buf[e->buf], 0, (size_t)e->bytes);
	}
}

/* The number of consumed records, as the host sees it. */
static inline uint64_t
spmla_i_consumed(const spmla_ctx *ctx)
{
	if (ctx->backend->consumed)
		return ctx->backend->consumed(ctx);
	return spmla_i_load_u64(ctx->buf[SPMLA_BUF_RING_CONSUMED]);
}

/* The slot of a ticket. */
static inline spmla_i_record *
spmla_i_slot(const spmla_ctx *ctx, uint64_t ticket)
{
	return (spmla_i_record *)((uint8_t *)ctx->buf[SPMLA_BUF_STEP_RING] +
				  ticket % ctx->plan.config.ring_slots *
					  ctx->plan.record_bytes);
}

/* A group's block table, as operations read it: SpMLA's own or the engine's. */
typedef struct spmla_i_table_view {
	const int32_t *table;
	const int32_t *cols; /* NULL: all columns are written */
	uint32_t stride_elems;
	uint32_t columns;
	uint32_t page_tokens;
	uint32_t pool_pages;
	uint32_t ring; /* 1: a ring table */
	uint32_t reserved;
} spmla_i_table_view;

spmla_i_table_view spmla_i_table_of(const spmla_ctx *ctx, uint32_t group);

/* Whether every DEVICE table is bound; fills the diag if not. */
spmla_status spmla_i_tables_bound(spmla_ctx *ctx);

/* The buffers of a group that has its own table in the arena. */
static inline spmla_buf
spmla_i_block_table(uint32_t group)
{
	return group == SPMLA_GROUP_MAIN
		       ? SPMLA_BUF_BLOCK_TABLE_MAIN
		       : (spmla_buf)(SPMLA_BUF_BLOCK_TABLE_C4A +
				     3 * (group - 1));
}

static inline spmla_buf
spmla_i_table_cols(uint32_t group)
{
	return (spmla_buf)(spmla_i_block_table(group) + 1);
}

static inline spmla_buf
spmla_i_table_staging(uint32_t group)
{
	return group == SPMLA_GROUP_MAIN
		       ? SPMLA_BUF_TABLE_STAGING
		       : (spmla_buf)(spmla_i_block_table(group) + 2);
}

/* Check the arguments of an operation, of at least one token. */
spmla_status spmla_i_index_map_check(spmla_diag *diag,
				     const spmla_index_map_args *a);
spmla_status
spmla_i_indexer_k_insert_check(spmla_diag *diag,
			       const spmla_indexer_k_insert_args *a);

/* Whether `ticket` is the next one to launch; fills the diag if not. */
spmla_status spmla_i_ticket_due(spmla_ctx *ctx, uint64_t ticket);

/* Checks that the shape of a call fits a bucket, or else prefill. *live_context
 * = its live context; if that is 0, the live context of the bucket or of
 * prefill. *prefill = whether it fits no bucket. */
spmla_status spmla_i_check_shape(spmla_ctx *ctx, const spmla_shape *shape,
				 uint32_t *live_context, uint32_t *prefill);

/* Starts the host checks of an operation: ctx and args exist, and struct_bytes
 * (the first field of args) is `bytes`. `name` is the stem. */
spmla_status spmla_i_op_begin(spmla_ctx *ctx, const void *args, uint32_t bytes,
			      const char *name);

/* Ends them: enqueues if `checked` is OK; otherwise marks an open capture as
 * failed and returns `checked`. */
spmla_status spmla_i_op_end(spmla_ctx *ctx, spmla_status checked, spmla_op op,
			    const void *args, uint32_t bytes,
			    spmla_stream stream);

/* For a failed check outside an operation: marks an open capture as failed.
 * Returns `status`. */
spmla_status spmla_i_op_failed(spmla_ctx *ctx, spmla_status status);

#endif
