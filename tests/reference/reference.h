/* SPDX-License-Identifier: Apache-2.0
 *
 * The independent reference of a DeepSeek V3.2 decode step: its own numbers,
 * its own block tables, dense fp64 attention and a full sort. It includes
 * nothing of the library and shares no idea of how the library does it, so
 * that an error has to be made twice to stay unseen.
 *
 * Conventions. 16-bit tensors are bf16 bits (uint16_t), dense in their last
 * dimension. Every value that a step rounds is rounded here to the same
 * format and kept in a double, which holds it exactly; sums are in double.
 * Memory comes from the *_open functions only; nothing else allocates, so a
 * program may count allocations after its start. Functions that fail return 0.
 *
 * One token, layer and step:
 *   ref_table_join, ref_table_store            what the step's record says
 *   ref_cache_put_kv, ref_cache_put_index_k    at ref_table_slot(row, pos)
 *   ref_index_q, ref_score_row                 scores of positions 0 .. n-1
 *   ref_check_selection                        of the top-k that is tested
 *   ref_attend_row, ref_close_out, ref_close_lse
 */
#ifndef TESTS_REFERENCE_REFERENCE_H
#define TESTS_REFERENCE_REFERENCE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
	REF_LATENT = 512,
	REF_ROPE = 64,
	REF_DIM = 576, /* latent, then rope; V is the latent */
	REF_SCALES = 4,
	REF_INDEX_DIM = 128,
	REF_E4M3_MAX = 0x7e, /* 448 */
	REF_E4M3_NAN = 0x7f
};

typedef enum ref_scale_mode {
	REF_SCALE_POW2 = 1,
	REF_SCALE_RAW = 2,
	REF_SCALE_NONE = 3 /* the latent stays bf16 */
} ref_scale_mode;

typedef enum ref_rope_style {
	REF_ROPE_NONE = 0,
	REF_ROPE_NEOX = 1,       /* pairs (i, i + 32) */
	REF_ROPE_INTERLEAVED = 2 /* pairs (2i, 2i + 1) */
} ref_rope_style;

typedef enum ref_q_floor {
	REF_Q_FLOOR_FUSED = 0, /* max(amax, 1e-10) / 448 */
	REF_Q_FLOOR_GROUP = 1  /* max(max(amax, 1e-10) / 448, 1e-10) */
} ref_q_floor;

/* ---- Numbers (reference_num.c) ----------------------------------------- */

/* OCP E4M3FN. Encoding takes the nearest of all 127 magnitudes, of two equally
 * near the even code; it saturates at 448, infinity too, and keeps NaN and the
 * sign. */
double ref_e4m3_value(uint8_t code);
uint8_t ref_e4m3(double x);

/* E4M3FNUZ: bias 8; 0x80 is NaN. Encoding as above, but it saturates at 240,
 * and NaN and zeros have no sign. */
double ref_fnuz_value(uint8_t code);
uint8_t ref_fnuz(double x);

/* bf16, nearest even. */
double ref_bf16_value(uint16_t bits);
uint16_t ref_bf16_bits(double x);
double ref_round_bf16(double x);

/* What an f32 operation with one rounding gives for an exact x. */
double ref_round_f32(double x);

/* The smallest power of two >= s, for s > 0. */
double ref_pow2up(double s);

/* The largest |x|; NaN is ignored; 0 for none. */
double ref_amax(const double *x, uint32_t n);

/* Rotates x[64] in place by cos_sin[64] (32 cos, 32 sin): every product and
 * sum rounded to f32, results to bf16. */
void ref_rope(double *x, const float *cos_sin, ref_rope_style style);

/* LayerNorm in double, rounded to bf16. Returns how many values lie so near to
 * the middle of two bf16 numbers that a careful f32 evaluation, in any order
 * of at most 12 additions a term, may round them to the other one. */
uint32_t ref_layer_norm(double *x, const float *weight, const float *bias,
			double eps, uint32_t n);

/* ---- Keys and queries -------------------------------------------------- */

/* A row of the KV cache. */
typedef struct ref_kv_row {
	double k[REF_DIM];
	double scale[REF_SCALES];
	uint8_t code[REF_LATENT]; /* e4m3; not with REF_SCALE_NONE */
} ref_kv_row;

/* From bf16 kv_c[512], k_pe[64]. For each 128 of the latent: scale =
 * max(amax / 448, 1e-4) rounded up to a power of two (POW2), or
 * max(amax / 448, 2^-126) (RAW), in f32; code = e4m3(x / scale), an f32
 * division; k = e4m3 * scale. The rope values are copied. */
void ref_quantise_kv(ref_kv_row *row, const uint16_t *kv_c,
		     const uint16_t *k_pe, ref_scale_mode mode);

