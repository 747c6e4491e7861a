/* SPDX-License-Identifier: Apache-2.0
 *
 * The backend of Level Zero on the fake driver, with the emulator's kernels.
 */
#include "tests/substitutes/cuda_fake.h"
#include "tests/substitutes/ze_fake.h"

#include <stdlib.h>
#include <string.h>

#include "spmla/platform/level_zero/init_level_zero.h"
#include "spmla/spmla_level_zero.h"
#include "tests/emulator/emulator.h"

static const uint8_t spirv[] = "SPIR-V";
static const uint8_t tiles[8] = "tiles";

static uint32_t
number_of(const char *name)
{
	uint32_t i = 0;

	while (i < SPMLA_KERNEL_COUNT &&
	       strcmp(spmla_i_gpu_kernels[i].name, name) != 0)
		i++;
	return i;
}

static uint32_t
find(const char *name, ze_fake_kernel *kernel)
{
	const uint32_t i = number_of(name);
	const spmla_i_gpu_kernel *k = &spmla_i_gpu_kernels[i];

	if (i == SPMLA_KERNEL_COUNT)
		return 0;
	*kernel = (ze_fake_kernel){k->name, k->items, k->pointers + 1,
				   16,      0,        NULL};
	return 1;
}

static void
run(const ze_fake_kernel *kernel, uint32_t groups, const ze_fake_args *args)
{
	const uint32_t i = number_of(kernel->name);
	const spmla_i_gpu_kernel *k = &spmla_i_gpu_kernels[i];
	_Alignas(16) uint8_t params[sizeof *args];

	memcpy(params, args->pointers, k->pointers * sizeof(void *));
	memcpy(params + k->scalars_offset, args->scalars, args->scalar_bytes);
	emulator_run((spmla_i_kernel)i, groups, params);
}

static spmla_status
backend_query(const spmla_native *native, spmla_device *device,
	      spmla_diag *diag)
{
	const spmla_status s = spmla_i_ze_query(&ze_fake_driver_table.own,
						native, device, diag);

	if (s == SPMLA_OK)
		device->ops = cuda_fake_backend.ops;
	return s;
}

static spmla_status
backend_init(spmla_ctx *ctx, const spmla_native *native, spmla_diag *diag)
{
	memset(ctx->buf[SPMLA_BUF_BACKEND_STATE], 0, sizeof(spmla_i_ze_state));
	return spmla_i_ze_init(ctx, &ze_fake_driver_table.own, fake_ze.modules,
			       native, diag);
}

void
ze_fake_reset(void)
{
	const char *text = getenv("SPMLA_TEST_SEED");
	const uint64_t seed = text ? strtoull(text, NULL, 0) : 1;

	memset(&fake_ze, 0, sizeof fake_ze);
	fake_ze.version = SPMLA_ZE_OLDEST;
	fake_ze.name = "fake";
	fake_ze.type = SPMLA_ZE_DEVICE_GPU;
	fake_ze.device_id = 0xe20b;
	fake_ze.slices = 5;
	fake_ze.subslices = 4;
	fake_ze.group_items = 1024;
	fake_ze.subgroup_size = 16;
	fake_ze.host_access = SPMLA_ZE_ACCESS_CONCURRENT;
	fake_ze.queue_group_flags = SPMLA_ZE_QUEUE_GROUP_COMPUTE;
	fake_ze.devices = 1;
	fake_ze.resident = 8;
	fake_ze.patience = 100;
	fake_ze.modules[SPMLA_ZE_PORTABLE] =
		(spmla_i_ze_image){spirv, sizeof spirv};
	fake_ze.modules[SPMLA_ZE_TILES] =
		(spmla_i_ze_image){tiles, sizeof tiles};
	fake_ze.find = find;
	fake_ze.run = run;
	fake_ze.code = 999;
	ze_fake_start(seed);
	emulator_set(16, seed);
	cuda_fake_backend = spmla_level_zero;
	cuda_fake_backend.ops = SPMLA_I_OP_BIT(SPMLA_OP_COUNT) - 1;
	cuda_fake_backend.query = backend_query;
	cuda_fake_backend.init = backend_init;
}
