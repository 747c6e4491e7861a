/* SPDX-License-Identifier: Apache-2.0
 *
 * See draw.h: what is written, and how two results are compared.
 */
#include "tests/harness/draw.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

draw_array *
draw_array_at(draw *d, const void *p)
{
	uint32_t i;

	for (i = 0; i < d->count; i++)
		if (d->arrays[i].bytes == p)
			return &d->arrays[i];
	abort();
}

void *
draw_out(draw *d, uint64_t n, uint32_t elem_bytes)
{
	return draw_room(d, n * elem_bytes, elem_bytes, DRAW_OUT);
}

void *
draw_zeros(draw *d, uint64_t n, uint32_t elem_bytes)
{
	return memset(draw_room(d, n * elem_bytes, 16, DRAW_CHANGED), 0,
		      n * elem_bytes);
}

void
draw_compared(draw *d, const void *p, draw_form form, double absolute,
	      double relative)
{
	draw_array *a = draw_array_at(d, p);

	a->form = form;
	a->absolute = absolute;
	a->relative = relative;
}

uint16_t *
draw_out_bf16(draw *d, uint64_t n, double absolute, double relative)
{
	uint16_t *x = draw_out(d, n, sizeof *x);

	draw_compared(d, x, DRAW_BF16, absolute, relative);
	return x;
}

float *
draw_out_f32(draw *d, uint64_t n, double absolute, double relative)
{
	float *x = draw_out(d, n, sizeof *x);

	draw_compared(d, x, DRAW_F32, absolute, relative);
	return x;
}

void *
draw_changed(draw *d, const void *p)
{
	draw_array *a = draw_array_at(d, p);

	a->role = DRAW_CHANGED;
	return a->bytes;
}

/* ---- All of them --------------------------------------------------------- */

void
draw_keep(draw *d)
{
	uint32_t i;

	for (i = 0; i < d->count; i++) {
		draw_array *a = &d->arrays[i];

		if (a->role == DRAW_OUT || a->count == 0)
			continue;
		a->drawn = malloc(a->count);
		if (!a->drawn)
			abort();
		memcpy(a->drawn, a->bytes, a->count);
	}
}

void
draw_reset(draw *d, uint8_t poison)
{
	uint32_t i;

	for (i = 0; i < d->count; i++) {
		draw_array *a = &d->arrays[i];

		if (a->role == DRAW_OUT)
			memset(a->bytes, poison, a->count);
		if (a->role == DRAW_CHANGED && a->count > 0)
			memcpy(a->bytes, a->drawn, a->count);
	}
}

void
draw_take_data(draw *d, const draw *from)
{
	uint32_t i;

	if (d->count != from->count)
		abort();
	for (i = 0; i < d->count; i++) {
		draw_array *a = &d->arrays[i];

		if (a->count != from->arrays[i].count)
			abort();
		if (a->role == DRAW_OUT || a->count == 0)
			continue;
		memcpy(a->bytes, from->arrays[i].drawn, a->count);
		memcpy(a->drawn, from->arrays[i].drawn, a->count);
	}
}

uint32_t
draw_inputs_are_whole(const draw *d)
{
	uint32_t i;

	for (i = 0; i < d->count; i++) {
		const draw_array *a = &d->arrays[i];

		if (a->role == DRAW_IN && a->count > 0 &&
		    memcmp(a->bytes, a->drawn, a->count) != 0)
			return 0;
	}
	return 1;
}

uint64_t
draw_result_bytes(const draw *d)
{
	uint64_t bytes = 0;
	uint32_t i;

	for (i = 0; i < d->count; i++)
		if (d->arrays[i].role != DRAW_IN)
			bytes += d->arrays[i].count;
	return bytes;
}

void
draw_results(const draw *d, uint8_t *to)
{
	uint32_t i;

	for (i = 0; i < d->count; i++) {
		const draw_array *a = &d->arrays[i];

		if (a->role == DRAW_IN)
			continue;
		memcpy(to, a->bytes, a->count);
		to += a->count;
	}
}

/* ---- Comparing ----------------------------------------------------------- */

static double
value(const uint8_t *at, draw_form form)
{
	uint32_t word = 0;
	float x;

	if (form == DRAW_BF16)
		memcpy((uint8_t *)&word + 2, at, 2);
	else
		memcpy(&word, at, 4);
	memcpy(&x, &word, sizeof x);
	return (double)x;
}

static uint32_t
is_close(const draw_array *a, double got, double want)
{
	if (isnan(want))
		return got != got;
	if (got == want)
		return 1;
	return fabs(got - want) <= a->absolute + a->relative * fabs(want);
}

/* The first element that is not close, or as many as there are. */
static uint64_t
first_apart(const draw_array *a, const uint8_t *got, const uint8_t *want,
	    uint32_t elem_bytes)
{
	uint64_t i;

	for (i = 0; i < a->count / elem_bytes; i++) {
		const uint64_t at = i * elem_bytes;

		if (memcmp(got + at, want + at, elem_bytes) == 0)
			continue;
		if (a->form == DRAW_BITS ||
		    !is_close(a, value(got + at, a->form),
			      value(want + at, a->form)))
			break;
	}
	return i;
}

uint32_t
draw_close(const draw *d, const uint8_t *got, const uint8_t *want, char *text,
	   uint32_t capacity)
{
	static const uint32_t elems[] = {1, 2, 4};
	uint64_t at;
	uint32_t i;

	for (i = 0; i < d->count; i++) {
		const draw_array *a = &d->arrays[i];

		if (a->role == DRAW_IN)
			continue;
		at = a->form == DRAW_ANY
			     ? a->count
			     : first_apart(a, got, want, elems[a->form]) *
				       elems[a->form];
		if (at < a->count) {
			(void)snprintf(
				text, capacity,
				"array %u, byte %" PRIu64 ": got %g, want %g",
				i, at,
				a->form ? value(got + at, a->form) : got[at],
				a->form ? value(want + at, a->form) : want[at]);
			return 0;
		}
		got += a->count;
		want += a->count;
	}
	return 1;
}
