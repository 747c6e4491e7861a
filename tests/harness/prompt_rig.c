/* SPDX-License-Identifier: Apache-2.0
 *
 * See prompt_rig.h.
 */
#include "tests/harness/prompt_rig.h"

#include "spmla/prefill_plan.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 16, MAX_CHUNKS = 256 };

const uint32_t prompt_row[PROMPTS] = {1, 4, 0, 6};
const uint32_t prompt_first[PROMPTS + 1] = {0, 70, 103, 108, 198};

static fixture source_fixture;
static v32_rig source;

void
prompt_config(spmla_config *c, uint32_t tokens, uint32_t workspace,
	      uint64_t budget_bytes)
{
	fixture_config(c);
	c->bucket_count = 2;
	c->buckets[0] = (spmla_shape){1, 1, 1, 0};
	c->buckets[1] = (spmla_shape){4, 4, 1, 0};
	c->buckets[2] = (spmla_shape){0, 0, 0, 0};
	c->max_prefill_tokens = tokens;
	c->prefill_workspace_tokens = workspace;
	c->logits_budget_bytes = budget_bytes;
}

int32_t
prompt_page(uint32_t row, uint32_t col)
{
	return (int32_t)((row * 8 + col) * 37 % 64); /* 64 pages, each once */
}

const v32_rig *
prompt_source(void)
{
	spmla_config config;

	if (!source.q) {
		prompt_config(&config, PROMPT_TOKENS, 0, 0);
		fixture_open(&source_fixture, &config, 0);
		v32_rig_open(&source, source_fixture.ctx, 0, 77);
	}
	return &source;
}

void
prompt_source_close(void)
{
	v32_rig_close(&source);
	fixture_close(&source_fixture);
}

static void
capture(prompt_rig *r)
{
	uint32_t b;

	for (b = 0; b < 2; b++) {
		r->stage.bucket = b;
		v32_rig_capture(&r->stage, r->f.ctx);
		r->graph[b] = r->stage.graph;
	}
}

void
prompt_open(prompt_rig *r, const spmla_config *config, uint32_t native_flags)
{
	const v32_rig *from = prompt_source();

	memset(r, 0, sizeof *r);
	fixture_open(&r->f, config, native_flags);
	v32_rig_open(&r->stage, r->f.ctx, 0, 78);
	memcpy(r->stage.norm_weight, from->norm_weight, 128 * 4);
	memcpy(r->stage.norm_bias, from->norm_bias, 128 * 4);
	memcpy(r->stage.attn_sink, from->attn_sink, PROMPT_HEADS * 4);
	memcpy(r->stage.cos_sin, from->cos_sin,
	       (uint64_t)config->max_context_tokens * 64 * 4);
	r->out = test_alloc(PROMPT_TOKENS * PROMPT_OUT * 2, 0xAB);
	r->lse = test_alloc(PROMPT_TOKENS * PROMPT_HEADS * 4, 0xAB);
	r->topk = test_alloc(PROMPT_TOKENS * PROMPT_TOPK * 4, 0xAB);
	r->lens = test_alloc(PROMPT_TOKENS * 4, 0xAB);
	capture(r);
}

void
prompt_close(prompt_rig *r)
{
	v32_rig_close(&r->stage);
	fixture_close(&r->f);
	free(r->out);
	free(r->lse);
	free(r->topk);
	free(r->lens);
}

static uint32_t
prompt_of(uint32_t row)
{
	uint32_t p;

	for (p = 0; p < PROMPTS && prompt_row[p] != row; p++)
		;
	ck_assert_uint_lt(p, PROMPTS);
	return p;
}

static void
take(void *to, uint32_t t, const void *from, uint32_t s, uint64_t row_bytes)
{
	memcpy((uint8_t *)to + t * row_bytes,
	       (const uint8_t *)from + s * row_bytes, row_bytes);
}

/* Token s of the prompts is token t of the step. */
static void
load_token(prompt_rig *r, uint32_t t, uint32_t s)
{
	take(r->stage.kv_c, t, source.kv_c, s, 512 * 2);
	take(r->stage.k_pe, t, source.k_pe, s, 64 * 2);
	take(r->stage.index_k, t, source.index_k, s, 128 * 2);
	take(r->stage.index_q, t, source.index_q, s, 4 * 128 * 2);
	take(r->stage.index_weights, t, source.index_weights, s, 4 * 4);
	take(r->stage.q, t, source.q, s, PROMPT_HEADS * 576 * 2);
}

static void
keep_token(prompt_rig *r, uint32_t t, uint32_t s)
{
	take(r->out, s, r->stage.out, t, PROMPT_OUT * 2);
	take(r->lse, s, r->stage.lse, t, PROMPT_HEADS * 4);
	take(r->topk, s, spmla_view(r->f.ctx, SPMLA_BUF_TOPK_INDICES, NULL), t,
	     PROMPT_TOPK * 4);
	take(r->lens, s, spmla_view(r->f.ctx, SPMLA_BUF_TOPK_LENS, NULL), t, 4);
}

static void
each_token(prompt_rig *r, const spmla_request *requests, uint32_t count,
	   void (*visit)(prompt_rig *, uint32_t, uint32_t))
{
	uint32_t t = 0, b, j;

	for (b = 0; b < count; b++) {
		const spmla_request *q = &requests[b];

		for (j = 0; j < q->query_tokens; j++)
			visit(r, t++,
			      prompt_first[prompt_of(q->row)] +
				      q->seq_len_tokens - q->query_tokens + j);
	}
}