typedef struct ref_index_key {
	double value[REF_INDEX_DIM]; /* e4m3 values, without the scale */
	double scale;
	uint8_t code[REF_INDEX_DIM];
	uint32_t uncertain; /* ref_layer_norm's count: codes may differ */
} ref_index_key;

/* How index keys are made. Zeros are no norm, no rope. */
typedef struct ref_index_k_rule {
	const float *norm_weight; /* [128]; NULL: no LayerNorm */
	const float *norm_bias;   /* [128] */
	double norm_eps;
	const float *cos_sin; /* [64], the row of the key's position */
	ref_rope_style rope;
	ref_scale_mode mode; /* POW2 or RAW */
} ref_index_k_rule;

/* From bf16 k[128]: norm, rope on the first 64, then one scale:
 * max(amax, 1e-4) / 448, POW2: rounded up to a power of two. */
void ref_quantise_index_k(ref_index_key *key, const uint16_t *k,
			  const ref_index_k_rule *rule);

/* How index queries are made. */
typedef struct ref_index_q_rule {
	uint32_t heads;
	const float *cos_sin; /* [64], the row of the token's position */
	ref_rope_style rope;
	ref_q_floor floor;
	float softmax_scale;
	float head_scale;
} ref_index_q_rule;

/* From bf16 q[heads][128], heads stride_elems apart, and weights[heads]:
 * values[heads][128] are e4m3 values without their scale, which is folded into
 * out_weights = ((w * scale) * softmax_scale) * head_scale, in f32. */
void ref_index_q(const uint16_t *q, uint64_t stride_elems, const float *weights,
		 const ref_index_q_rule *rule, double *values,
		 double *out_weights);

/* ---- Block tables (reference.c) ---------------------------------------- */

typedef struct ref_table {
	uint32_t rows;
	uint32_t columns;
	uint32_t page_tokens;
	uint32_t pool_pages;
	int32_t *pages; /* [rows][columns]; -1: never written */
} ref_table;

int ref_table_open(ref_table *t, uint32_t rows, uint32_t columns,
		   uint32_t page_tokens, uint32_t pool_pages);
void ref_table_close(ref_table *t);

/* A row forgets its columns. */
void ref_table_join(ref_table *t, uint32_t row);

/* Columns [first, first + count) become pages[]. 0 if out of bounds. */
int ref_table_store(ref_table *t, uint32_t row, uint32_t first, uint32_t count,
		    const int32_t *pages);

/* The row forgets its columns from `columns` on. The bulk write of a row is a
 * store and then this. */
void ref_table_truncate(ref_table *t, uint32_t row, uint32_t columns);

/* The slot of a position: -1 for a row or column outside the table, a column
 * never written, a page outside the pool. */
int64_t ref_table_slot(const ref_table *t, uint32_t row, uint32_t position);

/* The columns of a row up to the first that was never written. */
uint32_t ref_table_written(const ref_table *t, uint32_t row);

/* ---- The caches of one layer ------------------------------------------- */

/* Dequantised keys by slot, some 6.3 KB a slot. */
typedef struct ref_cache {
	uint64_t slots;
	ref_kv_row *kv;
	ref_index_key *index;
	uint8_t *has; /* [slots] bit 0: kv, bit 1: index key */
} ref_cache;

int ref_cache_open(ref_cache *c, uint64_t slots);
void ref_cache_close(ref_cache *c);

/* Quantise into a slot; a slot < 0 writes nothing. 0 past the cache. */
int ref_cache_put_kv(ref_cache *c, int64_t slot, const uint16_t *kv_c,
		     const uint16_t *k_pe, ref_scale_mode mode);
int ref_cache_put_index_k(ref_cache *c, int64_t slot, const uint16_t *k,
			  const ref_index_k_rule *rule);

/* NULL where nothing was put. */
const ref_kv_row *ref_cache_kv(const ref_cache *c, int64_t slot);
const ref_index_key *ref_cache_index_k(const ref_cache *c, int64_t slot);

/* ---- Scores, selection, attention -------------------------------------- */

typedef struct ref_ranked {
	double score;
	uint32_t position;
} ref_ranked;

/* How products of e4m3 are summed: in f32, or as Hopper's matrix instructions
 * do, which cut addends. */
typedef enum ref_sums { REF_SUMS_F32, REF_SUMS_CUT } ref_sums;

/* Working memory, opened once. */
typedef struct ref_work {
	uint32_t max_keys;
	uint32_t heads;
	ref_sums sums;     /* of ref_score_row; F32 once opened */
	ref_ranked *order; /* [2][max_keys] */
	const ref_index_key **index_keys; /* [max_keys] */
	const ref_kv_row **kv_rows;       /* [max_keys] */
	double *probs;                    /* [max_keys] */
	double *scores;                   /* [max_keys], of ref_score_row */
	double *tolerance;                /* [max_keys], of ref_score_row */
	uint8_t *uncertain;               /* [max_keys], of ref_score_row */
	uint8_t *chosen;                  /* [max_keys] */
	double *q_values;  /* [heads][128], room for ref_index_q */
	double *q_weights; /* [heads], room for ref_index_q */
} ref_work;

