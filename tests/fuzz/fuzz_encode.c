/* SPDX-License-Identifier: Apache-2.0
 *
 * The step protocol, driven by the input: steps of any kind into the ring, any
 * bytes as a record or in what the engine writes on the device, prologues,
 * graphs and a whole layer behind them. The hard idea: after every prologue the
 * step's buffers are checked for what the ops rely on, not for what they mean.
 */
#include "spmla/v32.h"
#include "tests/fuzz/input.h"

enum { MAX_TOKENS = 8, MOST_REQUESTS = 10, MOST_STORES = 9, MOST_PAGES = 16 };

typedef struct run {
	world *w;
	input in;
	uint64_t ticket; /* the last one */
	spmla_graph graph;
	uint32_t deferred;
	uint32_t tainted; /* the step's buffers were written by the input */
	int32_t *table;   /* of a DEVICE group */
	uint32_t table_elems;
} run;

/* ---- A layer ----------------------------------------------------------- */

static const spmla_v32_layer *
layer_of(const world *w)
{
	static uint16_t kv_c[MAX_TOKENS * 512], k_pe[MAX_TOKENS * 64],
		index_k[MAX_TOKENS * 128], index_q[MAX_TOKENS * 3 * 128],
		index_weights[MAX_TOKENS * 3], q[MAX_TOKENS * 2 * 576],
		out[MAX_TOKENS * 2 * 512];
	static float cos_sin[24 * 64], lse[MAX_TOKENS * 2];
	static spmla_v32_layer layer;

	memset(&layer, 0, sizeof layer);
	layer.struct_bytes = (uint32_t)sizeof layer;
	layer.rope_style = SPMLA_ROPE_NEOX;
	layer.cos_sin_rows = 24; /* fewer than there are positions */
	layer.cos_sin = cos_sin;
	layer.kv_c = kv_c;
	layer.kv_c_stride_elems = 512;
	layer.k_pe = k_pe;
	layer.k_pe_stride_elems = 64;
	layer.index_k = index_k;
	layer.index_k_stride_elems = 128;
	layer.index_q = index_q;
	layer.index_q_token_stride_elems = 3 * 128;
	layer.index_q_head_stride_elems = 128;
	layer.index_weights = index_weights;
	layer.index_weights_stride_elems = 3;
	layer.q = q;
	layer.q_token_stride_elems = 2 * 576;
	layer.q_head_stride_elems = 576;
	layer.out = out;
	layer.out_token_stride_elems = 2 * 512;
	layer.out_head_stride_elems = 512;
	layer.lse = lse;
	layer.lse_token_stride_elems = 2;
	layer.lse_head_stride_elems = 1;
	REQUIRE(spmla_cache_view(w->ctx, SPMLA_BUF_KV_CACHE, 0, &layer.kv) ==
		SPMLA_OK);
	REQUIRE(spmla_cache_view(w->ctx, SPMLA_BUF_INDEX_CACHE, 0,
				 &layer.index) == SPMLA_OK);
	return &layer;
}

/* ---- What the ops rely on ---------------------------------------------- */

static void
check_tokens(const world *w, const spmla_shape *shape)
{
	const int32_t *req = spmla_view(w->ctx, SPMLA_BUF_REQ_ID_PER_TOKEN, 0);
	const int32_t *row = spmla_view(w->ctx, SPMLA_BUF_TOKEN_ROW, NULL);
	const int32_t *pos = spmla_view(w->ctx, SPMLA_BUF_POSITIONS, NULL);
	const int32_t *len = spmla_view(w->ctx, SPMLA_BUF_CONTEXT_LENS, NULL);
	const int64_t *slot = spmla_view(w->ctx, SPMLA_BUF_SLOT_MAPPING, NULL);
	const int64_t *at =
		spmla_view(w->ctx, SPMLA_BUF_LOGITS_ROW_STARTS, NULL);
	const spmla_config *c = &w->plan.config;
	const int64_t slots = (int64_t)c->groups[0].pool_pages *
			      (int64_t)c->groups[0].page_tokens;
	uint32_t t;

	for (t = 0; t < shape->tokens; t++) {
		REQUIRE(req[t] >= 0 && (uint32_t)req[t] < shape->requests);
		REQUIRE(row[t] >= 0 && (uint32_t)row[t] < c->max_rows);
		REQUIRE(pos[t] >= 0 &&
			(uint32_t)pos[t] < c->max_context_tokens);
		REQUIRE(len[t] == 0 || len[t] == pos[t] + 1);
		REQUIRE(slot[t] >= -1 && slot[t] < slots);
		REQUIRE(len[t] == 0 || slot[t] >= 0);
		REQUIRE(at[t] >= 0 && at[t] <= at[t + 1]);
		REQUIRE(at[t] + len[t] <= at[t + 1]);
	}
	REQUIRE((uint64_t)at[t] <= w->plan.logits_elems);
}

