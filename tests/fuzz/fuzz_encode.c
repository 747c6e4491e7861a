/* SPDX-License-Identifier: Apache-2.0
 *
 * The step protocol, driven by the input: steps of any kind into the ring, any
 * bytes as a record or in what the engine writes on the device, prologues,
 * graphs and a whole layer behind them. The hard idea: after every prologue the
 * step's buffers are checked for what the ops rely on, not for what they mean.
 */
#include "tests/fuzz/encode_draft.h"
#include "tests/fuzz/encode_step.h"
#include "tests/fuzz/encode_v4.h"

typedef struct run {
	world *w;
	input in;
	uint64_t ticket; /* the last one */
	spmla_graph graph;
	uint32_t deferred;
	uint32_t v4;
	uint32_t tainted; /* the step's buffers were written by the input */
	int32_t *table;   /* of a DEVICE group */
	uint32_t table_elems;
} run;

/* ---- Steps ------------------------------------------------------------- */

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

	read_draft(&r->in, &d, r->v4 ? SPMLA_V4_GROUPS : 1);
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
	const uint32_t count = r->v4 ? sizeof v4_bufs / sizeof *v4_bufs
				     : sizeof bufs / sizeof *bufs;
	const uint32_t kind = in_u8(&r->in), i = kind % count;
	uint64_t bytes, n;
	uint32_t *words =
		spmla_view(r->w->ctx, r->v4 ? v4_bufs[i] : bufs[i], &bytes);

	if (r->table && i == 4) {
		words = (uint32_t *)r->table;
		bytes = r->table_elems * sizeof *words;
	}
	if (!words)
		return;
	if (i >= (r->v4 ? V4_STEP_BUFS : STEP_BUFS))
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
	if (!r->tainted && r->v4)
		v4_check_tokens(r->w, &shape);
}

static void
do_layer(run *r)
{
	static const uint32_t ratios[3] = {4, 128, 1};
	const spmla_shape shape = read_shape(r);

	if (r->v4)
		(void)spmla_v4_attn(r->w->ctx,
				    v4_layer(r->w, ratios[in_below(&r->in, 3)]),
				    &shape, NULL, NULL);
	else
		(void)spmla_v32_attn(r->w->ctx, layer_of(r->w), &shape, NULL);
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
	uint32_t group;

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
		group = in_below(in, 16);
		(void)spmla_table_write(ctx, r->v4 ? group % 8 : group == 15,
					in_edge(in), in_edge(in), in_edge(in),
					NULL);
	}
}

static void
open_run(run *r, uint32_t kind)
{
	static world worlds[4];
	static int32_t *tables[2];
	const uint32_t device = kind & 1;
	spmla_config config;

	r->v4 = kind >> 6 & 1;
	if (r->v4)
		v4_world_config(&config);
	else
		world_config(&config);
	config.groups[0].source =
		device ? SPMLA_TABLE_DEVICE : SPMLA_TABLE_RING;
	r->deferred = kind >> 1 & 1;
	r->w = &worlds[2 * r->v4 + device];
	world_open(r->w, &config, r->deferred ? SPMLA_NATIVE_DEFERRED : 0);
	if (!device)
		return;
	r->table_elems = config.max_rows * (r->w->plan.columns + 3);
	if (!tables[r->v4])
		tables[r->v4] = malloc(r->table_elems * sizeof(int32_t));
	r->table = tables[r->v4];
	REQUIRE(r->table);
	memset(r->table, 0, r->table_elems * sizeof(int32_t));
	if (kind & 4)
		REQUIRE(spmla_table_bind(r->w->ctx, 0, r->table,
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