/* The record, with the pages that the new tokens begin. */
static void
write_step(prompt_rig *r, const spmla_request *requests, uint32_t count,
	   uint64_t *ticket, spmla_step_info *info)
{
	spmla_step step = SPMLA_STEP_INIT;
	spmla_table_store stores[PROMPTS];
	int32_t pages[PROMPTS][8];
	uint32_t b, col;

	for (b = 0; b < count; b++) {
		const spmla_request *q = &requests[b];
		const uint32_t end = q->seq_len_tokens;
		const uint32_t first =
			(end - q->query_tokens + PAGE - 1) / PAGE;
		spmla_table_store *s = &stores[step.store_count];

		for (col = first; col * PAGE < end; col++)
			pages[b][col - first] = prompt_page(q->row, col);
		*s = (spmla_table_store){SPMLA_GROUP_MAIN, q->row, first,
					 col - first, pages[b]};
		step.store_count += s->count > 0;
	}
	step.requests = requests;
	step.request_count = count;
	step.stores = stores;
	v32_must(r->f.ctx, spmla_step_write(r->f.ctx, &step, ticket, info));
}

static void
prefill(prompt_rig *r, const spmla_step_info *info)
{
	const spmla_config *c = &r->f.plan.config;
	spmla_shape shape = {info->tokens, info->requests, info->next_n,
			     info->live_context};

	if (r->full)
		shape = (spmla_shape){c->max_prefill_tokens,
				      r->f.plan.max_requests,
				      c->max_prefill_tokens, 0};
	v32_must(r->f.ctx,
		 spmla_step_prologue(r->f.ctx, &shape, SPMLA_FROM_RING, NULL));
	v32_must(r->f.ctx,
		 spmla_v32_prefill(r->f.ctx, &r->stage.layer, &shape, NULL));
	r->prefills++;
}

static void
decode(prompt_rig *r, const spmla_step_info *info, uint64_t ticket)
{
	const spmla_shape *shape = &r->f.plan.config.buckets[info->bucket];

	r->decodes++;
	if (r->graphs) {
		v32_must(r->f.ctx,
			 spmla_graph_replay(r->f.ctx, r->graph[info->bucket],
					    ticket, NULL));
		return;
	}
	v32_must(r->f.ctx,
		 spmla_step_prologue(r->f.ctx, shape, SPMLA_FROM_RING, NULL));
	v32_must(r->f.ctx,
		 spmla_v32_attn(r->f.ctx, &r->stage.layer, shape, NULL));
}

void
prompt_step(prompt_rig *r, const spmla_request *requests, uint32_t count)
{
	spmla_step_info info = SPMLA_STEP_INFO_INIT;
	uint64_t ticket;

	write_step(r, requests, count, &ticket, &info);
	each_token(r, requests, count, load_token);
	if (info.bucket == SPMLA_BUCKET_PREFILL)
		prefill(r, &info);
	else
		decode(r, &info, ticket);
	fixture_drain(&r->f);
	each_token(r, requests, count, keep_token);
}

static uint32_t
requests_of(const uint32_t from[PROMPTS], const uint32_t to[PROMPTS],
	    spmla_request *requests)
{
	uint32_t p;

	for (p = 0; p < PROMPTS; p++)
		requests[p] = (spmla_request){
			prompt_row[p], to[p] - from[p], to[p],
			from[p] == 0 && to[p] > 0 ? SPMLA_REQUEST_JOIN : 0};
	return PROMPTS;
}

void
prompt_run(prompt_rig *r, const uint32_t from[PROMPTS],
	   const uint32_t to[PROMPTS])
{
	static spmla_prefill_chunk chunks[MAX_CHUNKS];
	spmla_request all[PROMPTS], part[PROMPTS];
	spmla_step step = SPMLA_STEP_INIT;
	spmla_diag diag = SPMLA_DIAG_INIT;
	uint32_t count, i;
	char text[200];

	step.request_count = requests_of(from, to, all);
	step.requests = all;
	if (spmla_prefill_plan(&r->f.plan, &step, chunks, MAX_CHUNKS, &count,
			       &diag) != SPMLA_OK) {
		spmla_diag_text(&diag, text, sizeof text);
		ck_abort_msg("%s", text);
	}
	for (i = 0; i < count; i++) {
		ck_assert_int_eq(spmla_prefill_chunk_requests(&step, &chunks[i],
							      part, PROMPTS,
							      &diag),
				 SPMLA_OK);
		prompt_step(r, part, chunks[i].request_count);
	}
}

void
prompt_decode(prompt_rig *r, const uint32_t from[PROMPTS],
	      const uint32_t to[PROMPTS], uint32_t together)
{
	spmla_request now[PROMPTS];
	uint32_t n, p, count;

	for (n = 0; n < PROMPT_TOKENS; n++) {
		count = 0;
		for (p = 0; p < PROMPTS; p++) {
			const uint32_t at = from[p] + n;

			if (at >= to[p])
				continue;
			now[count++] = (spmla_request){
				prompt_row[p], 1, at + 1,
				at == 0 ? SPMLA_REQUEST_JOIN : 0};
			if (!together) {
				prompt_step(r, &now[0], 1);
				count = 0;
			}
		}
		if (count > 0)
			prompt_step(r, now, count);
	}
}
