/* SPDX-License-Identifier: Apache-2.0
 *
 * See draw.h: numbers and what is read. What is written, and the comparison of
 * results, are in draw_results.c.
 */
#include "tests/harness/draw.h"
#include "tests/harness/rng.h"

#include <stdlib.h>

enum { ODD_ONE_IN = 6 };

void
draw_seed(draw *d, draw_kind kind, uint64_t shape, uint64_t data)
{
	memset(d, 0, sizeof *d);
	d->kind = kind;
	d->shape = shape;
	d->data = data;
	d->variants = 1;
	d->most_heads = d->most_index_heads = 1;
}

void
draw_bytes_of(draw *d, input *in)
{
	draw_seed(d, DRAW_BAD, 0, 0);
	d->in = in;
}

void
draw_free(draw *d)
{
	while (d->count > 0) {
		draw_array *a = &d->arrays[--d->count];

		free(a->block);
		free(a->drawn);
	}
}

/* ---- Numbers ------------------------------------------------------------- */

static uint32_t
below(draw *d, uint64_t *stream, uint32_t bound)
{
	if (d->in)
		return (bound > 256 ? in_u32(d->in) : in_u8(d->in)) % bound;
	return rng_below(stream, bound);
}

uint32_t
draw_size(draw *d, uint32_t most)
{
	return d->kind == DRAW_EXAMPLE ? most : 1 + below(d, &d->shape, most);
}

uint32_t
draw_many(draw *d, uint32_t most, uint32_t large)
{
	return d->large ? large : draw_size(d, most);
}

uint32_t
draw_tokens(draw *d)
{
	if (d->tokens)
		return d->tokens;
	return d->kind == DRAW_EXAMPLE ? 4 : draw_size(d, 6);
}

uint32_t
draw_heads(draw *d)
{
	return d->large ? d->most_heads : draw_size(d, d->most_heads);
}

uint32_t
draw_index_heads(draw *d)
{
	return d->large ? d->most_index_heads
			: draw_size(d, d->most_index_heads);
}

uint32_t
draw_choice(draw *d, uint32_t n)
{
	return d->kind == DRAW_EXAMPLE ? 0 : below(d, &d->shape, n);
}

uint32_t
draw_there(draw *d)
{
	return d->kind == DRAW_EXAMPLE || below(d, &d->shape, 4) > 0;
}

uint32_t
draw_variant(draw *d, uint32_t n)
{
	d->variants = n;
	return d->in ? in_below(d->in, n) : d->variant;
}

int64_t
draw_stride(draw *d, uint32_t width)
{
	static const uint8_t more[8] = {0, 0, 0, 1, 5, 8, 16, 24};

	return (int64_t)width + more[draw_choice(d, 8)];
}

uint32_t
draw_odd(draw *d, uint32_t size, uint32_t most)
{
	static const uint32_t apart[4] = {0, 1, 2, 128};

	if (d->kind != DRAW_BAD || below(d, &d->shape, ODD_ONE_IN))
		return size;
	if (d->in)
		return 1 + in_edge(d->in) % most;
	return most - apart[below(d, &d->shape, 4)] % most;
}

float
draw_scale(draw *d)
{
	static const uint32_t ends[4] = {1, 0x00800000u, 0x7e800000u,
					 0x3f800000u};
	const float x = (float)(1 + draw_choice(d, 64)) / 512.0f;
	float end;

	if (!d->in || in_below(d->in, ODD_ONE_IN))
		return x;
	memcpy(&end, &ends[in_below(d->in, 4)], sizeof end);
	return end;
}

uint64_t
draw_strided(uint32_t n, int64_t stride, uint32_t width)
{
	return n == 0 ? 0 : (uint64_t)stride * (n - 1) + width;
}

draw_strides
draw_rows(draw *d, uint32_t tokens, uint32_t heads, uint32_t width)
{
	const uint32_t swap = draw_choice(d, 4) == 3;
	const uint32_t outer = swap ? heads : tokens;
	const uint32_t inner = swap ? tokens : heads;
	const int64_t near = draw_stride(d, width);
	const int64_t far = draw_stride(d, (uint32_t)near * inner);

	return (draw_strides){swap ? near : far, swap ? far : near,
			      (uint64_t)far * (outer - 1) +
				      draw_strided(inner, near, width)};
}

/* ---- Arrays -------------------------------------------------------------- */

void *
draw_room(draw *d, uint64_t bytes, uint32_t align, draw_role role)
{
	const uint32_t at = align * draw_choice(d, 16 / align);
	draw_array *a = &d->arrays[d->count++];

	if (d->count > DRAW_ARRAYS)
		abort();
	a->count = bytes;
	/* Something to point to, if there are none. */
	a->block = draw_alloc(at + (bytes ? bytes : 1));
	a->bytes = (uint8_t *)a->block + at;
	a->drawn = NULL;
	a->role = role;
	a->form = DRAW_BITS;
	a->absolute = a->relative = 0;
	return a->bytes;
}

/* A number that is none of [low, high), or an edge of it. */
static int64_t
odd_number(draw *d, int64_t low, int64_t high)
{
	const int64_t all[8] = {low - 1,   high,      high + 1, high - 1,
				INT32_MIN, INT32_MAX, 1 << 30,  -(1 << 30)};

	return d->in ? (int32_t)in_edge(d->in) : all[rng_below(&d->data, 8)];
}

static int64_t
number(draw *d, int64_t low, int64_t high)
{
	if (d->kind == DRAW_BAD && below(d, &d->data, ODD_ONE_IN) == 0)
		return odd_number(d, low, high);
	if (high <= low)
		return low;
	return low + below(d, &d->data, (uint32_t)(high - low));
}

