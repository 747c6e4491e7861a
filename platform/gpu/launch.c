/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of kernels, and the helpers with which every *_launch.c launches
 * one.
 */
#include "spmla/platform/gpu/launch.h"

#define ONE(type, name) +1u

const spmla_i_gpu_kernel spmla_i_gpu_kernels[SPMLA_KERNEL_COUNT] = {
#define KERNEL_ROW(stem, items, dynamic, needs, cluster) \
	{"spmla_k_" #stem,                               \
	 items,                                          \
	 0u SPMLA_K_##stem(ONE, SPMLA_I_K_NONE),         \
	 (uint32_t)offsetof(spmla_k_##stem##_params, s), \
	 (uint32_t)sizeof(spmla_k_##stem##_params),      \
	 dynamic,                                        \
	 needs,                                          \
	 cluster},
#define SPMLA_KERNEL_LINE(stem, items, dynamic) \
	KERNEL_ROW(stem, items, dynamic, SPMLA_GPU_NEEDS_NOTHING, 1)
#define SPMLA_KERNEL_MMA(stem, items, dynamic) \
	KERNEL_ROW(stem, items, dynamic, SPMLA_GPU_NEEDS_MMA, 1)
#define SPMLA_KERNEL_TILE(stem, items, dynamic) \
	KERNEL_ROW(stem, items, dynamic, SPMLA_GPU_NEEDS_TILE, 1)
#define SPMLA_KERNEL_MFMA(stem, items, dynamic) \
	KERNEL_ROW(stem, items, dynamic, SPMLA_GPU_NEEDS_MFMA, 1)
#define SPMLA_KERNEL_WGMMA(stem, items, dynamic) \
	KERNEL_ROW(stem, items, dynamic, SPMLA_GPU_NEEDS_WGMMA, 1)
#define SPMLA_KERNEL_CLUSTERS(stem, items, dynamic, blocks) \
	KERNEL_ROW(stem, items, dynamic, SPMLA_GPU_NEEDS_WGMMA, blocks)
#include "spmla/platform/gpu/kernels.inc"
#undef SPMLA_KERNEL_LINE
};

/* Kernels cannot include the library's headers, so they repeat some of its
 * declarations. */
#define SAME(twin, field, type)                                             \
	SPMLA_STATIC_ASSERT(offsetof(twin, field) == offsetof(type, field), \
			    "kernels see " #type " as it is")
SAME(spmla_g_state, done, spmla_i_step_state);
SAME(spmla_g_state, step, spmla_i_step_state);
SAME(spmla_g_state, serial, spmla_i_step_state);
SAME(spmla_g_state, requests, spmla_i_step_state);
SAME(spmla_g_state, fault_step, spmla_i_step_state);
SAME(spmla_g_state, fault_rows, spmla_i_step_state);
SAME(spmla_g_state, fault_count, spmla_i_step_state);
SAME(spmla_g_status, key, spmla_i_device_status);
SAME(spmla_g_status, step, spmla_i_device_status);
SAME(spmla_g_status, serial, spmla_i_device_status);
SAME(spmla_g_status, count, spmla_i_device_status);
SPMLA_STATIC_ASSERT(sizeof(spmla_g_state) == sizeof(spmla_i_step_state) &&
			    sizeof(spmla_g_status) ==
				    sizeof(spmla_i_device_status),
		    "kernels see them whole");
SPMLA_STATIC_ASSERT((int)G_FAULT_TICKET_MISSING ==
				    (int)SPMLA_FAULT_TICKET_MISSING &&
			    (int)G_FAULT_TOO_LARGE ==
				    (int)SPMLA_FAULT_TOO_LARGE &&
			    (int)G_FAULT_ROW == (int)SPMLA_FAULT_ROW &&
			    (int)G_FAULT_LENGTH == (int)SPMLA_FAULT_LENGTH &&
			    (int)G_FAULT_PAGE == (int)SPMLA_FAULT_PAGE &&
			    (int)G_FAULT_SLOT == (int)SPMLA_FAULT_SLOT &&
			    (int)G_FAULT_LOGITS == (int)SPMLA_FAULT_LOGITS &&
			    (int)G_FAULT_INDEX == (int)SPMLA_FAULT_INDEX &&
			    (int)G_FAULT_POSITION == (int)SPMLA_FAULT_POSITION,
		    "kernels name faults as the library does");
SPMLA_STATIC_ASSERT((int)G_FAULT_TIMEOUT == (int)SPMLA_FAULT_TIMEOUT &&
			    (int)G_FAULT_TIMEOUT < (int)G_FAULT_ROWS,
		    "and so does their debug build");

/* The most bytes of shared memory that a block may have on CUDA. Unknown
 * devices get the smallest value. */
static uint32_t
shared_bytes(uint32_t arch)
{
	switch (arch) {
	case 80:
	case 87:
		return 163 * 1024;
	case 90:
	case 100:
	case 101:
	case 103:
	case 110:
		return 227 * 1024;
	default:
		return 99 * 1024;
	}
}

/* Whether a device has the instructions of tile.h. AMD: every architecture that
 * has kernels. Intel: Data Center GPU Max (0x0bd.) and Battlemage (0xe2..), by
 * the PCI device ID. */
static uint32_t
has_tiles(const spmla_device *device)
{
	return device->kind == SPMLA_BACKEND_HIP ||
	       (device->kind == SPMLA_BACKEND_LEVEL_ZERO &&
		(device->arch >> 4 == 0x0bd || device->arch >> 8 == 0xe2));
}

uint32_t
spmla_i_gpu_runs(spmla_i_kernel kernel, const spmla_plan *plan)
{
	const spmla_i_gpu_kernel *k = &spmla_i_gpu_kernels[kernel];
	const uint32_t is_cuda = plan->device.kind == SPMLA_BACKEND_CUDA;
	const uint32_t arch = plan->device.arch;

	switch (k->needs) {
	case SPMLA_GPU_NEEDS_MMA:
		return is_cuda && arch >= 80 &&
		       k->dynamic_bytes <= shared_bytes(arch);
	case SPMLA_GPU_NEEDS_WGMMA:
		return is_cuda && arch == 90;
	case SPMLA_GPU_NEEDS_MFMA:
		if (plan->device.kind != SPMLA_BACKEND_HIP || arch >> 8 != 9)
			return 0;
		/* fall through */
	case SPMLA_GPU_NEEDS_TILE:
		return has_tiles(&plan->device) &&
		       plan->config.flags & SPMLA_CONFIG_ALLOW_UNPROVEN;
	default:
		return 1;
	}
}

const spmla_i_gpu_variant *
spmla_i_gpu_choose(const spmla_i_gpu_queue *queue,
		   const spmla_i_gpu_variant *variants, uint32_t count,
		   uint32_t kind, uint32_t size, uint32_t aligned)
{
	const spmla_i_gpu_variant *v = variants, *last = variants + count - 1;

	for (; v < last; v++)
		if ((v->kind == kind ||
		     (kind && v->kind == SPMLA_GPU_ANY_KIND)) &&
		    (!v->most || size <= v->most) && v->aligned <= aligned &&
		    queue->resident_blocks[v->kernel])
			break;
	return v;
}

spmla_g_divisor
spmla_i_gpu_divisor(uint32_t by)
{
	spmla_g_divisor d = {by, 0, 31};

	if (by == 0)
		return d;
	while (UINT64_C(1) << (d.shift - 31) < by)
		d.shift++;
	d.factor = (uint32_t)(((UINT64_C(1) << d.shift) - 1) / by + 1);
	return d;
}

spmla_status
spmla_i_gpu_launch(const spmla_i_gpu_queue *queue, spmla_i_kernel kernel,
		   uint64_t rows, const void *params)
{
	const uint32_t cluster = spmla_i_gpu_kernels[kernel].cluster;
	const uint32_t most = queue->resident_blocks[kernel] / cluster;

	if (rows == 0)
		return SPMLA_OK;
	return queue->launch(queue, kernel,
			     cluster * (rows < most ? (uint32_t)rows : most),
			     params);
}
