/* SPDX-License-Identifier: Apache-2.0
 *
 * Status codes and diags, the config with every limit, device facts, and the
 * plan that says where each buffer lies.
 */
#ifndef SPMLA_PLAN_H
#define SPMLA_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "spmla/spmla_buffers.h"
#include "spmla/spmla_layout.h"
#include "spmla/spmla_native.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Status and diagnosis ---------------------------------------------- */

/* What a call returns. The numbers never change. */
typedef enum spmla_status {
	SPMLA_OK = 0,
	SPMLA_E_NULL = 10, /* a required pointer is NULL, or a context ended */
	SPMLA_E_STRUCT_SIZE = 11, /* struct_bytes of an unknown version */
	SPMLA_E_RANGE = 12,       /* a value is outside what is allowed */
	SPMLA_E_OVERFLOW = 13,    /* a size does not fit 64 bits */
	SPMLA_E_REGION = 20,      /* a region is small, misaligned, missing */
	SPMLA_E_OVERLAP = 21,     /* two regions share bytes */
	SPMLA_E_UNSUPPORTED = 30, /* this backend or plan lacks it */
	SPMLA_E_STATE = 40,       /* not allowed now, e.g. in a capture */
	SPMLA_E_BUSY = 41,        /* steps or copies of a graph still run */
	SPMLA_E_RING_FULL = 50,   /* no free slot; nothing was written */
	SPMLA_E_TICKET = 51,      /* not the ticket that is next */
	SPMLA_E_RECORD = 52,      /* the step breaks a limit of the plan */
	SPMLA_E_CAPTURE = 60,     /* an op of this capture failed */
	SPMLA_E_SPACE = 61, /* planned room for graphs or queue is used up */
	SPMLA_E_NO_DRIVER = 70,  /* the platform's driver is not installed */
	SPMLA_E_DRIVER_OLD = 71, /* diag: its version, the one needed */
	SPMLA_E_NO_BLOB = 72,    /* built without this platform's kernels */
	SPMLA_E_DEVICE = 80,     /* diag: the driver's function, its code */
	SPMLA_STATUS_FORCE_32 = 0x7fffffff
} spmla_status;

/* "SPMLA_E_RANGE" and so on; never NULL. */
const char *spmla_status_name(spmla_status status);

/* How a diag's `want` limits `got`. */
typedef enum spmla_want {
	SPMLA_WANT_NOTHING = 0,
	SPMLA_WANT_EQUAL = 1,
	SPMLA_WANT_AT_LEAST = 2,
	SPMLA_WANT_AT_MOST = 3,
	SPMLA_WANT_MULTIPLE_OF = 4,
	SPMLA_WANT_NOT_NULL = 5,
	SPMLA_WANT_UNIQUE = 6,
	SPMLA_WANT_FINITE = 7,
	SPMLA_WANT_ONE_OF = 8, /* bit number `got` of want has to be set */
	/* want packs up to four allowed 16-bit values, lowest bits first; 0:
	 * unused */
	SPMLA_WANT_EITHER = 9,
	SPMLA_WANT_FORCE_32 = 0x7fffffff
} spmla_want;

/* Instead of an index: there is none. */
#define SPMLA_NO_INDEX 0xffffffffu

/* Why a call failed: the field, the value it got and the value it wants.
 * `field` may end with a hint in parentheses. `index` is the element of an
 * array field, or SPMLA_NO_INDEX. */
typedef struct spmla_diag {
	uint32_t struct_bytes;
	uint32_t status;    /* spmla_status */
	uint32_t want_rule; /* spmla_want */
	uint32_t index;
	const char *field; /* static text, "config.heads" */
	uint64_t got;
	uint64_t want;
} spmla_diag;

#define SPMLA_DIAG_INIT                                                     \
	{                                                                   \
		(uint32_t)sizeof(spmla_diag), 0, 0, SPMLA_NO_INDEX, 0, 0, 0 \
	}

/* Writes one line without a newline, such as
 *   SPMLA_E_RANGE: config.heads: got 0, want at least 1
 * If capacity > 0 the text ends with a 0. Returns the length of the whole line,
 * which may exceed the capacity. */
uint32_t spmla_diag_text(const spmla_diag *diag, char *text, uint32_t capacity);

/* ---- Config ------------------------------------------------------------ */

