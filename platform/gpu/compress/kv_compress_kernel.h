/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_compress: a thread has four columns of eight rows of a group, with all 16
 * loads of 16 bytes in flight at once. So 128 threads make a key of ratio 4, or
 * four index keys. The hard idea is to wait for three things only: the list of
 * the block's work, the places of a key's rows, and the rows themselves.
 * Everything else has been prefetched by then, and reports of bad data come
 * last.
 *
 * The rows of a key of ratio 128 are 512 KB, more than one multiprocessor
 * should read. So 16 blocks take 32 columns each, and the one that begins last
 * finishes the key. For few tokens see kv_compress_few_kernel.h.
 */
#ifndef SPMLA_PLATFORM_GPU_COMPRESS_KV_COMPRESS_KERNEL_H
#define SPMLA_PLATFORM_GPU_COMPRESS_KV_COMPRESS_KERNEL_H

#include "spmla/platform/gpu/compress/compress_work_device.h"

#ifdef SPMLA_GPU_KERNELS

/* ---- Columns ----------------------------------------------------------- */

/* What compress_weigh makes of four columns of 8 rows. */
typedef struct compress_sums {
	float most[COMPRESS_EACH];
	float sum[COMPRESS_EACH];
	float acc[COMPRESS_EACH];
} compress_sums;

/* Replaces the loads of rows that are not in the state, which read its first
 * entry. The score of a row of the call has no ape yet. A row that does not
 * exist gets the score -inf. */
FN void
compress_load_call(const PRIVATE compress_job *job,
		   const LOCAL compress_row *row, uint32_t first,
		   uint32_t column, const uint32_t dim, const uint32_t ratio,
		   const uint32_t wide, PRIVATE uint32_t *v,
		   PRIVATE uint32_t *x)
{
	const uint32_t width = ratio == SPMLA_COMPRESS_OVERLAP ? 2 * dim : dim;
	const uint32_t form = wide                        ? G_REALS_WIDE
			      : job->any & job->s.kv_bf16 ? G_REALS_BF16
							  : G_REALS_F32;
	uint32_t z[COMPRESS_EACH], k, j;

	UNROLL
	for (k = 0; k < COMPRESS_STEP; k++) {
		if (row[k].from != COMPRESS_CALL)
			continue;
		g_reals4(job->kv, form, row[k].kv_at + column,
			 v + COMPRESS_EACH * k);
		g_reals4(job->score, form, row[k].score_at + column,
			 x + COMPRESS_EACH * k);
	}
	/* z is 0 for a saved row: adding it changes at most the sign of a zero,
	 * and no weight. */
	UNROLL
	for (k = 0; k < COMPRESS_STEP; k++) {
		const uint32_t none = row[k].from == COMPRESS_NONE;

		z[0] = z[1] = z[2] = z[3] = 0;
		if (row[k].from == COMPRESS_CALL)
			g_reals4(job->ape + first * width + column,
				 wide ? G_REALS_WIDE : G_REALS_F32,
				 k % ratio * width + (k < ratio ? 0 : dim), z);
		UNROLL
		for (j = 0; j < COMPRESS_EACH; j++) {
			const uint32_t n = COMPRESS_EACH * k + j;

			v[n] = none ? 0 : v[n];
			x[n] = g_bits(none ? G_MINUS_INF
					   : g_float(x[n]) + g_float(z[j]));
		}
	}
}

/* A column of 8 rows, `each` apart: the largest score, and relative to it the
 * sum of weights and the sum of v times weight. */
FN void
compress_weigh(const PRIVATE uint32_t *v, const PRIVATE uint32_t *x,
	       const uint32_t each, PRIVATE float *most, PRIVATE float *sum,
	       PRIVATE float *acc)
{
	float base, a = 0.0f, b = 0.0f;
	uint32_t k;

	*most = G_MINUS_INF;
	UNROLL
	for (k = 0; k < COMPRESS_STEP; k++)
		*most = g_larger(*most, g_float(x[each * k]));
	base = *most == G_MINUS_INF ? 0.0f : *most;
	UNROLL
	for (k = 0; k < COMPRESS_STEP; k++) {
		const float weight =
			g_exp2_flush((g_float(x[each * k]) - base) * G_LOG2_E);

		a += weight;
		b += g_float(v[each * k]) * weight;
	}
	*sum = a;
	*acc = b;
}

