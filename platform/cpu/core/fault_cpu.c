/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports bad data to the sticky status. Reports of a parallel loop wait in the
 * backend's state until the loop ends, so the status does not depend on the
 * order of workers.
 */
#include "spmla/internal/cpu_sizes.h"
#include "spmla/platform/cpu/core/cpu.h"

void
spmla_i_cpu_report(spmla_ctx *ctx, uint64_t key, uint64_t count)
{
	const spmla_i_step_state *step = ctx->buf[SPMLA_BUF_STEP_STATE];
	spmla_i_device_status *d = ctx->buf[SPMLA_BUF_DEVICE_STATUS];
	const uint32_t rest = UINT32_MAX - d->count;

	if (d->count == 0 || (d->serial == step->serial && key < d->key)) {
		d->serial = step->serial;
		spmla_i_store_u64(&d->step, step->step);
		spmla_i_store_u64(&d->key, key);
	}
	spmla_i_store_u32(&d->count, count < rest ? d->count + (uint32_t)count
						  : UINT32_MAX);
}

void
spmla_i_cpu_fault(spmla_ctx *ctx, uint32_t row, spmla_fault fault)
{
	spmla_i_cpu_state *st = ctx->buf[SPMLA_BUF_BACKEND_STATE];
	const uint64_t key = (uint64_t)row << 32 | (uint32_t)fault;

	if (st->loop_open) {
		spmla_i_min_u64(&st->loop_key, key);
		(void)spmla_i_fetch_add_u64(&st->loop_faults, 1);
		return;
	}
	spmla_i_cpu_report(ctx, key, 1);
}
