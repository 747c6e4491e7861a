/* SPDX-License-Identifier: Apache-2.0
 *
 * The structs of the core as an engine's binary sees them. The numbers are
 * written out: one that changes breaks engines that were built before.
 */
#include "tests/harness/pins.h"
#include "tests/harness/themes.h"

#include <stdlib.h>
#include <string.h>

#include "spmla/spmla_cpu.h"

#define S        PIN_S
#define F        PIN_F
#define GAP      PIN_G
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* clang-format off: a table is read as a table */
static const pin pins[] = {
	S(spmla_cache, 40),
	F(spmla_cache, struct_bytes, 0, 4),
	F(spmla_cache, layout, 4, 4),
	F(spmla_cache, table_group, 8, 4),
	F(spmla_cache, entries_per_page, 12, 4),
	F(spmla_cache, pages, 16, 4),
	F(spmla_cache, encoding, 20, 4),
	F(spmla_cache, page_stride_bytes, 24, 8),
	F(spmla_cache, base, 32, 8),
	S(spmla_diag, 40),
	F(spmla_diag, struct_bytes, 0, 4),
	F(spmla_diag, status, 4, 4),
	F(spmla_diag, want_rule, 8, 4),
	F(spmla_diag, index, 12, 4),
	F(spmla_diag, field, 16, 8),
	F(spmla_diag, got, 24, 8),
	F(spmla_diag, want, 32, 8),
	S(spmla_shape, 16),
	F(spmla_shape, tokens, 0, 4),
	F(spmla_shape, requests, 4, 4),
	F(spmla_shape, next_n, 8, 4),
	F(spmla_shape, max_live_context, 12, 4),
	S(spmla_table_config, 16),
	F(spmla_table_config, source, 0, 4),
	F(spmla_table_config, page_tokens, 4, 4),
	F(spmla_table_config, pool_pages, 8, 4),
	F(spmla_table_config, ring_columns, 12, 4),
	S(spmla_config, 520),
	F(spmla_config, struct_bytes, 0, 4),
	F(spmla_config, model, 4, 4),
	F(spmla_config, flags, 8, 4),
	F(spmla_config, heads, 12, 4),
	F(spmla_config, index_heads, 16, 4),
	F(spmla_config, topk, 20, 4),
	F(spmla_config, kv_layout, 24, 4),
	F(spmla_config, kv_scale_mode, 28, 4),
	F(spmla_config, max_rows, 32, 4),
	F(spmla_config, max_context_tokens, 36, 4),
	F(spmla_config, cache_layers, 40, 4),
	F(spmla_config, softmax_scale, 44, 4),
	F(spmla_config, bucket_count, 48, 4),
	F(spmla_config, buckets, 52, 256),
	F(spmla_config, groups, 308, 128),
	F(spmla_config, ring_slots, 436, 4),
	F(spmla_config, max_table_stores, 440, 4),
	F(spmla_config, max_update_pages, 444, 4),
	F(spmla_config, max_graphs, 448, 4),
	F(spmla_config, max_graph_nodes, 452, 4),
	F(spmla_config, queue_entries, 456, 4),
	F(spmla_config, max_prefill_tokens, 460, 4),
	F(spmla_config, logits_budget_bytes, 464, 8),
	F(spmla_config, prefill_workspace_tokens, 472, 4),
	F(spmla_config, cpu_workers, 476, 4),
	F(spmla_config, window_tokens, 480, 4),
	F(spmla_config, index_layout, 484, 4),
	F(spmla_config, c4a_layers, 488, 4),
	F(spmla_config, c128a_layers, 492, 4),
	F(spmla_config, draft_tokens, 496, 4),
	F(spmla_config, output_quant, 500, 4),
	F(spmla_config, dcp_ranks, 504, 4),
	F(spmla_config, dcp_rank, 508, 4),
	F(spmla_config, dcp_interleave, 512, 4),
	F(spmla_config, reserved, 516, 4),
	S(spmla_device, 32),
	F(spmla_device, struct_bytes, 0, 4),
	F(spmla_device, kind, 4, 4),
	F(spmla_device, arch, 8, 4),
	F(spmla_device, sm_count, 12, 4),
	F(spmla_device, subgroup_width, 16, 4),
	F(spmla_device, reserved, 20, 4),
	F(spmla_device, ops, 24, 8),
	S(spmla_native, 56),
	F(spmla_native, struct_bytes, 0, 4),
	F(spmla_native, flags, 4, 4),
	F(spmla_native, context, 8, 8),
	F(spmla_native, device, 16, 8),
	F(spmla_native, queue, 24, 8),
	F(spmla_native, parallel_for, 32, 8),
	F(spmla_native, parallel_user, 40, 8),
	F(spmla_native, graph_copies, 48, 4),
	F(spmla_native, reserved, 52, 4),
	S(spmla_extent, 32),
	F(spmla_extent, buf, 0, 4),
	F(spmla_extent, memory, 4, 4),
	F(spmla_extent, life, 8, 4),
	F(spmla_extent, branch, 12, 4),
	F(spmla_extent, offset_bytes, 16, 8),
	F(spmla_extent, bytes, 24, 8),
	S(spmla_plan, 3840),
	F(spmla_plan, struct_bytes, 0, 4),
	F(spmla_plan, version, 4, 4),
	F(spmla_plan, row_count, 8, 4),
	F(spmla_plan, columns, 12, 4),
	F(spmla_plan, max_tokens, 16, 4),
	F(spmla_plan, max_requests, 20, 4),
	F(spmla_plan, record_bytes, 24, 8),
	F(spmla_plan, logits_elems, 32, 8),
	F(spmla_plan, record_key, 40, 8),
	F(spmla_plan, region_bytes, 48, 32),
	F(spmla_plan, region_align, 80, 32),
	F(spmla_plan, life_bytes, 112, 40),
	F(spmla_plan, group_table, 152, 32),
	F(spmla_plan, group_columns, 184, 32),
	F(spmla_plan, config, 216, 520),
	F(spmla_plan, device, 736, 32),
	F(spmla_plan, extents, 768, 3072),
	S(spmla_row, 80),
	F(spmla_row, struct_bytes, 0, 4),
	F(spmla_row, buf, 4, 4),
	F(spmla_row, memory, 8, 4),
	F(spmla_row, life, 12, 4),
	F(spmla_row, branch, 16, 4),
	F(spmla_row, elem_bytes, 20, 4),
	F(spmla_row, count, 24, 8),
	F(spmla_row, offset_bytes, 32, 8),
	F(spmla_row, bytes, 40, 8),
	F(spmla_row, align_bytes, 48, 8),
	F(spmla_row, name, 56, 8),
	F(spmla_row, shape, 64, 8),
	F(spmla_row, writer, 72, 8),
	S(spmla_region, 24),
	F(spmla_region, struct_bytes, 0, 4),
	F(spmla_region, memory, 4, 4),
	F(spmla_region, base, 8, 8),
	F(spmla_region, bytes, 16, 8),
	S(spmla_request, 16),
	F(spmla_request, row, 0, 4),
	F(spmla_request, query_tokens, 4, 4),
	F(spmla_request, seq_len_tokens, 8, 4),
	F(spmla_request, flags, 12, 4),
	S(spmla_table_store, 24),
	F(spmla_table_store, group, 0, 4),
	F(spmla_table_store, row, 4, 4),
	F(spmla_table_store, first_col, 8, 4),
	F(spmla_table_store, count, 12, 4),
	F(spmla_table_store, pages, 16, 8),
	S(spmla_step, 32),
	F(spmla_step, struct_bytes, 0, 4),
	F(spmla_step, flags, 4, 4),
	F(spmla_step, request_count, 8, 4),
	F(spmla_step, store_count, 12, 4),
	F(spmla_step, requests, 16, 8),
	F(spmla_step, stores, 24, 8),
	S(spmla_step_info, 32),
	F(spmla_step_info, struct_bytes, 0, 4),
	F(spmla_step_info, bucket, 4, 4),
	F(spmla_step_info, tokens, 8, 4),
	F(spmla_step_info, requests, 12, 4),
	F(spmla_step_info, next_n, 16, 4),
	F(spmla_step_info, live_context, 20, 4),
	F(spmla_step_info, record_bytes, 24, 8),
	S(spmla_step_device, 64),
	F(spmla_step_device, requests, 0, 4),
	F(spmla_step_device, flags, 4, 4),
	F(spmla_step_device, reserved, 8, 56),
	S(spmla_device_status, 24),
	F(spmla_device_status, struct_bytes, 0, 4),
	F(spmla_device_status, count, 4, 4),
	F(spmla_device_status, fault, 8, 4),
	F(spmla_device_status, row, 12, 4),
	F(spmla_device_status, step, 16, 8),
};
/* clang-format on */

