/* SPDX-License-Identifier: Apache-2.0
 *
 * See draw.h: arrays in another type.
 */
#include "tests/harness/draw.h"

int64_t *
draw_as_i64(draw *d, const void *p)
{
	const draw_array *a = draw_array_at(d, p);
	const int32_t *from = p;
	const uint64_t n = a->count / sizeof *from;
	int64_t *x = draw_room(d, n * sizeof *x, sizeof *x, DRAW_IN);
	/* One that looks sound by its low word. */
	const uint32_t odd = d->kind == DRAW_BAD ? draw_choice(d, 4) : 0;
	uint64_t i;

	for (i = 0; i < n; i++)
		x[i] = from[i];
	if (odd && n > 0)
		x[odd % n] ^= odd == 3 ? INT64_MIN : INT64_C(1) << 32;
	return x;
}

uint16_t *
draw_as_bf16(draw *d, const void *p)
{
	const uint64_t n = draw_array_at(d, p)->count / 4;
	const uint8_t *from = p;
	uint16_t *x = draw_room(d, n * sizeof *x, sizeof *x, DRAW_IN);
	uint64_t i;

	for (i = 0; i < n; i++)
		memcpy(&x[i], from + 4 * i + 2, sizeof x[i]);
	return x;
}

void
draw_round_bf16(draw *d, const void *p)
{
	const draw_array *a = draw_array_at(d, p);
	uint64_t i;

	for (i = 0; i < a->count; i += 4)
		memset(a->bytes + i, 0, 2);
}
