/* SPDX-License-Identifier: Apache-2.0
 *
 * Judges outputs by the rule of their manifest. The one idea: an element that
 * holds sentinel bytes in the golden file was not written by the kernel and
 * says nothing. One byte of the sentinel is too common a value, so elements of
 * one byte are taken as not written by whole rows only.
 */
#include "tests/golden/golden.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Of every code of e4m3. */
static double e4m3_values[256];

__attribute__((constructor)) static void
make_e4m3_values(void)
{
	int code;

	for (code = 0; code < 256; code++) {
		const int exponent = code >> 3 & 15, mantissa = code & 7;
		double a = exponent == 0 ? ldexp(mantissa, -9)
					 : ldexp(8 + mantissa, exponent - 10);

		if ((code & 127) == 127)
			a = NAN;
		e4m3_values[code] = code & 128 ? -a : a;
	}
}

double
golden_value(golden_dtype dtype, const uint8_t *element)
{
	uint16_t half;
	uint32_t bits;
	int32_t i32;
	int64_t i64;
	float f32;

	switch (dtype) {
	case GOLDEN_I32:
		memcpy(&i32, element, sizeof i32);
		return i32;
	case GOLDEN_I64:
		memcpy(&i64, element, sizeof i64);
		return (double)i64;
	case GOLDEN_F32:
		memcpy(&f32, element, sizeof f32);
		return (double)f32;
	case GOLDEN_BF16:
		memcpy(&half, element, sizeof half);
		bits = (uint32_t)half << 16;
		memcpy(&f32, &bits, sizeof f32);
		return (double)f32;
	case GOLDEN_E4M3:
		return e4m3_values[*element];
	case GOLDEN_U8:
	case GOLDEN_BOOL:
		break;
	}
	return *element;
}

uint64_t
golden_place(const golden_tensor *t, const int64_t *index)
{
	int64_t at = t->offset;
	uint32_t d;

	for (d = 0; d < t->rank; d++)
		at += index[d] * t->strides[d];
	return (uint64_t)at;
}

void
golden_step(const golden_tensor *t, int64_t *index)
{
	uint32_t d = t->rank;

	while (d-- > 0) {
		if (++index[d] < t->shape[d])
			return;
		index[d] = 0;
	}
}

static int
all_sentinel(const uint8_t *bytes, uint64_t n)
{
	uint64_t i;

	for (i = 0; i < n; i++)
		if (bytes[i] != GOLDEN_SENTINEL)
			return 0;
	return 1;
}

static int
not_written(const golden_tensor *t, const int64_t *index)
{
	int64_t at[GOLDEN_MAX_RANK];
	int64_t i;

	if (t->role != GOLDEN_OUTPUT)
		return 0;
	memcpy(at, index, sizeof at);
	if (t->elem_bytes > 1)
		return all_sentinel(t->want +
					    golden_place(t, at) * t->elem_bytes,
				    t->elem_bytes);
	for (i = 0; i < t->shape[t->rank - 1]; i++) {
		at[t->rank - 1] = i;
		if (!all_sentinel(t->want + golden_place(t, at), 1))
			return 0;
	}
	return 1;
}

/* Beyond the rule by nothing (0), by no more than the slack (1), more (2). */
static int
judge_float(const golden_tensor *t, double got, double want, double slack)
{
	const double bound = t->atol + t->rtol * fabs(want);

	if (isnan(want) || isnan(got))
		return isnan(want) && isnan(got) ? 0 : 2;
	if (isinf(want) || isinf(got))
		return got == want ? 0 : 2;
	if (fabs(got - want) <= bound)
		return 0;
	return fabs(got - want) <= bound + slack ? 1 : 2;
}

/* Codes of e4m3 as whole numbers in the order of their values. */
static int
code_order(uint8_t code)
{
	return code & 128 ? -(code & 127) : code & 127;
}

/* As judge_float: 1 is one code step. */
static int
judge_quantized(uint8_t got, uint8_t want)
{
	const int steps = code_order(got) - code_order(want);

	if (((got & 127) == 127) != ((want & 127) == 127))
		return 2;
	return steps == 0 ? 0 : steps == 1 || steps == -1 ? 1 : 2;
}

static golden_verdict
mismatch(golden_case *c, const golden_tensor *t, const int64_t *index,
	 uint64_t at, const char *what)
{
	const double got = golden_value(t->dtype, t->data + at * t->elem_bytes);
	const double want =
		golden_value(t->dtype, t->want + at * t->elem_bytes);
	char text[128] = "";
	uint32_t d;

	for (d = 0; d < t->rank; d++)
		(void)snprintf(text + strlen(text), sizeof text - strlen(text),
			       "[%" PRId64 "]", index[d]);
	return golden_fail(c, "%s%s: got %.9g, want %.9g%s", t->name, text, got,
			   want, what);
}

static golden_verdict
compare_tensor(golden_case *c, golden_tensor *t)
{
	int64_t index[GOLDEN_MAX_RANK] = {0};
	uint64_t i, steps = 0;

	t->slack_used = 0;
	for (i = 0; i < t->count; i++, golden_step(t, index)) {
		const uint64_t at = golden_place(t, index);
		const uint8_t *got = t->data + at * t->elem_bytes;
		const uint8_t *want = t->want + at * t->elem_bytes;
		int beyond = 0;

		if (not_written(t, index))
			continue;
		if (t->rule == GOLDEN_FLOAT)
			beyond = judge_float(t, golden_value(t->dtype, got),
					     golden_value(t->dtype, want),
					     t->slack ? t->slack[i] : 0);
		else if (t->rule == GOLDEN_QUANTIZED)
			beyond = judge_quantized(*got, *want);
		else
			beyond = memcmp(got, want, t->elem_bytes) ? 2 : 0;
		if (beyond == 2)
			return mismatch(c, t, index, at, "");
		if (beyond && t->rule == GOLDEN_FLOAT)
			t->slack_used++;
		else if (beyond && ++steps > 1 + t->count / 1000)
			return mismatch(c, t, index, at,
					", and so on too many elements");
	}
	return GOLDEN_RAN;
}

