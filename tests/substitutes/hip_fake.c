/* SPDX-License-Identifier: Apache-2.0
 *
 * See hip_fake.h.
 */
#include "tests/substitutes/hip_fake.h"

#include <stdlib.h>
#include <string.h>

#include "spmla/spmla_hip.h"
#include "tests/emulator/emulator.h"

enum { DEVICES = 2, OUT_OF_RANGE = 101 }; /* hipErrorInvalidDevice */

hip_fake fake_hip;
spmla_i_hip_driver hip_fake_driver;

static int
h_get_device(int *number)
{
	const int r = cuda_fake_enter(CUDA_FAKE_get_device);

	*number = r ? -1 : fake_hip.current;
	return r;
}

/* Handles are of the first device. */
static int
h_set_device(int number)
{
	const int r = cuda_fake_enter(CUDA_FAKE_set_device);

	if (r)
		return r;
	if (number < 0 || number >= DEVICES)
		return OUT_OF_RANGE;
	fake_hip.current = number;
	cuda_fake_set_current(number == 0);
	return 0;
}

/* Fills all bytes; the fields that are read go where the layout has them. */
static int
fill(cuda_fake_call call, uint8_t *to, int number, const size_t at[3])
{
	const int r = cuda_fake_enter(call);
	int32_t value;

	if (r || number < 0 || number >= DEVICES)
		return r ? r : OUT_OF_RANGE;
	memset(to, 0x5A, SPMLA_HIP_PROPERTIES_BYTES);
	value = fake_hip.width;
	memcpy(to + at[0], &value, sizeof value);
	value = fake.sm_count;
	memcpy(to + at[1], &value, sizeof value);
	memcpy(to + at[2], fake_hip.arch, strlen(fake_hip.arch) + 1);
	return 0;
}

/* hip_runtime_api.h of ROCm 6: warpSize, multiProcessorCount, gcnArchName. */
static int
h_properties_0600(spmla_hip_properties_0600 *to, int number)
{
	static const size_t at[] = {308, 388, 1160};

	return fill(CUDA_FAKE_properties_0600, (uint8_t *)to, number, at);
}

/* The same of ROCm 5. */
static const size_t at_0000[] = {276, 336, 396};

static int
h_properties_0000(spmla_hip_properties_0000 *to, int number)
{
	return fill(CUDA_FAKE_properties_0000, (uint8_t *)to, number, at_0000);
}

static int
h_properties_before(spmla_hip_properties_0000 *to, int number)
{
	return fill(CUDA_FAKE_properties_before, (uint8_t *)to, number,
		    at_0000);
}

/* ---- The backend -------------------------------------------------------- */

static spmla_status
backend_query(const spmla_native *native, spmla_device *device,
	      spmla_diag *diag)
{
	const spmla_status s = spmla_i_gpu_query(
		&hip_fake_driver.gpu, SPMLA_HIP_OLDEST, native, device, diag);

	if (s == SPMLA_OK)
		device->ops = cuda_fake_backend.ops;
	return s;
}

static spmla_status
backend_init(spmla_ctx *ctx, const spmla_native *native, spmla_diag *diag)
{
	static const spmla_i_gpu_image image = {"code object", 11,
						SPMLA_HIP_OLDEST, NULL};

	memset(ctx->buf[SPMLA_BUF_BACKEND_STATE], 0, sizeof(spmla_i_gpu_state));
	return spmla_i_gpu_init(ctx, &hip_fake_driver.gpu, &image, native,
				diag);
}

void
hip_fake_reset(const char *arch)
{
	const char *seed = getenv("SPMLA_TEST_SEED");

	cuda_fake_reset();
	fake.version = 60241134;
	fake.capture_mode = SPMLA_GPU_CAPTURE_RELAXED;
	fake_hip.arch = arch;
	fake_hip.width = strlen(arch) > 6 && arch[6] != ':' ? 32 : 64;
	fake_hip.current = 0;
	emulator_set((uint32_t)fake_hip.width,
		     seed ? strtoull(seed, NULL, 0) : 1);
	hip_fake_driver.gpu = cuda_fake_driver.gpu;
	hip_fake_driver.gpu.platform = &spmla_i_hip_platform;
#define OWN(field, symbol, parameters) hip_fake_driver.field = h_##field;
	SPMLA_HIP_OWN(OWN)
	SPMLA_HIP_PROPERTIES(OWN)
#undef OWN
	cuda_fake_backend.name = spmla_hip.name;
	cuda_fake_backend.kind = spmla_hip.kind;
	cuda_fake_backend.query = backend_query;
	cuda_fake_backend.init = backend_init;
}