static void
check_step(const world *w, const spmla_shape *shape)
{
	const int32_t *start = spmla_view(w->ctx, SPMLA_BUF_QUERY_START_LOC, 0);
	const int32_t *len = spmla_view(w->ctx, SPMLA_BUF_SEQ_LENS, NULL);
	const int32_t *row = spmla_view(w->ctx, SPMLA_BUF_REQ_ROW, NULL);
	const spmla_config *c = &w->plan.config;
	uint32_t b;

	REQUIRE(start[0] == 0);
	for (b = 0; b < shape->requests; b++) {
		REQUIRE(start[b] <= start[b + 1]);
		REQUIRE(len[b] >= 0 &&
			(uint32_t)len[b] <= c->max_context_tokens);
		REQUIRE(len[b] == 0 || len[b] >= start[b + 1] - start[b]);
		REQUIRE(row[b] >= 0 && (uint32_t)row[b] < c->max_rows);
	}
	REQUIRE((uint32_t)start[b] <= shape->tokens);
	check_tokens(w, shape);
}

/* ---- Steps ------------------------------------------------------------- */

typedef struct draft {
	spmla_step step;
	spmla_request *requests; /* exactly as many as are said to be there */
	spmla_table_store stores[MOST_STORES];
} draft;

/* Rows are mostly in order, as most draws would name one twice. */
static void
read_requests(input *in, draft *d)
{
	const uint32_t n = d->step.request_count < MOST_REQUESTS
				   ? d->step.request_count
				   : MOST_REQUESTS;
	uint32_t i;

	d->requests = malloc(n ? n * sizeof *d->requests : 1);
	REQUIRE(d->requests);
	for (i = 0; i < n; i++) {
		spmla_request *r = &d->requests[i];
		const uint32_t kind = in_u8(in);

		r->row = kind & 0x80 ? in_edge(in) : i;
		r->query_tokens = kind & 0x40 ? in_edge(in) : kind & 3;
		r->seq_len_tokens =
			kind & 0x20 ? in_edge(in)
				    : r->query_tokens + (kind >> 2 & 1) * 17;
		r->flags = kind & 0x10 ? in_edge(in) : kind >> 3 & 1;
	}
}

static void
read_stores(input *in, draft *d)
{
	const uint32_t n = d->step.store_count < MOST_STORES
				   ? d->step.store_count
				   : MOST_STORES;
	uint32_t i;

	for (i = 0; i < n; i++) {
		spmla_table_store *t = &d->stores[i];
		const uint32_t kind = in_u8(in);
		uint32_t room;
		int32_t *pages;

		t->group = kind & 0x80 ? in_edge(in) : 0;
		t->row = kind & 0x40 ? in_edge(in) : i;
		t->first_col = kind & 0x20 ? in_edge(in) : 0;
		t->count = kind & 0x10 ? in_edge(in) : 1 + (kind & 7);
		t->pages = NULL;
		if (kind & 8)
			continue;
		room = t->count < MOST_PAGES ? t->count : MOST_PAGES;
		pages = malloc(room ? room * sizeof *pages : 1);
		REQUIRE(pages);
		in_fill_edges(in, (uint32_t *)pages, room);
		t->pages = pages;
	}
}

static void
read_draft(input *in, draft *d)
{
	const spmla_step step = SPMLA_STEP_INIT;
	const uint32_t kind = in_u8(in);

	memset(d, 0, sizeof *d);
	d->step = step;
	if ((kind & 0xe0) == 0xe0)
		d->step.struct_bytes = in_edge(in);
	d->step.flags = kind & 16 ? in_edge(in) : kind >> 3 & 1;
	d->step.request_count = kind & 4 ? in_edge(in) : in_below(in, 5);
	d->step.store_count = kind & 2 ? in_edge(in) : in_below(in, 4);
	read_requests(in, d);
	read_stores(in, d);
	d->step.requests = d->requests;
	d->step.stores = kind & 1 ? NULL : d->stores;
}

static void
free_draft(draft *d)
{
	uint32_t i;

	for (i = 0; i < MOST_STORES; i++)
		free((void *)(uintptr_t)d->stores[i].pages);
	free(d->requests);
}