/* How far the tensor as a whole is from the golden one. */
static golden_verdict
compare_whole(golden_case *c, const golden_tensor *t)
{
	int64_t index[GOLDEN_MAX_RANK] = {0};
	double both = 0, each = 0;
	uint64_t i;

	for (i = 0; t->diff_limit > 0 && i < t->count;
	     i++, golden_step(t, index)) {
		const uint64_t at = golden_place(t, index) * t->elem_bytes;
		const double x = golden_value(t->dtype, t->data + at);
		const double y = golden_value(t->dtype, t->want + at);

		if (!isfinite(x) || !isfinite(y) || not_written(t, index))
			continue;
		both += 2 * x * y;
		each += x * x + y * y;
	}
	if (each > 0 && !(1 - both / each <= t->diff_limit))
		return golden_fail(c,
				   "%s: differs by %.3g as a whole, at most "
				   "%.3g may",
				   t->name, 1 - both / each, t->diff_limit);
	return GOLDEN_RAN;
}

static void
add_error(golden_error *e, double value, double exact)
{
	const double off = fabs(value - exact);

	e->rms += off * off;
	e->most = off > e->most ? off : e->most;
}

/* Finds how far both are from the exact results, where all three are finite. */
static void
find_errors(golden_tensor *t)
{
	int64_t index[GOLDEN_MAX_RANK] = {0};
	uint64_t i, n = 0;

	memset(&t->ours, 0, sizeof t->ours);
	memset(&t->theirs, 0, sizeof t->theirs);
	for (i = 0; i < t->count; i++, golden_step(t, index)) {
		const uint64_t at = golden_place(t, index) * t->elem_bytes;
		const double got = golden_value(t->dtype, t->data + at);
		const double want = golden_value(t->dtype, t->want + at);

		if (!isfinite(got) || !isfinite(want) ||
		    !isfinite(t->exact[i]) || not_written(t, index))
			continue;
		add_error(&t->ours, got, t->exact[i]);
		add_error(&t->theirs, want, t->exact[i]);
		n++;
	}
	t->ours.rms = n ? sqrt(t->ours.rms / (double)n) : 0;
	t->theirs.rms = n ? sqrt(t->theirs.rms / (double)n) : 0;
}

static golden_verdict
compare_errors(golden_case *c, const golden_tensor *t)
{
	const double limit = t->error_limit;

	if (limit > 0 && (t->ours.rms > t->rms_limit * t->theirs.rms ||
			  t->ours.most > limit * t->theirs.most))
		return golden_fail(c,
				   "%s: is off exact by rms %.6g, most %.3g; "
				   "%g times the real kernel's rms %.6g and %g "
				   "times its most %.3g may",
				   t->name, t->ours.rms, t->ours.most,
				   t->rms_limit, t->theirs.rms, limit,
				   t->theirs.most);
	return GOLDEN_RAN;
}

/* An inout is compared with its whole storage: gaps between rows hold what they
 * held before. */
static golden_verdict
compare_storage(golden_case *c, const golden_tensor *t)
{
	uint64_t i;

	if (t->role != GOLDEN_INOUT || t->rule != GOLDEN_EXACT)
		return GOLDEN_RAN;
	for (i = 0; i < t->elems * t->elem_bytes; i++)
		if (t->data[i] != t->want[i])
			return golden_fail(c,
					   "%s, byte %" PRIu64 " of the "
					   "storage: got 0x%02x, want 0x%02x",
					   t->name, i, t->data[i], t->want[i]);
	return GOLDEN_RAN;
}

golden_verdict
golden_compare(golden_case *c)
{
	golden_verdict v = GOLDEN_RAN;
	uint32_t i;

	for (i = 0; v == GOLDEN_RAN && i < c->tensor_count; i++) {
		golden_tensor *t = &c->tensors[i];

		if (t->role == GOLDEN_INPUT || t->left_out)
			continue;
		if (t->judge) {
			v = t->judge(c, t);
			continue;
		}
		if (t->rule == GOLDEN_QUANTIZED && t->dtype != GOLDEN_E4M3)
			return golden_fail(c,
					   "%s: no rule for a quantized "
					   "tensor that is not e4m3",
					   t->name);
		if (t->exact)
			find_errors(t);
		v = compare_tensor(c, t);
		if (v == GOLDEN_RAN)
			v = compare_errors(c, t);
		if (v == GOLDEN_RAN)
			v = compare_whole(c, t);
		if (v == GOLDEN_RAN)
			v = compare_storage(c, t);
	}
	return v;
}

golden_verdict
golden_compare_runs(golden_case *c)
{
	uint32_t i;

	for (i = 0; i < c->tensor_count; i++) {
		const golden_tensor *t = &c->tensors[i];

		if (t->role != GOLDEN_INPUT && !t->left_out &&
		    memcmp(t->first, t->data, t->elems * t->elem_bytes) != 0)
			return golden_fail(c,
					   "%s: the second run gave other "
					   "bytes",
					   t->name);
	}
	return GOLDEN_RAN;
}
