/* SPDX-License-Identifier: Apache-2.0
 *
 * See registry.h.
 */
#include "tests/harness/registry.h"

const op_entry *const op_entries[SPMLA_OP_COUNT] = {
#define SPMLA_OP(stem) &op_##stem,
#include "spmla/ops/ops.inc"
#undef SPMLA_OP
};

/* The input in its other type, in an array of its own. */
static void
retype(const op_input *in, draw *d, void *args)
{
	uint8_t *pointer = (uint8_t *)args + in->pointer;
	const uint32_t other = 1;
	void *p;

	memcpy((uint8_t *)args + in->dtype, &other, sizeof other);
	memcpy(&p, pointer, sizeof p);
	if (!p)
		return;
	p = in->is_int ? (void *)draw_as_i64(d, p) : (void *)draw_as_bf16(d, p);
	memcpy(pointer, &p, sizeof p);
}

void
op_retype_some(const op_entry *op, draw *d, void *args)
{
	uint32_t i, other = 0;

	for (i = 0; i < OP_INPUTS && op->inputs[i].dtype; i++) {
		if (i == 0 || op->inputs[i].dtype != op->inputs[i - 1].dtype)
			other = draw_choice(d, 3) == 2;
		if (other)
			retype(&op->inputs[i], d, args);
	}
}

void
op_retype(const op_entry *op, draw *d, void *args)
{
	uint32_t i;

	for (i = 0; i < OP_INPUTS && op->inputs[i].dtype; i++)
		retype(&op->inputs[i], d, args);
}