/* Weighs four columns of 8 rows, which are the group's from `first` on. Returns
 * whether a row is lost. */
FN uint32_t
compress_sum(const PRIVATE compress_job *job, const LOCAL compress_row *row,
	     uint32_t first, uint32_t column, const uint32_t dim,
	     const uint32_t ratio, PRIVATE compress_sums *to)
{
	const uint32_t width = ratio == SPMLA_COMPRESS_OVERLAP ? 2 * dim : dim;
	uint32_t v[COMPRESS_STEP * COMPRESS_EACH];
	uint32_t x[COMPRESS_STEP * COMPRESS_EACH];
	uint32_t lost = 0, other = 0, j, k;

	UNROLL
	for (k = 0; k < COMPRESS_STEP; k++) {
		GLOBAL const float *p =
			compress_state(job) + row[k].at + column;

		g_load4(p, v + COMPRESS_EACH * k);
		g_load4(p + width, x + COMPRESS_EACH * k);
		other |= row[k].from != COMPRESS_STATE;
		lost |= row[k].from == COMPRESS_LOST;
	}
	if (other && job->s.wide)
		compress_load_call(job, row, first, column, dim, ratio, 1, v,
				   x);
	else if (other)
		compress_load_call(job, row, first, column, dim, ratio, 0, v,
				   x);
	UNROLL
	for (j = 0; j < COMPRESS_EACH; j++)
		compress_weigh(v + j, x + j, COMPRESS_EACH, &to->most[j],
			       &to->sum[j], &to->acc[j]);
	return lost;
}

/* The largest score of 16 neighbouring threads. All of them get it. */
FN float
compress_most16(float most)
{
	uint32_t mask;

	most = g_larger(G_MINUS_INF, most);
	UNROLL
	for (mask = COMPRESS_PARTS / 2; mask; mask >>= 1)
		most = g_larger(most, g_shuffle_xor_f(most, mask));
	return most;
}

/* A column of a key, from its 16 parts, which 16 neighbouring threads have.
 * `most` is the largest score of the thread's part, `all` of all parts.
 * All 16 threads get the column. */
FN float
compress_join(float most, float all, float sum, float acc)
{
	const float base = all == G_MINUS_INF ? 0.0f : all;
	const float f = g_exp2_flush((most - base) * G_LOG2_E);

	acc = g_sum16(acc * f);
	return g_div_rn(acc, g_sum16(sum * f));
}

/* Loads what the thread's columns of a key are multiplied by. `angles` is where
 * the angles of the key's group begin in cos_sin. */
FN void
compress_end_of(const PRIVATE compress_job *job, PRIVATE compress_end *to,
		uint32_t q, uint64_t angles, const uint32_t dim)
{
	compress_load_end(to, q, job->norm_weight, job->any & job->s.norm_bf16,
			  job->cos_sin, job->any & job->s.rope_bf16, angles,
			  dim);
}

/* The page of a slot; *entry is the entry in it. */
FN GLOBAL uint8_t *
compress_page(const PRIVATE compress_job *job, int64_t slot,
	      PRIVATE uint32_t *entry)
{
	const uint64_t page = (uint64_t)slot / job->s.page_entries;

	*entry = (uint32_t)((uint64_t)slot - page * job->s.page_entries);
	return job->cache + page * job->s.page_stride_bytes;
}

/* ---- Ratio 4 ----------------------------------------------------------- */

/* Makes the keys of the list from number n on, as many as the block has threads
 * for: dim / 4 threads make a key. */
