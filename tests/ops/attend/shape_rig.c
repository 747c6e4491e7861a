/* SPDX-License-Identifier: Apache-2.0
 *
 * See shape_rig.h.
 */
#include "tests/ops/attend/shape_rig.h"
#include "spmla/internal/few.h"
#include "tests/harness/rng.h"
#include "tests/harness/v32_rig.h"
#include "tests/reference/reference.h"

#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	LATENT = 512,
	ENTRIES = 64, /* of a page */
	THREADS = 32,
	POOL = 4 /* caches have rows for so many tokens */
};

/* The size of the values of q and of ordinary keys; the size of the needle's. A
 * score of the needle is 4 * dim / 8 * softmax_scale, 20 and more; others are
 * small. */
static const float q_size = 0.125f, needle_size = 4.0f;

/* ---- Keys ---------------------------------------------------------------- */

/* The sign that all queries have in dimension d. */
static float
sign_of(uint32_t d)
{
	return d * 2654435761u & 0x10000u ? 1.0f : -1.0f;
}

/* A small e4m3 number that is no NaN, and the needle's. */
static uint8_t
draw_code(uint64_t *rng, uint32_t is_needle, uint32_t d)
{
	if (is_needle)
		return sign_of(d) > 0 ? 0x48 : 0xc8;
	return (uint8_t)(rng_next(rng) & 0xbf);
}

static uint16_t
draw_half(uint64_t *rng, uint32_t is_needle, uint32_t d)
{
	return test_bf16(is_needle ? needle_size * sign_of(d) : rng_float(rng));
}

/* Writes row `slot`, and what it means to k. */
static void
put_row(const spmla_cache *c, uint32_t slot, uint32_t is_needle, float *k,
	uint64_t *rng)
{
	const uint32_t v4 = c->layout == SPMLA_LAYOUT_V4_FP8;
	const uint32_t nope = v4 ? 448 : 512, entry = slot % ENTRIES;
	uint8_t *page =
		(uint8_t *)c->base + slot / ENTRIES * c->page_stride_bytes;
	uint8_t *row = page + entry * (v4 ? 576 : 656);
	uint8_t *rope = row + (v4 ? 448 : 528);
	uint32_t i;

	for (i = 0; i < nope; i++) {
		row[i] = draw_code(rng, is_needle, i);
		k[i] = (float)ref_e4m3_value(row[i]);
	}
	for (i = 0; i < 64; i++) {
		const uint16_t x = draw_half(rng, is_needle, nope + i);

		memcpy(rope + 2 * i, &x, sizeof x);
		k[nope + i] = test_bf16_value(x);
	}
	if (v4) {
		memset(page + ENTRIES * 576 + entry * 8, 127, 8);
	} else {
		const float ones[4] = {1.0f, 1.0f, 1.0f, 1.0f};

		memcpy(row + 512, ones, sizeof ones);
	}
}

/* A cache of rows [0, rows), the last one the needle. */
static spmla_cache
make_cache(uint32_t layout, uint32_t rows, float *k, uint32_t dim,
	   uint64_t *rng)
{
	spmla_cache c = SPMLA_CACHE_INIT;
	uint32_t i;

	c.layout = layout;
	c.entries_per_page = ENTRIES;
	c.pages = (rows + ENTRIES - 1) / ENTRIES;
	c.page_stride_bytes =
		(spmla_layout_page_bytes(layout, ENTRIES) + 575) / 576 * 576;
	c.base = test_alloc(c.pages * c.page_stride_bytes, 0xFF);
	for (i = 0; i < rows; i++)
		put_row(&c, i, i == rows - 1, k + (uint64_t)i * dim, rng);
	return c;
}

