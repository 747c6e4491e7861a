/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of decode_loop for DeepSeek V3.2.
 */
#ifndef EXAMPLES_DECODE_V32_H
#define EXAMPLES_DECODE_V32_H

#include "examples/decode_loop.h"
#include "spmla/ops/ops.h"
#include "spmla/prefill_plan.h"
#include "spmla/v32.h"

/* ---- The model (decode_model.c) ---------------------------------------- */

typedef enum tensor {
	TENSOR_Q = 1,
	TENSOR_KV_C = 2,
	TENSOR_K_PE = 3,
	TENSOR_INDEX_K = 4,
	TENSOR_INDEX_Q = 5,
	TENSOR_INDEX_WEIGHTS = 6
} tensor;

/* The tensors of a layer that an engine's projections would write in place. */
typedef struct layer_tensors {
	uint16_t *q;             /* [tokens][heads][576] */
	uint16_t *kv_c;          /* [tokens][512] */
	uint16_t *k_pe;          /* [tokens][64] */
	uint16_t *index_k;       /* [tokens][128] */
	uint16_t *index_q;       /* [tokens][index_heads][128] */
	uint16_t *index_weights; /* [tokens][index_heads] */
	uint16_t *out;           /* [tokens][heads][512] */
	float *lse;              /* [tokens][heads] */
	int32_t *topk_indices;   /* [tokens][topk] */
	int32_t *topk_lens;      /* [tokens] */
	spmla_v32_layer args;
} layer_tensors;

/* Prompt tokens that are inserted at a time, without prefill. */
enum { INSERT_TOKENS = 128 };

typedef struct model {
	const spmla_plan *plan;
	spmla_ctx *ctx;
	uint64_t seed;
	uint32_t layers;
	layer_tensors *layer;
	float *norm_weight; /* [128] */
	float *norm_bias;   /* [128] */
	float *cos_sin;     /* [max_context][64] */
	/* a chunk of a prompt */
	uint16_t *chunk_kv_c, *chunk_k_pe, *chunk_index_k;
	int64_t *chunk_slots;
	int32_t *chunk_positions;
} model;

/* Allocates; model_bind then names the context's caches. */
void model_open(model *m, const spmla_plan *plan, uint32_t layers,
		uint64_t seed);
spmla_status model_bind(model *m, spmla_ctx *ctx);

/* bf16 values of a row of a tensor. They depend only on the arguments. */
void model_values(const model *m, uint32_t layer, tensor kind, token of,
		  uint16_t *out);
uint32_t model_width(const model *m, tensor kind);

/* The insert args of `count` rows, for the prompt and for the eager check. */
spmla_kv_insert_args model_kv_insert(const spmla_plan *plan);
spmla_indexer_k_insert_args model_index_k_insert(const model *m);

/* Writes the step's input tensors in place. */
void model_fill(model *m, const token *tokens, uint32_t count);

/* Puts the keys of a prompt into the caches, eagerly and without attention, at
 * slots of the host's table. */
spmla_status model_insert(model *m, const batch *b, const running *r);

/* ---- The checks (decode_eager.c, decode_compare.c, decode_reference.c) - */

/* Operations one by one beside the replay, in buffers of their own. */
typedef struct eager_check {
	const model *model;
	const batch *batch;
	uint64_t steps, mismatches;
	uint32_t step;
	spmla_shape shape;
	int32_t *query_start_loc, *seq_lens, *req_row;
	int32_t *req_id, *token_row, *positions, *context_lens;
	int64_t *slot_mapping, *row_starts;
	uint8_t *index_q;
	float *index_weights, *logits;
	int32_t *topk_indices, *topk_lens, *topk_slots;
	uint16_t *out;
	float *lse;
	void *parts; /* the workspace of fixed splits */
	uint64_t parts_bytes;
	spmla_cache *kv, *index; /* [layers] copies of the caches */
	void *pulled[2];         /* host copies of device buffers */
	uint64_t pulled_bytes;
} eager_check;

void eager_open(eager_check *e, const model *m, const batch *b);

/* Copies the caches; before the replay. */
void eager_before(eager_check *e);

/* The metadata of the step, and one layer. */
spmla_status eager_metadata(eager_check *e);
spmla_status eager_layer(eager_check *e, uint32_t layer);

/* Runs the step again, eagerly, and compares every byte. */
spmla_status eager_after(eager_check *e, uint32_t step,
			 const spmla_shape *shape);

typedef struct reference_check reference_check;

/* NULL if there is no memory. */
reference_check *reference_open(const model *m, const batch *b);
void reference_close(reference_check *r);

/* Follows the step's table changes; every step. */
void reference_table(reference_check *r);

/* Compares a sample of the step's tokens, in all layers, and the padding up to
 * `tokens`. */
void reference_after(reference_check *r, uint32_t step, uint32_t tokens);

check_count reference_count(const reference_check *r);

/* ---- A run (decode_v32.c), a prompt (decode_prefill.c) ----------------- */

typedef struct v32_run {
	model model;
	eager_check eager;
	reference_check *reference;
	spmla_prefill_chunk *chunks; /* of a prompt */
	uint32_t chunk_capacity;
} v32_run;

/* Runs a prompt chunk by chunk, except the end, which the next step takes in.
 * With `checked` each chunk is compared with the reference. */
int loop_prefill(loop *l, running *r, uint32_t step, int checked);

#endif