FN void
compress_keys(const PRIVATE compress_job *job, LOCAL compress_local *shared,
	      uint32_t n, const uint32_t dim)
{
	const uint32_t items = dim / COMPRESS_EACH;
	const uint32_t key = g_item() / items, q = g_item() % items;
	const uint32_t lanes = items / COMPRESS_STEP; /* that look up one row */
	LOCAL compress_unit *u = &shared->unit[n + key];
	LOCAL compress_row *row = &shared->row[COMPRESS_STEP * key];
	const uint32_t live = n + key < shared->units && !u->fault;
	float c[COMPRESS_EACH] = {0.0f, 0.0f, 0.0f, 0.0f};
	uint64_t angles = 0;
	uint32_t lost = 0, entry, w[2], j;
	compress_sums sums;
	compress_end end;
	GLOBAL uint8_t *page;

	if (live) {
		compress_find(job, row + q / lanes, q % lanes == 0,
			      shared->units <= COMPRESS_ITEMS / items, u,
			      q / lanes, 32 * (q % lanes), dim,
			      SPMLA_COMPRESS_OVERLAP);
		if (!job->any)
			compress_ask_angles(job->cos_sin, u->position, q,
					    SPMLA_COMPRESS_OVERLAP);
	}
	/* A long division, while rows are on their way. */
	page = compress_page(job, live ? u->slot : 0, &entry);
	BARRIER();
	if (live) {
		lost = compress_sum(job, row, 0, COMPRESS_EACH * q, dim,
				    SPMLA_COMPRESS_OVERLAP, &sums);
		UNROLL
		for (j = 0; j < COMPRESS_EACH; j++)
			c[j] = g_div_rn(sums.acc[j], sums.sum[j]);
		angles = compress_angles(u->position, SPMLA_COMPRESS_OVERLAP);
	}
	compress_end_of(job, &end, q, angles, dim);
	compress_finish(shared->squares +
				(dim + COMPRESS_GAP * COMPRESS_LANES) * key,
			c, q, 1, end, job->s.norm_eps, lost, dim, w);
	if (dim == SPMLA_V4_DIM)
		compress_store(w, q, live, page, entry, job->s.page_entries,
			       job->s.layout, job->s.fnuz, compress_scale(job));
	else
		compress_store_index(
			shared->largest + items / COMPRESS_LANES * key, w, q,
			live, page, entry, job->s.page_entries, job->s.layout,
			job->s.fnuz);
	if (live && lost && q == 0)
		u->fault = G_FAULT_PAGE;
}

/* ---- Ratio 128 --------------------------------------------------------- */

/* Makes the columns of a slab, and writes them to `columns`. Returns whether a
 * row is lost. A barrier inside. */
FN uint32_t
compress_slab(const PRIVATE compress_job *job, const LOCAL compress_row *row,
	      LOCAL compress_parts *parts, uint32_t slab, const uint32_t dim,
	      LOCAL float *columns)
{
	const uint32_t items = COMPRESS_SLAB / COMPRESS_EACH;
	const uint32_t part = g_item() / items, q = g_item() % items;
	compress_sums sums;
	uint32_t lost, j;

	lost = compress_sum(job, row + COMPRESS_STEP * part,
			    COMPRESS_STEP * part,
			    COMPRESS_SLAB * slab + COMPRESS_EACH * q, dim,
			    SPMLA_COMPRESS_MOST, &sums);
	UNROLL
	for (j = 0; j < COMPRESS_EACH; j++) {
		parts->most[part][COMPRESS_EACH * q + j] = sums.most[j];
		parts->sum[part][COMPRESS_EACH * q + j] = sums.sum[j];
		parts->acc[part][COMPRESS_EACH * q + j] = sums.acc[j];
	}
	if (q == 0)
		parts->lost[part] = lost;
	BARRIER();
	for (j = g_item() / COMPRESS_PARTS; j < COMPRESS_SLAB;
	     j += COMPRESS_ITEMS / COMPRESS_PARTS) {
		const uint32_t k = g_item() % COMPRESS_PARTS;
		const float most = parts->most[k][j];
		const float c =
			compress_join(most, compress_most16(most),
				      parts->sum[k][j], parts->acc[k][j]);

		if (k == 0)
			columns[j] = c;
	}
	lost = 0;
	for (j = 0; j < COMPRESS_PARTS; j++)
		lost |= parts->lost[j];
	return lost;
}

/* Whether this block was the last of a key's blocks to begin; `before` is how
 * many had begun. The last one finishes the key. All others have begun by then
 * and wait for nobody, so it may wait for them. */
FN uint32_t
compress_is_last(GLOBAL uint32_t *count, uint32_t before, const uint32_t blocks)
{
	if (before != blocks - 1)
		return 0;
	*count = 0; /* for the next call */
	return 1;
}

/* Hands a column to the block that finishes the key: its bits inverted, since 0
 * means that it is not there yet. The one NaN whose inverted bits are 0 becomes
 * another NaN. */
FN void
compress_hand_on(GLOBAL uint32_t *to, float column)
{
	const uint32_t word = ~g_bits(column);

	g_store_device(to, word ? word : 1);
}

