/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares the results of a replay with decode_eager.c's.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "examples/decode_v32.h"
#include "examples/device.h"

/* A number of either side, as text. */
enum { VALUE_TEXT = 48 };

typedef enum value_kind {
	VALUE_BYTE = 0,
	VALUE_BF16 = 1,
	VALUE_I32 = 2,
	VALUE_F32 = 3,
	VALUE_I64 = 4
} value_kind;

static uint64_t
value_bytes(value_kind kind)
{
	static const uint8_t bytes[] = {1, 2, 4, 4, 8};

	return bytes[kind];
}

static void
value_text(value_kind kind, const uint8_t *p, char text[VALUE_TEXT])
{
	union {
		uint8_t byte;
		uint16_t half;
		uint32_t word;
		int32_t i32;
		int64_t i64;
		float f32;
	} v = {0};
	float x;

	memcpy(&v, p, value_bytes(kind));
	switch (kind) {
	case VALUE_BYTE:
		snprintf(text, VALUE_TEXT, "0x%02x", v.byte);
		break;
	case VALUE_BF16:
		v.word = (uint32_t)v.half << 16;
		memcpy(&x, &v.word, sizeof x);
		snprintf(text, VALUE_TEXT, "%.9g (0x%04x)", (double)x,
			 (unsigned)(v.word >> 16));
		break;
	case VALUE_I32:
		snprintf(text, VALUE_TEXT, "%" PRId32, v.i32);
		break;
	case VALUE_F32:
		snprintf(text, VALUE_TEXT, "%.9g (0x%08" PRIx32 ")",
			 (double)v.f32, v.word);
		break;
	case VALUE_I64:
		snprintf(text, VALUE_TEXT, "%" PRId64, v.i64);
		break;
	}
}

/* A copy of a device buffer on the host: the first or second of a comparison.
 */
static const void *
pull(const eager_check *e, uint32_t which, const void *p, uint64_t bytes)
{
	if (!device_native())
		return p;
	device_copy(e->pulled[which], p, bytes);
	return e->pulled[which];
}

/* One tensor of `count` values, `width` a token; 0: it has no tokens. */
static void
compare(eager_check *e, uint32_t layer, const char *what, value_kind kind,
	const void *got, const void *want, uint64_t count, uint64_t width)
{
	const uint64_t bytes = value_bytes(kind);
	const uint8_t *g = got, *w = want;
	char got_text[VALUE_TEXT], want_text[VALUE_TEXT];
	uint64_t i;

	if (memcmp(g, w, count * bytes) == 0)
		return;
	for (i = 0; i < count; i++, g += bytes, w += bytes) {
		mismatch_at at = {"replay != eager", e->step, layer,
				  SPMLA_NO_INDEX,    what,    i};

		if (memcmp(g, w, bytes) == 0)
			continue;
		if (width) {
			at.token = (uint32_t)(i / width);
			at.element = i % width;
		}
		value_text(kind, g, got_text);
		value_text(kind, w, want_text);
		e->mismatches++;
		mismatch(e->mismatches, &at, got_text, want_text);
	}
}

static void
compare_view(eager_check *e, spmla_buf buf, const char *what, value_kind kind,
	     const void *want, uint64_t count)
{
	const void *got = pull(e, 0, spmla_view(e->model->ctx, buf, NULL),
			       count * value_bytes(kind));

	compare(e, SPMLA_NO_INDEX, what, kind, got, want, count, 1);
}

