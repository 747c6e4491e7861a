/* SPDX-License-Identifier: Apache-2.0
 *
 * See compress_rig.h; compress_ref.c has the keys in double.
 */
#include "tests/ops/compress/compress_rig.h"
#include "tests/reference/narrow_ref.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RED_ZONE = 64 };

static uint64_t rng;

static void
fill(float *x, uint64_t n, float size)
{
	uint64_t i;

	for (i = 0; i < n; i++)
		x[i] = rng_float(&rng) * size;
}

static void
fill_rope(float *table, uint32_t rows)
{
	uint32_t p, i;

	for (p = 0; p < rows; p++)
		for (i = 0; i < 32; i++) {
			const double angle = p * pow(10000, -(double)i / 32);

			table[p * 64 + i] = (float)cos(angle);
			table[p * 64 + 32 + i] = (float)sin(angle);
		}
}

/* Pages of a row are apart, so that none is where its column says. */
static void
open_table(compress_rig *r, uint32_t page_tokens, uint32_t columns)
{
	spmla_kv_compress_args *a = &r->a;
	uint32_t row, col;

	free(r->table);
	free(r->state);
	a->rows = COMPRESS_RIG_ROWS;
	a->columns = columns;
	a->table_stride_elems = columns + 2;
	r->table = test_alloc((uint64_t)COMPRESS_RIG_ROWS * (columns + 2) *
				      sizeof *r->table,
			      0x7f);
	for (row = 0; row < COMPRESS_RIG_ROWS; row++) {
		r->cols[row] = (int32_t)columns;
		for (col = 0; col < columns; col++)
			r->table[row * (columns + 2) + col] =
				(int32_t)((columns - 1 - col) *
						  COMPRESS_RIG_ROWS +
					  row);
	}
	a->block_table = r->table;
	a->table_cols = r->cols;
	a->state.entries_per_page = page_tokens;
	a->state.pages = COMPRESS_RIG_ROWS * columns;
	a->state.page_stride_bytes = page_tokens * r->width * 8 + 16;
	r->state_bytes = a->state.pages * a->state.page_stride_bytes;
	r->state = test_alloc(r->state_bytes, 0xff);
	a->state.base = r->state;
}

static void
open_cache(compress_rig *r, uint32_t layout, uint32_t entries, uint32_t pad)
{
	const uint32_t keys = COMPRESS_RIG_ROWS * r->history / r->a.ratio;
	spmla_cache *c = &r->a.cache;

	*c = (spmla_cache)SPMLA_CACHE_INIT;
	c->layout = layout;
	c->entries_per_page = entries;
	c->pages = keys / entries + 1;
	c->page_stride_bytes =
		(uint64_t)entries * spmla_layout_entry_bytes(layout) + pad;
	r->cache_bytes = c->pages * c->page_stride_bytes + RED_ZONE;
	r->cache = test_alloc(r->cache_bytes, 0xAB);
	r->seen = test_alloc(r->cache_bytes, 0);
	c->base = r->cache;
}