/* Slots of a list, without the needle, none twice in a row of them. */
static int32_t *
draw_slots_of(uint32_t tokens, uint32_t n, uint32_t rows, uint64_t *rng)
{
	int32_t *slots = test_alloc((uint64_t)tokens * n * sizeof *slots, 0);
	uint32_t t, i;

	for (t = 0; t < tokens; t++) {
		/* Every third one from anywhere on, which 3 does not divide. */
		const uint32_t count = (rows - 1) % 3 ? rows - 1 : rows - 2;
		const uint32_t first = rng_below(rng, count);

		for (i = 0; i < n; i++)
			slots[t * n + i] =
				(int32_t)((first + 3 * (uint64_t)i) % count);
	}
	return slots;
}

void
shape_open(shape_rig *r, fixture *f, uint32_t layout, uint32_t heads,
	   uint32_t first, uint32_t second, uint32_t tokens)
{
	const uint64_t results = (uint64_t)tokens * heads;
	uint64_t rng = test_seed() + heads + first, i;
	spmla_decode_parts by = SPMLA_DECODE_PARTS_INIT;
	spmla_sparse_decode_args *a = &r->a;
	uint32_t n;

	memset(r, 0, sizeof *r);
	r->dim = layout == SPMLA_LAYOUT_V4_FP8 ? 512 : 576;
	r->keys[0] = first;
	r->keys[1] = second;
	r->rows = POOL * first + 1;
	r->all = r->rows + (second ? POOL * second + 1 : 0);
	r->k = malloc((uint64_t)r->all * r->dim * sizeof *r->k);
	r->want = malloc(results * LATENT * sizeof *r->want);
	r->spread = malloc(results * LATENT * sizeof *r->spread);
	r->want_lse = malloc(results * sizeof *r->want_lse);
	ck_assert(r->k && r->want && r->spread && r->want_lse);
	*a = (spmla_sparse_decode_args){.struct_bytes = sizeof *a};
	a->heads = heads;
	a->softmax_scale = layout == SPMLA_LAYOUT_V4_FP8 ? 0.08f : 0.0722f;
	a->cache = make_cache(layout, r->rows, r->k, r->dim, &rng);
	r->slots[0] = draw_slots_of(tokens, first, r->rows, &rng);
	a->topk = first;
	a->slots = r->slots[0];
	a->slots_stride_elems = first;
	r->needle[0] = r->rows - 1;
	if (second) {
		a->extra_cache = make_cache(layout, r->all - r->rows,
					    r->k + (uint64_t)r->rows * r->dim,
					    r->dim, &rng);
		r->slots[1] =
			draw_slots_of(tokens, second, r->all - r->rows, &rng);
		a->extra_topk = second;
		a->extra_slots = r->slots[1];
		a->extra_slots_stride_elems = second;
		r->needle[1] = r->all - r->rows - 1;
	}
	r->q = test_alloc(results * r->dim * sizeof *r->q, 0);
	for (i = 0; i < results * r->dim; i++)
		r->q[i] = test_bf16(q_size * sign_of((uint32_t)(i % r->dim)) *
				    (1.0f + 0.5f * rng_float(&rng)));
	a->q = r->q;
	a->q_head_stride_elems = r->dim;
	a->q_token_stride_elems = heads * r->dim;
	r->sink = test_alloc(heads * sizeof *r->sink, 0);
	for (n = 0; n < heads; n++)
		r->sink[n] = rng_float(&rng);
	a->attn_sink = second ? r->sink : NULL;
	a->out = r->out = test_alloc(results * LATENT * sizeof *r->out, 0);
	a->out_head_stride_elems = LATENT;
	a->out_token_stride_elems = heads * LATENT;
	a->lse = r->lse = test_alloc(results * sizeof *r->lse, 0);
	a->lse_token_stride_elems = heads;
	a->lse_head_stride_elems = 1;
	for (n = 1; n <= tokens; n++) {
		a->tokens = n;
		v32_must(f->ctx, spmla_decode_parts_choose(f->ctx, a, &by));
		if (by.workspace_bytes > r->parts_bytes)
			r->parts_bytes = by.workspace_bytes;
	}
	a->tokens = tokens;
	r->parts = test_alloc(r->parts_bytes + 256, 0);
	r->few_bytes = 32 << 20;
	r->few = test_alloc(r->few_bytes, 0);
}

