/* SPDX-License-Identifier: Apache-2.0
 *
 * See road_rig.h: what has to come out.
 */
#include "tests/ops/attend/road_rig.h"
#include "tests/reference/reference_v4.h"

#include <check.h>
#include <math.h>
#include <string.h>

enum { TOKEN_ELEMS = ROAD_HEADS * ROAD_DIM };

static const double softmax_scale = (double)0.0441941738f;

/* What an operation may be off: its header's numbers. */
typedef struct bound {
	double out;
	double out_part; /* of the exact value */
	double lse_part;
} bound;

static void
add_key(road_rig *r, uint32_t id, uint32_t is_compressed, uint32_t n,
	uint32_t at)
{
	uint8_t values[REF_V4_ROW_BYTES], scales[REF_V4_SCALE_BYTES];

	ck_assert_uint_lt(at, ROAD_WIDTH);
	road_key(id, is_compressed, n, values, scales);
	ref_v4_read_row(r->rows + (uint64_t)at * ROAD_DIM, values, scales);
}

/* The compressed keys of a token that has n of them: the best by a full sort,
 * or all. */
static uint32_t
add_compressed(road_rig *r, uint32_t id, uint32_t position, uint32_t n)
{
	float scores[ROAD_SCORES];
	double exact[ROAD_SCORES];
	int32_t best[ROAD_WIDTH];
	uint32_t i, count = n;

	ck_assert_uint_le(n, ROAD_SCORES);
	road_scores(id, position, scores, n);
	for (i = 0; i < n; i++) {
		exact[i] = (double)scores[i];
		best[i] = (int32_t)i;
	}
	if (r->shape.ratio == 4)
		count = ref_select(&r->work, exact, n, r->shape.topk, best);
	for (i = 0; i < count; i++)
		add_key(r, id, 1, (uint32_t)best[i], i);
	return count;
}

/* r->rows of a token; returns how many. */
static uint32_t
rows_of(road_rig *r, const road_request *q, uint32_t position)
{
	const uint32_t window = r->shape.window;
	uint32_t p = position + 1 > window ? position + 1 - window : 0;
	uint32_t n = 0;

	if (r->shape.ratio > 1)
		n = add_compressed(r, q->id, position,
				   (position + 1) / r->shape.ratio);
	for (p = p < q->replay ? q->replay : p; p <= position; p++)
		add_key(r, q->id, 0, p, n++);
	return n;
}

/* The largest sum of |terms| of a score. */
static double
largest(const road_rig *r, const uint16_t *q, uint32_t n)
{
	double most = 0;
	uint32_t i, d;

	for (i = 0; i < n; i++) {
		double sum = 0;

		for (d = 0; d < ROAD_DIM; d++)
			sum += fabs(ref_bf16_value(q[d]) *
				    r->rows[(uint64_t)i * ROAD_DIM + d]);
		most = fmax(most, sum);
	}
	return most * softmax_scale;
}

static void
check_head(const road_rig *r, const road_result *got, uint32_t t, uint32_t h,
	   uint32_t n, const bound *b)
{
	static ref_attend_result want;
	static double probs[ROAD_WIDTH];
	const uint32_t at = t * ROAD_HEADS + h;
	const uint16_t *q = r->q + (uint64_t)at * ROAD_DIM;
	const double lse = (double)got->lse[at];
	double off;
	uint32_t d;

	ref_v4_attend(q, r->rows, n, softmax_scale, &r->sink[h], probs, &want);
	off = fabs(lse - want.lse);
	ck_assert_msg(off <= 1e-6 + b->lse_part * fabs(want.lse) ||
			      off <= 0x1p-18 * largest(r, q, n),
		      "token %u (%d of request %d) head %u lse: got %.9g, want "
		      "%.9g",
		      t, r->positions[t], r->req_id[t], h, lse, want.lse);
	for (d = 0; d < ROAD_DIM; d++) {
		const double x = want.out[d];
		const double value =
			ref_bf16_value(got->out[(uint64_t)at * ROAD_DIM + d]);

		/* A sixteenth more for sums in f32. */
		off = fabs(value - x);
		ck_assert_msg(
			off <= b->out + b->out_part * fabs(x) ||
				off <= 0x1.1p-8 * (fabs(x) + want.magnitude[d]),
			"token %u (%d of request %d) head %u dim %u: got "
			"%g, want %g",
			t, r->positions[t], r->req_id[t], h, d, value, x);
	}
}

static void
check(road_rig *r, const road_result *got, const bound *b)
{
	uint32_t q, j, h, t = 0;

	for (q = 0; q < r->requests; q++)
		for (j = 0; j < r->request[q].tokens; j++, t++) {
			const road_request *of = &r->request[q];
			const uint32_t n =
				rows_of(r, of, of->seq - of->tokens + j);

			for (h = 0; h < ROAD_HEADS; h++)
				check_head(r, got, t, h, n, b);
		}
}

void
road_check_gathered(road_rig *r, const road_result *got)
{
	static const bound prefill = {8e-4, 3.01 / 128, 2.01 / 65536};

	check(r, got, &prefill);
}

void
road_check_paged(road_rig *r, const road_result *got)
{
	static const bound decode = {1e-3, 2.01 / 128, 8.01 / 65536};

	check(r, got, &decode);
}

void
road_expect_same(const road_result *a, uint32_t first_a, const road_result *b,
		 uint32_t first_b, uint32_t count)
{
	ck_assert_mem_eq(a->out + first_a * TOKEN_ELEMS,
			 b->out + first_b * TOKEN_ELEMS,
			 count * TOKEN_ELEMS * 2u);
	ck_assert_mem_eq(a->lse + first_a * ROAD_HEADS,
			 b->lse + first_b * ROAD_HEADS,
			 count * ROAD_HEADS * 4u);
}
