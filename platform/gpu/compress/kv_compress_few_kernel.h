/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_compress of ratio 128 for few tokens: 32 blocks a key, of 16 columns each;
 * the block that begins last finishes the key. What counts is the time of one
 * key. A thread has one column of 8 rows, so few instructions, which also have
 * to be fetched from memory, lie between start and end. A block has one slab
 * and no list of work, and prefetches what it can before it knows the token's
 * position and row. With more tokens there would be more blocks than a device
 * holds at once, most of them with nothing to do.
 */
#ifndef SPMLA_PLATFORM_GPU_COMPRESS_KV_COMPRESS_FEW_KERNEL_H
#define SPMLA_PLATFORM_GPU_COMPRESS_KV_COMPRESS_FEW_KERNEL_H

#include "spmla/platform/gpu/compress/kv_compress_kernel.h"

enum {
	COMPRESS_FEW = 16, /* the most tokens: 512 of an H100's 528 blocks */
	COMPRESS_FEW_COLUMNS = 16, /* of a block */
	COMPRESS_FEW_SLABS = SPMLA_V4_DIM / COMPRESS_FEW_COLUMNS
};

#ifdef SPMLA_GPU_KERNELS

/* A row of a group: the addresses at which its kv and its score begin. */
typedef struct compress_few_row {
	uint64_t kv;
	uint64_t score;
} compress_few_row;

typedef struct compress_few {
	compress_few_row row[SPMLA_COMPRESS_MOST];
	/* Where the rows are, a byte each: all 0 if all are in the state. */
	uint64_t from[COMPRESS_PARTS];
	float most[COMPRESS_FEW_COLUMNS][COMPRESS_PARTS + 4];
	float sum[COMPRESS_PARTS][COMPRESS_FEW_COLUMNS + 1];
	float acc[COMPRESS_PARTS][COMPRESS_FEW_COLUMNS + 1];
	float column[COMPRESS_FEW_COLUMNS];
	float squares[COMPRESS_SQUARES];
	uint64_t page; /* of the key: bytes from the cache's base */
	uint32_t entry;
	uint32_t lost;
	uint32_t is_last;
} compress_few;

/* Guesses that token t has table row t, as in most steps. Prefetches that row's
 * first 32 pages, more than rings usually have, while the token's row is being
 * loaded. */
FN void
compress_few_guess(const PRIVATE compress_job *job, uint32_t t)
{
	const PRIVATE spmla_k_kv_compress_scalars *s = &job->s;

	if ((g_item() == 0) & (t < s->rows))
		g_prefetch(job->block_table + (uint64_t)t * s->table_stride);
	if ((g_item() == 1) & (t < s->rows) & s->has_cols)
		g_prefetch(job->table_cols + t);
}

/* Looks up row i of the group that token t ends. Prefetches its columns from
 * `column` on, unless the call has the row. */
FN void
compress_few_find(const PRIVATE compress_job *job, LOCAL compress_few *shared,
		  const compress_near near, uint32_t t, int32_t row,
		  int32_t position, uint32_t i, uint32_t column)
{
	GLOBAL const float *state = compress_state(job);
	const int32_t back = (int32_t)(SPMLA_COMPRESS_MOST - 1 - i);
	const int64_t j = (int64_t)t - back;
	uint64_t v = (uint64_t)job->kv +
		     4 * (uint64_t)j * (uint64_t)job->s.kv_stride;
	uint64_t x = (uint64_t)job->score +
		     4 * (uint64_t)j * (uint64_t)job->s.score_stride;
	uint64_t at;
	const uint32_t from =
		compress_place(job, near, row, position - back, i, SPMLA_V4_DIM,
			       SPMLA_COMPRESS_MOST, &at);

	if (from != COMPRESS_CALL) {
		compress_ask_row(state + at + column, SPMLA_V4_DIM);
		v = (uint64_t)state + 4 * at;
		x = v + 4 * SPMLA_V4_DIM;
	}
	((LOCAL uint8_t *)shared->from)[i] = (uint8_t)from;
	shared->row[i].kv = v;
	shared->row[i].score = x;
}

/* Weighs a column of the 8 rows of a part. For a lost row it reads the state's
 * first entry. */
FN void
compress_few_sum(LOCAL compress_few *shared, GLOBAL const float *ape,
		 uint32_t part, uint32_t column, PRIVATE float *most,
		 PRIVATE float *sum, PRIVATE float *acc)
{
	const LOCAL compress_few_row *row = shared->row + COMPRESS_STEP * part;
	const uint64_t from = shared->from[part];
	uint32_t v[COMPRESS_STEP], x[COMPRESS_STEP], lost = 0, k;
	float z[COMPRESS_STEP];

	UNROLL
	for (k = 0; k < COMPRESS_STEP; k++) {
		v[k] = g_load_at(row[k].kv + 4 * column);
		x[k] = g_load_at(row[k].score + 4 * column);
		z[k] = 0.0f;
	}
	if (from) {
		const uint32_t at =
			column + COMPRESS_STEP * SPMLA_V4_DIM * part;

		UNROLL
		for (k = 0; k < COMPRESS_STEP; k++) {
			const uint32_t f = (uint32_t)(from >> 8 * k) & 255;

			if (f == COMPRESS_CALL)
				z[k] = ape[k * SPMLA_V4_DIM + at];
			lost |= f == COMPRESS_LOST;
		}
		if (lost)
			g_local_max(&shared->lost, 1);
	}
	/* z is 0 for a saved row: that changes at most the sign of a zero. */
	UNROLL
	for (k = 0; k < COMPRESS_STEP; k++)
		x[k] = g_bits(g_float(x[k]) + z[k]);
	compress_weigh(v, x, 1, most, sum, acc);
}

