/* SPDX-License-Identifier: Apache-2.0
 *
 * The scalar inner loops, plain C: the oracle of the vector loops in
 * vector_kernels.h. kernels_cpu.h defines each function.
 */
#include <float.h>
#include <math.h>

#include "spmla/platform/cpu/core/kernels_cpu.h"
#include "spmla/platform/cpu/core/quant_cpu.h"

static void
dequantise(const uint8_t *codes, uint32_t n, float scale, float *values)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		values[i] = spmla_i_e4m3_to_f32(codes[i]) * scale;
}

static void
load_bf16(const uint8_t *bytes, uint32_t n, float *values)
{
	uint16_t half;
	uint32_t i;

	for (i = 0; i < n; i++) {
		memcpy(&half, bytes + i * sizeof half, sizeof half);
		values[i] = spmla_i_bf16_to_f32(half);
	}
}

/* n e4m3 codes as f32, exact. */
static void
decode_e4m3(const uint8_t *codes, uint32_t n, float *values)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		values[i] = spmla_i_e4m3_to_f32(codes[i]);
}

/* ---- Index scores -------------------------------------------------------- */

static void
score_open(const spmla_i_cpu_score *s, const uint8_t *q, const float *weights)
{
	decode_e4m3(q, s->heads * SPMLA_INDEX_DIM, s->q);
	memcpy(s->weights, weights, s->heads * sizeof *weights);
}

/* The score of one key. Heads are summed like the terms of a dot product, in 16
 * lanes and their tree. For 128 heads a term is rounded 24 times: 11 times in
 * the dot product, once by the weight, 7 + 4 times in the sum, and once by the
 * scale. */
static float
score_key(const spmla_i_cpu_score *s, const float *key, float scale)
{
	float sum[SPMLA_I_LANES] = {0};
	uint32_t h;

	for (h = 0; h < s->heads; h++) {
		const float x =
			spmla_i_cpu_dot(s->q + (uint64_t)h * SPMLA_INDEX_DIM,
					key, SPMLA_INDEX_DIM);

		sum[h % SPMLA_I_LANES] += (x > 0.0f ? x : 0.0f) * s->weights[h];
	}
	return scale * spmla_i_cpu_tree(sum);
}

static void
score_query(const spmla_i_cpu_score *s, uint32_t h, const float *q,
	    float weight)
{
	memcpy(s->q + (uint64_t)h * SPMLA_INDEX_DIM, q,
	       SPMLA_INDEX_DIM * sizeof *q);
	s->weights[h] = weight;
}

static void
score_values(const spmla_i_cpu_score *s, const uint8_t *scales, uint32_t n,
	     float *out)
{
	float scale;
	uint32_t i;

	for (i = 0; i < n; i++) {
		memcpy(&scale, scales + i * sizeof scale, sizeof scale);
		out[i] = score_key(s, s->keys + i * SPMLA_INDEX_DIM, scale);
	}
}

static void
score_keys(const spmla_i_cpu_score *s, const uint8_t *codes,
	   const uint8_t *scales, uint32_t n, float *out)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		decode_e4m3(codes + (uint64_t)i * SPMLA_INDEX_DIM,
			    SPMLA_INDEX_DIM, s->keys);
		score_values(s, scales + (uint64_t)i * sizeof(float), 1,
			     out + i);
	}
}

/* ---- Attention ----------------------------------------------------------- */

/* o += p * v */
static void
add_scaled(float *restrict o, float p, const float *restrict v)
{
	uint32_t d;

	for (d = 0; d < SPMLA_MLA_LATENT; d++)
		o[d] += p * v[d];
}

/* One head's step of the online softmax. */
static void
attend_head(const spmla_i_cpu_attend *w, uint32_t head, uint32_t count)
{
	const float *q = w->q + (uint64_t)head * w->dim;
	float *o = w->o + (uint64_t)head * SPMLA_MLA_LATENT;
	float *p = w->p + (uint64_t)head * SPMLA_I_CPU_BLOCK_KEYS;
	float block = -FLT_MAX, max = w->max[head];
	float rescale, share, sum;
	uint32_t i, d;

	for (i = 0; i < count; i++) {
		p[i] = spmla_i_cpu_dot(q, spmla_i_cpu_attend_key(w, i), w->dim);
		block = p[i] > block ? p[i] : block;
	}
	max = block > max ? block : max;
	rescale = exp2f((w->max[head] - max) * w->c);
	share = exp2f((block - max) * w->c);
	sum = w->sum[head] * rescale;
	if (rescale != 1.0f)
		for (d = 0; d < SPMLA_MLA_LATENT; d++)
			o[d] *= rescale;
	for (i = 0; i < count; i++) {
		const float x = exp2f((p[i] - block) * w->c);

		sum += x * share;
		add_scaled(o, spmla_i_round_bf16(x) * share,
			   spmla_i_cpu_attend_key(w, i));
	}
	w->max[head] = max;
	w->sum[head] = sum;
}

