/* SPDX-License-Identifier: Apache-2.0
 *
 * SpMLA: DeepSeek sparse attention for engines that decode by replaying a
 * captured graph. This header and "spmla/spmla_plan.h" (config and plan) are
 * the manual of the core: init, the step protocol, graphs, device status.
 * "spmla/v32.h" has the layers of DeepSeek V3.2, "spmla/v4.h" those of V4,
 * "spmla/prefill_plan.h" how prompts are cut up, "spmla/rope.h" the models'
 * tables of cosines and sines,
 * "spmla/ops/<op>.h" each operation alone, "spmla/spmla_layout.h" the bytes of
 * the caches, "spmla/spmla_cpu.h" what only the CPU backend has,
 * "spmla/spmla_cuda.h" what streams, regions and failures are on CUDA.
 *
 * The one idea: all memory is planned once and handed in; a step is data (a
 * record in a ring) and not calls; so one captured graph serves every step.
 *
 * Conventions. Counts are uint32_t, bytes uint64_t, units stand in names.
 * Public structs start with struct_bytes = their sizeof (the *_INIT macros set
 * it); one of an unknown size is refused, and they only grow at their end.
 * Small plain records, which stand in arrays or inside of other structs, have
 * no such field and never change: spmla_shape, spmla_table_config,
 * spmla_extent, spmla_request, spmla_table_store, spmla_step_device,
 * spmla_range, spmla_indexer_chunk, spmla_prefill_chunk, spmla_gathered_chunk.
 * A zero field means its
 * default unless it says otherwise.
 * Functions that fail change nothing; but of a call that enqueues and gets
 * E_DEVICE, and of one made of several operations, some of the work may be on
 * the stream: abort a capture; drain, and after a FROM_RING prologue resync.
 * Those that check more than their
 * pointers fill a diag: their own argument, or the context's (spmla_ctx_diag);
 * a diag is only ever written. Every call may give E_NULL and E_STRUCT_SIZE,
 * and every call that enqueues E_SPACE (planned room is used up), and with a
 * device E_DEVICE: only what else can fail is listed.
 * Threads: a context is used by one thread at a time. Functions that take only
 * const plans, and spmla_status_read, may run anywhere at any time. The library
 * starts no thread; the CPU may be lent some ("spmla/spmla_native.h").
 */
#ifndef SPMLA_H
#define SPMLA_H

#include <stdint.h>

#include "spmla/spmla_layout.h"
#include "spmla/spmla_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Everything else that says the version reads it here. While the first number
 * is 0, another second one may mean another interface. */
#define SPMLA_VERSION_MAJOR 0
#define SPMLA_VERSION_MINOR 1
#define SPMLA_VERSION_PATCH 0
#define SPMLA_VERSION                                                \
	(SPMLA_VERSION_MAJOR * 10000u + SPMLA_VERSION_MINOR * 100u + \
	 SPMLA_VERSION_PATCH)

/* Of the library that runs: SPMLA_VERSION, and "0.1.0". */
uint32_t spmla_version(void);
const char *spmla_version_string(void);

/* ---- Context ----------------------------------------------------------- */

typedef struct spmla_region {
	uint32_t struct_bytes;
	uint32_t memory; /* spmla_memory */
	void *base;
	uint64_t bytes;
} spmla_region;

typedef struct spmla_ctx spmla_ctx;

/* Makes a context inside the given regions, one for each kind of memory whose
 * region_bytes is not 0, at least that large and so aligned. The context
 * itself lies at the start of the HOST region. A region that is not needed may
 * be given; its base must not be NULL all the same.
 * Memory: everything stays the caller's; nothing is allocated, now or later.
 * Order: may load code and wait; no later call does.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE (kinds, flags), E_REGION, E_OVERLAP,
 * E_OVERFLOW (a region's end), E_UNSUPPORTED; then no region is touched. Last
 * the plan is made again, where the context will lie: what spmla_plan_make
 * refuses, and E_RANGE with the first byte that differs. What the backend
 * refuses after that leaves nothing behind but bytes in the regions. */
spmla_status spmla_init(spmla_ctx **ctx, const spmla_plan *plan,
			const spmla_backend *backend,
			const spmla_native *native, const spmla_region *regions,
			uint32_t region_count, spmla_diag *diag);

/* Ends the context; its memory is the caller's again. While that is left alone,
 * every call refuses the context with E_NULL, or returns NULL or 0.
 * Errors: E_BUSY while launched steps are not consumed or the deferred queue is
 * not empty: drain first. E_STATE inside a capture. On a device that is lost
 * (it gives E_DEVICE for good) steps are not waited for, and this alone still
 * works. */