/* The models that have a preset. */
typedef enum spmla_model {
	SPMLA_MODEL_V32 = 1, /* DeepSeek V3.2: indexer, top-k, MLA rows */
	/* DeepSeek V4: sliding window, compressed caches. FLASH and PRO differ
	 * only in what their presets say. */
	SPMLA_MODEL_V4_FLASH = 2,
	SPMLA_MODEL_V4_PRO = 3,
	SPMLA_MODEL_FORCE_32 = 0x7fffffff
} spmla_model;

enum {
	SPMLA_MAX_BUCKETS = 16,
	SPMLA_MAX_TABLE_GROUPS = 8,
	SPMLA_GROUP_MAIN = 0, /* V3.2: the KV and the indexer cache */
	/* V4 has a group for each kind of cache; its main group is the
	 * window's. */
	SPMLA_GROUP_SWA = 0,   /* the sliding window of all layers */
	SPMLA_GROUP_C4A = 1,   /* keys compressed 4:1, layers of ratio 4 */
	SPMLA_GROUP_C128A = 2, /* keys compressed 128:1, layers of ratio 128 */
	SPMLA_GROUP_INDEX = 3, /* index keys, compressed 4:1 */
	SPMLA_GROUP_STATE_C4A = 4, /* compressor states of these three */
	SPMLA_GROUP_STATE_C128A = 5,
	SPMLA_GROUP_STATE_INDEX = 6,
	SPMLA_V4_GROUPS = 7,
	/* spmla_step_info.bucket of a step that fits no bucket, only the one
	 * implicit shape of prefill: {max_prefill_tokens, the most requests of
	 * a bucket, max_prefill_tokens, prefill_workspace_tokens}. */
	SPMLA_BUCKET_PREFILL = SPMLA_MAX_BUCKETS
};

/* Flags of a config. */
typedef enum spmla_config_flag {
	/* The bits of a row depend only on the model, the heads and the row's
	 * own length: kernel, tile and order of sums follow from these. The CPU
	 * backend always works this way.
	 * On CUDA a token's keys of V3.2 are cut into fixed splits, at most 4.
	 * SPLIT_OUT has room for the most splits of each token of the largest
	 * bucket. On Hopper, with FP8_DS_MLA, up to 16 heads and topk up to
	 * 2048, 16 thread blocks share a token's keys instead, whatever the
	 * batch, and DECODE_WORKSPACE has 266368 bytes for each token of the
	 * largest bucket. With V4 and on other GPUs one thread block attends to
	 * all keys of a token, for 64 heads at a time (for 16 if there are at
	 * most 16 heads, and on some devices). Elsewhere small batches take
	 * longer.
	 * A token of a prefill has the bits of prefill, not of decode. In V3.2
	 * on Hopper it may also select other keys: see spmla_v32_prefill. */
	SPMLA_CONFIG_BATCH_INVARIANT = 1,
	/* No two buffers share bytes, and 256 B lie between neighbours. For
	 * tests that look for stray writes. Uses more memory; changes no
	 * result. */
	SPMLA_CONFIG_APART = 2,
	/* Every list of keys is ragged, as indptr and indices at constant
	 * addresses: RAGGED_INDPTR and RAGGED_INDICES, and for V4 such a pair
	 * for the window, one for C128A, and one for the window of layers of
	 * ratio 4. A layer's attention writes the ragged selection, with that
	 * window, and C128A's list in a step of several pieces. The prologue
	 * writes the other ragged lists and INDEXER_SCHEDULE, in extra
	 * launches. The layers attend by these lists. Results have the same
	 * bits as without the flag. */
	SPMLA_CONFIG_RAGGED = 4,
	/* Allows kernels that compile and pass their tests in the emulator, but
	 * that no GPU of their kind ever ran: the kernels with matrix
	 * instructions on HIP and Level Zero, which docs/kernels.md lists.
	 * Results have other bits, within the bounds that headers state for
	 * matrix instructions. A prompt's selection may then differ from
	 * decode's. */
	SPMLA_CONFIG_ALLOW_UNPROVEN = 8,
	SPMLA_CONFIG_FLAG_FORCE_32 = 0x7fffffff
} spmla_config_flag;

/* How the scale of a group of e4m3 values follows from their largest
 * magnitude. */