/* Columns 4 q .. 4 q + 3 of a key. The block has `columns` columns itself, from
 * `first` on. It waits for columns of other blocks, and sets their words to 0
 * for the next call. If words or counts were not zero before the call, a column
 * is any number, but the wait ends. */
FN void
compress_await(GLOBAL uint32_t *key, const LOCAL float *own, uint32_t first,
	       const uint32_t columns, uint32_t q, PRIVATE float *c)
{
	const uint32_t at = COMPRESS_EACH * q - first;
	uint32_t word[COMPRESS_EACH], there = 0, n, j;

	if (at < columns) {
		UNROLL
		for (j = 0; j < COMPRESS_EACH; j++)
			c[j] = own[at + j];
		return;
	}
	key += COMPRESS_EACH * q;
	for (n = 0; n < COMPRESS_PATIENCE && !there; n++) {
		g_load4_device(key, word);
		there = (word[0] != 0) & (word[1] != 0) & (word[2] != 0) &
			(word[3] != 0);
	}
	UNROLL
	for (j = 0; j < COMPRESS_EACH; j++) {
		c[j] = g_float(~word[j]);
		word[j] = 0;
	}
	g_store4((GLOBAL uint16_t *)key, word);
}

/* Makes unit n of the list: a key, or a slab of a key of dim 512. A key of dim
 * 128 has columns for a quarter of the threads; the others repeat their
 * work. */
FN void
compress_slabs(const PRIVATE compress_job *job, LOCAL compress_local *shared,
	       LOCAL compress_parts *parts, uint32_t n, const uint32_t dim)
{
	const PRIVATE spmla_k_kv_compress_scalars *s = &job->s;
	const uint32_t i = g_item(), items = dim / COMPRESS_EACH;
	const uint32_t slabs = s->split ? 1 : dim / COMPRESS_SLAB;
	const uint32_t q = i % items;
	LOCAL compress_unit *u = &shared->unit[n];
	const uint64_t token = s->split ? u->token : 0; /* 0: not used */
	GLOBAL uint32_t *key = job->split_keys + token * SPMLA_V4_DIM;
	GLOBAL uint32_t *count = job->split_counts + token;
	const uint32_t first = COMPRESS_SLAB * u->slab;
	uint32_t lost = 0, before = 0, copy, entry, w[2], k;
	float c[COMPRESS_EACH];
	compress_end end;
	GLOBAL uint8_t *page;

	if (u->fault)
		return;
	if (i == 0 && s->split)
		before = g_add(count, 1);
	compress_find(job, &shared->row[i], 1, shared->units == 1, u, i, first,
		      dim, SPMLA_COMPRESS_MOST);
	if (!job->any)
		compress_ask_angles(job->cos_sin, u->position, q,
				    SPMLA_COMPRESS_MOST);
	BARRIER();
	if (i == 0 && s->split)
		parts->is_last =
			compress_is_last(count, before, COMPRESS_SLABS);
	for (k = 0; k < slabs; k++) {
		lost = compress_slab(job, shared->row, parts, u->slab + k, dim,
				     parts->column + first + COMPRESS_SLAB * k);
		BARRIER();
	}
	if (s->split && !parts->is_last) {
		if (i < COMPRESS_SLAB)
			compress_hand_on(key + first + i,
					 parts->column[first + i]);
		return;
	}
	compress_end_of(job, &end, q,
			compress_angles(u->position, SPMLA_COMPRESS_MOST), dim);
	compress_await(key, parts->column + first, first, COMPRESS_SLAB * slabs,
		       q, c);
	copy = g_item_again() / items; /* takes no register before */
	compress_finish(shared->squares +
				(dim + COMPRESS_GAP * COMPRESS_LANES) * copy,
			c, q, 1, end, s->norm_eps, lost, dim, w);
	page = compress_page(job, u->slot, &entry);
	if (dim == SPMLA_V4_DIM)
		compress_store(w, q, 1, page, entry, s->page_entries, s->layout,
			       s->fnuz, compress_scale(job));
	else
		compress_store_index(shared->largest +
					     items / COMPRESS_LANES * copy,
				     w, q, copy == 0, page, entry,
				     s->page_entries, s->layout, s->fnuz);
	if (lost && i == 0)
		u->fault = G_FAULT_PAGE;
}