void
compress_rig_open(compress_rig *r, uint32_t state_layout, uint32_t cache_layout,
		  uint32_t groups, uint32_t entries, uint32_t pad)
{
	const spmla_cache cache = SPMLA_CACHE_INIT;
	spmla_config config;
	uint64_t n;

	if (rng == 0)
		rng = test_seed();
	memset(r, 0, sizeof *r);
	fixture_config(&config);
	fixture_open(&r->f, &config, 0);
	r->a.struct_bytes = (uint32_t)sizeof r->a;
	r->width = spmla_layout_entry_bytes(state_layout) / 8;
	r->dim = r->width < 512 ? 128 : 512;
	r->a.ratio = r->width == r->dim ? 128 : 4;
	r->group = r->a.ratio == 4 ? 8 : 128;
	r->history = groups * r->a.ratio;
	r->most = COMPRESS_RIG_ROWS * r->history;
	n = (uint64_t)r->most * r->width;
	r->kv = test_alloc(n * 4, 0);
	r->score = test_alloc(n * 4, 0);
	r->ape = test_alloc((uint64_t)r->a.ratio * r->width * 4, 0);
	r->norm = test_alloc(r->dim * 4, 0);
	r->cos_sin = test_alloc(r->history * 64 * 4, 0);
	fill(r->kv, n, 3.0f);
	fill(r->score, n, 5.0f);
	fill(r->ape, (uint64_t)r->a.ratio * r->width, 2.0f);
	fill(r->norm, r->dim, 2.0f);
	fill_rope(r->cos_sin, r->history);
	r->positions = test_alloc(r->most * 4, 0);
	r->row = test_alloc(r->most * 4, 0);
	r->lens = test_alloc(r->most * 4, 0);
	r->slots = test_alloc(r->most * 8, 0xff);
	n = (uint64_t)r->most * (r->width + COMPRESS_RIG_GAP);
	r->call_kv = test_alloc(n * 4, 0xff);
	r->call_score = test_alloc(n * 4, 0xff);
	r->a.norm_eps = 1e-6f;
	r->a.e4m3_scale = 0.01f;
	r->a.cos_sin_rows = r->history;
	r->a.positions = r->positions;
	r->a.slot_mapping = r->slots;
	r->a.token_row = r->row;
	r->a.norm_weight = r->norm;
	r->a.cos_sin = r->cos_sin;
	r->a.state = cache;
	r->a.state.layout = state_layout;
	open_table(r, r->a.ratio == 4 ? 4 : 8,
		   r->history / (r->a.ratio == 4 ? 4 : 8));
	open_cache(r, cache_layout, entries, pad);
}

void
compress_rig_close(compress_rig *r)
{
	fixture_close(&r->f);
	free(r->kv);
	free(r->score);
	free(r->ape);
	free(r->norm);
	free(r->cos_sin);
	free(r->positions);
	free(r->row);
	free(r->lens);
	free(r->slots);
	free(r->call_kv);
	free(r->call_score);
	free(r->table);
	free(r->state);
	free(r->cache);
	free(r->seen);
	free(r->split_keys);
	free(r->split_counts);
}

void
compress_rig_split(compress_rig *r)
{
	r->split_keys = test_alloc((uint64_t)r->most * 512 * 4, 0);
	r->split_counts = test_alloc(r->most * 4, 0);
	r->a.split_keys = r->split_keys;
	r->a.split_counts = r->split_counts;
}

void
compress_rig_ring(compress_rig *r, uint32_t tokens)
{
	const uint32_t page = r->a.ratio == 4 ? 4 : 64;

	r->a.form = SPMLA_STATE_RING;
	open_table(r, page, (tokens + page - 1) / page);
	r->a.kv = r->call_kv;
	r->a.score = r->call_score;
	r->a.kv_stride_elems = r->width + COMPRESS_RIG_GAP;
	r->a.score_stride_elems = r->width + COMPRESS_RIG_GAP;
	r->a.ape = r->ape;
}

int64_t
compress_rig_slot(const compress_rig *r, uint32_t row, uint32_t pos)
{
	const uint32_t keys = COMPRESS_RIG_ROWS * r->history / r->a.ratio;

	/* Backwards, and the rows one in another. */
	return keys - 1 - (pos / r->a.ratio * COMPRESS_RIG_ROWS + row);
}

void
compress_rig_request(compress_rig *r, uint32_t row, uint32_t first,
		     uint32_t query)
{
	const uint64_t stride = r->width + COMPRESS_RIG_GAP;
	uint32_t p;

	for (p = first; p < first + query; p++) {
		const uint32_t t = r->a.tokens++;
		const uint64_t at = ((uint64_t)row * r->history + p) * r->width;

		ck_assert_uint_lt(t, r->most);
		r->positions[t] = (int32_t)p;
		r->row[t] = (int32_t)row;
		r->lens[t] = (int32_t)p + 1;
		/* Inside a group a slot, or none, does not count. */
		r->slots[t] = (p + 1) % r->a.ratio && rng_below(&rng, 2)
				      ? -1
				      : compress_rig_slot(r, row, p);
		memcpy(r->call_kv + t * stride, r->kv + at, r->width * 4);
		memcpy(r->call_score + t * stride, r->score + at, r->width * 4);
	}
}

/* score + ape of column `col`, in f32. */
static double
score_of(const compress_rig *r, uint32_t row, uint32_t p, uint32_t col)
{
	const uint64_t at = ((uint64_t)row * r->history + p) * r->width + col;
	const float ape = r->ape[p % r->a.ratio * r->width + col];

	return ref_round_f32((double)r->score[at] + (double)ape);
}

