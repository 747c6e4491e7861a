/* SPDX-License-Identifier: Apache-2.0
 *
 * mqa_logits with matrix instructions, for up to 64 heads. Keys are rows of A,
 * so they go from the cache to fragments without shared memory; the queries of
 * a token lie there as f16. The hard idea is the order of the 128 dims: it is
 * free as long as both sides use the same one. So 16 consecutive bytes of a key
 * are a lane's values for four k steps, or with MXFP4 for all eight, with one
 * scale. e4m3 is exact in f16, and e2m1 with its scale is exact in bf16. The
 * products are exact too; only the sums round.
 *
 * The line of work has the units of all tokens, 64 keys each. Blocks get equal
 * shares of it, wherever tokens end, so the cost depends on the live context
 * alone.
 */
#ifndef SPMLA_PLATFORM_GPU_SELECT_MQA_LOGITS_MMA_KERNEL_H
#define SPMLA_PLATFORM_GPU_SELECT_MQA_LOGITS_MMA_KERNEL_H

#include "spmla/platform/gpu/dialect/mma.h"
#include "spmla/platform/gpu/select/mqa_logits_kernel.h"

#define SPMLA_K_mqa_logits_mma(P, S)       SPMLA_K_mqa_logits(P, S)
#define SPMLA_K_mqa_logits_mxfp4_mma(P, S) SPMLA_K_mqa_logits_mxfp4(P, S)
typedef spmla_k_mqa_logits_scalars spmla_k_mqa_logits_mma_scalars;
typedef spmla_k_mqa_logits_scalars spmla_k_mqa_logits_mxfp4_mma_scalars;

enum {
	MQA_MMA_ITEMS = 128,
	MQA_MMA_TOKENS = 1024, /* the most that a launch takes */
	MQA_MMA_HEADS = 64
};

#ifdef SPMLA_GPU_KERNELS

enum {
	MQA_MMA_DIM = 128,
	MQA_MMA_UNIT = MQA_UNIT, /* keys; what mqa_logits_units counts */
	MQA_MMA_TILE = 32,       /* keys of a subgroup at a time: two of 16 */
	/* f16 of a query's head in shared memory; 8 apart from a multiple of
	 * 64, so that eight heads' 16 bytes lie in different banks. */
	MQA_MMA_Q = MQA_MMA_DIM + 8
};

/* Shared memory of a block. */
typedef struct mqa_mma_memory {
	uint64_t ends[MQA_MMA_TOKENS]; /* the line */
	uint64_t sums[G_SCAN_SUBGROUPS];
	uint16_t q[MQA_MMA_HEADS * MQA_MMA_Q]; /* f16 */
	float w[MQA_MMA_HEADS];
} mqa_mma_memory;

/* A lane's part of a tile: bytes 16t .. 16t + 15 of the keys g + 8i, i = 0..3,
 * and without MXFP4 also the bytes 64 further on. `scale` and `page` are of key
 * g + 8t, whose score the lane writes. With MXFP4, byte i of `scales` is for
 * the lane's values of key g + 8i. */
typedef struct mqa_mma_tile {
	uint32_t raw[32];
	uint32_t scales;
	float scale;
	int32_t page;
} mqa_mma_tile;

FN void
mqa_mma_fetch(PRIVATE mqa_mma_tile *tile, const PRIVATE mqa_logits_job *job,
	      uint32_t row, uint32_t first, uint32_t len, uint32_t mxfp4)
{
	const PRIVATE spmla_k_mqa_logits_scalars *s = &job->s;
	const uint32_t g = g_lane() / 4, t = g_lane() % 4;
	const g_table table = G_TABLE(job->block_table, job->table_cols, *s);
	const uint32_t bytes = mxfp4 ? MQA_MMA_DIM / 2 : MQA_MMA_DIM;
	uint32_t i, j;

	tile->scale = mxfp4 ? 1.0f : 0.0f;
	tile->scales = 0;
	tile->page = -1;
	UNROLL
	for (i = 0; i < 4; i++) {
		const uint32_t key = first + 8 * i + g;
		const uint32_t entry = key % s->page_tokens;
		int32_t page = -1;

		if (key < len)
			page = g_table_page(&table, row, key / s->page_tokens);
		if (page >= 0) {
			GLOBAL const uint8_t *at =
				job->cache +
				(uint64_t)page * s->page_stride_bytes;
			GLOBAL const uint8_t *codes =
				at + (uint64_t)entry * bytes + 16 * t;

			g_load128(codes, tile->raw + 8 * i);
			if (!mxfp4)
				g_load128(codes + 64, tile->raw + 8 * i + 4);
			at += (uint64_t)s->page_tokens * bytes;
			if (mxfp4)
				tile->scales |=
					(uint32_t)at[(uint64_t)entry * 4 + t]
					<< 8 * i;
			else if (i == t)
				tile->scale = ((GLOBAL const float *)at)[entry];
		} else {
			UNROLL
			for (j = 0; j < 8; j++)
				tile->raw[8 * i + j] = 0;
		}
		if (i == t)
			tile->page = page;
	}
}

