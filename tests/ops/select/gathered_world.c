/* SPDX-License-Identifier: Apache-2.0
 *
 * See gathered_world.h.
 */
#include "tests/ops/select/gathered_world.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/reference/reference.h"

enum { PAD = 3, ELEMS = GATHERED_TOKENS * GATHERED_STRIDE };

static uint8_t
random_code(uint64_t *rng)
{
	const uint8_t code = (uint8_t)rng_next(rng);

	return (code & 0x7f) == REF_E4M3_NAN ? code - 1 : code;
}

void
gathered_open(gathered_world *w, uint32_t heads, uint32_t form)
{
	static const int32_t starts[GATHERED_TOKENS] = {10, 0, 45, 89};
	static const int32_t ends[GATHERED_TOKENS] = {74, 90, 45, 90};
	uint64_t rng = test_seed() + heads * 10 + form;
	uint32_t i;

	memset(w, 0, sizeof *w);
	w->q = test_alloc(GATHERED_TOKENS * heads * 128, 0);
	w->weights = test_alloc(GATHERED_TOKENS * (heads + PAD) * 4, 0xFF);
	w->k = test_alloc(GATHERED_KEYS * 128, 0);
	w->k_scales = test_alloc(GATHERED_KEYS * 4, 0);
	w->logits = test_alloc(ELEMS * 4, 0);
	for (i = 0; i < GATHERED_TOKENS * heads * 128; i++)
		w->q[i] = random_code(&rng);
	for (i = 0; i < GATHERED_TOKENS * heads; i++)
		w->weights[i / heads * (heads + PAD) + i % heads] =
			rng_float(&rng);
	for (i = 0; i < GATHERED_KEYS * 128; i++)
		w->k[i] = random_code(&rng);
	for (i = 0; i < GATHERED_KEYS; i++)
		w->k_scales[i] = ldexpf(1, (int)rng_below(&rng, 9) - 8);
	memcpy(w->starts, starts, sizeof starts);
	memcpy(w->ends, ends, sizeof ends);
	w->a = (spmla_mqa_logits_gathered_args){
		.struct_bytes = sizeof w->a,
		.tokens = GATHERED_TOKENS,
		.heads = heads,
		.keys = GATHERED_KEYS,
		.form = form,
		.columns = 100,
		.q = w->q,
		.weights = w->weights,
		.weights_stride_elems = heads + PAD,
		.k = w->k,
		.k_scales = w->k_scales,
		.starts = w->starts,
		.ends = w->ends,
		.logits = w->logits,
		.logits_stride_elems = GATHERED_STRIDE};
}

void
gathered_close(gathered_world *w)
{
	free(w->q);
	free(w->weights);
	free(w->k);
	free(w->k_scales);
	free(w->logits);
}

float *
gathered_row(const gathered_world *w, uint32_t token)
{
	return w->logits + token * w->a.logits_stride_elems;
}

/* What a column of a token's row has to be: a key (>= 0), or one of these. */
enum { UNTOUCHED = -1, MINUS_INF = -2 };

static int64_t
content(const spmla_mqa_logits_gathered_args *a, uint32_t t, int64_t column)
{
	const int64_t start = a->starts[t], end = a->ends[t], keys = a->keys;
	const int bad = start < 0 || start > keys || end < 0 || end > keys;
	int64_t key = column;

	if (column >= (int64_t)a->columns)
		return UNTOUCHED;
	if (a->form == SPMLA_LOGITS_COMPRESSED) {
		if (end - start > (int64_t)a->columns)
			return UNTOUCHED;
		key += start;
	}
	if (!bad && key >= start && key < end)
		return key;
	return a->form == SPMLA_LOGITS_CLEAN ? MINUS_INF : UNTOUCHED;
}

/* One score against the reference. */
static void
check_score(const spmla_mqa_logits_gathered_args *a, uint32_t t, int64_t n,
	    ref_sums sums, float got)
{
	static double q[GATHERED_HEADS * 128], weights[GATHERED_HEADS];
	const ref_index_key *found;
	ref_index_key key;
	double want, tolerance;
	uint32_t i;

	if (a->k_scales[n] == -INFINITY) { /* a missing key */
		ck_assert_float_eq(got, -INFINITY);
		return;
	}
	for (i = 0; i < a->heads * 128; i++)
		q[i] = ref_e4m3_value(a->q[t * a->heads * 128 + i]);
	for (i = 0; i < a->heads; i++)
		weights[i] = a->weights[t * a->weights_stride_elems + i];
	for (i = 0; i < 128; i++)
		key.value[i] = ref_e4m3_value(a->k[n * 128 + i]);
	key.scale = a->k_scales[n];
	found = &key;
	ref_logits(q, weights, a->heads, &found, 1, sums, &want, &tolerance);
	if (isnan(want))
		ck_assert_float_nan(got);
	else
		ck_assert_msg(got == want || fabs(got - want) <= tolerance,
			      "token %u key %d: got %.9g, want %.9g +- %g", t,
			      (int)n, got, want, tolerance);
}

void
gathered_check(fixture *f, const gathered_world *w)
{
	const spmla_mqa_logits_gathered_args *a = &w->a;
	const ref_sums sums =
		a->heads <= 64 && fixture_cuts(f) ? REF_SUMS_CUT : REF_SUMS_F32;
	uint32_t t, i;

	memset(w->logits, 0x5A, ELEMS * sizeof *w->logits);
	ck_assert_int_eq(spmla_mqa_logits_gathered(f->ctx, a, NULL), SPMLA_OK);
	for (i = 0; i < ELEMS; i++) {
		const int64_t column = i % GATHERED_STRIDE;
		int64_t what = UNTOUCHED;

		t = i / GATHERED_STRIDE;
		if (t < a->tokens)
			what = content(a, t, column);
		if (what == UNTOUCHED)
			ck_assert_mem_eq(&w->logits[i], "\x5A\x5A\x5A\x5A", 4);
		else if (what == MINUS_INF)
			ck_assert_float_eq(w->logits[i], -INFINITY);
		else
			check_score(a, t, what, sums, w->logits[i]);
	}
}