/* ---- Blocks ------------------------------------------------------------ */

/* Does the block's units. A block has neighbouring tokens: one in `ratio` of
 * them ends a group, and the others cost only a few loads. The slabs of a key
 * go to neighbouring blocks. */
FN void
compress_run(const PRIVATE compress_job *job, LOCAL compress_local *shared,
	     LOCAL compress_parts *parts, const uint32_t dim,
	     const uint32_t ratio)
{
	const PRIVATE spmla_k_kv_compress_scalars *s = &job->s;
	const uint32_t split = ratio == SPMLA_COMPRESS_MOST && s->split;
	const uint32_t slabs = split ? COMPRESS_SLABS : 1;
	const uint32_t together =
		ratio == SPMLA_COMPRESS_MOST ? 1 : SPMLA_V4_DIM / dim;
	uint32_t first = 0, n;

	if (!job->any)
		compress_ask_norm(job->norm_weight, dim);
	for (;;) {
		const uint32_t i = first + g_item();
		const uint64_t u = split ? (uint64_t)g_blocks() * i + g_block()
					 : (uint64_t)g_block() * s->share + i;
		const uint32_t there =
			i < s->share && u < (uint64_t)s->tokens * slabs;

		if (g_item() == 0) {
			shared->units = 0;
			shared->first = first;
		}
		compress_list(job, shared,
			      there ? (uint32_t)(u / slabs) : s->tokens,
			      (uint32_t)(u % slabs), ratio);
		for (n = 0; n < shared->units; n += together)
			if (ratio == SPMLA_COMPRESS_MOST)
				compress_slabs(job, shared, parts, n, dim);
			else
				compress_keys(job, shared, n, dim);
		compress_report(job, shared);
		first = shared->first + COMPRESS_ITEMS;
		if (first >= s->share)
			break;
		BARRIER();
	}
}

SPMLA_KERNEL_BLOCKS(kv_compress, 4)
void
spmla_k_kv_compress(SPMLA_KERNEL_ARGS(kv_compress))
{
	LOCAL_ARRAY(compress_local, shared, 1);
	const compress_job job = {SPMLA_KERNEL_VALUES(kv_compress), 0};

	compress_run(&job, shared, (LOCAL compress_parts *)0, SPMLA_V4_DIM,
		     SPMLA_COMPRESS_OVERLAP);
}

SPMLA_KERNEL_BLOCKS(kv_compress_c128, 4)
void
spmla_k_kv_compress_c128(SPMLA_KERNEL_ARGS(kv_compress_c128))
{
	LOCAL_ARRAY(compress_local, shared, 1);
	LOCAL_ARRAY(compress_parts, parts, 1);
	const compress_job job = {SPMLA_KERNEL_VALUES(kv_compress), 0};

	compress_run(&job, shared, parts, SPMLA_V4_DIM, SPMLA_COMPRESS_MOST);
}

SPMLA_KERNEL_BLOCKS(kv_compress_index, 4)
void
spmla_k_kv_compress_index(SPMLA_KERNEL_ARGS(kv_compress_index))
{
	LOCAL_ARRAY(compress_local, shared, 1);
	const compress_job job = {SPMLA_KERNEL_VALUES(kv_compress), 0};

	compress_run(&job, shared, (LOCAL compress_parts *)0, SPMLA_INDEX_DIM,
		     SPMLA_COMPRESS_OVERLAP);
}

/* For inputs of other types, with keys of every kind, and for index keys of
 * ratio 128. One block makes a whole key. */
SPMLA_KERNEL(kv_compress_any)
void
spmla_k_kv_compress_any(SPMLA_KERNEL_ARGS(kv_compress_any))
{
	LOCAL_ARRAY(compress_local, shared, 1);
	LOCAL_ARRAY(compress_parts, parts, 1);
	const compress_job job = {SPMLA_KERNEL_VALUES(kv_compress), 1};

	/* `dim` is no constant here, so the code is there once a ratio. */
	if (s.width == SPMLA_V4_DIM || s.width == SPMLA_INDEX_DIM)
		compress_run(&job, shared, parts, s.width, SPMLA_COMPRESS_MOST);
	else
		compress_run(&job, shared, parts, s.width / 2,
			     SPMLA_COMPRESS_OVERLAP);
}

#endif
#endif
