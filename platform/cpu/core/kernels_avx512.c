/* SPDX-License-Identifier: Apache-2.0
 *
 * The inner loops for AVX-512 F, BW, DQ, VL: vector_kernels.h at this width.
 */
#if defined(__x86_64__)
#include "spmla/platform/cpu/core/vec_avx512.h"

#include "spmla/platform/cpu/core/vector_kernels.h"
#include "spmla/platform/cpu/core/vector_part.h"
#include "spmla/platform/cpu/core/vector_project.h"
#include "spmla/platform/cpu/core/vector_quant.h"

const spmla_i_cpu_kernels spmla_i_cpu_avx512 = {
	"avx512",     dequantise,    load_bf16, score_open,  score_keys,
	attend_block, attend_divide, project,   score_query, score_values,
	part_bf16,    part_e4m3,     amax,      quantise,
};
#else
extern const int spmla_i_no_avx512;
#endif