void
compress_rig_put(compress_rig *r, uint32_t row, uint32_t first, uint32_t end)
{
	const uint32_t page_tokens = r->a.state.entries_per_page;
	uint32_t p, d;

	for (p = first; p < end; p++) {
		const uint32_t place = p % (page_tokens * r->a.columns);
		const int32_t page = r->table[row * r->a.table_stride_elems +
					      place / page_tokens];
		float *to =
			(float *)(void *)(r->state +
					  (uint64_t)page *
						  r->a.state.page_stride_bytes +
					  (uint64_t)(place % page_tokens) *
						  r->width * 8);

		memcpy(to, r->kv + ((uint64_t)row * r->history + p) * r->width,
		       r->width * 4);
		for (d = 0; d < r->width; d++)
			to[r->width + d] = (float)score_of(r, row, p, d);
	}
}

void
compress_rig_save(compress_rig *r)
{
	const uint32_t page_tokens = r->a.state.entries_per_page;
	int64_t *slots = test_alloc((r->a.tokens + 1) * sizeof *slots, 0);
	spmla_compress_state_save_args a = {
		.struct_bytes = sizeof a,
		.tokens = r->a.tokens,
		.ratio = r->a.ratio,
		.form = r->a.form,
		.kv = r->call_kv,
		.score = r->call_score,
		.kv_stride_elems = r->width + COMPRESS_RIG_GAP,
		.score_stride_elems = r->width + COMPRESS_RIG_GAP,
		.ape = r->ape,
		.positions = r->positions,
		.slot_mapping = slots,
		.context_lens = r->lens,
		.token_row = r->row,
		.block_table = r->table,
		.table_cols = r->cols,
		.rows = r->a.rows,
		.columns = r->a.columns,
		.table_stride_elems = r->a.table_stride_elems,
		.state = r->a.state,
	};
	uint32_t t;

	for (t = 0; t < a.tokens; t++) {
		const uint32_t p = (uint32_t)r->positions[t];

		slots[t] = (int64_t)r->table[(uint32_t)r->row[t] *
						     a.table_stride_elems +
					     p / page_tokens % a.columns] *
				   page_tokens +
			   p % page_tokens;
	}
	ck_assert_int_eq(spmla_compress_state_save(r->f.ctx, &a, NULL),
			 SPMLA_OK);
	fixture_drain(&r->f);
	free(slots);
}

void
compress_rig_reset(compress_rig *r)
{
	memset(r->cache, 0xAB, r->cache_bytes);
}

void
compress_rig_expect_zeros(const compress_rig *r)
{
	uint32_t t, i;

	for (t = 0; r->split_counts && t < r->most; t++) {
		ck_assert_uint_eq(r->split_counts[t], 0);
		for (i = 0; i < 512; i++)
			if (r->split_keys[512 * t + i])
				ck_abort_msg("split_keys[%u][%u]: not 0", t, i);
	}
}

void
compress_rig_run(compress_rig *r)
{
	ck_assert_int_eq(spmla_kv_compress(r->f.ctx, &r->a, NULL), SPMLA_OK);
	fixture_drain(&r->f);
	compress_rig_expect_zeros(r);
}

void
compress_rig_check(compress_rig *r)
{
	uint8_t *first = test_alloc(r->cache_bytes, 0);
	uint32_t t;
	uint64_t i;

	compress_rig_reset(r);
	compress_rig_run(r);
	memcpy(first, r->cache, r->cache_bytes);
	compress_rig_reset(r);
	compress_rig_run(r);
	check_bytes(r->cache, first, r->cache_bytes);
	memset(r->seen, 0, r->cache_bytes);
	for (t = 0; t < r->a.tokens; t++)
		if (r->slots[t] >= 0 &&
		    (r->positions[t] + 1) % (int32_t)r->a.ratio == 0)
			compress_ref_check(r, t);
	for (i = 0; i < r->cache_bytes; i++)
		if (!r->seen[i] && r->cache[i] != 0xAB)
			ck_abort_msg("byte %llu was written",
				     (unsigned long long)i);
	free(first);
}
