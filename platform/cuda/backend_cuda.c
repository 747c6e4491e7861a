/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA backend: the installed driver, and the kernels of the library.
 */
#include "spmla/platform/cuda/driver_cuda.h"
#include "spmla/platform/gpu/driver/backend_gpu.h"
#include "spmla/platform/gpu/driver/init_gpu.h"
#include "spmla/spmla_cuda.h"

#include <string.h>

static spmla_status
cuda_query(const spmla_native *native, spmla_device *device, spmla_diag *diag)
{
	spmla_i_cuda_driver driver;
	spmla_status s =
		spmla_i_gpu_open(&driver.gpu, &spmla_i_cuda_platform, diag);

	if (s != SPMLA_OK)
		return s;
	s = spmla_i_gpu_query(&driver.gpu, spmla_i_cuda_blob_driver, native,
			      device, diag);
	if (s == SPMLA_OK)
		device->ops = spmla_cuda.ops;
	return s;
}

static spmla_status
cuda_init(spmla_ctx *ctx, const spmla_native *native, spmla_diag *diag)
{
	const spmla_i_gpu_image image = {
		spmla_i_cuda_blob, spmla_i_cuda_blob_bytes,
		spmla_i_cuda_blob_driver, "bytes of kernels for CUDA"};
	spmla_i_gpu_state *state = spmla_i_gpu_state_of(ctx);
	spmla_i_gpu_driver *driver = (void *)state->functions;
	spmla_status s;

	memset(state, 0, sizeof *state);
	s = spmla_i_gpu_open(driver, &spmla_i_cuda_platform, diag);
	if (s != SPMLA_OK)
		return s;
	return spmla_i_gpu_init(ctx, driver, &image, native, diag);
}

const spmla_backend spmla_cuda = {
	"cuda", SPMLA_BACKEND_CUDA,
#define SPMLA_GPU_OP(stem) SPMLA_I_OP_BIT(SPMLA_OP_##stem) |
#include "spmla/platform/gpu/ops.inc"
#undef SPMLA_GPU_OP
	0,      cuda_query,         cuda_init, SPMLA_I_GPU_BACKEND,
};
