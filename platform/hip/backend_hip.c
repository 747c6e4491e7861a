/* SPDX-License-Identifier: Apache-2.0
 *
 * The HIP backend: the installed runtime, and the library's code object for the
 * plan's architecture.
 */
#include "spmla/platform/gpu/driver/backend_gpu.h"
#include "spmla/platform/gpu/driver/init_gpu.h"
#include "spmla/platform/hip/driver_hip.h"
#include "spmla/spmla_hip.h"

#include <string.h>

static spmla_status
hip_query(const spmla_native *native, spmla_device *device, spmla_diag *diag)
{
	spmla_i_hip_driver driver;
	spmla_status s =
		spmla_i_gpu_open(&driver.gpu, &spmla_i_hip_platform, diag);

	if (s != SPMLA_OK)
		return s;
	s = spmla_i_gpu_query(&driver.gpu, SPMLA_HIP_OLDEST, native, device,
			      diag);
	if (s == SPMLA_OK)
		device->ops = spmla_hip.ops;
	return s;
}

static spmla_status
hip_init(spmla_ctx *ctx, const spmla_native *native, spmla_diag *diag)
{
	const spmla_i_gpu_image image = spmla_i_hip_image(
		spmla_i_hip_blob, spmla_i_hip_parts, spmla_i_hip_part_count,
		ctx->plan.device.arch);
	spmla_i_gpu_state *state = spmla_i_gpu_state_of(ctx);
	spmla_i_gpu_driver *driver = (void *)state->functions;
	spmla_status s;

	memset(state, 0, sizeof *state);
	s = spmla_i_gpu_open(driver, &spmla_i_hip_platform, diag);
	if (s != SPMLA_OK)
		return s;
	return spmla_i_gpu_init(ctx, driver, &image, native, diag);
}

const spmla_backend spmla_hip = {
	"hip", SPMLA_BACKEND_HIP,
#define SPMLA_GPU_OP(stem) SPMLA_I_OP_BIT(SPMLA_OP_##stem) |
#include "spmla/platform/gpu/ops.inc"
#undef SPMLA_GPU_OP
	0,     hip_query,         hip_init, SPMLA_I_GPU_BACKEND,
};
