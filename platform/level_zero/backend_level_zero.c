/* SPDX-License-Identifier: Apache-2.0
 *
 * The Level Zero backend: the installed loader, and the library's SPIR-V.
 */
#include "spmla/platform/level_zero/init_level_zero.h"
#include "spmla/spmla_level_zero.h"

#include <string.h>

static spmla_status
level_zero_query(const spmla_native *native, spmla_device *device,
		 spmla_diag *diag)
{
	spmla_i_ze_driver driver;
	spmla_status s = spmla_i_gpu_load(&driver, &spmla_i_ze_library, diag);

	if (s == SPMLA_OK)
		s = spmla_i_ze_query(&driver, native, device, diag);
	if (s == SPMLA_OK)
		device->ops = spmla_level_zero.ops;
	return s;
}

static spmla_status
level_zero_init(spmla_ctx *ctx, const spmla_native *native, spmla_diag *diag)
{
	spmla_i_ze_state *state = spmla_i_ze_state_of(ctx);
	spmla_i_ze_driver *driver = (void *)state->functions;
	const spmla_i_ze_image images[SPMLA_ZE_MODULES] = {
		{spmla_i_level_zero_blob, spmla_i_level_zero_blob_bytes},
		{spmla_i_level_zero_tiles, spmla_i_level_zero_tiles_bytes},
	};
	spmla_status s;

	memset(state, 0, sizeof *state);
	s = spmla_i_gpu_load(driver, &spmla_i_ze_library, diag);
	if (s != SPMLA_OK)
		return s;
	return spmla_i_ze_init(ctx, driver, images, native, diag);
}

const spmla_backend spmla_level_zero = {
	"level_zero",
	SPMLA_BACKEND_LEVEL_ZERO,
#define SPMLA_GPU_OP(stem) SPMLA_I_OP_BIT(SPMLA_OP_##stem) |
#include "spmla/platform/gpu/ops.inc"
#undef SPMLA_GPU_OP
	0,
	level_zero_query,
	level_zero_init,
	SPMLA_I_ZE_BACKEND,
};