spmla_status spmla_fini(spmla_ctx *ctx);

/* The constant address of a buffer, or NULL if the plan has none. */
void *spmla_view(const spmla_ctx *ctx, spmla_buf buf, uint64_t *bytes);

/* Fills `cache` with the planned pool of a layer; buf is a .._CACHE, and layers
 * are counted from 0 among those that have such a cache. Errors: E_UNSUPPORTED
 * if no pools are planned, E_RANGE. */
spmla_status spmla_cache_view(const spmla_ctx *ctx, spmla_buf buf,
			      uint32_t layer, spmla_cache *cache);

/* Why the context's last failed call failed. Valid until the next failure. */
const spmla_diag *spmla_ctx_diag(const spmla_ctx *ctx);

const spmla_plan *spmla_ctx_plan(const spmla_ctx *ctx);

/* ---- The step ---------------------------------------------------------- */

typedef enum spmla_request_flag {
	SPMLA_REQUEST_JOIN = 1, /* forget the row's old table columns first */
	SPMLA_REQUEST_FLAG_FORCE_32 = 0x7fffffff
} spmla_request_flag;

/* One active row of a step. Its query tokens lie one after another in the
 * step's tensors, requests in the order given. seq_len_tokens includes the
 * query tokens. query 0 with a length is a paused row; both 0 is legal. */
typedef struct spmla_request {
	uint32_t row; /* [0, max_rows), at most once a step */
	uint32_t query_tokens;
	uint32_t seq_len_tokens;
	uint32_t flags; /* spmla_request_flag bits */
} spmla_request;

/* Columns [first_col, first_col + count) of a row become pages[]. Absolute and
 * idempotent. Columns that were never written read as -1. */
typedef struct spmla_table_store {
	uint32_t group;
	uint32_t row;
	uint32_t first_col;
	uint32_t count;
	const int32_t *pages;
} spmla_table_store;

typedef enum spmla_step_flag {
	/* seq_len_tokens are upper bounds; the true lengths are in
	 * ROW_LEN[row], written by the engine on the device before the step. A
	 * length above its bound or below the query count skips the row and is
	 * reported. */
	SPMLA_STEP_LENS_ON_DEVICE = 1,
	SPMLA_STEP_FLAG_FORCE_32 = 0x7fffffff
} spmla_step_flag;

/* What changes from step to step. Zero requests is legal (warm-up). */
typedef struct spmla_step {
	uint32_t struct_bytes;
	uint32_t flags; /* spmla_step_flag bits */
	uint32_t request_count;
	uint32_t store_count;
	const spmla_request *requests;
	const spmla_table_store *stores; /* applied in order */
} spmla_step;

#define SPMLA_STEP_INIT                                     \
	{                                                   \
		(uint32_t)sizeof(spmla_step), 0, 0, 0, 0, 0 \
	}

typedef struct spmla_step_info {
	uint32_t struct_bytes;
	uint32_t bucket; /* the first of config.buckets that it fits, or
	                  * SPMLA_BUCKET_PREFILL */
	uint32_t tokens;
	uint32_t requests;
	uint32_t next_n;       /* most query tokens of one request */
	uint32_t live_context; /* sum of seq_len over rows with query tokens */
	uint64_t record_bytes; /* bytes in use */
} spmla_step_info;

#define SPMLA_STEP_INFO_INIT                                        \
	{                                                           \
		(uint32_t)sizeof(spmla_step_info), 0, 0, 0, 0, 0, 0 \
	}

/* Checks a step against the plan once and writes its relocatable record, one
 * for all ranks that share the plan.
 * Memory: record holds plan->record_bytes, 16-byte aligned. `info` and `diag`
 * may be NULL.
 * Errors: E_RANGE for the record's room; E_UNSUPPORTED for stores where the
 * table is the engine's; E_RECORD with the field ("step.requests.row", index i)
 * for any limit of the plan; if it fits neither a bucket nor prefill, the first
 * of request_count, next_n, live_context and tokens that none is left for. */
spmla_status spmla_step_encode(const spmla_plan *plan, const spmla_step *step,
			       void *record, uint64_t record_capacity_bytes,
			       spmla_step_info *info, spmla_diag *diag);

/* Copies an encoded record into the ring and returns its ticket, counted from
 * 1. Exactly one launch must follow, in order, and its call must begin after
 * this one has returned: the device reads a slot once, in no order, and waits
 * for nothing, so a record that comes later is missing or seen in part.
 * Errors: E_RING_FULL (nothing written, no wait); E_RECORD if the record is of
 * another plan; E_RANGE if it is not 16-byte aligned. */
