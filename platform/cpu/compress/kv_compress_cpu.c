/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_compress on the CPU: a token at a time, in its worker's INDEX_SCRATCH. The
 * hard idea is the order of sums: rows are summed 8 at a time, relative to the
 * largest score of these 8, and then these sums are scaled to the largest score
 * of all and added in a tree. So a kernel may do the eights in parallel,
 * anywhere, and give the same bits.
 */
#include "spmla/internal/mxfp4.h"
#include "spmla/platform/cpu/cache/rope_cpu.h"
#include "spmla/platform/cpu/compress/compress_cpu.h"
#include "spmla/platform/cpu/core/quant_cpu.h"

#include <math.h>
#include <string.h>

enum {
	ROPE = SPMLA_V4_ROPE,
	STEP = 8,
	PARTS = SPMLA_COMPRESS_MOST / STEP,
	COLUMNS = 16 /* a cache line of each row */
};

/* A row of a group, at its first column. A row of this call has kv and score of
 * kv_dtype, and ape to add to score. A row of the state has ape NULL: score
 * includes it, and both are f32. */
typedef struct group_row {
	const void *kv;
	const void *score;
	const float *ape;
} group_row;

/* cpu_scratch.h has its size. */
typedef struct work {
	float max[SPMLA_V4_DIM];
	float y[SPMLA_V4_DIM]; /* the key */
	/* One for each eight rows. */
	float sum[PARTS][COLUMNS];
	float acc[PARTS][COLUMNS];
	group_row rows[SPMLA_COMPRESS_MOST];
} work;

SPMLA_STATIC_ASSERT(sizeof(work) <= SPMLA_I_CPU_COMPRESS_BYTES,
		    "a worker's scratch");

static uint32_t
dim_of(const spmla_kv_compress_args *a)
{
	return spmla_i_key_dim(a->state.layout);
}

static int32_t
position_of(const spmla_kv_compress_args *a, uint64_t t)
{
	return spmla_i_cpu_position(a->positions, a->positions_dtype, t);
}

/* The token of this call that has position p of t's request, or -1. */
static int64_t
call_token(const spmla_kv_compress_args *a, uint32_t t, int32_t p)
{
	const int64_t j = (int64_t)t - (position_of(a, t) - p);

	if (a->form == SPMLA_STATE_RING && j >= 0 &&
	    a->token_row[j] == a->token_row[t] &&
	    position_of(a, (uint64_t)j) == p &&
	    (!a->context_lens || a->context_lens[j] > 0))
		return j;
	return -1;
}

/* Finds the rows of t's group for w->rows; *fault if one does not exist. */
static uint32_t
find_rows(const spmla_kv_compress_args *a, work *w, uint32_t t,
	  spmla_fault *fault)
{
	const spmla_i_cpu_states states = {
		{a->block_table, a->table_cols, a->rows, a->columns,
		 a->table_stride_elems, a->state.pages},
		a->state.entries_per_page,
		a->form == SPMLA_STATE_RING};
	const uint32_t width = spmla_i_state_width(a->state.layout);
	const uint32_t n = spmla_i_group_rows(a->ratio);
	const int32_t first = position_of(a, t) - (int32_t)n + 1;
	uint32_t i, found = 0;

	for (i = 0; i < n; i++) {
		const int32_t p = first + (int32_t)i;
		const uint32_t col = i < a->ratio ? 0 : dim_of(a);
		group_row *r = &w->rows[found];
		const float *saved;
		int64_t at;

		if (p < 0)
			continue;
		found++;
		at = call_token(a, t, p);
		if (at >= 0) {
			r->kv = spmla_i_cpu_real_at(a->kv, a->kv_dtype,
						    at * a->kv_stride_elems +
							    col);
			r->score = spmla_i_cpu_real_at(
				a->score, a->kv_dtype,
				at * a->score_stride_elems + col);
			r->ape = a->ape + (uint32_t)p % a->ratio * width + col;
			continue;
		}
		at = spmla_i_cpu_state_slot(&states, (uint32_t)a->token_row[t],
					    (uint32_t)p, fault);
		if (at < 0)
			return 0;
		saved = spmla_i_cpu_state_at(&a->state, (uint64_t)at) + col;
		r->kv = saved;
		r->score = saved + width;
		r->ape = NULL;
	}
	return found;
}

static float
score_of(const group_row *row, uint32_t dtype, uint32_t d)
{
	if (!row->ape)
		return ((const float *)row->score)[d];
	return spmla_i_cpu_real(row->score, dtype, d) + row->ape[d];
}

static float
value_of(const group_row *row, uint32_t dtype, uint32_t d)
{
	return spmla_i_cpu_real(row->kv, row->ape ? dtype : SPMLA_REAL_F32, d);
}