typedef enum spmla_scale_mode {
	SPMLA_SCALE_POW2 = 1, /* scale = 2^ceil(log2(max(amax/448, 1e-4))) */
	SPMLA_SCALE_RAW = 2,  /* scale = max(amax/448, 2^-126) */
	SPMLA_SCALE_MODE_FORCE_32 = 0x7fffffff
} spmla_scale_mode;

/* Whose block table a group uses. */
typedef enum spmla_table_source {
	SPMLA_TABLE_RING = 1,     /* SpMLA's table, changed by records */
	SPMLA_TABLE_DEVICE = 2,   /* the engine's table, read only */
	SPMLA_TABLE_OF_MAIN = 16, /* see SPMLA_TABLE_OF */
	SPMLA_TABLE_SOURCE_FORCE_32 = 0x7fffffff
} spmla_table_source;

/* The source of a group that uses the table of an earlier group, which must
 * have a table of its own. The pools of both have the same page ids. The group
 * takes over all fields of the earlier one, and table stores and binds name the
 * earlier one. */
#define SPMLA_TABLE_OF(group) ((uint32_t)SPMLA_TABLE_OF_MAIN + (group))

/* ring_columns: the fewest that the config's steps allow. */
#define SPMLA_RING_LEAST 0xffffffffu

/* A shape that graphs are captured for. A step fits a shape if it has at most
 * `tokens` query tokens, `requests` requests (paused ones included), `next_n`
 * query tokens in one request, and `max_live_context` tokens of context in all.
 * max_live_context 0 means requests * max_context_tokens, at most 2^32 - 1.
 * Limits: tokens 1..65536, requests 1..max_rows, next_n 1..tokens. */
typedef struct spmla_shape {
	uint32_t tokens;
	uint32_t requests;
	uint32_t next_n;
	uint32_t max_live_context;
} spmla_shape;

/* A block table, shared by one or more caches. Position p lies in column p /
 * page_tokens. With ring_columns the column is taken modulo ring_columns: a
 * position then replaces the one ring_columns * page_tokens before it, and a
 * request keeps the pages that it got when it joined. A page of compressed keys
 * holds page_tokens / ratio of them. docs/tables.md has examples. */
typedef struct spmla_table_config {
	uint32_t source; /* spmla_table_source; default RING */
	/* Positions that a page covers, 1..4096; for compressed keys a multiple
	 * of the ratio. Default for V3.2: 64. Defaults for V4: window 64,
	 * compressed keys 256, states of ratio 4: 4, states of ratio 128: the
	 * smallest multiple of 128 that holds one group and the tokens that may
	 * be taken back. */
	uint32_t page_tokens;
	/* Valid page ids are [0, pool_pages). No default. pool_pages *
	 * page_tokens < 2^31. */
	uint32_t pool_pages;
	/* 0: one column for each page of the longest context. SPMLA_RING_LEAST:
	 * the fewest. Only for V4's window and states. ring_columns *
	 * page_tokens < 2^31.
	 * With n = the largest next_n of a bucket + draft_tokens, the window
	 * needs room for window - 1 + max(n, max_prefill_tokens) positions, and
	 * at least one column more than window - 1 positions fill. A state
	 * needs room for r + n - 1 positions, r = 8 at ratio 4 and 128 at ratio
	 * 128. These sizes let the tokens of one step and its draft be taken
	 * back. */
	uint32_t ring_columns;
} spmla_table_config;

/* Everything that sizes depend on. The required fields come first. An older
 * struct may end anywhere from `ring_slots` on; the missing fields get their
 * defaults. */