spmla_status spmla_step_push(spmla_ctx *ctx, const void *record,
			     uint64_t *ticket);

/* spmla_step_encode straight into the ring, then push. */
spmla_status spmla_step_write(spmla_ctx *ctx, const spmla_step *step,
			      uint64_t *ticket, spmla_step_info *info);

/* Takes back the last ticket, if it was not launched; its table stores were
 * not applied. Errors: E_TICKET for any other. */
spmla_status spmla_step_undo(spmla_ctx *ctx, uint64_t ticket);

/* Tells that the engine has launched, with its own graph, the step of this
 * ticket. spmla_graph_replay and an eager prologue do it themselves. Errors:
 * E_TICKET if the ticket is not the next one to launch. */
spmla_status spmla_step_launched(spmla_ctx *ctx, uint64_t ticket);

/* After the caller lost track and drained the stream: drops every record that
 * was not consumed, with its joins and table stores, which have to be sent
 * again; the next ticket is the one the device expects. Errors: E_BUSY if the
 * deferred queue is not empty. */
spmla_status spmla_step_resync(spmla_ctx *ctx);

/* The bulk form of a table change, of any size: the row's columns from
 * first_col on become `count` pages out of the group's
 * TABLE_STAGING[row][first_col..],
 * and the row then ends there (first_col 0 replaces the row). A row that was
 * filled so must not JOIN in the step that follows: that would forget it.
 * Order: enqueued; takes effect in stream order, before the next step. The
 * staged pages must stay until then. spmla_step_undo does not take it back.
 * Not inside a capture (E_STATE).
 * Errors: E_RANGE; E_UNSUPPORTED for a DEVICE group or one that uses another's
 * table. */
spmla_status spmla_table_write(spmla_ctx *ctx, uint32_t group, uint32_t row,
			       uint32_t first_col, uint32_t count,
			       spmla_stream stream);

/* Names the engine's table of a DEVICE group: int32 [max_rows][stride], on the
 * device. Needed before the first prologue; the address is baked into
 * captures, so it is set once. Errors: E_STATE if set, E_RANGE if the stride
 * is less than plan->group_columns[group], E_UNSUPPORTED for another source. */
spmla_status spmla_table_bind(spmla_ctx *ctx, uint32_t group,
			      const int32_t *table, uint32_t stride_elems);

typedef enum spmla_source {
	SPMLA_FROM_RING = 1,   /* the next record of the ring */
	SPMLA_FROM_DEVICE = 2, /* STEP_DEVICE, copied there in stream order */
	SPMLA_ADVANCE = 3,     /* this step again: lengths += ADVANCE_BY[b] */
	SPMLA_SOURCE_FORCE_32 = 0x7fffffff
} spmla_source;

/* The head of STEP_DEVICE; spmla_request [B] follow at byte 64. Their flags are
 * not looked at: pages come by spmla_table_write or from a DEVICE table. */
typedef struct spmla_step_device {
	uint32_t requests;
	uint32_t flags; /* spmla_step_flag bits */
	uint32_t reserved[14];
} spmla_step_device;

/* The first op of a step: derives every STEP buffer on the device. `shape` is
 * a bucket's or smaller; the ops of the step get the same or a smaller one,
 * never more tokens (E_STATE): the step of the last prologue that was enqueued
 * by itself or replayed by spmla_graph_replay; in a capture, the engine's own
 * too, that of the last one recorded if no step began since. An engine's own
 * launches are not seen. max_live_context 0 is the bucket's. A shape that fits
 * no bucket but prefill's begins a step of spmla_v32_prefill, or one that the
 * calls of a V4 layer are used for eagerly; its LOGITS are used in pieces, so no
 * row can be past their capacity but in V4 one that an ADVANCE took past the
 * workspace.
 * FROM_RING expects the ticket that follows the last consumed one. Another one
 * there: MISSING, an empty step. A record larger than shape, which
 * spmla_graph_replay would have refused: TOO_LARGE, an empty step, the ticket is
 * used up, its joins and stores are not applied.
 * FROM_DEVICE takes the requests of STEP_DEVICE, without a ticket; what does
 * not fit is an empty step too; a row that is named twice is computed twice,
 * and which of two keys for a slot stays is unspecified. ADVANCE moves every
 * row of the step that has query tokens and was not skipped; a row that would
 * leave [query, max_context_tokens] is skipped from then on and reported.
 * Order: enqueues; capturable. Errors: E_RANGE for a shape larger than every
 * bucket and prefill; E_STATE if a DEVICE table is not bound. */
