/* SPDX-License-Identifier: Apache-2.0
 *
 * SpMLA: DeepSeek sparse attention for engines that decode by replaying a
 * captured graph.
 *
 * The one idea: all memory is planned once and handed in, and a step is data (a
 * record in a ring), not calls. So one captured graph serves every step.
 *
 * This header has init, the step protocol, graphs and the device status. The
 * others:
 *   spmla/spmla_plan.h     status codes, config, device, plan
 *   spmla/spmla_buffers.h  the planned buffers and their shapes
 *   spmla/v32.h, v4.h      the layers of DeepSeek V3.2 and of V4
 *   spmla/prefill_plan.h   how prompts are cut into steps
 *   spmla/decode_parts.h   split-KV decode without a model's layers
 *   spmla/rope.h           the models' tables of cosines and sines
 *   spmla/ops/<op>.h       each operation alone
 *   spmla/spmla_layout.h   the bytes of the caches
 *   spmla/spmla_native.h   platform handles, threads for the CPU
 *   spmla/spmla_cpu.h      functions of the CPU backend only
 *   spmla/spmla_cuda.h     streams, regions and errors on CUDA
 *   spmla/spmla_hip.h      the same on HIP
 *   spmla/spmla_level_zero.h  the same on Level Zero
 *
 * Types. Counts are uint32_t, bytes are uint64_t, and names carry their unit. A
 * zero field means its default unless its comment says otherwise.
 *
 * Structs. A public struct starts with struct_bytes, its sizeof; the *_INIT
 * macros set it. A size that the library does not know is refused. Structs grow
 * only at their end. Small records that stand in arrays or inside other structs
 * have no struct_bytes and never change: spmla_shape, spmla_table_config,
 * spmla_extent, spmla_request, spmla_table_store, spmla_step_device,
 * spmla_range, spmla_indexer_chunk, spmla_prefill_chunk, spmla_gathered_chunk.
 *
 * Errors. Every call may return E_NULL and E_STRUCT_SIZE. Every call that
 * enqueues may return E_SPACE (planned room is used up) and, on a device,
 * E_DEVICE. A function's comment lists only its other errors. A failed call
 * fills its diag argument or, if it has none, the context's (spmla_ctx_diag).
 * spmla_status_read fills none, because any thread may call it. The library
 * writes a diag and never reads it.
 *
 * A failed call changes nothing, with two exceptions: a call that enqueues and
 * returns E_DEVICE, and a call made of several operations. These may have left
 * some work on the stream. Inside a capture, abort the capture. Outside, drain
 * the stream, and call spmla_step_resync if a FROM_RING prologue was enqueued.
 *
 * Threads. One thread at a time uses a context. spmla_status_read, and
 * functions that take only const plans, may run anywhere at any time. The
 * library starts no thread; the caller may lend threads to the CPU backend
 * (spmla_native.h).
 */
#ifndef SPMLA_H
#define SPMLA_H

#include <stdint.h>

#include "spmla/spmla_layout.h"
#include "spmla/spmla_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Every other file takes the version from here. While MAJOR is 0, a new MINOR
 * may change the interface. */
#define SPMLA_VERSION_MAJOR 0
#define SPMLA_VERSION_MINOR 1
#define SPMLA_VERSION_PATCH 0
#define SPMLA_VERSION                                                \
	(SPMLA_VERSION_MAJOR * 10000u + SPMLA_VERSION_MINOR * 100u + \
	 SPMLA_VERSION_PATCH)

/* The version of the linked library: SPMLA_VERSION, and as text, "0.1.0". */
uint32_t spmla_version(void);
const char *spmla_version_string(void);

/* ---- Context ----------------------------------------------------------- */

/* Memory of one kind that the caller hands in. */
typedef struct spmla_region {
	uint32_t struct_bytes;
	uint32_t memory; /* spmla_memory */
	void *base;
	uint64_t bytes;
} spmla_region;

/* Fills `regions` with one region of each kind, as large as the plan needs.
 * They lie back to back in `block`, which is 256 B aligned. One block is enough
 * where host and device share memory, as on the CPU. If block is NULL, so are
 * the bases, and the caller sets them.
 * Returns the bytes of the block, a multiple of 256, or 0 if plan or regions is
 * NULL or the size overflows 64 bits. */
