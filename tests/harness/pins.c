/* SPDX-License-Identifier: Apache-2.0
 *
 * See pins.h.
 */
#include "tests/harness/pins.h"

#include <check.h>

void
pins_check(const pin *pins, size_t count)
{
	size_t end = 0, size = 0, i;

	for (i = 0; i < count; i++) {
		const pin *p = &pins[i];

		ck_assert_msg(p->got_offset == p->offset,
			      "%s lies at %zu, want %zu", p->name,
			      p->got_offset, p->offset);
		ck_assert_msg(p->got_bytes == p->bytes,
			      "%s has %zu bytes, want %zu", p->name,
			      p->got_bytes, p->bytes);
		if (p->kind == PIN_STRUCT) {
			ck_assert_msg(end == size,
				      "before %s: %zu bytes in no field",
				      p->name, size - end);
			size = p->bytes;
			end = 0;
			continue;
		}
		ck_assert_msg(p->offset == end, "%zu bytes lost before %s",
			      p->offset - end, p->name);
		end = p->offset + p->bytes;
	}
	ck_assert_msg(end == size, "%zu bytes at the end in no field",
		      size - end);
}

void
pins_check_values(const pin_value *values, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		ck_assert_msg(values[i].got == values[i].want,
			      "%s is %llu, want %llu", values[i].name,
			      (unsigned long long)values[i].got,
			      (unsigned long long)values[i].want);
}