typedef struct spmla_config {
	uint32_t struct_bytes;
	uint32_t model;       /* spmla_model */
	uint32_t flags;       /* spmla_config_flag bits */
	uint32_t heads;       /* query heads on this rank, 1..256 */
	uint32_t index_heads; /* 1..128 */
	uint32_t topk;        /* 1..65536 */
	/* FP8_DS_MLA (default) or MLA_BF16; V4: V4_FP8 */
	uint32_t kv_layout;
	/* spmla_scale_mode; default POW2; V4: POW2 only */
	uint32_t kv_scale_mode;
	uint32_t max_rows;           /* stable request rows, 1..65536 */
	uint32_t max_context_tokens; /* longest sequence, 1..2^24 */
	/* layers whose page pools are planned in the CACHE region, up to 1024;
	 * 0: the engine provides all pools */
	uint32_t cache_layers;
	/* > 0, <= 2^126; default: V3.2 192^-0.5 * (0.1 ln 40 + 1)^2 (YaRN's
	 * factor), V4 512^-0.5 */
	float softmax_scale;
	uint32_t bucket_count;                  /* 1..SPMLA_MAX_BUCKETS */
	spmla_shape buckets[SPMLA_MAX_BUCKETS]; /* smallest first is best */
	spmla_table_config groups[SPMLA_MAX_TABLE_GROUPS];
	uint32_t ring_slots; /* records in flight, 1..1024; default 4 */
	/* Most table stores of one record, up to 65536. Default: 2 * the most
	 * requests of a bucket, for the main table and for each other RING
	 * table. */
	uint32_t max_table_stores;
	/* Most pages in the stores of one record, up to 2^24. Default: the
	 * largest of three sums over the main table and each other RING table:
	 * 4 pages per request; the columns of one row; with prefill, the pages
	 * of a workspace plus one per request (with ring_columns at most its
	 * columns per request). */
	uint32_t max_update_pages;
	/* 1..256; default: bucket_count, at least 4 */
	uint32_t max_graphs;
	/* CPU: most operations recorded in all graphs together, up to 2^20.
	 * Default: 512 per graph, V4: 1024. A V3.2 layer has up to 6, a V4
	 * layer 2 to 13, a prologue 1 (with SPMLA_CONFIG_RAGGED 2, V4: up to
	 * 4). */
	uint32_t max_graph_nodes;
	/* CPU: room of the deferred queue, up to 65536; default 64 */
	uint32_t queue_entries;
	/* Most query tokens of a prefill step, up to 65536. 0: no prefill is
	 * planned, and the prefill fields below are ignored. */
	uint32_t max_prefill_tokens;
	/* Most bytes of a prefill's index logits, up to 2^40 and at least one
	 * token's row over the longest context of a prefill. 0: 64 MiB, or that
	 * row if it is larger. */
	uint64_t logits_budget_bytes;
	/* Most tokens of context in a prefill step, up to 2^31 - 1. V3.2
	 * gathers them into a workspace. Default: max_context_tokens. */
	uint32_t prefill_workspace_tokens;
	/* CPU: most bodies of spmla_native.parallel_for that work at the same
	 * time, each in scratch of its own; up to 1024. Default 1: parallel_for
	 * is not called. */
	uint32_t cpu_workers;
	/* V4: keys that a token sees of the window, its own included, up to
	 * 4096; default 128. V3.2: 0, like each field below for V4. */
	uint32_t window_tokens;
	/* Both models: INDEX_FP8 (default) or INDEX_MXFP4. V3.2: also
	 * INDEX_FP8_TILED, with pages of a multiple of 16 tokens. */
	uint32_t index_layout;
	/* V4: layers of ratio 4 whose page pools are planned, up to 1024.
	 * cache_layers then counts the pools of the window. */
	uint32_t c4a_layers;
	uint32_t c128a_layers; /* the same for layers of ratio 128 */
	/* V4: tokens that a draft by ADVANCE adds to a request after a step,
	 * up to 65536. All of them may be taken back: ring tables have room for
	 * them. */
	uint32_t draft_tokens;
	/* V4: spmla_o_quant, the widest output that OUTPUT_O is sized for. e4m3
	 * takes half the bytes of BF16 (default); a layer with BF16 output then
	 * runs in twice as many pieces. */
	uint32_t output_quant;
	/* V3.2: context-parallel decode, without prefill. The ranks take
	 * turns: each run of dcp_interleave positions lies on the next of
	 * dcp_ranks ranks. This plan's tables and caches hold the keys of rank
	 * dcp_rank only, one behind the other.
	 *
	 * Positions, limits of lengths and the columns of tables count the
	 * whole sequence. CONTEXT_LENS counts the keys of a token that lie on
	 * this rank. If a token's own key lies on another rank, its slot is -1.
	 * A token without keys on this rank has an empty result. Entries of a
	 * selection are numbers of this rank's keys; an engine's own selection
	 * has -1 only after all of them.
	 *
	 * The engine merges the ranks' results by their lse. So layers have
	 * empty_lse MINUS_INF and no attn_sink: the sink belongs to the merge.
	 * Default 1, 0, 1. */
	uint32_t dcp_ranks; /* up to 65536 */
	uint32_t dcp_rank;
	uint32_t dcp_interleave; /* up to 4096 */
	uint32_t reserved;
} spmla_config;