uint64_t spmla_plan_regions(const spmla_plan *plan, void *block,
			    spmla_region regions[SPMLA_MEMORY_COUNT]);

/* A context, made by spmla_init. Its fields are private. */
typedef struct spmla_ctx spmla_ctx;

/* Makes a context inside the given regions. Each kind of memory whose
 * plan->region_bytes is not 0 needs one region, at least that large and aligned
 * to plan->region_align. The context itself lies at the start of the HOST
 * region. A region of a kind that the plan does not need is allowed, but its
 * base must not be NULL.
 * Memory: everything stays the caller's. Nothing is allocated, now or later.
 * Order: may load code and wait. No later call does.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE (kinds, flags), E_REGION, E_OVERLAP,
 * E_OVERFLOW (the end of a region), E_UNSUPPORTED. These are found before any
 * region is touched. Then init makes the plan again, in the HOST region, and
 * compares the two. It returns the error of spmla_plan_make, or E_RANGE with
 * the first byte that differs. If the backend fails after that, only bytes in
 * the regions have changed. */
spmla_status spmla_init(spmla_ctx **ctx, const spmla_plan *plan,
			const spmla_backend *backend,
			const spmla_native *native, const spmla_region *regions,
			uint32_t region_count, spmla_diag *diag);

/* Ends the context. The memory is the caller's again. Until the memory is
 * overwritten, every call with this context returns E_NULL, NULL or 0.
 * Errors: E_BUSY while launched steps are not consumed or the deferred queue is
 * not empty: drain first. E_STATE inside a capture.
 * On a lost device (one that returns E_DEVICE from every call) it does not wait
 * for steps, and it is the only call that still works. */
spmla_status spmla_fini(spmla_ctx *ctx);

/* Makes a context usable after its DEVICE memory was unmapped and mapped again
 * at the same addresses, with any contents. The engine first drains the steps.
 * HOST and PINNED memory must have stayed; CACHE memory is the engine's
 * business.
 * Afterwards the context is as new: no step has begun, tickets count from 1,
 * records not launched are dropped, tables are empty (rows JOIN again), status
 * and PINNED buffers are zeros. Graphs and bound tables remain.
 * Order: waits for the device, as spmla_init may.
 * Errors: as spmla_fini; E_DEVICE. */
spmla_status spmla_wake(spmla_ctx *ctx);

/* The constant address of a planned buffer, or NULL if the plan has none. */
void *spmla_view(const spmla_ctx *ctx, spmla_buf buf, uint64_t *bytes);

/* Fills `cache` with the planned pool of one layer. buf is one of the *_CACHE
 * buffers. `layer` counts from 0 the layers that have such a cache. Errors:
 * E_UNSUPPORTED if no pools are planned, E_RANGE. */
spmla_status spmla_cache_view(spmla_ctx *ctx, spmla_buf buf, uint32_t layer,
			      spmla_cache *cache);

/* The diag of the context's last failed call, valid until the next failure. */
const spmla_diag *spmla_ctx_diag(const spmla_ctx *ctx);

/* The plan that the context was made of. */
const spmla_plan *spmla_ctx_plan(const spmla_ctx *ctx);

/* ---- The step ---------------------------------------------------------- */

/* Flags of a request. */
typedef enum spmla_request_flag {
	SPMLA_REQUEST_JOIN = 1, /* forget the row's old table columns first */
	SPMLA_REQUEST_FLAG_FORCE_32 = 0x7fffffff
} spmla_request_flag;

/* One active request of a step. Its query tokens are contiguous in the step's
 * tensors, and requests follow each other in the order given. seq_len_tokens
 * includes the query tokens. A request without query tokens but with a length
 * is paused. Both may be 0. */
typedef struct spmla_request {
	uint32_t row; /* stable row in [0, max_rows), at most once a step */
	uint32_t query_tokens;
	uint32_t seq_len_tokens;
	uint32_t flags; /* spmla_request_flag bits */
} spmla_request;

