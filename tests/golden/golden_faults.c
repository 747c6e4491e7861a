/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a case can fail. The one idea: a fault is made in the memory of one
 * output right behind the operation's call, as if the operation had done it,
 * so that all that an adapter takes over or allows for is proved too.
 */
#include "tests/golden/golden.h"

#include <math.h>
#include <string.h>

enum { PARTS = 64 };

static const char *const words[] = {"right", "not written", "off by one"};

/* The double of what the rule allows element i to be off. */
static double
twice(const golden_tensor *t, uint64_t i, const uint8_t *want)
{
	const double bound =
		t->atol + t->rtol * fabs(golden_value(t->dtype, want));

	return 2 * (bound + (t->slack ? t->slack[i] : 0));
}

/* A float moved away from 0 until it is off by `by`, at least one code. */
static int
move_float(const golden_tensor *t, uint8_t *element, double by)
{
	const double from = golden_value(t->dtype, element);
	const float to = (float)(from < 0 ? from - by : from + by);
	uint32_t bits;

	if (!isfinite(from))
		return 0;
	memcpy(&bits, &to, sizeof bits);
	bits >>= t->dtype == GOLDEN_BF16 ? 16 : 0; /* rounds to 0 */
	for (;; bits++) {
		const uint16_t half = (uint16_t)bits;
		double off;

		if (t->dtype == GOLDEN_BF16)
			memcpy(element, &half, sizeof half);
		else
			memcpy(element, &bits, sizeof bits);
		off = fabs(golden_value(t->dtype, element) - from);
		if (off > 0 && off >= by)
			return 1;
	}
}

/* Element i off by one; 0 if it stays. */
static int
move(const golden_tensor *t, uint64_t i, uint64_t at)
{
	uint8_t *element = t->data + at * t->elem_bytes;
	uint64_t bits = 0;

	switch (t->dtype) {
	case GOLDEN_F32:
	case GOLDEN_BF16:
		return move_float(
			t, element,
			t->rule == GOLDEN_FLOAT
				? twice(t, i, t->want + at * t->elem_bytes)
				: 0);
	case GOLDEN_E4M3:
		if ((*element & 127) == 127)
			return 0;
		*element = (uint8_t)((*element & 127) == 126 ? *element - 1
							     : *element + 1);
		return 1;
	case GOLDEN_BOOL:
		*element ^= 1;
		return 1;
	case GOLDEN_I32:
	case GOLDEN_I64:
	case GOLDEN_U8:
		break;
	}
	memcpy(&bits, element, t->elem_bytes);
	bits++;
	memcpy(element, &bits, t->elem_bytes);
	return 1;
}

/* The parts that an output is spoilt in, one at a time. Where an adapter judges
 * codes of several kinds, none of them may hide behind another. */
static uint32_t
parts_of(const golden_tensor *t)
{
	return t->judge || t->accepted_why ? PARTS : 1;
}

/* Whether element `at` of `data` was written, as far as bytes can tell. */
static int
is_written(const golden_tensor *t, const uint8_t *data, uint64_t at)
{
	const uint8_t *now = data + at * t->elem_bytes;
	uint32_t k;

	if (t->role == GOLDEN_INOUT)
		return memcmp(now, t->before + at * t->elem_bytes,
			      t->elem_bytes) != 0;
	for (k = 0; k < t->elem_bytes; k++)
		if (now[k] != GOLDEN_SENTINEL)
			return 1;
	return 0;
}

static uint64_t
hash_of(const golden_tensor *t)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325), i;

	for (i = 0; i < t->elems * t->elem_bytes; i++)
		hash = (hash ^ t->data[i]) * UINT64_C(0x100000001b3);
	return hash;
}

void
golden_make_fault(golden_case *c)
{
	golden_tensor *t = c->faulty;
	int64_t index[GOLDEN_MAX_RANK] = {0};
	const uint64_t parts = c->fault ? parts_of(t) : 0;
	uint64_t i, n = 0, written = 0;

	if (c->fault == GOLDEN_RIGHT || hash_of(t) == c->fault_hash)
		return;
	for (i = 0; i < t->count; i++, golden_step(t, index))
		written += (uint64_t)is_written(t, t->data,
						golden_place(t, index));
	memset(index, 0, sizeof index);
	for (i = 0; i < t->count; i++, golden_step(t, index)) {
		const uint64_t at = golden_place(t, index);
		const size_t byte = (size_t)(at * t->elem_bytes);

		if (!is_written(t, t->data, at) ||
		    n++ * parts / written != c->fault_part)
			continue;
		if (c->fault == GOLDEN_OFF) {
			c->faults += (uint64_t)move(t, i, at);
			continue;
		}
		if (t->role == GOLDEN_INOUT)
			memcpy(t->data + byte, t->before + byte, t->elem_bytes);
		else
			memset(t->data + byte, GOLDEN_SENTINEL, t->elem_bytes);
		c->faults++;
	}
	c->fault_hash = hash_of(t);
}

/* Whether the kernel wrote some of it. */
static int
says_something(const golden_tensor *t)
{
	int64_t index[GOLDEN_MAX_RANK] = {0};
	uint64_t i;

	for (i = 0; i < t->count; i++, golden_step(t, index))
		if (is_written(t, t->want, golden_place(t, index)))
			return 1;
	return 0;
}

/* One fault; c->faults tells whether it was made. */
static golden_verdict
prove_one(golden_case *c, golden_run run, uint32_t *made)
{
	golden_verdict v;

	c->faults = 0;
	c->fault_hash = 0;
	golden_case_reset(c);
	v = run(c);
	if (v == GOLDEN_RAN)
		v = golden_compare(c);
	if (c->faults == 0)
		return v;
	++*made;
	if (v != GOLDEN_RAN)
		return GOLDEN_RAN;
	return golden_fail(c, "passes with part %u of %u of %s %s",
			   c->fault_part, parts_of(c->faulty), c->faulty->name,
			   words[c->fault]);
}

golden_verdict
golden_prove(golden_case *c, golden_run run, uint32_t *made)
{
	golden_verdict v = GOLDEN_RAN;
	uint32_t i, way;

	for (i = 0; i < c->tensor_count; i++) {
		const golden_tensor *t = &c->tensors[i];
		const uint32_t ways = 2 * parts_of(t);
		uint64_t faults = 0;

		c->faulty = &c->tensors[i];
		if (t->role == GOLDEN_INPUT || t->left_out)
			continue;
		for (way = 0; v == GOLDEN_RAN && way < ways; way++) {
			c->fault = way % 2 ? GOLDEN_OFF : GOLDEN_NOTHING;
			c->fault_part = way / 2;
			v = prove_one(c, run, made);
			faults += c->faults;
		}
		if (v == GOLDEN_RAN && faults == 0 && says_something(t))
			v = golden_fail(c, "%s: no fault could be made",
					t->name);
	}
	c->fault = GOLDEN_RIGHT;
	if (v != GOLDEN_RAN)
		return v;
	/* What PASS says is of a run without a fault. */
	golden_case_reset(c);
	v = run(c);
	return v == GOLDEN_RAN ? golden_compare(c) : v;
}