/* The least struct_bytes, from an engine compiled before the tail existed. */
#define SPMLA_CONFIG_MIN_BYTES ((uint32_t)offsetof(spmla_config, ring_slots))

/* Fills `config` with the model's constants and with zeros elsewhere. All
 * models: 64 index heads. V3.2: 128 heads, top-k 2048, pages of 64. V4-Flash:
 * 64 heads, top-k 512. V4-Pro: 128 heads, top-k 1024. Both V4 models: output
 * as e4m3; the window and the states have the least ring_columns, index keys
 * use the table of C4A, and their states the table of STATE_C4A.
 * The caller then sets max_rows, max_context_tokens, groups[].pool_pages and
 * the buckets.
 * Errors: E_NULL; E_RANGE for an unknown model. */
spmla_status spmla_config_preset(spmla_config *config, spmla_model model);

/* Fills `config` for operations without steps and layers; no other field has to
 * be set. Operations may have up to 256 heads and 128 index heads, on V3.2's
 * and V4's caches. The plan is a few KiB; on the CPU it adds scratch for that
 * many heads.
 * Errors: E_NULL. */
spmla_status spmla_config_operations(spmla_config *config);

/* ---- Devices and backends ---------------------------------------------- */

/* The platforms that have a backend. */
typedef enum spmla_backend_kind {
	SPMLA_BACKEND_CPU = 1,
	SPMLA_BACKEND_CUDA = 2,
	SPMLA_BACKEND_HIP = 3,
	SPMLA_BACKEND_LEVEL_ZERO = 4,
	SPMLA_BACKEND_KIND_FORCE_32 = 0x7fffffff
} spmla_backend_kind;

/* What a plan needs to know of a device. It may be typed by hand, so that a
 * plan can be made on another machine. */
typedef struct spmla_device {
	uint32_t struct_bytes;
	uint32_t kind; /* spmla_backend_kind */
	/* CUDA: 10 * major + minor; HIP: 0x90a for gfx90a; Level Zero: the
	 * device's number on PCI, 0xe20b for a B580; 0 on the CPU. */
	uint32_t arch;
	uint32_t sm_count;
	uint32_t subgroup_width;
	uint32_t reserved;
	uint64_t ops; /* bit i: has operation i of ops.inc */
} spmla_device;

#define SPMLA_DEVICE_INIT                                        \
	{                                                        \
		(uint32_t)sizeof(spmla_device), 0, 0, 0, 0, 0, 0 \
	}

/* The functions of a platform, a const table. The program names the one it
 * wants, so only that one is linked: &spmla_cpu (spmla/spmla_cpu.h),
 * &spmla_cuda (spmla/spmla_cuda.h), &spmla_hip (spmla/spmla_hip.h) or
 * &spmla_level_zero (spmla/spmla_level_zero.h). */
typedef struct spmla_backend spmla_backend;

/* The platform's stream. The CPU has one timeline per context: NULL. */
typedef void *spmla_stream;

/* Fills in the facts of a backend's device. `native` and `diag` may be NULL. */
spmla_status spmla_backend_query(const spmla_backend *backend,
				 const spmla_native *native,
				 spmla_device *device, spmla_diag *diag);

/* ---- Plan -------------------------------------------------------------- */

/* The kinds of memory that the caller provides, one region each, 256 B aligned.
 */
typedef enum spmla_memory {
	SPMLA_MEMORY_HOST = 0,   /* the context */
	SPMLA_MEMORY_PINNED = 1, /* ring, status; coherent */
	SPMLA_MEMORY_DEVICE = 2, /* metadata, tables, scratch */
	SPMLA_MEMORY_CACHE = 3,  /* page pools, if planned */
	SPMLA_MEMORY_COUNT = 4,
	SPMLA_MEMORY_FORCE_32 = 0x7fffffff
} spmla_memory;

/* How long the bytes of a buffer are valid. Buffers of different phases (INDEX,
 * ATTEND, OUTPUT) share bytes. */