/* Makes the tile's fragments of A, one for each half of 16 keys and each k
 * step. */
FN void
mqa_mma_convert(const PRIVATE mqa_mma_tile *tile, uint32_t a[2][8][4])
{
	uint32_t m, k;

	UNROLL
	for (m = 0; m < 2; m++) {
		UNROLL
		for (k = 0; k < 8; k++) {
			const uint32_t low = tile->raw[16 * m + k];
			const uint32_t high = tile->raw[16 * m + 8 + k];

			a[m][k][0] = g_e4m3x2_to_f16x2(low);
			a[m][k][1] = g_e4m3x2_to_f16x2(high);
			a[m][k][2] = g_e4m3x2_to_f16x2(low >> 16);
			a[m][k][3] = g_e4m3x2_to_f16x2(high >> 16);
		}
	}
}

/* The same for MXFP4. */
FN void
mqa_mma_convert_mxfp4(const PRIVATE mqa_mma_tile *tile, uint32_t a[2][8][4])
{
	uint32_t i, k;

	UNROLL
	for (i = 0; i < 4; i++) {
		UNROLL
		for (k = 0; k < 8; k += 2) {
			uint32_t x[4];

			g_e2m1x8_to_bf16(tile->raw[8 * i + k / 2],
					 tile->scales >> 8 * i & 0xffu, x);
			a[i / 2][k][i % 2] = x[0];
			a[i / 2][k][2 + i % 2] = x[1];
			a[i / 2][k + 1][i % 2] = x[2];
			a[i / 2][k + 1][2 + i % 2] = x[3];
		}
	}
}

/* The score, before its scale, of the lane's own key of the tile, g + 8t. */
FN float
mqa_mma_score(uint32_t a[2][8][4], LOCAL const uint16_t *q,
	      LOCAL const float *w, uint32_t mxfp4)
{
	const uint32_t g = g_lane() / 4, t = g_lane() % 4;
	LOCAL const uint16_t *q_lane = q + g * MQA_MMA_Q + t * 16;
	float sum[4], own;
	uint32_t m, n, p, i;

	UNROLL
	for (i = 0; i < 4; i++)
		sum[i] = 0.0f;
	UNROLL
	for (n = 0; n < MQA_MMA_HEADS / 8; n++) {
		float c[2][4];

		UNROLL
		for (i = 0; i < 8; i++)
			c[i / 4][i % 4] = 0.0f;
		/* Two k steps: 8 values of a row. */
		UNROLL
		for (p = 0; p < 4; p++) {
			uint32_t b[4];

			g_local_load128(q_lane + n * 8 * MQA_MMA_Q +
						p / 2 * 64 + p % 2 * 8,
					b);
			UNROLL
			for (m = 0; m < 2; m++) {
				UNROLL
				for (i = 0; i < 2; i++)
					if (mxfp4)
						g_mma_bf16(c[m],
							   a[m][2 * p + i],
							   b + 2 * i);
					else
						g_mma_f16(c[m], a[m][2 * p + i],
							  b + 2 * i);
			}
		}
		/* relu(x) is x where x > 0, else 0, also for a NaN. */
		UNROLL
		for (i = 0; i < 8; i++) {
			const float x = c[i / 4][i % 4];
			const float weight = w[n * 8 + 2 * t + i % 2];

			sum[i / 2] += (x > 0.0f ? x : 0.0f) * weight;
		}
	}
	own = 0.0f;
	UNROLL
	for (i = 0; i < 4; i++) {
		sum[i] += g_shuffle_xor_f(sum[i], 1);
		sum[i] += g_shuffle_xor_f(sum[i], 2);
		own = i == t ? sum[i] : own;
	}
	return own;
}

