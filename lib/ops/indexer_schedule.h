/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_schedule: where each SM begins in the index scores of a decode step.
 */
#ifndef SPMLA_OPS_INDEXER_SCHEDULE_H
#define SPMLA_OPS_INDEXER_SCHEDULE_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The kernel that the schedule is for. */
typedef enum spmla_indexer_schedule_rule {
	SPMLA_INDEXER_SCHEDULE_SM90 = 1,
	SPMLA_INDEXER_SCHEDULE_SM100 = 2,
	/* next_n 1; neighbours with the same index are one request. */
	SPMLA_INDEXER_SCHEDULE_SM100_VARLEN = 3,
	SPMLA_INDEXER_SCHEDULE_FORCE_32 = 0x7fffffff
} spmla_indexer_schedule_rule;

enum { SPMLA_INDEXER_SCHEDULE_SPLIT = 256 }; /* keys of a split */

typedef struct spmla_indexer_schedule_args {
	uint32_t struct_bytes;
	uint32_t rule;    /* spmla_indexer_schedule_rule */
	uint32_t batch;   /* requests; VARLEN: tokens. 0 is legal */
	uint32_t next_n;  /* tokens of a request; batch * next_n < 2^31 */
	uint32_t num_sms; /* 1..65536 */
	uint32_t reserved;
	/* [batch][context_lens_stride_elems]; only the last token's entry is
	 * read */
	const int32_t *context_lens;
	int64_t context_lens_stride_elems; /* >= next_n */
	const int32_t *indices; /* [batch]: a token's request; VARLEN only */
	int32_t *schedule;      /* [num_sms + 1][2], dense */
} spmla_indexer_schedule_args;

/* Divides the index scores of a step among SMs, in runs of about equal length.
 * An SM begins at its row of the schedule and ends where the next SM begins.
 *
 * SM i works on the units from schedule[i] up to schedule[i + 1]. A row is
 * (token or atom of the batch, split of 256 keys). segs is the number of splits
 * of a request's last token.
 * SM90: an atom is 2 tokens of a request (its last atom may have 1; with next_n
 * 1 every atom has 1). A request has atoms * segs units, ordered by atom. The
 * last (units % num_sms) SMs do one unit more than the others. Row = (atom,
 * split).
 * SM100: a request has tokens * segs units, ordered by split. The first (units
 * % num_sms) SMs do one unit more. Row = (the request's first token, split),
 * rounded down to a whole split.
 * After the last unit, rows are (number of atoms or tokens of the batch, 0).
 * Without units all rows are this one: no SM has work.
 * The schedule decides who computes what, never a result. A negative length
 * counts as 0: FAULT_LENGTH with the row of context_lens.
 * Alias: none. Order: enqueues; capturable. Exact: integers, units in 64 bits.
 * Errors: E_NULL, E_STRUCT_SIZE, E_RANGE.
 * Source: DeepGEMM get_paged_mqa_logits_metadata. */
spmla_status spmla_indexer_schedule(spmla_ctx *ctx,
				    const spmla_indexer_schedule_args *args,
				    spmla_stream stream);

#ifdef __cplusplus
}
#endif
#endif
