/* SPDX-License-Identifier: Apache-2.0
 *
 * See code_walk.h.
 */
#include "tests/reference/code_walk.h"
#include "tests/reference/narrow_ref.h"

#include <check.h>
#include <math.h>
#include <string.h>

enum { NUMBERS = 0x10000 };

/* amax of a group whose scale is 1. */
static double
most(const code_walk *w)
{
	return w->encoding == SPMLA_E4M3_FNUZ ? 224 : 448;
}

static uint32_t
is_left_out(const code_walk *w)
{
	const double a = fabs(ref_bf16_value((uint16_t)w->next));

	return (w->group && a > most(w)) ||
	       (w->brief && (a < 0x1p-12 || a >= 0x1p10) && w->next % 128);
}

static void
skip(code_walk *w)
{
	while (w->next < NUMBERS && is_left_out(w))
		w->next++;
}

void
code_walk_begin(code_walk *w, uint32_t encoding, uint32_t group)
{
	memset(w, 0, sizeof *w);
	w->encoding = encoding;
	w->group = group;
}

uint32_t
code_walk_more(const code_walk *w)
{
	return w->next < NUMBERS;
}

void
code_walk_row(code_walk *w, uint16_t *row, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		if (w->group && i % w->group == w->group - 1) {
			row[i] = ref_bf16_bits(most(w));
			continue;
		}
		row[i] = 0;
		if (w->next < NUMBERS)
			row[i] = (uint16_t)w->next++;
		skip(w);
	}
}

void
code_walk_check(code_walk *w, uint16_t x, uint8_t code)
{
	const uint8_t want =
		encoded_quotient(ref_bf16_value(x), 1, w->encoding);

	if (code != want)
		ck_abort_msg("bf16 0x%04x: code 0x%02x, want 0x%02x", x, code,
			     want);
	w->seen[code] = 1;
}

void
code_walk_end(const code_walk *w)
{
	const uint32_t fnuz = w->encoding == SPMLA_E4M3_FNUZ;
	uint32_t code;

	ck_assert_uint_eq(w->next, NUMBERS);
	for (code = 0; code < 256; code++) {
		const uint32_t can = fnuz ? !w->group || (code & 0x7f) != 0x7f
					  : code != 0xff;

		if (w->seen[code] != can)
			ck_abort_msg("code 0x%02x was %swritten", code,
				     can ? "never " : "");
	}
}
