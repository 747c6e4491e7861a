/* SPDX-License-Identifier: Apache-2.0
 *
 * Several prologues in one graph, as draft models have them: a step from the
 * ring or from the device, then ADVANCE, or a step from the device each time.
 * The next prologue overwrites what the one before it made, so the graph itself
 * carries that away: its lists by an op that copies integers, all that ops make
 * of them as a layer of attention with outputs of its own. A second context
 * runs the same prologues one at a time, each checked against the model.
 */
#include <stdlib.h>
#include <string.h>

#include "spmla/ops/ops.h"
#include "tests/harness/attn_rig.h"
#include "tests/harness/themes.h"

enum {
	DEPTH = 4, /* prologues of a graph */
	LISTS = 9,
	ROW_PAGES = 8,
	ROW_TOKENS = ROW_PAGES * 16,
	DEVICE_WORDS = 16 + 4 * RIG_REQUESTS,
	COPY_WORDS = 64 /* at once, at most */
};

static const spmla_shape *const shape = &rig_shapes[1];
static attn_rig graph, eager;
static attn_inputs in;
static step_model m;

/* What the engine puts on the device before a prologue. */
typedef struct given {
	int32_t *device; /* STEP_DEVICE */
	int32_t *row_len;
	int32_t *by;
} given;

/* What a prologue made, and what a layer made of that. */
typedef struct made {
	int32_t *list[LISTS];
	spmla_v32_layer layer;
} made;

static given gives[DEPTH];
static made ofgraph[DEPTH], ofeager[DEPTH];
static int32_t *count_up, *unused; /* [COPY_WORDS + 1] */

/* ---- Lists -------------------------------------------------------------- */

static const spmla_buf list_buf[LISTS] = {
	SPMLA_BUF_STEP_REQUESTS,    SPMLA_BUF_QUERY_START_LOC,
	SPMLA_BUF_SEQ_LENS,         SPMLA_BUF_REQ_ROW,
	SPMLA_BUF_REQ_ID_PER_TOKEN, SPMLA_BUF_TOKEN_ROW,
	SPMLA_BUF_POSITIONS,        SPMLA_BUF_CONTEXT_LENS,
	SPMLA_BUF_LOGITS_ROW_STARTS};

static uint32_t
list_words(uint32_t i)
{
	switch (i) {
	case 0:
		return 4 * shape->requests;
	case 1:
		return shape->requests + 1;
	case 2:
	case 3:
		return shape->requests;
	case 8:
		return 2 * (shape->tokens + 1); /* int64, below 2^31 */
	default:
		return shape->tokens;
	}
}

static int32_t *
view(const attn_rig *r, spmla_buf buf)
{
	return spmla_view(r->f.ctx, buf, NULL);
}

/* Copies integers that are not negative, in stream order: with one token a
 * request, a token's context is as long as its request. */
static void
copy(const attn_rig *r, const int32_t *from, int32_t *to, uint32_t words)
{
	const spmla_token_map_args a = {
		.struct_bytes = sizeof a,
		.requests = words,
		.tokens = words,
		.query_start_loc = count_up,
		.seq_lens = from,
		.req_row = count_up,
		.req_id_per_token = unused,
		.token_row = unused + COPY_WORDS,
		.positions = unused + 2 * COPY_WORDS,
		.context_lens = to,
	};

	ck_assert_uint_le(words, COPY_WORDS);
	ck_assert_int_eq(spmla_token_map(r->f.ctx, &a, NULL), SPMLA_OK);
}

/* ---- Contexts ----------------------------------------------------------- */

static void
open_made(const attn_rig *r, made *of)
{
	uint32_t d, i;

	for (d = 0; d < DEPTH; d++) {
		spmla_v32_layer *a = &of[d].layer;

		*a = r->layer[0];
		a->out = test_alloc((uint64_t)2 * shape->tokens * ATTN_HEADS *
					    SPMLA_MLA_LATENT,
				    0xAB);
		a->lse = test_alloc(4 * shape->tokens * ATTN_HEADS, 0xAB);
		a->topk_indices = test_alloc(4 * shape->tokens * ATTN_TOPK, 0);
		a->topk_lens = test_alloc(4 * shape->tokens, 0);
		for (i = 0; i < LISTS; i++)
			of[d].list[i] = test_alloc(4 * list_words(i), 0xAB);
	}
}

static void
close_made(made *of)
{
	uint32_t d, i;

	for (d = 0; d < DEPTH; d++) {
		free(of[d].layer.out);
		free(of[d].layer.lse);
		free(of[d].layer.topk_indices);
		free(of[d].layer.topk_lens);
		for (i = 0; i < LISTS; i++)
			free(of[d].list[i]);
	}
}