/* Loads a token's queries, as f16, and weights. Missing heads are zeros. */
FN void
mqa_mma_load_q(GLOBAL const uint8_t *q, GLOBAL const float *weights,
	       uint32_t heads, LOCAL uint16_t *q16, LOCAL float *w)
{
	const uint32_t aligned = ((uint64_t)q & 3u) == 0;
	uint32_t i, j;

	for (i = g_item(); i < MQA_MMA_HEADS * MQA_MMA_DIM / 4;
	     i += MQA_MMA_ITEMS) {
		const uint32_t head = i / (MQA_MMA_DIM / 4);
		const uint32_t d = i % (MQA_MMA_DIM / 4) * 4;
		LOCAL uint32_t *to =
			(LOCAL uint32_t *)(q16 + head * MQA_MMA_Q + d);
		GLOBAL const uint8_t *from = q + head * MQA_MMA_DIM + d;
		uint32_t codes = 0;

		if (head < heads && aligned)
			codes = *(GLOBAL const uint32_t *)from;
		else if (head < heads)
			for (j = 0; j < 4; j++)
				codes |= (uint32_t)from[j] << 8 * j;
		to[0] = g_e4m3x2_to_f16x2(codes);
		to[1] = g_e4m3x2_to_f16x2(codes >> 16);
	}
	for (i = g_item(); i < MQA_MMA_HEADS; i += MQA_MMA_ITEMS)
		w[i] = i < heads ? weights[i] : 0.0f;
}

/* The same for MXFP4, as bf16. The 32 values that lane t multiplies lie where
 * they lie for e4m3. */
FN void
mqa_mma_load_mxfp4(GLOBAL const uint8_t *q, GLOBAL const uint32_t *q_scales,
		   GLOBAL const float *weights, uint32_t heads,
		   LOCAL uint16_t *q16, LOCAL float *w)
{
	const uint32_t aligned = ((uint64_t)q & 3u) == 0;
	const uint32_t words = MQA_MMA_DIM / 8;
	uint32_t i;

	for (i = g_item(); i < MQA_MMA_HEADS * words; i += MQA_MMA_ITEMS) {
		const uint32_t head = i / words, t = i % words / 4, p = i % 4;
		uint32_t codes = 0, scales = 0, x[4];

		if (head < heads) {
			codes = mqa_word(q + 4 * i, aligned);
			scales = q_scales[head];
		}
		g_e2m1x8_to_bf16(codes, scales >> 8 * t & 0xffu, x);
		g_local_store128(q16 + head * MQA_MMA_Q + p / 2 * 64 + t * 16 +
					 p % 2 * 8,
				 x);
	}
	for (i = g_item(); i < MQA_MMA_HEADS; i += MQA_MMA_ITEMS)
		w[i] = i < heads ? weights[i] : 0.0f;
}

/* The queries of a token, of either layout. */
FN void
mqa_mma_load(const PRIVATE mqa_logits_job *job, uint32_t token, uint32_t mxfp4,
	     LOCAL uint16_t *q16, LOCAL float *w)
{
	const uint32_t heads = job->s.heads;
	const uint64_t first = (uint64_t)token * heads;

	if (mxfp4)
		mqa_mma_load_mxfp4(job->q + first * (MQA_MMA_DIM / 2),
				   job->q_scales + first, job->weights + first,
				   heads, q16, w);
	else
		mqa_mma_load_q(job->q + first * MQA_MMA_DIM,
			       job->weights + first, heads, q16, w);
}

/* Makes the line of units of all tokens: ends[t] is how many units tokens 0 ..
 * t have. Returns the total. */
