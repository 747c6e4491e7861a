/* SPDX-License-Identifier: Apache-2.0
 *
 * The roofs of one core: bytes copied and read from memory, and fused
 * multiply-adds on registers. The hard idea: twelve independent chains hide
 * the latency of an fma and fit sixteen registers, and an empty asm keeps the
 * compiler from computing the result at compile time.
 */
#include "bench/bench.h"

#include <string.h>

enum {
	COPY_BYTES = 128 << 20,
	ROWS = 8192,     /* random, read in one go, */
	ROW_TURNS = 32,  /* others each time */
	ROWS_AHEAD = 16, /* that are asked for */
	FMA_STEPS = 100000,
	CHAINS = 12
};

typedef struct buffers {
	uint8_t *from;
	uint8_t *to;
	uint64_t sum;
	uint32_t *rows; /* [ROW_TURNS][ROWS], and ROWS_AHEAD more */
	uint32_t turn;
} buffers;

static void
copy(void *arg)
{
	const buffers *b = arg;

	memcpy(b->to, b->from, COPY_BYTES);
	__asm__ volatile("" ::: "memory");
}

#if defined(__x86_64__)
#include <immintrin.h>

/* Rows that a gather would read: all of the lines of one are asked for at once,
 * some rows ahead, for the order is known. */
__attribute__((target("avx2"))) static void
read_rows(void *arg)
{
	buffers *b = arg;
	const uint32_t *row = b->rows + b->turn++ % ROW_TURNS * ROWS;
	__m256i sum = _mm256_setzero_si256();
	uint32_t i, j;

	for (i = 0; i < ROWS; i++) {
		const uint8_t *x = b->from + (uint64_t)row[i] * BENCH_KV_ROW;
		const uint8_t *ask =
			b->from + (uint64_t)row[i + ROWS_AHEAD] * BENCH_KV_ROW;

		for (j = 0; j < BENCH_KV_ROW; j += 64)
			__builtin_prefetch(ask + j);
		for (j = 0; j + 32 <= BENCH_KV_ROW; j += 32)
			sum = _mm256_xor_si256(
				sum,
				_mm256_loadu_si256((
					const __m256i *)(const void *)(x + j)));
	}
	b->sum += (uint64_t)_mm256_extract_epi64(sum, 0);
}

/* The sums go to memory, so that they are needed. */
#define PEAK(name, target_text, type, set, fma, store, lanes)                  \
	__attribute__((target(target_text))) static void name(void *arg)       \
	{                                                                      \
		float *out = arg;                                              \
		const type a = set(0.5f);                                      \
		type b = set(0.25f), sum[CHAINS];                              \
		uint32_t i, c;                                                 \
                                                                               \
		_Pragma("GCC unroll 16") for (c = 0; c < CHAINS; c++) sum[c] = \
			set((float)c);                                         \
		for (i = 0; i < FMA_STEPS; i++) {                              \
			__asm__ volatile("" : "+x"(b));                        \
			_Pragma("GCC unroll 16") for (c = 0; c < CHAINS; c++)  \
				sum[c] = fma(sum[c], a, b);                    \
		}                                                              \
		_Pragma("GCC unroll 16") for (c = 0; c < CHAINS; c++)          \
			store(out + c * lanes, sum[c]);                        \
	}

PEAK(peak_one, "fma", __m128, _mm_set_ss, _mm_fmadd_ss, _mm_storeu_ps, 4)
PEAK(peak_avx2, "avx2,fma", __m256, _mm256_set1_ps, _mm256_fmadd_ps,
     _mm256_storeu_ps, 8)
PEAK(peak_avx512, "avx512f", __m512, _mm512_set1_ps, _mm512_fmadd_ps,
     _mm512_storeu_ps, 16)