/* To row `row` all its pages, on both contexts. */
static void
give_pages(uint32_t row)
{
	attn_rig *const both[2] = {&graph, &eager};
	int32_t pages[ROW_PAGES];
	uint32_t i;
	draft d;

	for (i = 0; i < ROW_PAGES; i++)
		pages[i] = (int32_t)(i * RIG_ROWS + row);
	draft_clear(&d);
	draft_request(&d, row, 1, 5, SPMLA_REQUEST_JOIN);
	draft_store(&d, row, 0, ROW_PAGES, pages);
	for (i = 0; i < 2; i++) {
		(void)draft_write(&both[i]->f, &d);
		ck_assert_int_eq(spmla_step_prologue(both[i]->f.ctx, shape,
						     SPMLA_FROM_RING, NULL),
				 SPMLA_OK);
	}
	model_record(&m, &d, shape);
	model_check(&m, &eager.f, shape);
}

static void
setup(void)
{
	spmla_config config;
	uint32_t d, i;

	attn_config(&config, 4);
	config.max_graphs = 4;
	config.max_graph_nodes = 512;
	attn_inputs_open(&in);
	attn_open(&graph, &config, &in, 0);
	attn_open(&eager, &config, &in, 0);
	attn_fill_step(&in, 1);
	model_open(&m, &eager.f);
	open_made(&graph, ofgraph);
	open_made(&eager, ofeager);
	count_up = test_alloc(4 * (COPY_WORDS + 1), 0);
	unused = test_alloc(3 * 4 * COPY_WORDS, 0);
	for (i = 0; i <= COPY_WORDS; i++)
		count_up[i] = (int32_t)i;
	for (d = 0; d < DEPTH; d++) {
		gives[d].device = test_alloc(4 * DEVICE_WORDS, 0);
		gives[d].row_len = test_alloc(4 * RIG_ROWS, 0);
		gives[d].by = test_alloc(4 * RIG_REQUESTS, 0);
	}
	for (i = 0; i < RIG_ROWS; i++)
		give_pages(i);
}

static void
teardown(void)
{
	uint32_t d;

	for (d = 0; d < DEPTH; d++) {
		free(gives[d].device);
		free(gives[d].row_len);
		free(gives[d].by);
	}
	free(count_up);
	free(unused);
	close_made(ofgraph);
	close_made(ofeager);
	model_close(&m);
	attn_close(&graph);
	attn_close(&eager);
	attn_inputs_close(&in);
}

/* ---- Prologues ---------------------------------------------------------- */

/* The engine's copies, the prologue, and what takes its results away. */
static void
enqueue(attn_rig *r, made *to, const given *from, spmla_source source)
{
	uint32_t i;

	if (source == SPMLA_FROM_DEVICE)
		copy(r, from->device, view(r, SPMLA_BUF_STEP_DEVICE),
		     DEVICE_WORDS);
	if (source == SPMLA_ADVANCE)
		copy(r, from->by, view(r, SPMLA_BUF_ADVANCE_BY), RIG_REQUESTS);
	else
		copy(r, from->row_len, view(r, SPMLA_BUF_ROW_LEN), RIG_ROWS);
	ck_assert_int_eq(spmla_step_prologue(r->f.ctx, shape, source, NULL),
			 SPMLA_OK);
	for (i = 0; i < LISTS; i++)
		copy(r, view(r, list_buf[i]), to->list[i], list_words(i));
	ck_assert_int_eq(spmla_v32_attn(r->f.ctx, &to->layer, shape, NULL),
			 SPMLA_OK);
}

static spmla_graph
capture(const spmla_source *sources)
{
	spmla_graph g = 0;
	uint32_t d;

	ck_assert_int_eq(spmla_graph_begin(graph.f.ctx, NULL), SPMLA_OK);
	for (d = 0; d < DEPTH; d++)
		enqueue(&graph, &ofgraph[d], &gives[d], sources[d]);
	ck_assert_int_eq(spmla_graph_end(graph.f.ctx, &g), SPMLA_OK);
	return g;
}

/* A step of at most the shape's requests and tokens. A sixth of its rows is
 * past the pages that there are; the lengths of half of the steps are on the
 * device. */
static void
draw_step(uint64_t *rng, draft *d, int32_t *row_len)
{
	const uint32_t first = rng_below(rng, RIG_ROWS);
	const uint32_t count = rng_below(rng, shape->requests + 1);
	uint32_t i;

	draft_clear(d);
	d->flags = rng_below(rng, 2) ? SPMLA_STEP_LENS_ON_DEVICE : 0;
	for (i = 0; i < count; i++) {
		const uint32_t row = (first + i) % RIG_ROWS;
		const uint32_t query = rng_below(rng, shape->next_n + 1);
		const uint32_t len =
			rng_below(rng, 6) ? 2 + rng_below(rng, ROW_TOKENS - 12)
					  : ROW_TOKENS + rng_below(rng, 9);

		draft_request(d, row, query, len, 0);
		row_len[row] = (int32_t)(len - rng_below(rng, 2));
	}
	memcpy(m.row_len, row_len, sizeof m.row_len);
}