/* Sets the columns [first_col, first_col + count) of a row to pages[]. Absolute
 * and idempotent. A column that was never written reads as -1, and empties
 * every token that would see its keys (FAULT_PAGE). */
typedef struct spmla_table_store {
	uint32_t group;
	uint32_t row;
	uint32_t first_col;
	uint32_t count;
	const int32_t *pages;
} spmla_table_store;

/* Flags of a step. */
typedef enum spmla_step_flag {
	/* seq_len_tokens are upper bounds. The true lengths are in
	 * ROW_LEN[row], which the engine writes on the device before the step.
	 * A length above its bound, or below the query count, skips the row and
	 * is reported. */
	SPMLA_STEP_LENS_ON_DEVICE = 1,
	SPMLA_STEP_FLAG_FORCE_32 = 0x7fffffff
} spmla_step_flag;

/* What changes from step to step. Zero requests are legal, for warm-up. */
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

/* The size of an encoded step, and the bucket that it fits. */
typedef struct spmla_step_info {
	uint32_t struct_bytes;
	/* the first of config.buckets that the step fits, or
	 * SPMLA_BUCKET_PREFILL */
	uint32_t bucket;
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

/* Checks a step against the plan and writes its record. The record holds no
 * addresses, so all ranks that share the plan may use it.
 * Memory: record holds plan->record_bytes, 16-byte aligned. `info` and `diag`
 * may be NULL.
 * Errors: E_RANGE if the record's room is too small or misaligned.
 * E_UNSUPPORTED for stores to a table that is the engine's. E_RECORD for any
 * limit of the plan; the diag has the field ("step.requests.row") and the
 * index. If no shape fits, the diag names the first limit that leaves none, in
 * the order request_count, next_n, live_context, tokens. */
spmla_status spmla_step_encode(const spmla_plan *plan, const spmla_step *step,
			       void *record, uint64_t record_capacity_bytes,
			       spmla_step_info *info, spmla_diag *diag);

/* Copies an encoded record into the ring and returns its ticket, counted from
 * 1. Exactly one launch must follow for each ticket, in ticket order. Call the
 * launch after this function has returned: the device reads the slot once, in
 * no particular order, and waits for nothing, so a record written during the
 * launch may be missing or seen in part.
 * Errors: E_RING_FULL (nothing is written; does not wait); E_RECORD if the
 * record belongs to another plan; E_RANGE if it is not 16-byte aligned. */
spmla_status spmla_step_push(spmla_ctx *ctx, const void *record,
			     uint64_t *ticket);

/* spmla_step_encode straight into the ring, then spmla_step_push. */
spmla_status spmla_step_write(spmla_ctx *ctx, const spmla_step *step,
			      uint64_t *ticket, spmla_step_info *info);

/* Takes back the last ticket if it was not launched. Its table stores were not
 * applied. Errors: E_TICKET for any other ticket. */
spmla_status spmla_step_undo(spmla_ctx *ctx, uint64_t ticket);

/* Tells the context that the engine launched the step of this ticket with a
 * graph of its own. The device may have run it already. spmla_graph_replay and
 * an eager prologue do this themselves. Errors: E_TICKET if the ticket is not
 * the next one to launch. */
spmla_status spmla_step_launched(spmla_ctx *ctx, uint64_t ticket);

/* For a caller that lost track of tickets and has drained the stream. Drops
 * every record that was not consumed. Their joins and table stores are lost and
 * must be sent again. The next ticket is then the one that the device expects.
 * Errors: E_BUSY if the deferred queue is not empty. */
spmla_status spmla_step_resync(spmla_ctx *ctx);

/* A table change of any size. The row's columns from first_col on become
 * `count` pages, read from the group's TABLE_STAGING[row][first_col..], and the
 * row ends there. first_col 0 replaces the row.
 * Do not set JOIN on the row in the step that follows: JOIN forgets the
 * columns.
 * Order: enqueues; takes effect in stream order, before the next step. Keep the
 * staged pages until then. spmla_step_undo does not take it back. Not inside a
 * capture (E_STATE).
 * Errors: E_RANGE; E_UNSUPPORTED for a DEVICE group, and for a group that uses
 * the table of another. */
spmla_status spmla_table_write(spmla_ctx *ctx, uint32_t group, uint32_t row,
			       uint32_t first_col, uint32_t count,
			       spmla_stream stream);

/* Binds the engine's own table to a DEVICE group: int32 [max_rows][stride] on
 * the device. Call it before the first prologue, and only once, because
 * captures contain the address. Errors: E_STATE if it is already bound, E_RANGE
 * if the stride is less than plan->group_columns[group], E_UNSUPPORTED for
 * another source. */
spmla_status spmla_table_bind(spmla_ctx *ctx, uint32_t group,
			      const int32_t *table, uint32_t stride_elems);

/* Where a prologue takes its step from. */
typedef enum spmla_source {
	SPMLA_FROM_RING = 1, /* the next record of the ring */
	/* the buffer STEP_DEVICE, written in stream order */
	SPMLA_FROM_DEVICE = 2,
	SPMLA_ADVANCE = 3, /* this step again, lengths += ADVANCE_BY[b] */
	SPMLA_SOURCE_FORCE_32 = 0x7fffffff
} spmla_source;

/* The head of STEP_DEVICE. spmla_request [B] follow at byte 64. The flags of
 * those requests are ignored: pages come by spmla_table_write or from a DEVICE
 * table. */
typedef struct spmla_step_device {
	uint32_t requests;
	uint32_t flags; /* spmla_step_flag bits */
	uint32_t reserved[14];
} spmla_step_device;

/* The first operation of a step. It derives every STEP buffer on the device.
 *
 * `shape` is a bucket's shape or a smaller one; max_live_context 0 means the
 * bucket's. The other operations of the step take this shape or a smaller one.
 * More tokens than the prologue's are E_STATE. Outside of captures, the last
 * prologue that ran counts: enqueued eagerly, or replayed by
 * spmla_graph_replay. In a capture, the last one that was recorded counts,
 * unless another one ran since. An engine's own launches are not seen.
 *
 * A shape that fits only prefill begins a step of prompts: spmla_v32_prefill
 * follows, or eager calls of V4 layers. Such a step computes logits in pieces,
 * so its rows always fit LOGITS. Exception: V4, if ADVANCE makes a request
 * longer than the shape's max_live_context.
 *
 * FROM_RING expects the ticket after the last consumed one. If the slot holds
 * another ticket (TICKET_MISSING), the step is empty. If the record is larger
 * than `shape` (TOO_LARGE), the step is empty, the ticket is used up, and its
 * joins and table stores are not applied; spmla_graph_replay refuses such a
 * record before it launches.
 * FROM_DEVICE takes the requests of STEP_DEVICE, without a ticket. A step that
 * does not fit is empty too. A row named twice is computed twice. If both write
 * a key to one slot, either may remain.
 * ADVANCE moves every row of the step that has query tokens and was not
 * skipped. A row that would leave [query, max_context_tokens] is skipped from
 * then on and reported.
 *
 * Order: enqueues; capturable.
 * Errors: E_RANGE for a shape larger than every bucket and prefill; E_STATE if
 * a DEVICE table is not bound. */
spmla_status spmla_step_prologue(spmla_ctx *ctx, const spmla_shape *shape,
				 spmla_source source, spmla_stream stream);

/* ---- Graphs ------------------------------------------------------------ */

typedef uint32_t spmla_graph; /* 0 is none */

/* Records what the context enqueues from here to _end. Uses up no ticket.
 * Errors: E_STATE if a capture is open; E_SPACE if max_graphs are made. */
spmla_status spmla_graph_begin(spmla_ctx *ctx, spmla_stream stream);

/* Ends the capture and makes the graph replayable. The graph lives until fini.
 * Errors: E_STATE if no capture is open; E_CAPTURE if an operation failed
 * inside it, or if it holds two FROM_RING prologues: abort it. */
spmla_status spmla_graph_end(spmla_ctx *ctx, spmla_graph *graph);

/* Drops the open capture. The context is as before _begin. On a device, a
 * thread other than the one that began the capture may get E_DEVICE; the
 * capture is then still open.
 * Errors: E_STATE if none is open. */
spmla_status spmla_graph_abort(spmla_ctx *ctx);

/* Launches the graph. `ticket` is the next one to launch, or 0 if the graph has
 * no FROM_RING prologue. If the graph has a prologue, layer calls that follow
 * outside the graph belong to the step that it began.
 * Order: enqueues one launch; no wait, no allocation.
 *
 * Layer calls recorded before the graph's first prologue, or in a graph without
 * one, belong to the current step. That step must suit them. It needs at least
 * as many tokens as they were recorded for, exactly as many if they were
 * recorded in parts on a GPU. Calls recorded in a prefill need a prefill of the
 * same shape, all others a decode step.
 *
 * Errors: E_RANGE for an unknown graph, or for a record that is larger than
 * the shape of the graph's FROM_RING prologue; E_TICKET; E_STATE inside a
 * capture, or if the current step does not suit the graph; E_SPACE if the
 * deferred queue is full; E_BUSY on Level Zero, while every copy of the graph
 * still runs, or 64 replays do. On an error nothing was launched, and the
 * ticket may be undone or launched again. */
spmla_status spmla_graph_replay(spmla_ctx *ctx, spmla_graph graph,
				uint64_t ticket, spmla_stream stream);

/* ---- What went wrong on the device ------------------------------------- */

/* What an operation reports to DEVICE_STATUS. */
typedef enum spmla_fault {
	SPMLA_FAULT_NONE = 0,
	SPMLA_FAULT_TICKET_MISSING = 1, /* a launch found no record */
	SPMLA_FAULT_TOO_LARGE = 2,      /* a record larger than its shape */
	SPMLA_FAULT_ROW = 3,            /* a row outside the table */
	SPMLA_FAULT_LENGTH = 4,         /* a length outside its bounds */
	SPMLA_FAULT_PAGE = 5, /* a page not written or outside the pool */
	SPMLA_FAULT_SLOT = 6, /* a slot outside the cache */
	/* a row past the capacity of LOGITS: its key is written, its result is
	 * empty */
	SPMLA_FAULT_LOGITS = 7,
	SPMLA_FAULT_INDEX = 8,    /* a top-k index outside its range */
	SPMLA_FAULT_POSITION = 9, /* a position outside the rope table */
	/* a thread block, `row`, waited in vain. Only the debug build of
	 * kernels reports it. Results are undefined; the context can only be
	 * ended */
	SPMLA_FAULT_TIMEOUT = 10,
	SPMLA_FAULT_FORCE_32 = 0x7fffffff
} spmla_fault;

/* DEVICE_STATUS: the smallest (row, fault) of the first bad step, and the
 * number of all reports.
 * `row` is the request's stable row inside a step. An operation that does not
 * know it gives its own row (token or request). Faults of the whole step give
 * SPMLA_NO_INDEX.
 * `step` is the ticket, or the expected one if it is missing. Steps without a
 * ticket give the last ticket. Every prologue starts a new step. */
typedef struct spmla_device_status {
	uint32_t struct_bytes;
	uint32_t count; /* 0: the fields below are 0 too */
	uint32_t fault; /* spmla_fault */
	uint32_t row;
	uint64_t step;
} spmla_device_status;

#define SPMLA_DEVICE_STATUS_INIT                                  \
	{                                                         \
		(uint32_t)sizeof(spmla_device_status), 0, 0, 0, 0 \
	}

/* Reads the sticky status from pinned memory, without synchronisation. Beside a
 * concurrent clear it returns a whole report or none.
 * Errors: E_BUSY on Level Zero, while a graph runs, if host and device may not
 * access host memory at the same time; see spmla_level_zero.h. */
spmla_status spmla_status_read(const spmla_ctx *ctx,
			       spmla_device_status *status);

/* Clears the status. Drain the stream first: a report that arrives meanwhile
 * may be lost. On E_DEVICE the status stays as it was. */
spmla_status spmla_status_clear(spmla_ctx *ctx);

/* "TICKET_MISSING" and so on; never NULL. */
const char *spmla_fault_name(uint32_t fault);

#ifdef __cplusplus
}
#endif
#endif
