/* SPDX-License-Identifier: Apache-2.0
 *
 * The scalar table, and its conversions.
 */
#include "spmla/platform/cpu/core/scalar_cpu.h"

static void
dequantise(const uint8_t *codes, uint32_t n, float scale, float *values)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		values[i] = spmla_i_round_bf16(spmla_i_e4m3_to_f32(codes[i]) *
					       scale);
}

static void
load_bf16(const uint8_t *bytes, uint32_t n, float *values)
{
	uint16_t half;
	uint32_t i;

	for (i = 0; i < n; i++) {
		memcpy(&half, bytes + i * sizeof half, sizeof half);
		values[i] = spmla_i_bf16_to_f32(half);
	}
}

static void
attend_divide(const float *o, float total, uint16_t *out)
{
	uint32_t d;

	for (d = 0; d < SPMLA_MLA_LATENT; d++)
		out[d] = spmla_i_f32_to_bf16(o[d] / total);
}

const spmla_i_cpu_kernels spmla_i_cpu_scalar = {
	"scalar",
	dequantise,
	load_bf16,
	spmla_i_cpu_scalar_score_open,
	spmla_i_cpu_scalar_score_keys,
	spmla_i_cpu_scalar_attend_block,
	attend_divide,
	spmla_i_cpu_scalar_project,
	spmla_i_cpu_scalar_score_query,
	spmla_i_cpu_scalar_score_values,
};
