/* SPDX-License-Identifier: Apache-2.0
 *
 * See score_cpu.h. The hard idea: e4m3 is decoded once per token (queries, into
 * scratch) and once per key (128 floats), so the loop over heads is only dot
 * products in f32.
 */
#include "spmla/platform/cpu/select/score_cpu.h"

#include "spmla/internal/fp8.h"
#include "spmla/internal/mxfp4.h"

static spmla_i_cpu_score
lay_out(const spmla_ctx *ctx, uint32_t worker, uint32_t heads)
{
	spmla_i_cpu_score s;

	s.kernels = spmla_i_cpu_kernels_of(ctx);
	s.heads = heads;
	s.padded = spmla_i_cpu_padded_heads(heads);
	s.q = spmla_i_cpu_index_scratch(ctx, worker);
	s.weights = s.q + (uint64_t)s.padded * SPMLA_INDEX_DIM;
	s.keys = s.weights + s.padded;
	return s;
}

static void
open_fnuz(const spmla_i_cpu_score *s, const uint8_t *q, const float *weights)
{
	uint32_t h, d;

	for (h = 0; h < s->padded; h++, q += SPMLA_INDEX_DIM) {
		const uint32_t is_head = h < s->heads;

		for (d = 0; d < SPMLA_INDEX_DIM; d++)
			s->keys[d] = is_head ? spmla_i_fnuz_to_f32(q[d]) : 0.0f;
		s->kernels->score_query(s, h, s->keys,
					is_head ? weights[h] : 0.0f);
	}
}

spmla_i_cpu_score
spmla_i_cpu_score_open(const spmla_ctx *ctx, uint32_t worker, uint32_t heads,
		       const uint8_t *q, const float *weights,
		       uint32_t encoding)
{
	const spmla_i_cpu_score s = lay_out(ctx, worker, heads);

	(encoding == SPMLA_E4M3_FNUZ ? open_fnuz
				     : s.kernels->score_open)(&s, q, weights);
	return s;
}

void
spmla_i_cpu_score_keys(const spmla_i_cpu_score *s, const uint8_t *codes,
		       const uint8_t *scales, uint32_t n, float *out)
{
	s->kernels->score_keys(s, codes, scales, n, out);
}

void
spmla_i_cpu_score_keys_fnuz(const spmla_i_cpu_score *s, const uint8_t *codes,
			    const uint8_t *scales, uint32_t n, float *out)
{
	enum { MOST = SPMLA_I_CPU_SCORE_KEYS, DIM = SPMLA_INDEX_DIM };
	uint32_t first, count, i;

	for (first = 0; first < n; first += count) {
		const uint8_t *from = codes + (uint64_t)first * DIM;

		count = n - first < MOST ? n - first : MOST;
		for (i = 0; i < count * DIM; i++)
			s->keys[i] = spmla_i_fnuz_to_f32(from[i]);
		s->kernels->score_values(
			s, scales + (uint64_t)first * sizeof(float), count,
			out + first);
	}
}

void
spmla_i_cpu_score_keys_tiled(const spmla_i_cpu_score *s,
			     const spmla_cache *cache, const uint8_t *page,
			     uint32_t first, uint32_t n, float *out)
{
	enum { MOST = SPMLA_I_CPU_SCORE_KEYS, DIM = SPMLA_INDEX_DIM };
	const uint32_t end = first + n, run = spmla_i_cpu_index_run(cache);
	const uint8_t *scales = page + (uint64_t)cache->entries_per_page * DIM;
	uint32_t count, i, d;

	for (; first < end; first += count, out += count) {
		count = end - first < MOST ? end - first : MOST;
		for (i = 0; i < count; i++) {
			const uint8_t *key =
				page + spmla_i_cpu_index_at(cache, first + i);

			for (d = 0; d < DIM; d++) {
				const uint8_t code =
					key[d / SPMLA_INDEX_TILE * run +
					    d % SPMLA_INDEX_TILE];

				s->keys[i * DIM + d] =
					cache->encoding == SPMLA_E4M3_FNUZ
						? spmla_i_fnuz_to_f32(code)
						: spmla_i_e4m3_to_f32(code);
			}
		}
		s->kernels->score_values(s, scales + first * sizeof(float),
					 count, out);
	}
}

/* ---- MXFP4 --------------------------------------------------------------- */

enum { GROUP = SPMLA_MXFP4_GROUP, VALUE_BYTES = SPMLA_INDEX_MXFP4_VALUE_BYTES };

/* A query or a key: 128 values out of 64 bytes and 4 scales. */
static void
decode_mxfp4(const uint8_t *codes, const uint8_t *scales, float *values)
{
	uint32_t i;

	for (i = 0; i < SPMLA_INDEX_DIM; i += 2) {
		const float scale =
			spmla_i_mxfp4_scale_value(scales[i / GROUP]);
		const uint8_t pair = codes[i / 2];

		values[i] = spmla_i_e2m1_to_f32(pair & 15u) * scale;
		values[i + 1] = spmla_i_e2m1_to_f32(pair >> 4) * scale;
	}
}

spmla_i_cpu_score
spmla_i_cpu_score_open_mxfp4(const spmla_ctx *ctx, uint32_t worker,
			     uint32_t heads, const uint8_t *q,
			     const uint8_t *scales, const float *weights)
{
	const spmla_i_cpu_score s = lay_out(ctx, worker, heads);
	uint32_t h;

	for (h = 0; h < s.padded; h++) {
		const uint64_t at = h;

		if (h < heads)
			decode_mxfp4(q + at * VALUE_BYTES,
				     scales + at * SPMLA_INDEX_MXFP4_SCALES,
				     s.keys);
		else
			memset(s.keys, 0, SPMLA_INDEX_DIM * sizeof *s.keys);
		s.kernels->score_query(&s, h, s.keys,
				       h < heads ? weights[h] : 0.0f);
	}
	return s;
}

void
spmla_i_cpu_score_keys_mxfp4(const spmla_i_cpu_score *s, const uint8_t *codes,
			     const uint8_t *scales, uint32_t n, float *out)
{
	enum { MOST = SPMLA_I_CPU_SCORE_KEYS };
	float ones[MOST];
	uint32_t first, count, i;

	for (i = 0; i < MOST; i++)
		ones[i] = 1.0f;
	for (first = 0; first < n; first += count) {
		count = n - first < MOST ? n - first : MOST;
		for (i = 0; i < count; i++) {
			const uint64_t at = (uint64_t)first + i;

			decode_mxfp4(codes + at * VALUE_BYTES,
				     scales + at * SPMLA_INDEX_MXFP4_SCALES,
				     s->keys + i * SPMLA_INDEX_DIM);
		}
		s->kernels->score_values(s, (const uint8_t *)ones, count,
					 out + first);
	}
}