void
shape_close(shape_rig *r)
{
	free(r->k);
	free(r->want);
	free(r->spread);
	free(r->want_lse);
	free(r->a.cache.base);
	free(r->a.extra_cache.base);
	free(r->slots[0]);
	free(r->slots[1]);
	free(r->q);
	free(r->sink);
	free(r->out);
	free(r->lse);
	free(r->parts);
	free(r->few);
}

int32_t *
shape_entry(shape_rig *r, uint32_t t, uint32_t at)
{
	const uint32_t second = at >= r->keys[0];

	at -= second ? r->keys[0] : 0;
	return &r->slots[second][t * r->keys[second] + at];
}

int32_t
shape_needle(const shape_rig *r, uint32_t at)
{
	return (int32_t)r->needle[at >= r->keys[0]];
}

/* ---- The reference ------------------------------------------------------- */

typedef struct worker {
	pthread_t thread;
	shape_rig *r;
	double *score; /* of all keys of a token */
	uint32_t first, step, units;
} worker;

static const float *
key_of(shape_rig *r, uint32_t t, uint32_t i)
{
	const uint32_t slot = (uint32_t)*shape_entry(r, t, i);

	return r->k +
	       (uint64_t)(slot + (i < r->keys[0] ? 0 : r->rows)) * r->dim;
}

static void
refer_head(shape_rig *r, uint32_t t, uint32_t h, double *score)
{
	const uint64_t at = (uint64_t)t * r->a.heads + h;
	const uint32_t n = r->keys[0] + r->keys[1];
	const uint16_t *q = r->q + at * r->dim;
	double x[576], most = -INFINITY, sum = 0, below;
	double *out = r->want + at * LATENT, *spread = r->spread + at * LATENT;
	uint32_t i, d;

	for (d = 0; d < r->dim; d++)
		x[d] = (double)test_bf16_value(q[d]);
	for (i = 0; i < n; i++) {
		const float *k = key_of(r, t, i);
		double s = 0;

		for (d = 0; d < r->dim; d++)
			s += x[d] * (double)k[d];
		score[i] = s * (double)r->a.softmax_scale;
		most = score[i] > most ? score[i] : most;
	}
	memset(out, 0, LATENT * sizeof *out);
	memset(spread, 0, LATENT * sizeof *spread);
	for (i = 0; i < n; i++) {
		const float *v = key_of(r, t, i);
		const double p = exp(score[i] - most);

		sum += p;
		for (d = 0; d < LATENT; d++) {
			const double y = p * (double)v[d];

			out[d] += y;
			spread[d] += y * y;
		}
	}
	below = sum;
	if (r->a.attn_sink)
		below += exp((double)r->a.attn_sink[h] - most);
	for (d = 0; d < LATENT; d++) {
		out[d] /= below;
		spread[d] = sqrt(spread[d]) / below;
	}
	r->want_lse[at] = most + log(sum);
}

static void *
refer(void *arg)
{
	worker *w = arg;
	uint32_t u;

	for (u = w->first; u < w->units; u += w->step)
		refer_head(w->r, u / w->r->a.heads, u % w->r->a.heads,
			   w->score);
	return NULL;
}

void
shape_reference(shape_rig *r, uint32_t tokens)
{
	const long online = sysconf(_SC_NPROCESSORS_ONLN);
	const uint32_t threads = online < 1         ? 1
				 : online > THREADS ? THREADS
						    : (uint32_t)online;
	worker all[THREADS];
	uint32_t i;

	for (i = 0; i < threads; i++) {
		all[i] = (worker){.r = r,
				  .first = i,
				  .step = threads,
				  .units = tokens * r->a.heads};
		all[i].score = malloc((r->keys[0] + r->keys[1]) *
				      sizeof *all[i].score);
		ck_assert_ptr_nonnull(all[i].score);
		ck_assert_int_eq(
			pthread_create(&all[i].thread, NULL, refer, &all[i]),
			0);
	}
	for (i = 0; i < threads; i++) {
		ck_assert_int_eq(pthread_join(all[i].thread, NULL), 0);
		free(all[i].score);
	}
}