/* exp2((x - most) * log2 e); 0 if all scores are -inf. */
static float
weight_of(float x, float most)
{
	const float base = most == -INFINITY ? 0.0f : most;

	return exp2f((x - base) * SPMLA_I_LOG2_E);
}

/* Sums column d of up to 8 rows, relative to their largest score. `dtype` is
 * the call's, here and below. */
static void
sum_rows(const work *w, const group_row *rows, uint32_t dtype, uint32_t n,
	 uint32_t d, float *sum_part, float *acc_part)
{
	float x[STEP], largest = -INFINITY, sum = 0.0f, acc = 0.0f, part;
	uint32_t i;

	for (i = 0; i < n; i++) {
		x[i] = score_of(&rows[i], dtype, d);
		largest = x[i] > largest ? x[i] : largest;
	}
	for (i = 0; i < n; i++) {
		const float weight = weight_of(x[i], largest);

		sum += weight;
		acc += value_of(&rows[i], dtype, d) * weight;
	}
	part = weight_of(largest, w->max[d]);
	*sum_part = sum * part;
	*acc_part = acc * part;
}

/* Combines COLUMNS columns from `first` on, over n rows: 8, fewer or 128. */
static void
sum_columns(work *w, uint32_t dtype, uint32_t n, uint32_t first)
{
	uint32_t i, d, parts = 0;

	for (i = 0; i < n; i += STEP, parts++)
		for (d = 0; d < COLUMNS; d++)
			sum_rows(w, w->rows + i, dtype,
				 n - i < STEP ? n - i : STEP, first + d,
				 &w->sum[parts][d], &w->acc[parts][d]);
	for (parts /= 2; parts; parts /= 2)
		for (i = 0; i < parts; i++)
			for (d = 0; d < COLUMNS; d++) {
				w->sum[i][d] += w->sum[i + parts][d];
				w->acc[i][d] += w->acc[i + parts][d];
			}
	for (d = 0; d < COLUMNS; d++)
		w->y[first + d] = w->acc[0][d] / w->sum[0][d];
}

/* w->y = the group's key before quantisation; cos_sin is its row of the rope
 * table. */
static void
make_key(const spmla_kv_compress_args *a, work *w, uint32_t n,
	 const float *cos_sin)
{
	const uint32_t dim = dim_of(a);
	uint32_t i, d;
	float r;

	for (d = 0; d < dim; d++)
		w->max[d] = -INFINITY;
	for (i = 0; i < n; i++)
		for (d = 0; d < dim; d++) {
			const float x = score_of(&w->rows[i], a->kv_dtype, d);

			w->max[d] = x > w->max[d] ? x : w->max[d];
		}
	for (d = 0; d < dim; d += COLUMNS)
		sum_columns(w, a->kv_dtype, n, d);
	r = spmla_i_cpu_dot(w->y, w->y, dim) / (float)dim;
	r = 1.0f / sqrtf(r + a->norm_eps);
	for (d = 0; d < dim; d++)
		w->y[d] = w->y[d] * r *
			  spmla_i_cpu_real(a->norm_weight, a->norm_dtype, d);
	for (d = 0; d < dim - ROPE; d++)
		w->y[d] = spmla_i_round_bf16(w->y[d]);
	spmla_i_cpu_rope(w->y + dim - ROPE, cos_sin, SPMLA_ROPE_INTERLEAVED);
}

static void
store_bf16(uint8_t *out, const float *y, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		const uint16_t h = spmla_i_cpu_bf16_bits(y[i]);

		memcpy(out + i * sizeof h, &h, sizeof h);
	}
}

typedef void (*quantise_fn)(uint8_t *codes, const float *x, uint32_t n,
			    float scale);

static quantise_fn
quantise_of(uint32_t encoding)
{
	return encoding == SPMLA_E4M3_FNUZ ? spmla_i_cpu_quantise_fnuz
					   : spmla_i_cpu_quantise;
}

/* Writes the codes of n values with one power-of-two scale; returns the scale.
 */
static float
store_e4m3(uint8_t *out, const float *y, uint32_t n, uint32_t encoding)
{
	const float most = encoding == SPMLA_E4M3_FNUZ ? 224.0f : 448.0f;
	const float scale =
		spmla_i_pow2_up(spmla_i_cpu_amax(y, n, 1e-4f) / most);

	quantise_of(encoding)(out, y, n, scale);
	return scale;
}