int32_t *
draw_i32(draw *d, uint64_t n, int64_t low, int64_t high)
{
	int32_t *x = draw_room(d, n * sizeof *x, sizeof *x, DRAW_IN);
	/* A fuzzer's are a pattern, over and over. */
	const uint64_t length = d->in ? 1 + in_below(d->in, 8) : n;
	const uint32_t drift = d->in ? in_below(d->in, 3) : 0;
	uint64_t i;

	for (i = 0; i < n; i++)
		x[i] = i < length ? (int32_t)number(d, low, high)
				  : (int32_t)((uint32_t)x[i - length] + drift);
	return x;
}

int64_t *
draw_i64(draw *d, uint64_t n, int64_t low, int64_t high)
{
	const uint64_t up = d->kind == DRAW_BAD && draw_choice(d, 8) == 0
				    ? (uint64_t)below(d, &d->data, 4) << 32
				    : 0;
	int64_t *x = draw_room(d, n * sizeof *x, sizeof *x, DRAW_IN);
	uint64_t i;

	for (i = 0; i < n; i++) {
		const uint64_t word = (uint64_t)number(d, low, high) ^ up;

		memcpy(&x[i], &word, sizeof word);
	}
	return x;
}

int32_t *
draw_starts(draw *d, uint32_t n, uint32_t end)
{
	int32_t *x = draw_room(d, (n + UINT64_C(1)) * 4, 4, DRAW_IN);
	uint32_t i, k;

	for (i = 0; i <= n; i++) {
		const int32_t cut =
			i == 0   ? 0
			: i == n ? (int32_t)end
				 : (int32_t)below(d, &d->data, end + 1);

		for (k = i; k > 0 && x[k - 1] > cut; k--)
			x[k] = x[k - 1];
		x[k] = cut;
	}
	for (i = 0; d->kind == DRAW_BAD && i <= n; i++)
		if (below(d, &d->data, 2 * ODD_ONE_IN) == 0)
			x[i] = (int32_t)odd_number(d, 0, end);
	return x;
}

static uint32_t
is_among(const int64_t *x, uint32_t n, int64_t slot)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (x[i] == slot)
			return 1;
	return 0;
}

int64_t *
draw_slots(draw *d, uint32_t tokens, uint64_t slots)
{
	int64_t *x = draw_room(d, tokens * sizeof *x, 8, DRAW_IN);
	const uint32_t bound = slots < 100000 ? (uint32_t)slots : 100000;
	uint32_t i, tries;

	for (i = 0; i < tokens; i++) {
		x[i] = (int64_t)below(d, &d->data, bound);
		for (tries = 0; !d->same_slots && is_among(x, i, x[i]); tries++)
			x[i] = tries < bound ? (x[i] + 1) % bound : -1;
		if (d->same_slots && i > 0 && below(d, &d->data, 4) == 0)
			x[i] = x[below(d, &d->data, i)];
		if (below(d, &d->data, 8) == 0)
			x[i] = -1;
		if (d->kind == DRAW_BAD && below(d, &d->data, 6) == 0)
			x[i] = (int64_t)((slots + below(d, &d->data, 5))
					 << below(d, &d->data, 3) * 12);
	}
	return x;
}

uint8_t *
draw_bytes(draw *d, uint64_t n)
{
	uint8_t *x = draw_room(d, n, 1, DRAW_IN);
	uint64_t i;

	if (d->in)
		in_fill(d->in, x, n);
	for (i = 0; !d->in && i < n; i++)
		x[i] = (uint8_t)rng_next(&d->data);
	return x;
}

float *
draw_f32(draw *d, uint64_t n)
{
	float *x = draw_room(d, n * sizeof *x, sizeof *x, DRAW_IN);
	uint64_t i;

	if (d->in && in_below(d->in, 2))
		in_fill_edges(d->in, (uint32_t *)(void *)x, n);
	else if (d->in)
		in_fill(d->in, x, n * sizeof *x);
	for (i = 0; !d->in && i < n; i++)
		x[i] = rng_float(&d->data);
	return x;
}

uint16_t *
draw_bf16(draw *d, uint64_t n)
{
	uint16_t *x = draw_room(d, n * sizeof *x, sizeof *x, DRAW_IN);

	if (d->in)
		in_fill(d->in, x, n * sizeof *x);
	else
		draw_fill_bf16(d, x, n);
	return x;
}

uint8_t *
draw_codes(draw *d, uint64_t n)
{
	uint8_t *x = draw_room(d, n, 1, DRAW_IN);

	if (d->in)
		in_fill(d->in, x, n);
	else
		draw_fill_codes(d, x, n);
	return x;
}

int32_t *
draw_ue8m0(draw *d, uint64_t n)
{
	int32_t *x = draw_room(d, n * sizeof *x, sizeof *x, DRAW_IN);

	if (d->in)
		in_fill_edges(d->in, (uint32_t *)x, n);
	else
		draw_fill_ue8m0(d, x, n * sizeof *x);
	return x;
}

const float *
draw_scale_at(draw *d)
{
	static const float scales[4] = {0, 0.25f, 0.3f, 1.5f};
	const uint32_t which = draw_choice(d, 4);
	float *x;

	if (which == 0)
		return NULL;
	x = draw_room(d, sizeof *x, 4, DRAW_IN);
	*x = scales[which];
	return x;
}

float *
draw_cos_sin(draw *d, uint32_t rows)
{
	return draw_f32(d, (uint64_t)rows * 64);
}
