/* SPDX-License-Identifier: Apache-2.0
 *
 * mqa_logits_gathered: the index score of every key that a token sees, over
 * dense keys, as indexer_k_gather makes them.
 */
#ifndef SPMLA_OPS_MQA_LOGITS_GATHERED_H
#define SPMLA_OPS_MQA_LOGITS_GATHERED_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The column of key n in the logits row of token t, and what happens to columns
 * without a key. */
typedef enum spmla_logits_form {
	SPMLA_LOGITS_ABSOLUTE = 0,   /* column n; others are not written */
	SPMLA_LOGITS_CLEAN = 1,      /* column n; others become -inf */
	SPMLA_LOGITS_COMPRESSED = 2, /* column n - starts[t]; not written */
	SPMLA_LOGITS_FORM_FORCE_32 = 0x7fffffff
} spmla_logits_form;

typedef struct spmla_mqa_logits_gathered_args {
	uint32_t struct_bytes;
	uint32_t tokens;
	uint32_t heads;   /* 1..config.index_heads */
	uint32_t keys;    /* 0: every row is empty */
	uint32_t form;    /* spmla_logits_form */
	uint32_t columns; /* of a row of logits; >= keys unless COMPRESSED */
	/* e4m3 [tokens][heads][128], MXFP4 e2m1 [tokens][heads][64], dense */
	const uint8_t *q;
	const float *weights;         /* [tokens][heads] */
	int64_t weights_stride_elems; /* >= heads */
	const uint8_t *k; /* e4m3 [keys][128], MXFP4 e2m1 [keys][64], dense */
	/* [keys]; MXFP4: a word of four ue8m0 scales, as indexer_k_gather has
	 * it */
	const float *k_scales;
	const int32_t *starts; /* [tokens]: keys starts[t] .. ends[t] - 1 */
	const int32_t *ends;   /* [tokens] */
	void *logits;          /* f32 or bf16 [tokens][columns] */
	int64_t logits_stride_elems; /* >= columns */
	/* MXFP4: [tokens][heads] words as in mqa_logits, dense */
	const int32_t *q_scales;
	uint32_t layout;       /* of q and k: INDEX_FP8 (or 0) or INDEX_MXFP4 */
	uint32_t logits_dtype; /* spmla_real_dtype; bf16 as in mqa_logits */
	uint32_t k_encoding;   /* spmla_e4m3, of k; MXFP4: 0 */
	uint32_t q_encoding;   /* spmla_e4m3, of q; MXFP4: 0 */
} spmla_mqa_logits_gathered_args;

/* The score of key n for starts[t] <= n < ends[t], as spmla_mqa_logits defines
 * it:
 *   k_scales[n] * sum over h of
 *     (relu(sum over d of q[t][h][d] * k[n][d]) * weights[t][h])
 * relu of a NaN is 0. A key with the scale SPMLA_INDEX_MISSING, of either
 * layout, scores -inf. A row with starts[t] >= ends[t] has no keys. A start or
 * end outside [0, keys] is bad data: the row counts as one without keys,
 * FAULT_INDEX. (DeepGEMM compares them as unsigned, so a negative end means all
 * keys there; do not rely on that here.)
 * A COMPRESSED row of more than `columns` keys is not written: FAULT_LOGITS.
 * CLEAN writes -inf to every other column below `columns`, also in rows without
 * keys. Nothing is written at or past `columns`. Keys that no row sees are
 * never read.
 * No tokens: nothing else is checked, nothing is enqueued.
 * Alias: none. Order: enqueues; capturable.
 * INDEX_MXFP4: scores as spmla_mqa_logits; k_scales is no factor; k is aligned
 * to 4 bytes. CUDA has the portable kernel only.
 * Deterministic: a row's bits depend only on the row. They equal those that
 * spmla_mqa_logits gives, with these exceptions:
 * - on Hopper, up to 64 heads with scores in f32;
 * - pages of mqa_logits that do not begin at multiples of 16 bytes;
 * - on CUDA, MXFP4 and INDEX_FP8_TILED.
 * In the last two only one of the operations uses matrix instructions.
 * Exact: as spmla_mqa_logits. On Hopper, up to 64 heads with scores in f32, a
 * weight of magnitude 2^103 or more counts as infinite.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE.
 * Source: DeepGEMM fp8_mqa_logits. CLEAN is its clean_logits, COMPRESSED its
 * max_seqlen_k; they exclude each other. */
spmla_status
spmla_mqa_logits_gathered(spmla_ctx *ctx,
			  const spmla_mqa_logits_gathered_args *args,
			  spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