/* Writes the key to an entry of a page. */
static void
store(const spmla_kv_compress_args *a, const float *y, uint8_t *page,
      uint64_t entry)
{
	enum { GROUP = SPMLA_V4_SCALE_GROUP };
	const uint64_t entries = a->cache.entries_per_page;
	uint8_t *row = page, *scales;
	float scale;
	uint32_t g;

	switch (a->cache.layout) {
	case SPMLA_LAYOUT_V4_BF16:
		store_bf16(row + entry * SPMLA_V4_BF16_BYTES, y, SPMLA_V4_DIM);
		break;
	case SPMLA_LAYOUT_V4_E4M3:
		scale = a->e4m3_scale_at ? *a->e4m3_scale_at : a->e4m3_scale;
		quantise_of(a->cache.encoding)(
			row + entry * SPMLA_V4_E4M3_BYTES, y, SPMLA_V4_DIM,
			scale);
		break;
	case SPMLA_LAYOUT_V4_FP8:
		row += entry * SPMLA_V4_VALUE_BYTES;
		scales = page + entries * SPMLA_V4_VALUE_BYTES +
			 entry * SPMLA_V4_SCALE_BYTES;
		for (g = 0; g < SPMLA_V4_SCALES; g++) {
			scale = store_e4m3(row + g * GROUP, y + g * GROUP,
					   GROUP, a->cache.encoding);
			scales[g] = (uint8_t)(spmla_i_f32_bits(scale) >> 23);
		}
		scales[SPMLA_V4_SCALES] = 0;
		store_bf16(row + SPMLA_V4_NOPE, y + SPMLA_V4_NOPE, ROPE);
		break;
	case SPMLA_LAYOUT_INDEX_FP8:
		scale = store_e4m3(row + entry * SPMLA_INDEX_DIM, y,
				   SPMLA_INDEX_DIM, a->cache.encoding);
		memcpy(page + entries * SPMLA_INDEX_DIM + entry * sizeof scale,
		       &scale, sizeof scale);
		break;
	default:
		row += entry * SPMLA_INDEX_MXFP4_VALUE_BYTES;
		scales = page + entries * SPMLA_INDEX_MXFP4_VALUE_BYTES +
			 entry * SPMLA_INDEX_MXFP4_SCALES;
		for (g = 0; g < SPMLA_INDEX_MXFP4_SCALES; g++)
			scales[g] = spmla_i_mxfp4_encode(
				row + g * SPMLA_MXFP4_GROUP / 2,
				y + g * SPMLA_MXFP4_GROUP);
	}
}

static void
compress(spmla_ctx *ctx, const spmla_kv_compress_args *a, work *w, uint32_t t,
	 uint64_t slot)
{
	const uint64_t page_entries = a->cache.entries_per_page;
	const int32_t position = position_of(a, t);
	const uint32_t row = (uint32_t)a->token_row[t];
	const float *cos_sin = NULL;
	spmla_fault fault = SPMLA_FAULT_NONE;
	uint32_t n = 0;
	float own[SPMLA_INDEX_ROPE];

	if (position >= 0)
		cos_sin = spmla_i_cpu_rope_row(
			a->cos_sin, a->cos_sin_dtype, a->cos_sin_rows,
			position - position % (int32_t)a->ratio, own);
	if (slot >= page_entries * a->cache.pages)
		fault = SPMLA_FAULT_SLOT;
	else if (!cos_sin)
		fault = SPMLA_FAULT_POSITION;
	else if (row >= a->rows)
		fault = SPMLA_FAULT_ROW; /* also if the call has all of it */
	else
		n = find_rows(a, w, t, &fault);
	if (fault != SPMLA_FAULT_NONE)
		spmla_i_cpu_fault(ctx, row < a->rows ? row : t, fault);
	if (fault == SPMLA_FAULT_PAGE)
		memset(w->y, 0, sizeof w->y);
	else if (fault == SPMLA_FAULT_NONE)
		make_key(a, w, n, cos_sin);
	else
		return;
	store(a, w->y, spmla_i_cpu_page_at(&a->cache, slot / page_entries),
	      slot % page_entries);
}

/* Makes the keys whose slots belong to the item. */
static void
compress_tokens(spmla_ctx *ctx, const void *args, uint32_t worker,
		uint32_t item)
{
	const spmla_kv_compress_args *a = args;
	const uint32_t items = spmla_i_cpu_slot_items(ctx, a->tokens);
	uint32_t t;

	for (t = 0; t < a->tokens; t++) {
		const uint64_t slot = (uint64_t)a->slot_mapping[t];
		const int32_t position = position_of(a, t);

		if (a->slot_mapping[t] < 0 || slot % items != item ||
		    (position >= 0 && ((uint32_t)position + 1) % a->ratio != 0))
			continue;
		compress(ctx, a, spmla_i_cpu_index_scratch(ctx, worker), t,
			 slot);
	}
}

void
spmla_i_cpu_kv_compress(spmla_ctx *ctx, const void *args)
{
	const spmla_kv_compress_args *a = args;

	spmla_i_cpu_for(ctx, a, spmla_i_cpu_slot_items(ctx, a->tokens),
			compress_tokens);
}