static void
check_info(const spmla_plan *p, const spmla_step_info *info)
{
	const spmla_shape *b = &p->config.buckets[info->bucket];

	REQUIRE(info->bucket < p->config.bucket_count);
	REQUIRE(info->tokens <= b->tokens && info->requests <= b->requests);
	REQUIRE(info->next_n <= b->next_n);
	REQUIRE(info->live_context <= b->max_live_context);
	REQUIRE(info->record_bytes <= p->record_bytes);
}

static spmla_status
encode_and_push(run *r, const spmla_step *step)
{
	const uint64_t bytes =
		r->w->plan.record_bytes - (in_below(&r->in, 16) == 15 ? 4 : 0);
	spmla_step_info info = SPMLA_STEP_INFO_INIT;
	spmla_diag diag = SPMLA_DIAG_INIT;
	char text[64];
	void *record = malloc(bytes);
	spmla_status s;

	REQUIRE(record);
	s = spmla_step_encode(&r->w->plan, step, record, bytes, &info, &diag);
	if (s == SPMLA_OK) {
		check_info(&r->w->plan, &info);
		s = spmla_step_push(r->w->ctx, record, &r->ticket);
		REQUIRE(s == SPMLA_OK || s == SPMLA_E_RING_FULL);
	} else {
		REQUIRE(diag.status == (uint32_t)s);
		REQUIRE(spmla_diag_text(&diag, text, sizeof text) > 0);
	}
	free(record);
	return s;
}

static void
do_step(run *r)
{
	spmla_step_info info = SPMLA_STEP_INFO_INIT;
	draft d;

	read_draft(&r->in, &d);
	if (in_below(&r->in, 2))
		(void)encode_and_push(r, &d.step);
	else if (spmla_step_write(r->w->ctx, &d.step, &r->ticket, &info) ==
		 SPMLA_OK)
		check_info(&r->w->plan, &info);
	else
		world_diag(r->w, &r->in);
	free_draft(&d);
}

/* Any bytes behind the ticket of a record: words of its head and lists. */
static void
do_bytes(run *r)
{
	const spmla_step none = SPMLA_STEP_INIT;
	const uint64_t words = (r->w->plan.record_bytes - 8) / 4;
	uint32_t *slot;
	uint32_t n;

	if (spmla_step_write(r->w->ctx, &none, &r->ticket, NULL) != SPMLA_OK)
		return;
	slot = (uint32_t *)spmla_i_slot(r->w->ctx, r->ticket) + 2;
	if (in_below(&r->in, 4) == 0)
		in_fill_edges(&r->in, slot, words);
	for (n = in_below(&r->in, 48); n > 0 && in_left(&r->in); n--)
		slot[in_u8(&r->in) % words] = in_edge(&r->in);
}

/* ---- What the engine writes on the device ------------------------------ */

static void
do_device(run *r)
{
	enum { STEP_BUFS = 6 }; /* from here on what a prologue derives */
	static const spmla_buf bufs[] = {
		SPMLA_BUF_STEP_DEVICE,       SPMLA_BUF_ROW_LEN,
		SPMLA_BUF_ADVANCE_BY,        SPMLA_BUF_TABLE_STAGING,
		SPMLA_BUF_BLOCK_TABLE_MAIN,  SPMLA_BUF_TABLE_COLS_MAIN,
		SPMLA_BUF_STEP_REQUESTS,     SPMLA_BUF_QUERY_START_LOC,
		SPMLA_BUF_SEQ_LENS,          SPMLA_BUF_REQ_ROW,
		SPMLA_BUF_TOKEN_ROW,         SPMLA_BUF_POSITIONS,
		SPMLA_BUF_CONTEXT_LENS,      SPMLA_BUF_SLOT_MAPPING,
		SPMLA_BUF_LOGITS_ROW_STARTS, SPMLA_BUF_TOPK_INDICES,
		SPMLA_BUF_TOPK_LENS,         SPMLA_BUF_KV_CACHE,
		SPMLA_BUF_INDEX_CACHE};
	const uint32_t kind = in_u8(&r->in);
	const uint32_t i = kind % (sizeof bufs / sizeof *bufs);
	uint64_t bytes, n;
	uint32_t *words = spmla_view(r->w->ctx, bufs[i], &bytes);

	if (r->table && i == 4) {
		words = (uint32_t *)r->table;
		bytes = r->table_elems * sizeof *words;
	}
	if (!words)
		return;
	if (i >= STEP_BUFS)
		r->tainted = 1;
	if (kind & 0x80) {
		in_fill_edges(&r->in, words, bytes / 4);
		return;
	}
	for (n = 1 + in_below(&r->in, 16); n > 0; n--)
		words[in_u8(&r->in) % (bytes / 4)] = in_edge(&r->in);
}

