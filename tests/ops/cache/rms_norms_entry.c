/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests know of rms_norms: outputs of their own, and in place.
 */
#include "tests/harness/registry.h"

static void
make(draw *d, void *args)
{
	spmla_rms_norms_args *a = args;
	const uint32_t in_place = draw_variant(d, 2);

	a->norm_eps = draw_scale(d);
	a->q_rows = draw_tokens(d);
	a->q_width = 8 * draw_size(d, 40);
	a->q_stride_elems = draw_stride(d, a->q_width);
	a->q = draw_bf16(
		d, draw_strided(a->q_rows, a->q_stride_elems, a->q_width));
	a->q_weight = draw_bf16(d, a->q_width);
	a->q_out_stride_elems =
		in_place ? a->q_stride_elems : draw_stride(d, a->q_width);
	a->q_out = in_place ? draw_changed(d, a->q)
			    : draw_out(d,
				       draw_strided(a->q_rows,
						    a->q_out_stride_elems,
						    a->q_width),
				       2);
	a->kv_rows = draw_there(d) ? draw_size(d, 3) : 0;
	a->kv_width = 8 * draw_size(d, 9);
	a->kv_stride_elems = draw_stride(d, a->kv_width);
	a->kv = draw_bf16(
		d, draw_strided(a->kv_rows, a->kv_stride_elems, a->kv_width));
	a->kv_weight = draw_bf16(d, a->kv_width);
	a->kv_out_stride_elems =
		in_place ? a->kv_stride_elems : draw_stride(d, a->kv_width);
	a->kv_out = in_place ? draw_changed(d, a->kv)
			     : draw_out(d,
					draw_strided(a->kv_rows,
						     a->kv_out_stride_elems,
						     a->kv_width),
					2);
}

static const arg_error errors[] = {
	BAD_FLOAT(rms_norms, norm_eps),
	BAD_MOST(rms_norms, q_rows, 2147483648, 2147483647),
	BAD_LEAST(rms_norms, q_width, 0, 8),
	BAD_MOST(rms_norms, q_width, 4104, 4096),
	BAD_MULTIPLE(rms_norms, q_width, 316, 8),
	BAD_NULL(rms_norms, q),
	BAD_STRIDE(rms_norms, q_stride_elems, 319, 320),
	BAD_NULL(rms_norms, q_weight),
	BAD_NULL(rms_norms, q_out),
	BAD_STRIDE(rms_norms, q_out_stride_elems, 319, 320),
	BAD_MOST(rms_norms, kv_rows, 2147483648, 2147483647),
	BAD_LEAST(rms_norms, kv_width, 4, 8),
	BAD_MOST(rms_norms, kv_width, 4104, 4096),
	BAD_MULTIPLE(rms_norms, kv_width, 70, 8),
	BAD_NULL(rms_norms, kv),
	BAD_STRIDE(rms_norms, kv_stride_elems, 71, 72),
	BAD_NULL(rms_norms, kv_weight),
	BAD_NULL(rms_norms, kv_out),
	BAD_STRIDE(rms_norms, kv_out_stride_elems, 71, 72),
};

static const arg_error in_place_errors[] = {
	BAD_EQUAL(rms_norms, q_out_stride_elems, 321, 320),
	BAD_ARG(rms_norms, q_stride_elems, 328, SPMLA_E_RANGE,
		"SPMLA_E_RANGE: rms_norms.q_out_stride_elems: got 320, "
		"want 328"),
	BAD_EQUAL(rms_norms, kv_out_stride_elems, 80, 72),
	BAD_ARG(rms_norms, kv_stride_elems, 80, SPMLA_E_RANGE,
		"SPMLA_E_RANGE: rms_norms.kv_out_stride_elems: got 72, "
		"want 80"),
};

OP_ENTRY(rms_norms, .errors = {ERRORS(errors), ERRORS(in_place_errors)},
	 .none = {ARG(rms_norms, q_rows, 0), ARG(rms_norms, kv_rows, 0)},
	 .is_spread = 1);
