/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of decode_loop for DeepSeek V4.
 */
#ifndef EXAMPLES_DECODE_V4_H
#define EXAMPLES_DECODE_V4_H

#include "examples/decode_loop.h"
#include "spmla/v4.h"
#include "tests/reference/reference_v4.h"

/* ---- The model (decode_v4_model.c) ------------------------------------- */

typedef enum v4_kind {
	V4_Q = 1,
	V4_KV = 2,
	V4_COMPRESS_KV = 3,
	V4_COMPRESS_SCORE = 4,
	V4_INDEX_KV = 5,
	V4_INDEX_SCORE = 6,
	V4_INDEX_Q = 7,
	V4_INDEX_WEIGHTS = 8,
	/* Weights, which belong to no token. */
	V4_APE = 9,
	V4_NORM = 10,
	V4_INDEX_APE = 11,
	V4_INDEX_NORM = 12,
	V4_SINK = 13,
	V4_WO = 14,
	V4_WO_SCALES = 15,
	V4_KINDS = 16
} v4_kind;

enum {
	V4_OUTPUT_COLUMNS = 128, /* columns of a group; Flash: 1024 */
	V4_INDEX_WIDTH = 256,    /* W of the index compressor */
	V4_SIDES = 2             /* the replayed side, the eager side */
};

/* The tensors of a layer that an engine's projections would write in place, and
 * its weights, for both sides, by kind. NULL: the layer has none. */
typedef struct v4_inputs {
	uint32_t ratio;
	uint32_t width;       /* W of its compressor; ratio 1: 0 */
	const float *cos_sin; /* [max_context][64] */
	uint16_t *kv;         /* [tokens][512] */
	uint16_t *index_q;    /* [tokens][index_heads][128] */
	float *f32[V4_KINDS]; /* [tokens][width of the kind], and weights */
	uint8_t *wo;          /* e4m3 [groups][columns][inner] */
} v4_inputs;

/* The results of a layer on one side. */
typedef struct v4_outputs {
	uint16_t *q;           /* [tokens][heads][512]; normed in place */
	uint16_t *out;         /* [tokens][heads][512] */
	float *lse;            /* [tokens][heads] */
	int32_t *topk_indices; /* [tokens][topk]; ratio 4 */
	int32_t *topk_lens;    /* [tokens] */
	uint16_t *z;           /* [tokens][groups][columns] */
	spmla_v4_layer args;
} v4_outputs;

typedef struct v4_side {
	spmla_ctx *ctx; /* NULL: there is no such side */
	v4_outputs *layer;
} v4_side;

typedef struct v4_model {
	const spmla_plan *plan;
	uint64_t seed;
	uint32_t layers;
	uint32_t output_groups;
	float *cos_sin[2]; /* for layers of ratio 1, and for the others */
	v4_inputs *layer;
	v4_side sides[V4_SIDES];
} v4_model;

/* Prepares the angles from `start` on, and its group's. */
void v4_model_open(v4_model *m, const spmla_plan *plan, uint32_t layers,
		   uint32_t start, uint64_t seed);
/* Gives a context its outputs and names its caches. */
spmla_status v4_model_bind(v4_model *m, uint32_t side, spmla_ctx *ctx);

/* The number of values of a token, or of a weight (whose token is all zeros).
 */
uint32_t v4_width(const v4_model *m, uint32_t layer, v4_kind kind);
uint64_t v4_stream(const v4_model *m, uint32_t layer, v4_kind kind, token of);

/* Writes the step's input tensors in place. */
void v4_model_fill(v4_model *m, const token *tokens, uint32_t count);

/* Copies pages that a request takes over, in every cache of the group. */
void v4_model_copy(const v4_model *m, uint32_t side, const page_copy *copy);

/* Fills the pages that requests have when they join with arbitrary keys. */
void v4_given_fill(const v4_model *m, uint32_t side);

/* ---- The checks (decode_v4_compare.c, decode_v4_reference.c) ----------- */

typedef struct v4_compare {
	const v4_model *model;
	check_count count; /* steps */
	void *pulled[V4_SIDES];
} v4_compare;

void v4_compare_open(v4_compare *c, const v4_model *m);

/* Runs the whole step with the replay's record, call by call. */
spmla_status v4_compare_run(v4_compare *c, const batch *b, const void *record,
			    const spmla_shape *shape);

/* Compares every byte that both sides derived, cached and returned. */
void v4_compare_step(v4_compare *c, uint32_t step, uint32_t tokens);

typedef struct v4_reference v4_reference;

/* NULL if there is no memory. */
v4_reference *v4_reference_open(const v4_model *m, const batch *b);
void v4_reference_close(v4_reference *r);

/* Follows the step's table changes; every step. */
void v4_reference_tables(v4_reference *r);

/* Compares a sample of the step's tokens, in all layers, and the padding up to
 * `tokens`. */
void v4_reference_step(v4_reference *r, uint32_t step, uint32_t tokens);
check_count v4_reference_count(const v4_reference *r);

/* ---- The selection (decode_v4_selection.c) ----------------------------- */

typedef struct v4_keys v4_keys;
typedef struct v4_place v4_place;
typedef struct v4_selection v4_selection;

/* NULL if there is no memory. */
v4_selection *v4_selection_open(const v4_model *m, v4_keys *keys);
void v4_selection_close(v4_selection *s);

/* Whether a token selected the right keys, in a layer of ratio 4. */
int v4_selection_check(v4_selection *s, const v4_place *p, ref_miss *miss);

/* ---- Keys (decode_v4_keys.c) ------------------------------------------- */

typedef enum v4_key_kind {
	V4_KEY_WINDOW = 0,
	V4_KEY_COMPRESSED = 1,
	V4_KEY_INDEX = 2,
	V4_KEY_KINDS = 3
} v4_key_kind;

/* A token of the step in a layer, and the tokens of its request before it. */
struct v4_place {
	uint32_t layer;
	uint32_t index; /* of the token in the step */
	uint32_t first; /* of its request */
	token of;
};

v4_keys *v4_keys_open(const v4_model *m, const batch *b);
void v4_keys_close(v4_keys *k);
void v4_keys_tables(v4_keys *k);

/* Makes the caches of a layer readable. Call it before its keys are compared.
 */
void v4_keys_pull(v4_keys *k, uint32_t layer);

/* _slot: the slot of key number `key` of the place's request, -1 for none.
 * _stored: its bytes in the cache, and its scales in *scales. If the bytes are
 * neither right nor given, _stored returns NULL and *miss says what is wrong.
 */
int64_t v4_keys_slot(const v4_keys *k, const v4_place *p, v4_key_kind kind,
		     uint32_t key);
const uint8_t *v4_keys_stored(v4_keys *k, const v4_place *p, v4_key_kind kind,
			      uint32_t key, const uint8_t **scales,
			      ref_miss *miss);

/* ---- A run (decode_v4.c) ----------------------------------------------- */

typedef struct v4_run {
	v4_model model;
	v4_compare compare;
	v4_reference *reference;
} v4_run;

#endif