/* ---- Launches ---------------------------------------------------------- */

static spmla_shape
read_shape(run *r)
{
	const uint32_t kind = in_u8(&r->in);
	spmla_shape shape = r->w->plan.config.buckets[kind % 3];

	if (kind & 0x80)
		shape.tokens = in_edge(&r->in);
	if (kind & 0x40)
		shape.requests = in_edge(&r->in);
	if (kind & 0x20)
		shape.next_n = in_edge(&r->in);
	if (kind & 0x10)
		shape.max_live_context = in_edge(&r->in);
	return shape;
}

static void
do_prologue(run *r)
{
	const spmla_shape shape = read_shape(r);
	const uint32_t source = 1 + in_below(&r->in, 4);

	if (spmla_step_prologue(r->w->ctx, &shape, (spmla_source)source,
				NULL) != SPMLA_OK) {
		world_diag(r->w, &r->in);
		return;
	}
	if (r->deferred || r->w->ctx->backend->capturing(r->w->ctx, NULL))
		return;
	if (source != SPMLA_ADVANCE)
		r->tainted = 0;
	if (!r->tainted)
		check_step(r->w, &shape);
}

static void
do_layer(run *r)
{
	const spmla_shape shape = read_shape(r);
	const spmla_v32_layer *layer = layer_of(r->w);

	(void)spmla_v32_attn(r->w->ctx, layer, &shape, NULL);
}

static void
do_graph(run *r)
{
	spmla_ctx *ctx = r->w->ctx;

	switch (in_below(&r->in, 6)) {
	case 0:
		(void)spmla_graph_begin(ctx, NULL);
		break;
	case 1:
		(void)spmla_graph_end(ctx, &r->graph);
		break;
	case 2:
		(void)spmla_graph_abort(ctx);
		break;
	case 3:
		(void)spmla_graph_replay(ctx, in_edge(&r->in), in_edge(&r->in),
					 NULL);
		break;
	case 4:
		(void)spmla_graph_replay(ctx, r->graph, 0, NULL);
		break;
	default:
		(void)spmla_graph_replay(ctx, r->graph, r->ticket, NULL);
	}
}

static void
do_other(run *r)
{
	spmla_ctx *ctx = r->w->ctx;
	input *in = &r->in;

	switch (in_below(in, 8)) {
	case 0:
		(void)spmla_step_undo(ctx, r->ticket);
		break;
	case 1:
		(void)spmla_step_resync(ctx);
		break;
	case 2:
		(void)spmla_step_launched(ctx, r->ticket);
		break;
	case 3:
		(void)spmla_status_clear(ctx);
		break;
	case 4:
		(void)spmla_step_undo(ctx, in_edge(in));
		break;
	case 5:
		(void)spmla_cpu_queue_run(ctx, in_edge(in));
		break;
	default:
		(void)spmla_table_write(ctx, in_below(in, 16) == 15,
					in_edge(in), in_edge(in), in_edge(in),
					NULL);
	}
}

static void
open_run(run *r, uint32_t kind)
{
	static world worlds[2];
	static int32_t *table;
	const uint32_t device = kind & 1;
	spmla_config config;

	world_config(&config);
	config.groups[0].source =
		device ? SPMLA_TABLE_DEVICE : SPMLA_TABLE_RING;
	r->deferred = kind >> 1 & 1;
	r->w = &worlds[device];
	world_open(r->w, &config, r->deferred ? SPMLA_NATIVE_DEFERRED : 0);
	if (!device)
		return;
	r->table_elems = config.max_rows * (r->w->plan.columns + 3);
	if (!table)
		table = malloc(r->table_elems * sizeof *table);
	REQUIRE(table);
	memset(table, 0, r->table_elems * sizeof *table);
	r->table = table;
	if (kind & 4)
		REQUIRE(spmla_table_bind(r->w->ctx, 0, table,
					 r->w->plan.columns + 3) == SPMLA_OK);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const todo[])(run *) = {
		do_step,   do_step,   do_prologue, do_prologue, do_bytes,
		do_device, do_device, do_layer,    do_graph,    do_other};
	run r;

	memset(&r, 0, sizeof r);
	r.in.at = data;
	r.in.end = data + size;
	open_run(&r, in_u8(&r.in));
	while (in_left(&r.in) > 0)
		todo[in_below(&r.in, sizeof todo / sizeof *todo)](&r);
	world_close(r.w);
	return 0;
}