static void
compare_metadata(eager_check *e)
{
	const uint64_t requests = e->batch->step.request_count;
	const uint64_t tokens = e->shape.tokens;

	compare_view(e, SPMLA_BUF_QUERY_START_LOC, "QUERY_START_LOC", VALUE_I32,
		     e->query_start_loc, requests + 1);
	compare_view(e, SPMLA_BUF_SEQ_LENS, "SEQ_LENS", VALUE_I32, e->seq_lens,
		     requests);
	compare_view(e, SPMLA_BUF_REQ_ROW, "REQ_ROW", VALUE_I32, e->req_row,
		     requests);
	compare_view(e, SPMLA_BUF_REQ_ID_PER_TOKEN, "REQ_ID_PER_TOKEN",
		     VALUE_I32, e->req_id, tokens);
	compare_view(e, SPMLA_BUF_TOKEN_ROW, "TOKEN_ROW", VALUE_I32,
		     e->token_row, tokens);
	compare_view(e, SPMLA_BUF_POSITIONS, "POSITIONS", VALUE_I32,
		     e->positions, tokens);
	compare_view(e, SPMLA_BUF_CONTEXT_LENS, "CONTEXT_LENS", VALUE_I32,
		     e->context_lens, tokens);
	compare_view(e, SPMLA_BUF_SLOT_MAPPING, "SLOT_MAPPING", VALUE_I64,
		     e->slot_mapping, tokens);
	compare_view(e, SPMLA_BUF_LOGITS_ROW_STARTS, "LOGITS_ROW_STARTS",
		     VALUE_I64, e->row_starts, tokens + 1);
}

/* The table rows in use, against the host's own. */
static void
compare_table(eager_check *e)
{
	const batch *b = e->batch;
	const page_table *t = &b->tables[0];
	const uint64_t rows = b->rows;
	const int32_t *table = pull(
		e, 0,
		spmla_view(e->model->ctx, SPMLA_BUF_BLOCK_TABLE_MAIN, NULL),
		rows * t->columns * sizeof(int32_t));
	const int32_t *cols =
		pull(e, 1,
		     spmla_view(e->model->ctx, SPMLA_BUF_TABLE_COLS_MAIN, NULL),
		     rows * sizeof(int32_t));
	uint32_t i;

	for (i = 0; i < b->active_count; i++) {
		const uint32_t row = b->active[i].row;
		const uint64_t at = (uint64_t)row * t->columns;

		compare(e, SPMLA_NO_INDEX, "TABLE_COLS_MAIN", VALUE_I32,
			cols + row, t->cols + row, 1, 0);
		compare(e, SPMLA_NO_INDEX, "BLOCK_TABLE_MAIN", VALUE_I32,
			table + at, t->pages + at, b->active[i].pages[0], 0);
	}
}

static void
compare_cache(eager_check *e, uint32_t layer, const char *what,
	      const spmla_cache *got, const spmla_cache *want)
{
	const uint64_t bytes = want->pages * want->page_stride_bytes;

	compare(e, layer, what, VALUE_BYTE, pull(e, 0, got->base, bytes),
		pull(e, 1, want->base, bytes), bytes, 0);
}

static void
compare_layer(eager_check *e, uint32_t layer)
{
	const spmla_config *c = &e->model->plan->config;
	const layer_tensors *t = &e->model->layer[layer];
	const uint64_t n = e->shape.tokens;
	const uint64_t out = (uint64_t)c->heads * SPMLA_MLA_LATENT;

	compare(e, layer, "TOPK_LENS", VALUE_I32, t->topk_lens, e->topk_lens, n,
		1);
	compare(e, layer, "TOPK_INDICES", VALUE_I32, t->topk_indices,
		e->topk_indices, n * c->topk, c->topk);
	compare(e, layer, "out", VALUE_BF16, t->out, e->out, n * out, out);
	compare(e, layer, "lse", VALUE_F32, t->lse, e->lse, n * c->heads,
		c->heads);
	compare_cache(e, layer, "KV_CACHE bytes", &t->args.kv, &e->kv[layer]);
	compare_cache(e, layer, "INDEX_CACHE bytes", &t->args.index,
		      &e->index[layer]);
}

spmla_status
eager_after(eager_check *e, uint32_t step, const spmla_shape *shape)
{
	spmla_status s;
	uint32_t l;

	e->step = step;
	e->shape = *shape;
	s = eager_metadata(e);
	if (s != SPMLA_OK)
		return s;
	device_wait();
	compare_metadata(e);
	compare_table(e);
	for (l = 0; l < e->model->layers && s == SPMLA_OK; l++) {
		s = eager_layer(e, l);
		device_wait();
		if (s == SPMLA_OK)
			compare_layer(e, l);
	}
	e->steps++;
	return s;
}
