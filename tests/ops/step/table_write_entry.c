/* SPDX-License-Identifier: Apache-2.0
 *
 * What the fuzzer knows of table_write.
 */
#include "tests/harness/registry.h"

static void
make(draw *d, void *args)
{
	spmla_table_write_args *a = args;

	a->group = draw_choice(d, 8) == 7;
	a->row = draw_odd(d, draw_choice(d, 5), UINT32_MAX);
	a->first_col = draw_odd(d, draw_choice(d, 10), UINT32_MAX);
	a->count = draw_odd(d, draw_choice(d, 11), UINT32_MAX);
}

static spmla_status
call(spmla_ctx *ctx, const void *args)
{
	const spmla_table_write_args *a = args;

	return spmla_table_write(ctx, a->group, a->row, a->first_col, a->count,
				 NULL);
}

const op_entry op_table_write = {
	.name = "table_write",
	.args_bytes = (uint32_t)sizeof(spmla_table_write_args),
	.is_protocol = 1,
	.make = make,
	.call = call};
