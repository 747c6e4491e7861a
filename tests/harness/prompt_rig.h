/* SPDX-License-Identifier: Apache-2.0
 *
 * Four prompts with all their tensors, and contexts that run them in steps of
 * any cut: by prefill, by decode, eagerly or by graphs. Results are kept by
 * token of a prompt, so that any two ways can be compared.
 */
#ifndef TESTS_HARNESS_PROMPT_RIG_H
#define TESTS_HARNESS_PROMPT_RIG_H

#include "tests/harness/v32_rig.h"

enum {
	PROMPTS = 4,
	PROMPT_TOKENS = 198, /* sum of 70, 33, 5 and 90 */
	PROMPT_TOPK = 8,
	PROMPT_HEADS = 4,
	PROMPT_OUT = PROMPT_HEADS * 512
};

/* Prompt p has the stable row prompt_row[p] and the tokens [prompt_first[p],
 * prompt_first[p + 1]) of the results. */
extern const uint32_t prompt_row[PROMPTS];
extern const uint32_t prompt_first[PROMPTS + 1];

typedef struct prompt_rig {
	fixture f;
	v32_rig stage; /* the tensors of a step */
	spmla_graph graph[2];
	uint32_t graphs;   /* 1: decode steps are replayed */
	uint32_t full;     /* 1: prefill takes the plan's whole shape */
	uint32_t prefills; /* steps so far */
	uint32_t decodes;
	uint16_t *out; /* [PROMPT_TOKENS][PROMPT_OUT] */
	float *lse;    /* [PROMPT_TOKENS][PROMPT_HEADS] */
	int32_t *topk; /* [PROMPT_TOKENS][PROMPT_TOPK] */
	int32_t *lens; /* [PROMPT_TOKENS] */
} prompt_rig;

/* fixture_config with one token per request in decode: buckets {1, 1, 1} and
 * {4, 4, 1}; prefill of at most `tokens` tokens, 0: as in the config. */
void prompt_config(spmla_config *c, uint32_t tokens, uint32_t workspace,
		   uint64_t budget_bytes);

/* `source` keeps the inputs of all prompts: made once, by the first open. */
void prompt_open(prompt_rig *r, const spmla_config *config,
		 uint32_t native_flags);
void prompt_close(prompt_rig *r);
const v32_rig *prompt_source(void);
void prompt_source_close(void);

/* The pages of prompts; the keys of a position stay. */
int32_t prompt_page(uint32_t row, uint32_t col);

/* Runs one step with these requests of the prompts, whatever it fits. */
void prompt_step(prompt_rig *r, const spmla_request *requests, uint32_t count);

/* Runs positions [from[p], to[p]) of every prompt, cut by spmla_prefill_plan.
 */
void prompt_run(prompt_rig *r, const uint32_t from[PROMPTS],
		const uint32_t to[PROMPTS]);

/* The same token by token, prompts one after the other or all together. */
void prompt_decode(prompt_rig *r, const uint32_t from[PROMPTS],
		   const uint32_t to[PROMPTS], uint32_t together);

#endif
