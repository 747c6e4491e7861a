/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks that a device has the operations that a config's steps need.
 */
#include "spmla/internal/backend.h"
#include "spmla/internal/config.h"

#include <string.h>

/* An operation is needed if it belongs to decode, to V4, to ragged lists, or to
 * a planned prefill of V3.2. A GPU also needs split_combine; with
 * BATCH_INVARIANT only CUDA does. A prefill of V4 takes the operations of its
 * decode. All others are only called alone. */
static uint32_t
is_needed(const spmla_device *device, const spmla_config *c, uint32_t op)
{
	static const uint32_t v4[] = {
		SPMLA_OP_qnorm_rope_kv_insert, SPMLA_OP_compress_state_save,
		SPMLA_OP_kv_compress,          SPMLA_OP_swa_index,
		SPMLA_OP_c128a_index,          SPMLA_OP_inv_rope_quant,
		SPMLA_OP_o_group_proj};
	static const uint32_t prefill[] = {
		SPMLA_OP_indexer_k_gather, SPMLA_OP_kv_gather,
		SPMLA_OP_sparse_prefill, SPMLA_OP_mqa_logits_gathered,
		SPMLA_OP_prefill_rows};
	uint32_t i;

	if (op <= SPMLA_OP_sparse_decode)
		return 1;
	for (i = 0; spmla_i_is_v4(c) && i < SPMLA_I_COUNT(v4); i++)
		if (op == v4[i])
			return 1;
	for (i = 0; !spmla_i_is_v4(c) && c->max_prefill_tokens &&
		    i < SPMLA_I_COUNT(prefill);
	     i++)
		if (op == prefill[i])
			return 1;
	if (c->flags & SPMLA_CONFIG_RAGGED &&
	    (op == SPMLA_OP_indexer_schedule ||
	     (spmla_i_is_v4(c) && op == SPMLA_OP_ragged_index)))
		return 1;
	return op == SPMLA_OP_split_combine &&
	       device->kind != SPMLA_BACKEND_CPU &&
	       (device->kind == SPMLA_BACKEND_CUDA ||
		!(c->flags & SPMLA_CONFIG_BATCH_INVARIANT));
}

spmla_status
spmla_i_device_check(const spmla_device *device, const spmla_config *config,
		     spmla_diag *diag)
{
	static const char *const names[] = {
#define SPMLA_OP(stem) "device.ops: " #stem,
#include "spmla/ops/ops.inc"
#undef SPMLA_OP
	};
	spmla_status s;
	uint32_t bytes, op;

	/* The struct may be too short: read nothing else before the check. */
	memcpy(&bytes, device, sizeof bytes);
	s = spmla_i_check_size(diag, "device.struct_bytes", bytes,
			       sizeof *device);
	if (s != SPMLA_OK)
		return s;
	const spmla_i_check checks[] = {
		{"device.kind", device->kind,
		 SPMLA_I_FROM_TO(SPMLA_BACKEND_CPU, SPMLA_BACKEND_LEVEL_ZERO)},
		{"device.arch", device->arch, SPMLA_WANT_AT_MOST,
		 device->kind == SPMLA_BACKEND_CPU    ? 0
		 : device->kind == SPMLA_BACKEND_CUDA ? 999
						      : 0xffff},
		{"device.sm_count", device->sm_count, SPMLA_WANT_AT_LEAST, 1},
		{"device.sm_count", device->sm_count, SPMLA_WANT_AT_MOST, 4096},
		{"device.subgroup_width", device->subgroup_width,
		 SPMLA_WANT_AT_LEAST, 1},
		{"device.subgroup_width", device->subgroup_width,
		 SPMLA_WANT_AT_MOST, 64},
		{"device.reserved", device->reserved, SPMLA_WANT_EQUAL, 0},
	};

	s = spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));
	if (s != SPMLA_OK)
		return s;
	for (op = 0; op < SPMLA_OP_COUNT; op++)
		if (is_needed(device, config, op) &&
		    !(device->ops & SPMLA_I_OP_BIT(op)))
			return spmla_i_fail(diag, SPMLA_E_UNSUPPORTED,
					    names[op], 0, SPMLA_WANT_AT_LEAST,
					    1);
	return SPMLA_OK;
}