/* ---- Calls --------------------------------------------------------------- */

uint32_t
shape_has(const shape_rig *r, const fixture *f, uint32_t tokens, shape_way way)
{
	return way != SHAPE_WORKSPACE ||
	       spmla_i_few_choose(&f->plan.device, r->a.cache.layout, tokens,
				  r->a.heads,
				  r->keys[0] + r->keys[1]) != SPMLA_I_FEW_COUNT;
}

void
shape_run(shape_rig *r, fixture *f, uint32_t tokens, shape_way way)
{
	const uint64_t results = (uint64_t)tokens * r->a.heads;
	spmla_sparse_decode_args a = r->a;

	a.tokens = tokens;
	memset(r->out, 0xFF, results * LATENT * sizeof *r->out);
	memset(r->lse, 0xFF, results * sizeof *r->lse);
	if (way == SHAPE_WORKSPACE) {
		a.workspace = r->few;
		a.workspace_bytes = r->few_bytes;
	}
	v32_must(f->ctx,
		 way == SHAPE_WHOLE
			 ? spmla_sparse_decode(f->ctx, &a, NULL)
			 : spmla_sparse_decode_in_parts(f->ctx, &a, r->parts,
							r->parts_bytes, NULL));
	fixture_drain(f);
	ck_assert_uint_eq(fixture_status(f).count, 0);
}

/* Weights are rounded to 8 bits at least, each by itself: 12 times the largest
 * error of one, for the root of the sum of their squares, is some 20 standard
 * deviations. Then the result is rounded to bf16. */
static uint32_t
out_is_close(double got, double want, double spread)
{
	return fabs(got - want) <=
	       0x1.1p-8 * fabs(want) + 12 * 0x1p-9 * spread + 1e-6;
}

uint64_t
shape_wrong(const shape_rig *r, uint32_t tokens, char *text, uint32_t capacity)
{
	const uint64_t results = (uint64_t)tokens * r->a.heads;
	uint64_t wrong = 0, i;

	for (i = 0; i < results * LATENT; i++) {
		const double got = (double)test_bf16_value(r->out[i]);

		if (out_is_close(got, r->want[i], r->spread[i]))
			continue;
		if (wrong++ == 0)
			(void)snprintf(
				text, capacity,
				"token %u, head %u, value %u: got %g, want %g",
				(uint32_t)(i / LATENT / r->a.heads),
				(uint32_t)(i / LATENT % r->a.heads),
				(uint32_t)(i % LATENT), got, r->want[i]);
	}
	for (i = 0; i < results; i++) {
		if (fabs((double)r->lse[i] - r->want_lse[i]) <= 2e-4)
			continue;
		if (wrong++ == 0)
			(void)snprintf(text, capacity,
				       "lse %u: got %g, want %g", (uint32_t)i,
				       (double)r->lse[i], r->want_lse[i]);
	}
	return wrong;
}

void
shape_check(const shape_rig *r, uint32_t tokens, shape_way way)
{
	char text[160] = "";

	ck_assert_msg(shape_wrong(r, tokens, text, sizeof text) == 0,
		      "%u tokens, way %u: %s", tokens, (uint32_t)way, text);
}

uint32_t
shape_is_needle(const shape_rig *r, uint32_t t)
{
	const float *v = r->k + (uint64_t)r->needle[0] * r->dim;
	uint32_t h, d;

	for (h = 0; h < r->a.heads; h++) {
		const uint64_t at = (uint64_t)t * r->a.heads + h;
		double s = 0;

		for (d = 0; d < r->dim; d++)
			s += (double)test_bf16_value(r->q[at * r->dim + d]) *
			     (double)v[d];
		if (!(fabs((double)r->lse[at] -
			   s * (double)r->a.softmax_scale) < 0.01))
			return 0;
		for (d = 0; d < LATENT; d++)
			if (test_bf16_value(r->out[at * LATENT + d]) != v[d])
				return 0;
	}
	return 1;
}