spmla_status spmla_step_prologue(spmla_ctx *ctx, const spmla_shape *shape,
				 spmla_source source, spmla_stream stream);

/* ---- Graphs ------------------------------------------------------------ */

typedef uint32_t spmla_graph; /* 0 is none */

/* Records what the context enqueues from here to _end. Consumes no ticket.
 * Errors: E_STATE if a capture is open; E_SPACE if max_graphs are made. */
spmla_status spmla_graph_begin(spmla_ctx *ctx, spmla_stream stream);

/* Ends the capture and makes the graph replayable; it lives until fini.
 * Errors: E_STATE if no capture is open; E_CAPTURE if an op failed inside it,
 * or it holds two FROM_RING prologues: abort it. */
spmla_status spmla_graph_end(spmla_ctx *ctx, spmla_graph *graph);

/* Drops the open capture. The context is as before _begin. With a device it may
 * be the wrong thread's to drop (E_DEVICE): it is still open.
 * Errors: E_STATE if none is. */
spmla_status spmla_graph_abort(spmla_ctx *ctx);

/* Launches the graph for a ticket: the next one to launch, or 0 for a graph
 * that has no FROM_RING prologue. Calls of a layer that follow outside of it
 * belong to the step that the graph began, if a prologue is in it.
 * Order: enqueues one launch; no wait, no allocation.
 * Errors: E_RANGE for an unknown graph, and for a record that is larger than the
 * shape of the graph's FROM_RING prologue, E_TICKET, E_STATE inside a capture, or
 * for calls of a layer in front of the graph's first prologue that the step
 * which began last does not allow (fewer tokens; other tokens where they were
 * recorded as a prefill, or on a GPU in parts), E_SPACE if the deferred queue is
 * full; then nothing was launched and the ticket may be undone or launched
 * again. */
spmla_status spmla_graph_replay(spmla_ctx *ctx, spmla_graph graph,
				uint64_t ticket, spmla_stream stream);

/* ---- What went wrong on the device ------------------------------------- */

typedef enum spmla_fault {
	SPMLA_FAULT_NONE = 0,
	SPMLA_FAULT_TICKET_MISSING = 1, /* a launch found no record */
	SPMLA_FAULT_TOO_LARGE = 2,      /* a record larger than its shape */
	SPMLA_FAULT_ROW = 3,            /* a row outside the table */
	SPMLA_FAULT_LENGTH = 4,         /* a length outside its bounds */
	SPMLA_FAULT_PAGE = 5,   /* a page not written or outside the pool */
	SPMLA_FAULT_SLOT = 6,   /* a slot outside the cache */
	SPMLA_FAULT_LOGITS = 7, /* a row past the capacity of LOGITS: its key is
	                         * written, its result is empty */
	SPMLA_FAULT_INDEX = 8,  /* a top-k index outside its range */
	SPMLA_FAULT_POSITION = 9, /* a position outside the rope table */
	SPMLA_FAULT_FORCE_32 = 0x7fffffff
} spmla_fault;

/* DEVICE_STATUS: the smallest (row, fault) of the first bad step, and how many
 * times anything was reported. `row` is the request's stable row inside a
 * step, the op's row (token, request) where that is all it knows;
 * SPMLA_NO_INDEX for faults of the whole step. `step` is the ticket (that was
 * expected), or the last one for steps without; every prologue starts a step of
 * its own. */
typedef struct spmla_device_status {
	uint32_t struct_bytes;
	uint32_t count; /* 0: so are those below */
	uint32_t fault; /* spmla_fault */
	uint32_t row;
	uint64_t step;
} spmla_device_status;

#define SPMLA_DEVICE_STATUS_INIT                                  \
	{                                                         \
		(uint32_t)sizeof(spmla_device_status), 0, 0, 0, 0 \
	}

/* Reads the sticky status from pinned memory; no synchronisation. Beside a clear
 * it gives what was reported, or nothing. */
spmla_status spmla_status_read(const spmla_ctx *ctx,
			       spmla_device_status *status);

/* Clears it. The caller has drained the stream: a report that comes meanwhile
 * may be lost. With E_DEVICE it reads as before. */
spmla_status spmla_status_clear(spmla_ctx *ctx);

/* "TICKET_MISSING" and so on; never NULL. */
const char *spmla_fault_name(uint32_t fault);

#ifdef __cplusplus
}
#endif
#endif