/* For rows of at most max_keys keys (the longest context, or top-k if that is
 * larger) and index_heads heads. 0 if there is no memory. */
int ref_work_open(ref_work *w, uint32_t max_keys, uint32_t index_heads);
void ref_work_close(ref_work *w);

/* scores[i] = scale * sum over h of (relu(q[h] . k) * weights[h]); a key that
 * is NULL scores -inf; relu(NaN) is 0, as the GPU's fmax has it. tolerance[i]
 * is what an evaluation may be off: 2^-18 * scale * sum over h of |weights[h]|
 * * sum of |q_d k_d|, and of CUT sums 0.82 * scale * sum over h of |weights[h]|
 * * the largest |q_d k_d| more. That is derived: four instructions add 32
 * products and the sum so far, each cut by less than 2^-13 of the largest of
 * them, and cut the result by as much of itself. With m the largest product the
 * sum is at most 32 m, 64 m, 96 m and 128 m behind each; 33 (1 + 32 + 64 + 96)
 * + 32 + 64 + 96 + 128 is 6689, and 6689 / 2^13 below 0.82. */
void ref_logits(const double *q_values, const double *q_weights, uint32_t heads,
		const ref_index_key *const *keys, uint32_t n, ref_sums sums,
		double *scores, double *tolerance);

/* ref_logits of positions 0 .. n-1 of a row with w->q_values, w->q_weights,
 * into w->scores, w->tolerance and w->uncertain. n <= w->max_keys. */
void ref_score_row(ref_work *w, const ref_cache *c, const ref_table *t,
		   uint32_t row, uint32_t n, uint32_t heads);

/* The k best of scores[n] by a full sort (NaN, then higher score, then lower
 * position; -0 equals +0), ascending, then -1 up to k. Returns how many are
 * set. n <= w->max_keys. */
uint32_t ref_select(ref_work *w, const double *scores, uint32_t n, uint32_t k,
		    int32_t *indices);

/* What did not hold. */
typedef struct ref_miss {
	const char *what; /* static text */
	int64_t at;       /* entry or position, -1 for none */
	double got;
	double want;
} ref_miss;

/* Whether indices[k] is a right selection: min(n, k) positions in [0, n),
 * ascending and distinct, then -1; and
 * - tolerance NULL: exactly what ref_select gives, ties included;
 * - else: no key that was left out beats a key that was taken by more than
 *   both tolerances. A key with uncertain[i] != 0 may be in or out.
 * uncertain and miss may be NULL. 1 if it is right. */
int ref_check_selection(ref_work *w, const int32_t *indices, uint32_t k,
			const double *scores, uint32_t n,
			const double *tolerance, const uint8_t *uncertain,
			ref_miss *miss);

typedef struct ref_attend_result {
	double out[REF_LATENT];
	/* sum of p |v| over the denominator: what `out` is before anything
	 * cancels; see ref_close_out. */
	double magnitude[REF_LATENT];
	double lse;   /* natural, without the sink; +inf if there is no key */
	double terms; /* the largest sum of |q k| of a key, times the scale */
} ref_attend_result;

/* Dense attention of one head, q bf16 [576], over n rows, in double. sink is
 * in natural logit units, or NULL. n <= w->max_keys. */
void ref_attend(ref_work *w, const uint16_t *q, const ref_kv_row *const *rows,
		uint32_t n, double softmax_scale, const float *sink,
		ref_attend_result *result);

/* ref_attend over the first `count` entries of indices (positions of a table
 * row); an entry < 0 or without a slot does not count. 0 if a key that counts
 * was never put into the cache. */
int ref_attend_row(ref_work *w, const ref_cache *c, const ref_table *t,
		   uint32_t row, const int32_t *indices, uint32_t count,
		   const uint16_t *q, double softmax_scale, const float *sink,
		   ref_attend_result *result);

/* |got - want| <= 1e-3 + 2.01/128 |want|, as FlashMLA's own tests have it, or
 * <= 1.0625 * 2^-8 (|want| + magnitude): a kernel rounds p and out to bf16,
 * each by up to 2^-8 of itself, and where values cancel the first is more than
 * the result; the 1/16 is for its f32 sums. The real kernels leave the first
 * bound in one value of 10^4. Give magnitude 0 to ask for the first alone. */
int ref_close_out(double got, double want, double magnitude);

/* |got - want| <= 1e-6 + 8.01/65536 |want|; infinities equal of a sign. */
int ref_close_lse(double got, double want);

#ifdef __cplusplus
}
#endif
#endif