FN uint64_t
mqa_mma_line(const PRIVATE mqa_logits_job *job, LOCAL uint64_t *ends,
	     LOCAL uint64_t *sums)
{
	uint64_t total = 0, all;
	uint32_t first;

	for (first = 0; first < job->s.tokens; first += MQA_MMA_ITEMS) {
		const uint32_t t = first + g_item();
		const uint32_t units =
			t < job->s.tokens ? mqa_logits_units(job, t) : 0;
		const uint64_t before =
			g_scan_sum(units, MQA_MMA_ITEMS, sums, &all);

		if (t < job->s.tokens)
			ends[t] = total + before + units;
		total += all;
	}
	BARRIER();
	return total;
}

/* The kernel, of either layout; `mxfp4` is a constant. */
FN void
mqa_logits_mma_all(const PRIVATE mqa_logits_job *job, uint32_t mxfp4,
		   LOCAL mqa_mma_memory *mem)
{
	const PRIVATE spmla_k_mqa_logits_scalars *s = &job->s;
	const uint32_t subgroups = MQA_MMA_ITEMS / g_width();
	const uint32_t subgroup = g_item() / g_width();
	const uint32_t g = g_lane() / 4, lane_t = g_lane() % 4;
	LOCAL uint64_t *ends = mem->ends;
	const uint64_t total = mqa_mma_line(job, ends, mem->sums);
	const uint64_t last = total * (g_block() + 1) / g_blocks();
	uint64_t unit = total * g_block() / g_blocks();
	uint32_t token = 0;

	while (unit < last) {
		uint32_t stop, len, row, tile;
		uint64_t begin, end;
		mqa_mma_tile keys;

		token = g_first_above64(ends, token, s->tokens, unit);
		begin = token ? ends[token - 1] : 0;
		end = ends[token] < last ? ends[token] : last;
		len = mqa_row_len(job->context_lens[token], s->row_stride);
		row = (uint32_t)job->token_row[token];
		BARRIER(); /* nobody reads the last token's queries */
		mqa_mma_load(job, token, mxfp4, mem->q, mem->w);
		tile = (uint32_t)(unit - begin) * MQA_MMA_UNIT +
		       subgroup * MQA_MMA_TILE;
		stop = (uint32_t)(end - begin) * MQA_MMA_UNIT;
		stop = stop < len ? stop : len;
		mqa_mma_fetch(&keys, job, row, tile, stop, mxfp4);
		BARRIER();
		for (; tile < stop; tile += subgroups * MQA_MMA_TILE) {
			const uint32_t key = tile + 8 * lane_t + g;
			const int32_t page = keys.page;
			float score = keys.scale;
			uint32_t a[2][8][4];

			if (mxfp4)
				mqa_mma_convert_mxfp4(&keys, a);
			else
				mqa_mma_convert(&keys, a);
			mqa_mma_fetch(&keys, job, row,
				      tile + subgroups * MQA_MMA_TILE, stop,
				      mxfp4);
			score *= mqa_mma_score(a, mem->q, mem->w, mxfp4);
			if (key < stop && page < 0) {
				score = G_MINUS_INF;
				if (key % s->page_tokens == 0)
					g_fault(job->fault_state,
						job->fault_status, row,
						G_FAULT_PAGE);
			}
			if (key < stop)
				job->logits[mqa_row_start(job->row_starts,
							  s->row_stride,
							  token) +
					    key] = score;
		}
		unit = end;
	}
}

SPMLA_KERNEL(mqa_logits_mma)
void
spmla_k_mqa_logits_mma(SPMLA_KERNEL_ARGS(mqa_logits_mma))
{
	LOCAL_ARRAY(mqa_mma_memory, mem, 1);
	const mqa_logits_job job = {SPMLA_KERNEL_VALUES(mqa_logits), 0, 0};

	mqa_logits_mma_all(&job, 0, mem);
}

SPMLA_KERNEL(mqa_logits_mxfp4_mma)
void
spmla_k_mqa_logits_mxfp4_mma(SPMLA_KERNEL_ARGS(mqa_logits_mxfp4_mma))
{
	LOCAL_ARRAY(mqa_mma_memory, mem, 1);
	const mqa_logits_job job = {SPMLA_KERNEL_VALUES(mqa_logits), q_scales,
				    0};

	mqa_logits_mma_all(&job, 1, mem);
}

#endif
#endif
