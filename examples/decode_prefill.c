/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs prompts: spmla_prefill_plan cuts them into steps that the plan has room
 * for. Each is an eager prologue and spmla_v32_prefill per layer, on the stream
 * and the ring of the decode steps, or the replay of a bucket where one is
 * large enough. The next step takes the last tokens, and so mixes decode with
 * the end of a prompt.
 */
#include <stdio.h>

#include "examples/decode_v32.h"
#include "examples/device.h"

/* Tokens left to the mixed step: the first answer comes from it. */
static uint32_t
tail_of(const running *r)
{
	const uint32_t tail = 1 + r->prompt % MODEL_TAIL_TOKENS;

	return tail < r->prompt ? tail : r->prompt;
}

static int
run_chunk(loop *l, const spmla_step_info *info, uint64_t ticket)
{
	const spmla_shape shape = {info->tokens, info->requests, info->next_n,
				   info->live_context};
	model *m = &l->v32->model;
	spmla_status s;
	uint32_t i;

	if (info->bucket != SPMLA_BUCKET_PREFILL) {
		l->report.prefill.replayed++;
		s = spmla_graph_replay(l->ctx, l->graphs[info->bucket], ticket,
				       device_stream());
		return s == SPMLA_OK
			       ? EXIT_GOOD
			       : loop_failed(l->ctx, "spmla_graph_replay");
	}
	s = spmla_step_prologue(l->ctx, &shape, SPMLA_FROM_RING,
				device_stream());
	for (i = 0; i < m->layers && s == SPMLA_OK; i++)
		s = spmla_v32_prefill(l->ctx, &m->layer[i].args, &shape,
				      device_stream());
	return s == SPMLA_OK ? EXIT_GOOD : loop_failed(l->ctx, "the prefill");
}

/* A chunk: its step, its tensors, the run, the check. */
static int
prefill_chunk(loop *l, running *r, const spmla_step *whole, uint32_t chunk,
	      uint32_t step, int checked)
{
	spmla_step_info info = SPMLA_STEP_INFO_INIT;
	batch *b = &l->batch;
	spmla_request request;
	uint64_t ticket, start;
	uint32_t tokens;
	int end;

	if (spmla_prefill_chunk_requests(whole, &l->v32->chunks[chunk],
					 &request, 1, NULL) != SPMLA_OK) {
		fprintf(stderr, PROGRAM ": a chunk is not of its step\n");
		return EXIT_FAILED;
	}
	batch_build_prompt(b, r, &request, chunk == 0);
	end = loop_write(l, &info, &ticket);
	if (end != EXIT_GOOD)
		return end;
	model_fill(&l->v32->model, b->tokens, b->token_count);
	start = report_now_ns();
	end = run_chunk(l, &info, ticket);
	device_wait();
	l->report.prefill.ns += report_now_ns() - start;
	l->report.prefill.chunks++;
	l->report.prefill.tokens += b->token_count;
	if (l->v32->reference)
		reference_table(l->v32->reference);
	tokens = info.bucket == SPMLA_BUCKET_PREFILL
			 ? info.tokens
			 : l->plan.config.buckets[info.bucket].tokens;
	if (end == EXIT_GOOD && checked)
		reference_after(l->v32->reference, step, tokens);
	loop_read_status(l, l->ctx, step);
	report_progress(&l->report, b);
	return end;
}

int
loop_prefill(loop *l, running *r, uint32_t step, int checked)
{
	const uint32_t tokens = r->prompt - tail_of(r);
	const spmla_request request = {r->row, tokens, tokens,
				       SPMLA_REQUEST_JOIN};
	spmla_step whole = SPMLA_STEP_INIT;
	spmla_diag diag = SPMLA_DIAG_INIT;
	uint32_t count, i;
	char text[256];
	int end = EXIT_GOOD;

	r->context = tokens;
	if (tokens == 0)
		return EXIT_GOOD; /* it joins with the mixed step */
	whole.request_count = 1;
	whole.requests = &request;
	if (spmla_prefill_plan(&l->plan, &whole, l->v32->chunks,
			       l->v32->chunk_capacity, &count,
			       &diag) != SPMLA_OK) {
		spmla_diag_text(&diag, text, sizeof text);
		fprintf(stderr, PROGRAM ": spmla_prefill_plan: %s\n", text);
		return EXIT_FAILED;
	}
	l->report.prefill.prompts++;
	for (i = 0; i < count && end == EXIT_GOOD; i++)
		end = prefill_chunk(l, r, &whole, i, step, checked);
	return end;
}
