/* SPDX-License-Identifier: Apache-2.0
 *
 * See state_rig.h.
 */
#include "tests/ops/compress/state_rig.h"
#include "tests/reference/narrow_ref.h"

#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GAP = 8, RED_ZONE = 64 };

/* Mostly around 1; one in 16 is -0, subnormal or an infinity. */
static float
any_float(uint64_t *rng)
{
	static const float odd[4] = {-0.0f, 0x1p-149f, -0x1.8p-140f, INFINITY};

	if (rng_below(rng, 16) == 0)
		return odd[rng_below(rng, 4)];
	return rng_float(rng) * ldexpf(1.0f, (int)rng_below(rng, 20) - 10);
}

static float *
rows_of(uint64_t *rng, uint32_t rows, uint32_t width, uint32_t stride)
{
	float *x = test_alloc((uint64_t)rows * stride * sizeof *x, 0xff);
	uint32_t r, d;

	for (r = 0; r < rows; r++)
		for (d = 0; d < width; d++)
			x[(uint64_t)r * stride + d] = any_float(rng);
	return x;
}

void
state_rig_open(state_rig *r, uint32_t layout, uint32_t tokens,
	       uint32_t page_tokens, uint32_t pages, uint32_t pad)
{
	const uint32_t width = spmla_layout_entry_bytes(layout) / 8;
	const spmla_cache cache = SPMLA_CACHE_INIT;
	static uint64_t rng;
	spmla_config config;
	uint32_t t;

	if (rng == 0)
		rng = test_seed();
	memset(r, 0, sizeof *r);
	fixture_config(&config);
	fixture_open(&r->f, &config, 0);
	r->width = width;
	r->a.struct_bytes = (uint32_t)sizeof r->a;
	r->a.tokens = tokens;
	r->a.ratio = width == 512 || width == 128 ? 128 : 4;
	r->a.kv_stride_elems = r->a.score_stride_elems = width + GAP;
	r->a.state = cache;
	r->a.state.layout = layout;
	r->a.state.entries_per_page = page_tokens;
	r->a.state.pages = pages;
	r->a.state.page_stride_bytes = page_tokens * width * 8 + pad;
	r->state_bytes = pages * r->a.state.page_stride_bytes + RED_ZONE;
	r->state = test_alloc(r->state_bytes, 0xAB);
	r->want = test_alloc(r->state_bytes, 0xAB);
	r->kv = rows_of(&rng, tokens + 1, width, width + GAP);
	r->score = rows_of(&rng, tokens + 1, width, width + GAP);
	r->ape = rows_of(&rng, r->a.ratio, width, width);
	r->positions = test_alloc((tokens + 1) * sizeof *r->positions, 0);
	r->slots = test_alloc((tokens + 1) * sizeof *r->slots, 0xff);
	r->lens = test_alloc((tokens + 1) * sizeof *r->lens, 0);
	r->row = test_alloc((tokens + 1) * sizeof *r->row, 0);
	for (t = 0; t < tokens; t++)
		r->positions[t] = (int32_t)rng_below(&rng, 1000);
	fill_slots(&rng, r->slots, tokens, pages * page_tokens);
	r->a.kv = r->kv;
	r->a.score = r->score;
	r->a.ape = r->ape;
	r->a.positions = r->positions;
	r->a.slot_mapping = r->slots;
	r->a.state.base = r->state;
}

void
state_rig_close(state_rig *r)
{
	fixture_close(&r->f);
	free(r->state);
	free(r->want);
	free(r->kv);
	free(r->score);
	free(r->ape);
	free(r->positions);
	free(r->slots);
	free(r->lens);
	free(r->row);
}

void
state_rig_ring(state_rig *r, uint32_t columns)
{
	uint32_t row, col;

	r->a.form = SPMLA_STATE_RING;
	r->a.slot_mapping = NULL;
	r->a.context_lens = r->lens;
	r->a.token_row = r->row;
	r->a.block_table = r->table;
	r->a.table_cols = r->cols;
	r->a.rows = STATE_RIG_ROWS;
	r->a.columns = columns;
	r->a.table_stride_elems = STATE_RIG_TABLE;
	memset(r->table, 0x7f, sizeof r->table);
	/* Backwards, so that a page is not the number of its row. */
	for (row = 0; row < STATE_RIG_ROWS; row++) {
		r->cols[row] = (int32_t)columns;
		for (col = 0; col < columns; col++)
			r->table[row * STATE_RIG_TABLE + col] =
				(int32_t)(r->a.state.pages - 1 -
					  (row * columns + col));
	}
}