typedef enum spmla_life {
	SPMLA_LIFE_CONTEXT = 0, /* from init to fini */
	SPMLA_LIFE_STEP = 1,    /* from a prologue to the next */
	/* inside spmla_v32_index, spmla_v4_index, or the selection of a
	 * prefill; on the CPU also inside spmla_v4_compress */
	SPMLA_LIFE_INDEX = 2,
	/* inside spmla_v32_attend, spmla_v4_attend, or the rest of a prefill */
	SPMLA_LIFE_ATTEND = 3,
	SPMLA_LIFE_OUTPUT = 4, /* inside spmla_v4_output */
	SPMLA_LIFE_COUNT = 5,
	SPMLA_LIFE_FORCE_32 = 0x7fffffff
} spmla_life;

enum { SPMLA_MAX_PLAN_ROWS = 96 };

/* Where a buffer lies in its region, and how long its bytes are valid. */
typedef struct spmla_extent {
	uint32_t buf;    /* spmla_buf */
	uint32_t memory; /* spmla_memory */
	uint32_t life;   /* spmla_life */
	uint32_t branch; /* 1: shares bytes with nothing */
	uint64_t offset_bytes;
	uint64_t bytes;
} spmla_extent;

/* Plain data: where every buffer lies. Read it through spmla_plan_row. It may
 * be copied, stored and compared with memcmp. spmla_init makes it again and
 * refuses one that differs in a byte: a damaged one, or one of another build.
 */
typedef struct spmla_plan {
	uint32_t struct_bytes;
	uint32_t version; /* SPMLA_VERSION that made it */
	uint32_t row_count;
	uint32_t columns;    /* of a row of the main table */
	uint32_t max_tokens; /* over the buckets and prefill */
	uint32_t max_requests;
	uint64_t record_bytes; /* room that spmla_step_encode needs */
	uint64_t logits_elems; /* capacity of LOGITS */
	uint64_t record_key;   /* plans with the same key share records */
	uint64_t region_bytes[SPMLA_MEMORY_COUNT];
	uint64_t region_align[SPMLA_MEMORY_COUNT];
	/* DEVICE bytes of each life, every buffer rounded up to 256. */
	uint64_t life_bytes[SPMLA_LIFE_COUNT];
	/* For each group: the group whose table it uses, and the columns of a
	 * row of that table. */
	uint32_t group_table[SPMLA_MAX_TABLE_GROUPS];
	uint32_t group_columns[SPMLA_MAX_TABLE_GROUPS];
	spmla_config config; /* with every default filled in */
	spmla_device device;
	spmla_extent extents[SPMLA_MAX_PLAN_ROWS];
} spmla_plan;

/* One buffer of the plan, for printing and drawing. Texts are static. */
typedef struct spmla_row {
	uint32_t struct_bytes;
	uint32_t buf;
	uint32_t memory;
	uint32_t life;
	uint32_t branch;
	uint32_t elem_bytes;
	uint64_t count; /* elements */
	uint64_t offset_bytes;
	uint64_t bytes;
	uint64_t align_bytes;
	const char *name;   /* "REQ_ID_PER_TOKEN" */
	const char *shape;  /* "[tokens]" */
	const char *writer; /* who writes it and when */
} spmla_row;

#define SPMLA_ROW_INIT                                                        \
	{                                                                     \
		(uint32_t)sizeof(spmla_row), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
			0                                                     \
	}

/* Lays out every buffer. Pure: the same config and device give the same bytes.
 * Errors: every field of config and device is checked. E_UNSUPPORTED names the
 * operation that the device lacks. Where the layers may split a decode, that
 * includes split_combine: on CUDA always, on other GPUs without
 * BATCH_INVARIANT. E_OVERFLOW names the buffer whose size does not fit 64 bits.
 * On an error *plan is untouched, except that E_OVERFLOW zeroes it. */
spmla_status spmla_plan_make(spmla_plan *plan, const spmla_config *config,
			     const spmla_device *device, spmla_diag *diag);

/* Fills `row` with buffer i of [0, plan->row_count). Errors: E_RANGE for a
 * larger i. */
spmla_status spmla_plan_row(const spmla_plan *plan, uint32_t i, spmla_row *row);

/* "HOST", "CONTEXT" and so on; never NULL. */
const char *spmla_memory_name(uint32_t memory);
const char *spmla_life_name(uint32_t life);

#ifdef __cplusplus
}
#endif
#endif