static void
put_device(const draft *d, int32_t *words)
{
	memset(words, 0, 4 * DEVICE_WORDS);
	words[0] = (int32_t)d->request_count;
	words[1] = (int32_t)d->flags;
	memcpy(words + 16, d->requests, 16 * (size_t)d->request_count);
}

/* One prologue on the second context, with the model; its reports are added to
 * *faults. */
static void
run_eager(spmla_source source, uint32_t d, uint64_t *rng, uint32_t *faults)
{
	draft step;
	uint32_t i;

	if (source == SPMLA_ADVANCE) {
		for (i = 0; i < RIG_REQUESTS; i++)
			gives[d].by[i] = (int32_t)rng_below(rng, 5);
		model_advance(&m, gives[d].by, shape);
	} else {
		draw_step(rng, &step, gives[d].row_len);
		if (source == SPMLA_FROM_RING) {
			ck_assert_uint_eq(draft_write(&graph.f, &step),
					  draft_write(&eager.f, &step));
			model_record(&m, &step, shape);
		} else {
			put_device(&step, gives[d].device);
			model_device(&m, &step, shape);
		}
	}
	enqueue(&eager, &ofeager[d], &gives[d], source);
	*faults += fixture_status(&eager.f).count;
	model_check(&m, &eager.f, shape);
}

static void
expect_same(const made *got, const made *want, uint32_t d)
{
	const spmla_v32_layer *a = &got->layer, *b = &want->layer;
	const size_t heads = shape->tokens * ATTN_HEADS;
	uint32_t i;

	for (i = 0; i < LISTS; i++)
		if (memcmp(got->list[i], want->list[i], 4 * list_words(i)) != 0)
			ck_abort_msg("prologue %u of the graph: list %u", d, i);
	ck_assert_mem_eq(a->topk_lens, b->topk_lens, 4 * shape->tokens);
	ck_assert_mem_eq(a->topk_indices, b->topk_indices,
			 4 * shape->tokens * ATTN_TOPK);
	ck_assert_mem_eq(a->lse, b->lse, 4 * heads);
	ck_assert_mem_eq(a->out, b->out, 2 * heads * SPMLA_MLA_LATENT);
}

static void
run_graph(const spmla_source *sources)
{
	const spmla_graph g = capture(sources);
	const uint32_t rounds = fixture_rounds(60, 2);
	uint64_t rng = test_seed() + 31;
	uint32_t round, d;

	for (round = 0; round < rounds; round++) {
		uint32_t faults = 0;

		for (d = 0; d < DEPTH; d++) {
			run_eager(sources[d], d, &rng, &faults);
			memset(ofgraph[d].layer.lse, 0xAB,
			       4 * shape->tokens * ATTN_HEADS);
		}
		replay(&graph.f, g,
		       sources[0] == SPMLA_FROM_RING ? RIG_ROWS + 1 + round
						     : 0);
		for (d = 0; d < DEPTH; d++)
			expect_same(&ofgraph[d], &ofeager[d], d);
		ck_assert_uint_eq(fixture_status(&graph.f).count, faults);
		ck_assert_int_eq(spmla_status_clear(graph.f.ctx), SPMLA_OK);
	}
}

START_TEST(a_step_of_the_ring_advances_and_each_advance_is_used)
{
	static const spmla_source sources[DEPTH] = {
		SPMLA_FROM_RING, SPMLA_ADVANCE, SPMLA_ADVANCE, SPMLA_ADVANCE};

	run_graph(sources);
}
END_TEST

START_TEST(a_step_of_the_device_advances_and_another_one_follows)
{
	static const spmla_source sources[DEPTH] = {
		SPMLA_FROM_DEVICE, SPMLA_ADVANCE, SPMLA_FROM_DEVICE,
		SPMLA_ADVANCE};

	run_graph(sources);
}
END_TEST

START_TEST(steps_of_the_device_follow_each_other_in_one_graph)
{
	static const spmla_source sources[DEPTH] = {
		SPMLA_FROM_DEVICE, SPMLA_FROM_DEVICE, SPMLA_FROM_DEVICE,
		SPMLA_FROM_DEVICE};

	run_graph(sources);
}
END_TEST

SUITE
{
	const theme_test drafts[] = {
		{a_step_of_the_ring_advances_and_each_advance_is_used, 1},
		{a_step_of_the_device_advances_and_another_one_follows, 1},
		{steps_of_the_device_follow_each_other_in_one_graph, 1},
	};
	const theme themes[] = {
		THEME("draft", setup, teardown, drafts),
	};

	return RUN_THEMES(themes);
}