static void
attend_block(const spmla_i_cpu_attend *w, uint32_t count)
{
	uint32_t h;

	for (h = 0; h < w->heads; h++)
		attend_head(w, h, count);
}

static void
attend_divide(const float *o, float total, uint16_t *out)
{
	uint32_t d;

	for (d = 0; d < SPMLA_MLA_LATENT; d++)
		out[d] = spmla_i_f32_to_bf16(o[d] / total);
}

/* ---- Projections --------------------------------------------------------- */

/* Columns at a time: the sums of all lanes fit a small stack, and a row of the
 * matrix is read in pieces of one direction. */
enum { COLUMNS = 8 };

/* out[0..7] = bf16(sum over i < n of x[i] * w[i][0..7]) */
static void
project_columns(const uint16_t *x, const uint16_t *w, int64_t w_stride_elems,
		uint32_t n, uint16_t *out)
{
	float sums[SPMLA_I_LANES][COLUMNS] = {{0}};
	uint32_t i, j, step;

	for (i = 0; i < n; i++) {
		const float factor = spmla_i_bf16_to_f32(x[i]);
		const uint16_t *row = w + i * w_stride_elems;
		float *sum = sums[i % SPMLA_I_LANES];

		for (j = 0; j < COLUMNS; j++)
			sum[j] += factor * spmla_i_bf16_to_f32(row[j]);
	}
	for (step = SPMLA_I_LANES / 2; step > 0; step /= 2)
		for (i = 0; i < step; i++)
			for (j = 0; j < COLUMNS; j++)
				sums[i][j] += sums[i + step][j];
	for (j = 0; j < COLUMNS; j++)
		out[j] = spmla_i_f32_to_bf16(sums[0][j]);
}

static void
project(const spmla_i_cpu_project *p)
{
	uint32_t r, j;

	for (r = 0; r < p->rows; r++)
		for (j = 0; j < p->columns; j += COLUMNS)
			project_columns(p->x + r * p->x_stride_elems, p->w + j,
					p->w_stride_elems, p->n,
					p->out + r * p->out_stride_elems + j);
}

/* ---- Parts of o_group_proj ------------------------------------------------ */

enum { PART_LANES = 8, PART_LANE = 16, PART_HALF = 64 };

/* The values are decoded half a part at a time: a small stack. Inlined, they
 * would lie on the caller's stack beside x. */
static float __attribute__((noinline))
part_sum(const float *x, const uint8_t *w, uint32_t value_bytes)
{
	float y[PART_HALF], lane[PART_LANES];
	uint32_t first, i, j, step;

	for (first = 0; first < SPMLA_I_CPU_PART; first += PART_HALF) {
		if (value_bytes == 1)
			decode_e4m3(w + first, PART_HALF, y);
		else
			load_bf16(w + 2 * first, PART_HALF, y);
		for (j = 0; j < PART_HALF / PART_LANE; j++) {
			const float *a = x + first + j * PART_LANE;
			const float *b = y + j * PART_LANE;
			float sum = 0.0f;

			for (i = 0; i < PART_LANE; i++)
				sum += a[i] * b[i];
			lane[first / PART_LANE + j] = sum;
		}
	}
	for (step = PART_LANES / 2; step > 0; step /= 2)
		for (i = 0; i < step; i++)
			lane[i] += lane[i + step];
	return lane[0];
}

static void
part_bf16(const uint8_t *from, const uint8_t *w, uint64_t row_bytes,
	  float *sums)
{
	float x[SPMLA_I_CPU_PART];
	uint32_t d;

	load_bf16(from, SPMLA_I_CPU_PART, x);
	for (d = 0; d < SPMLA_I_CPU_PART_COLUMNS; d++)
		sums[d] = part_sum(x, w + d * row_bytes, 2);
}

static void
part_e4m3(const uint8_t *from, const uint8_t *w, uint64_t row_bytes,
	  float *sums)
{
	float x[SPMLA_I_CPU_PART];
	uint32_t d;

	decode_e4m3(from, SPMLA_I_CPU_PART, x);
	for (d = 0; d < SPMLA_I_CPU_PART_COLUMNS; d++)
		sums[d] = part_sum(x, w + d * row_bytes, 1);
}

const spmla_i_cpu_kernels spmla_i_cpu_scalar = {
	"scalar",         dequantise,           load_bf16,     score_open,
	score_keys,       attend_block,         attend_divide, project,
	score_query,      score_values,         part_bf16,     part_e4m3,
	spmla_i_cpu_amax, spmla_i_cpu_quantise,
};