uint32_t
state_rig_request(state_rig *r, uint32_t t, uint32_t query, int32_t row,
		  int32_t first)
{
	const uint32_t end = t + query;

	for (; t < end; t++) {
		r->row[t] = row;
		r->positions[t] = first++;
		r->lens[t] = first;
	}
	return end;
}

void
state_rig_pad(state_rig *r, uint32_t t)
{
	for (; t < r->a.tokens; t++)
		r->row[t] = r->positions[t] = r->lens[t] = 0;
}

/* Where a slot lies, in bytes; 1 past the state. */
static int
place(const state_rig *r, int64_t slot, uint64_t *at)
{
	const int64_t tokens = r->a.state.entries_per_page;

	*at = (uint64_t)(slot / tokens) * r->a.state.page_stride_bytes +
	      (uint64_t)(slot % tokens) * r->width * 8;
	return slot / tokens >= r->a.state.pages;
}

const float *
state_rig_at(const state_rig *r, int64_t slot)
{
	uint64_t at;

	ck_assert(!place(r, slot, &at));
	return (const float *)(const void *)(r->state + at);
}

/* The token's slot, -1 without one, by its own division of the ring. */
static int64_t
model_slot(const state_rig *r, uint32_t t)
{
	const int64_t tokens = r->a.state.entries_per_page;
	const int64_t p = r->positions[t];
	int64_t in_ring, page;

	if (r->a.form == SPMLA_STATE_PAGED)
		return p < 0 ? -1 : r->slots[t];
	if (r->lens[t] <= 0 || p < 0 || r->row[t] < 0 ||
	    r->row[t] >= STATE_RIG_ROWS)
		return -1;
	in_ring = p % (tokens * r->a.columns);
	if (in_ring / tokens >= r->cols[r->row[t]] && r->a.table_cols)
		return -1;
	page = r->table[r->row[t] * STATE_RIG_TABLE + in_ring / tokens];
	if (page < 0 || page >= r->a.state.pages)
		return -1;
	return page * tokens + in_ring % tokens;
}

static void
model(state_rig *r)
{
	uint32_t t, d;

	memset(r->want, 0xAB, r->state_bytes);
	for (t = 0; t < r->a.tokens; t++) {
		const int64_t slot = model_slot(r, t);
		const float *kv =
			(const float *)r->a.kv + t * r->a.kv_stride_elems;
		const float *score =
			(const float *)r->a.score + t * r->a.score_stride_elems;
		uint64_t at;

		if (slot < 0 || place(r, slot, &at))
			continue;
		for (d = 0; d < r->width; d++) {
			const double ape =
				(double)r->ape[(uint32_t)r->positions[t] %
						       r->a.ratio * r->width +
					       d];
			const float sum =
				(float)ref_round_f32((double)score[d] + ape);

			memcpy(r->want + at + d * 4, kv + d, 4);
			memcpy(r->want + at + (r->width + d) * 4, &sum, 4);
		}
	}
}

void
state_rig_run(state_rig *r)
{
	memset(r->state, 0xAB, r->state_bytes);
	ck_assert_int_eq(spmla_compress_state_save(r->f.ctx, &r->a, NULL),
			 SPMLA_OK);
	fixture_drain(&r->f);
}

void
state_rig_check(state_rig *r)
{
	uint64_t i;

	model(r);
	state_rig_run(r);
	for (i = 0; i < r->state_bytes; i += 4) {
		float got, want;

		memcpy(&got, r->state + i, 4);
		memcpy(&want, r->want + i, 4);
		if (memcmp(r->state + i, r->want + i, 4) != 0 &&
		    !(isnan(got) && isnan(want)))
			ck_abort_msg("byte %" PRIu64 ": got %a, want %a", i,
				     (double)got, (double)want);
	}
}