/* The largest of 16: reading them all takes less time than shuffles. */
FN float
compress_few_most(const LOCAL float *part)
{
	float even = G_MINUS_INF, odd = even;
	uint32_t k;

	UNROLL
	for (k = 0; k < COMPRESS_PARTS; k += 2) {
		even = g_larger(even, part[k]);
		odd = g_larger(odd, part[k + 1]);
	}
	return g_larger(even, odd);
}

/* Makes a slab of the key that token t ends and, if this block is the last,
 * finishes the key. Returns the key's fault, or 0. Barriers inside. */
FN uint32_t
compress_few_key(const PRIVATE compress_job *job, LOCAL compress_few *shared,
		 const compress_near near, uint32_t t, uint32_t slab,
		 int64_t slot, int32_t position, int32_t row)
{
	/* The thread's part and column: first (part, q), to weigh rows, then
	 * (lane, own), to join parts. */
	const uint32_t i = g_item();
	const uint32_t part = i / COMPRESS_FEW_COLUMNS;
	const uint32_t q = i % COMPRESS_FEW_COLUMNS;
	const uint32_t lane = i % COMPRESS_PARTS, own = i / COMPRESS_PARTS;
	const uint32_t column = COMPRESS_FEW_COLUMNS * slab;
	/* Threads that store the key, four columns each. */
	const uint32_t there = i < SPMLA_V4_DIM / COMPRESS_EACH;
	const uint64_t angles = compress_angles(position, SPMLA_COMPRESS_MOST);
	GLOBAL uint32_t *key = job->split_keys + (uint64_t)t * SPMLA_V4_DIM;
	float most, sum, acc, c[COMPRESS_EACH] = {0.0f, 0.0f, 0.0f, 0.0f};
	compress_end end = {{0.0f}, {0.0f}, {0.0f}};
	uint32_t is_last, w[2];

	if (i < SPMLA_COMPRESS_MOST) {
		compress_few_find(job, shared, near, t, row, position, i,
				  column);
	} else if (i == SPMLA_COMPRESS_MOST) {
		uint32_t entry;
		GLOBAL uint8_t *page = compress_page(job, slot, &entry);

		shared->page = (uint64_t)(page - job->cache);
		shared->entry = entry;
		shared->lost = 0;
		compress_ask_angles(job->cos_sin, position, 0,
				    SPMLA_COMPRESS_MOST);
		compress_ask_angles(job->cos_sin, position, 1,
				    SPMLA_COMPRESS_MOST);
	}
	BARRIER();
	is_last = shared->is_last;
	if (is_last & there)
		compress_end_of(job, &end, i, angles, SPMLA_V4_DIM);
	compress_few_sum(shared, job->ape, part, column + q, &most, &sum, &acc);
	shared->most[q][part] = most;
	shared->sum[part][q] = sum;
	shared->acc[part][q] = acc;
	BARRIER();
	sum = compress_join(shared->most[own][lane],
			    compress_few_most(shared->most[own]),
			    shared->sum[lane][own], shared->acc[lane][own]);
	if (lane == 0 && is_last)
		shared->column[own] = sum;
	else if (lane == 0)
		compress_hand_on(key + column + own, sum);
	if (!is_last)
		return 0;
	BARRIER();
	if (there)
		compress_await(key, shared->column, column,
			       COMPRESS_FEW_COLUMNS, i, c);
	compress_finish(shared->squares, c, i, there, end, job->s.norm_eps,
			shared->lost, SPMLA_V4_DIM, w);
	if (there)
		compress_store(w, i, 1, job->cache + shared->page,
			       shared->entry, job->s.page_entries,
			       job->s.layout, job->s.fnuz, compress_scale(job));
	return shared->lost ? G_FAULT_PAGE : 0;
}

SPMLA_KERNEL_BLOCKS(kv_compress_few, 4)
void
spmla_k_kv_compress_few(SPMLA_KERNEL_ARGS(kv_compress_few))
{
	LOCAL_ARRAY(compress_few, shared, 1);
	const compress_job job = {SPMLA_KERNEL_VALUES(kv_compress), 0};
	uint32_t u;

	for (u = g_block(); u < s.tokens * COMPRESS_FEW_SLABS;
	     u += g_blocks()) {
		const uint32_t t = u / COMPRESS_FEW_SLABS;
		const uint32_t slab = u % COMPRESS_FEW_SLABS;
		const uint32_t back = SPMLA_COMPRESS_MOST - 1 - g_item();
		const compress_near near = compress_near_of(
			&job,
			back < SPMLA_COMPRESS_MOST ? (int64_t)t - back : -1);
		const int64_t slot = slot_mapping[t];
		const int32_t position = positions[t];
		const int32_t row = token_row[t];
		uint32_t before = 0, fault, ends;

		if (g_item() == SPMLA_COMPRESS_MOST)
			before = g_add(split_counts + t, 1);
		compress_few_guess(&job, t);
		compress_ask_norm(norm_weight, SPMLA_V4_DIM);
		ends = compress_ends(&job, slot, position, row,
				     SPMLA_COMPRESS_MOST, &fault);
		if (g_item() == SPMLA_COMPRESS_MOST)
			shared->is_last = compress_is_last(
				split_counts + t, before, COMPRESS_FEW_SLABS);
		if (ends & !fault)
			fault = compress_few_key(&job, shared, near, t, slab,
						 slot, position, row);
		else if (!ends || slab)
			fault = 0; /* the first slab reports a bad token */
		if (fault && g_item() == 0)
			g_fault(fault_state, fault_status,
				compress_who(&job, t, row), fault);
		BARRIER();
	}
}

#endif
#endif