__attribute__((target("avx2"))) static void
read_all(void *arg)
{
	buffers *b = arg;
	__m256i s0 = _mm256_setzero_si256(), s1 = s0, s2 = s0, s3 = s0;
	const __m256i *x = (const __m256i *)(const void *)b->from;
	uint32_t i;

	for (i = 0; i < COPY_BYTES / 32; i += 4) {
		s0 = _mm256_xor_si256(s0, _mm256_loadu_si256(x + i));
		s1 = _mm256_xor_si256(s1, _mm256_loadu_si256(x + i + 1));
		s2 = _mm256_xor_si256(s2, _mm256_loadu_si256(x + i + 2));
		s3 = _mm256_xor_si256(s3, _mm256_loadu_si256(x + i + 3));
	}
	s0 = _mm256_xor_si256(_mm256_xor_si256(s0, s1),
			      _mm256_xor_si256(s2, s3));
	b->sum += (uint64_t)_mm256_extract_epi64(s0, 0);
}

static void
measure_flops(bench_roofs *roofs)
{
	static void (*const run[BENCH_VARIANTS])(void *) = {peak_one, peak_avx2,
							    peak_avx512};
	static const uint32_t lanes[BENCH_VARIANTS] = {1, 8, 16};
	static float sink[CHAINS * 16];
	const int has[BENCH_VARIANTS] = {__builtin_cpu_supports("fma"),
					 __builtin_cpu_supports("avx2"),
					 __builtin_cpu_supports("avx512f")};
	uint32_t v, count;

	for (v = 0; v < BENCH_VARIANTS; v++) {
		double flops;

		if (!has[v])
			continue;
		flops = 2.0 * FMA_STEPS * CHAINS * lanes[v] /
			bench_times(run[v], sink, 0.3, &count)[0];
		if (flops > roofs->flops[v])
			roofs->flops[v] = flops;
	}
}
#else
static void
read_all(void *arg)
{
	buffers *b = arg;
	uint32_t i;
	uint64_t x;

	for (i = 0; i < COPY_BYTES; i += 8) {
		memcpy(&x, b->from + i, 8);
		b->sum ^= x;
	}
}

static void
read_rows(void *arg)
{
	buffers *b = arg;
	const uint32_t *row = b->rows + b->turn++ % ROW_TURNS * ROWS;
	uint32_t i, j;
	uint64_t x;

	for (i = 0; i < ROWS; i++)
		for (j = 0; j < BENCH_KV_ROW; j += 8) {
			memcpy(&x,
			       b->from + (uint64_t)row[i] * BENCH_KV_ROW + j,
			       8);
			b->sum ^= x;
		}
}

/* The portable code is its own roof: a . b on small arrays would be measured,
 * which says nothing. */
static void
measure_flops(bench_roofs *roofs)
{
	roofs->flops[0] = 0;
}
#endif

static void
make_buffers(buffers *b)
{
	const uint32_t count = ROW_TURNS * ROWS + ROWS_AHEAD;
	uint64_t rng = 1;
	uint32_t i;

	b->from = bench_room(COPY_BYTES);
	b->to = bench_room(COPY_BYTES);
	b->rows = bench_room(count * sizeof *b->rows);
	memset(b->from, 1, COPY_BYTES);
	memset(b->to, 2, COPY_BYTES);
	for (i = 0; i < count; i++)
		b->rows[i] = bench_next(&rng) % (COPY_BYTES / BENCH_KV_ROW);
}

void
bench_measure_roofs(bench_roofs *roofs)
{
	static buffers b;
	uint32_t count;
	double rate;

	if (!b.from)
		make_buffers(&b);
	rate = 2.0 * COPY_BYTES / bench_times(copy, &b, 1, &count)[0];
	if (rate > roofs->copy_bytes_s)
		roofs->copy_bytes_s = rate;
	rate = 1.0 * COPY_BYTES / bench_times(read_all, &b, 1, &count)[0];
	if (rate > roofs->read_bytes_s)
		roofs->read_bytes_s = rate;
	rate = 1.0 * ROWS * BENCH_KV_ROW /
	       bench_times(read_rows, &b, 1, &count)[0];
	if (rate > roofs->row_bytes_s)
		roofs->row_bytes_s = rate;
	measure_flops(roofs);
}
