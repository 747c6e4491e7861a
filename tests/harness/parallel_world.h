/* SPDX-License-Identifier: Apache-2.0
 *
 * A random call of every operation that the CPU spreads over workers, bad data
 * among the good, and all that they write in one block of bytes, so that two
 * contexts can be compared.
 */
#ifndef TESTS_HARNESS_PARALLEL_WORLD_H
#define TESTS_HARNESS_PARALLEL_WORLD_H

#include "tests/harness/fixture.h"

#include "spmla/ops/ops.h"

enum {
	PAR_HEADS = 54, /* six pieces and a tile that is not full */
	PAR_INDEX_HEADS = 20,
	PAR_TOPK = 150, /* more than two blocks */
	PAR_MAX_TOKENS = 40,
	PAR_ROWS = 6,
	PAR_COLUMNS = 20,
	PAR_ENTRIES = 16,
	PAR_PAGES = 64,
	PAR_KEYS = 700, /* of gathered ones */
	PAR_PARTS = 24
};

typedef enum par_op {
	PAR_KV_INSERT = 0,
	PAR_INDEXER_K_INSERT,
	PAR_INDEXER_Q_PREP,
	PAR_MQA_LOGITS,
	PAR_TOPK_OP,
	PAR_INDEX_MAP,
	PAR_SPARSE_DECODE,
	PAR_SPARSE_DECODE_PARTS,
	PAR_INDEXER_K_GATHER,
	PAR_KV_GATHER,
	PAR_MQA_LOGITS_GATHERED,
	PAR_SPARSE_PREFILL,
	PAR_OPS
} par_op;

typedef struct par_world {
	uint32_t tokens;
	uint32_t bad; /* 1: some of the data is bad */
	uint64_t rng;
	uint8_t *in; /* what a call reads */
	uint64_t in_bytes;
	uint64_t in_used;
	uint8_t *out; /* what it writes, PAR_OUT of them */
	uint64_t out_bytes;
	uint64_t out_used;
	spmla_kv_insert_args kv_insert;
	spmla_indexer_k_insert_args k_insert;
	spmla_indexer_q_prep_args q_prep;
	spmla_mqa_logits_args logits;
	spmla_topk_args topk;
	spmla_index_map_args index_map;
	spmla_sparse_decode_args decode;
	spmla_sparse_decode_args parts;
	spmla_indexer_k_gather_args k_gather;
	spmla_kv_gather_args kv_gather;
	spmla_mqa_logits_gathered_args gathered;
	spmla_sparse_prefill_args prefill;
} par_world;

/* fixture_config with the heads and top-k of above. */
void par_config(spmla_config *config);

/* tokens: 1 .. PAR_MAX_TOKENS. */
void par_open(par_world *w, uint32_t tokens, uint32_t bad, uint64_t seed);
void par_close(par_world *w);

/* Fills out with 0xAB, clears the status and runs the operation. */
void par_run(fixture *f, par_world *w, par_op op);

/* Runs it on both contexts: the bytes of out and the status are the same. */
void par_compare(fixture *serial, fixture *parallel, par_world *w, par_op op);

const char *par_name(par_op op);

#endif