START_TEST(every_field_of_the_core_lies_where_it_lay)
{
	pins_check(pins, COUNT(pins));
}
END_TEST

/* struct_bytes, then zeros from `from` on. */
static void
check_zeros(const void *value, size_t bytes, size_t from, const char *name)
{
	const unsigned char *b = value;
	uint32_t struct_bytes;
	size_t i;

	memcpy(&struct_bytes, value, sizeof struct_bytes);
	ck_assert_msg(struct_bytes == bytes, "%s.struct_bytes is %u", name,
		      (unsigned)struct_bytes);
	for (i = from; i < bytes; i++)
		ck_assert_msg(b[i] == 0, "byte %zu of %s is not 0", i, name);
}

START_TEST(the_initialisers_set_the_size_and_nothing_else)
{
	static const spmla_diag diag = SPMLA_DIAG_INIT;
	static const spmla_device device = SPMLA_DEVICE_INIT;
	static const spmla_native native = SPMLA_NATIVE_INIT;
	static const spmla_row row = SPMLA_ROW_INIT;
	static const spmla_step step = SPMLA_STEP_INIT;
	static const spmla_step_info info = SPMLA_STEP_INFO_INIT;
	static const spmla_device_status status = SPMLA_DEVICE_STATUS_INIT;
	static const spmla_cache cache = SPMLA_CACHE_INIT;
	spmla_diag plain = diag;

	ck_assert_uint_eq(diag.index, 0xffffffffu);
	plain.index = 0;
	check_zeros(&plain, 40, 4, "diag");
	check_zeros(&device, 32, 4, "device");
	check_zeros(&native, 56, 4, "native");
	check_zeros(&row, 80, 4, "row");
	check_zeros(&step, 32, 4, "step");
	check_zeros(&info, 32, 4, "step_info");
	check_zeros(&status, 24, 4, "device_status");
	check_zeros(&cache, 40, 4, "cache");
}
END_TEST

START_TEST(the_part_of_a_config_that_must_be_there_ends_before_ring_slots)
{
	ck_assert_uint_eq(SPMLA_CONFIG_MIN_BYTES, 436);
	ck_assert_uint_eq(offsetof(spmla_config, ring_slots), 436);
}
END_TEST

SUITE
{
	const theme_test c[] = {
		{every_field_of_the_core_lies_where_it_lay, 1},
		{the_initialisers_set_the_size_and_nothing_else, 1},
		{the_part_of_a_config_that_must_be_there_ends_before_ring_slots,
		 1},
	};
	const theme themes[] = {
		THEME("layout", NULL, NULL, c),
	};

	return RUN_THEMES(themes);
}
