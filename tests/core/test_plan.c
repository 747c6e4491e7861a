/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan is a pure function: the same config and device give the same bytes,
 * whatever lay in memory before. What it says of itself: rows, texts, keys.
 */
#include "spmla/internal/check.h"
#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"
#include "tests/harness/v4_layer_rig.h"

#include <stdlib.h>
#include <string.h>

#include "spmla/arena/arena_plan.h"

#define COUNT(a) ((uint32_t)(sizeof(a) / sizeof((a)[0])))

static spmla_device device;
static spmla_plan plan, other;

static void
setup(void)
{
	device = (spmla_device)SPMLA_DEVICE_INIT;
	ck_assert_int_eq(spmla_backend_query(&spmla_cpu, NULL, &device, NULL),
			 SPMLA_OK);
}

static void
make(spmla_plan *p, const spmla_config *config)
{
	spmla_diag diag = SPMLA_DIAG_INIT;
	char text[200];

	if (spmla_plan_make(p, config, &device, &diag) == SPMLA_OK)
		return;
	spmla_diag_text(&diag, text, sizeof text);
	ck_abort_msg("%s", text);
}

START_TEST(the_same_config_gives_the_same_bytes)
{
	spmla_config config;
	uint32_t fill;

	fixture_config(&config);
	config.cache_layers = 2;
	memset(&plan, 0, sizeof plan);
	make(&plan, &config);
	for (fill = 0; fill < 256; fill += 51) {
		memset(&other, (int)fill, sizeof other);
		make(&other, &config);
		ck_assert_mem_eq(&plan, &other, sizeof plan);
	}
	ck_assert_uint_eq(plan.struct_bytes, 3840);
	ck_assert_uint_eq(plan.version, SPMLA_VERSION);
}
END_TEST

START_TEST(what_lies_in_unused_entries_does_not_matter)
{
	spmla_config config;

	fixture_config(&config);
	make(&plan, &config);
	memset(&config.buckets[3], 0xee, 13 * sizeof config.buckets[0]);
	memset(&config.groups[1], 0xee, 7 * sizeof config.groups[0]);
	make(&other, &config);
	ck_assert_mem_eq(&plan, &other, sizeof plan);
}
END_TEST

START_TEST(a_default_and_its_value_give_the_same_plan)
{
	spmla_config config;

	fixture_config(&config);
	make(&plan, &config);
	make(&other, &plan.config);
	ck_assert_mem_eq(&plan, &other, sizeof plan);
}
END_TEST

START_TEST(an_overflow_names_the_buffer)
{
	/* Dimensions that are not named here are 1. */
	static const struct {
		spmla_i_dim a, b;
		uint64_t count_a, count_b;
		const char *text;
	} cases[] = {
		{SPMLA_I_DIM_LOGITS, SPMLA_I_DIM_ONE, UINT64_C(1) << 62, 1,
		 "SPMLA_E_OVERFLOW: LOGITS"},
		{SPMLA_I_DIM_RING_SLOTS, SPMLA_I_DIM_RECORD_BYTES, 2,
		 UINT64_MAX, "SPMLA_E_OVERFLOW: STEP_RING"},
		{SPMLA_I_DIM_RING_ROWS, SPMLA_I_DIM_COLUMNS, UINT64_C(1) << 32,
		 UINT64_C(1) << 32, "SPMLA_E_OVERFLOW: TABLE_STAGING"},
		{SPMLA_I_DIM_CACHE_PAGES, SPMLA_I_DIM_KV_PAGE_BYTES,
		 UINT64_C(1) << 40, UINT64_C(1) << 30,
		 "SPMLA_E_OVERFLOW: KV_CACHE"},
		/* The size fits, its end does not. */
		{SPMLA_I_DIM_INDEX_SCRATCH, SPMLA_I_DIM_ONE, UINT64_MAX - 99, 1,
		 "SPMLA_E_OVERFLOW: INDEX_SCRATCH"},
		{SPMLA_I_DIM_ATTEND_SCRATCH, SPMLA_I_DIM_ONE, UINT64_MAX - 99,
		 1, "SPMLA_E_OVERFLOW: ATTEND_SCRATCH"},
		/* Each fits, both do not. */
		{SPMLA_I_DIM_CONTEXT_BYTES, SPMLA_I_DIM_BACKEND_BYTES,
		 UINT64_C(1) << 63, UINT64_C(1) << 63,
		 "SPMLA_E_OVERFLOW: BACKEND_STATE"},
		{SPMLA_I_DIM_TOKENS, SPMLA_I_DIM_TOPK, UINT64_C(1) << 30,
		 UINT64_C(1) << 32, "SPMLA_E_OVERFLOW: TOPK_INDICES"},
	};
	spmla_diag diag = SPMLA_DIAG_INIT;
	uint64_t dim[SPMLA_I_DIM_COUNT];
	uint32_t i, d, apart;

	for (i = 0; i < 2 * COUNT(cases); i++) {
		apart = i % 2 ? SPMLA_CONFIG_APART : 0;
		for (d = 0; d < SPMLA_I_DIM_COUNT; d++)
			dim[d] = 1;
		dim[cases[i / 2].a] = cases[i / 2].count_a;
		dim[cases[i / 2].b] = cases[i / 2].count_b;
		dim[SPMLA_I_DIM_ONE] = 1;
		memset(&plan, 0, sizeof plan);
		ck_assert_int_eq(spmla_i_arena_plan(&plan, dim, apart, &diag),
				 SPMLA_E_OVERFLOW);
		ck_assert_str_eq(test_diag_text(&diag), cases[i / 2].text);
	}
}
END_TEST

START_TEST(the_largest_config_fits_64_bits)
{
	spmla_config c;
	uint32_t i;

	fixture_config(&c);
	c.heads = 256;
	c.index_heads = 128;
	c.topk = 65536;
	c.max_rows = 65536;
	c.max_context_tokens = 1 << 24;
	c.cache_layers = 1024;
	c.groups[0].page_tokens = 1;
	c.groups[0].pool_pages = INT32_MAX;
	c.kv_layout = SPMLA_LAYOUT_MLA_BF16;
	c.bucket_count = 16;
	for (i = 0; i < 16; i++)
		c.buckets[i] = (spmla_shape){65536, 65536, 65536, 0};
	c.ring_slots = 1024;
	c.max_table_stores = 65536;
	c.max_update_pages = 1 << 24;
	make(&plan, &c);
	/* 1024 layers of 2^31 - 1 pages of 1152 and of 144 bytes */
	ck_assert(plan.region_bytes[SPMLA_MEMORY_CACHE] ==
		  UINT64_C(1024) * INT32_MAX * (1152 + 144));
	ck_assert(plan.logits_elems == UINT64_C(65536) << 24);
}
END_TEST

static uint64_t
key(const spmla_config *config)
{
	make(&other, config);
	return other.record_key;
}

START_TEST(plans_share_records_unless_a_limit_of_a_step_differs)
{
#define AT(field) (uint32_t) offsetof(spmla_config, field)
	static const struct {
		uint32_t at;
		uint32_t value;
		uint32_t same;
	} cases[] = {
		{AT(heads), 8, 1},
		{AT(index_heads), 8, 1},
		{AT(topk), 16, 1},
		{AT(flags), SPMLA_CONFIG_APART, 1},
		{AT(kv_layout), SPMLA_LAYOUT_MLA_BF16, 1},
		{AT(kv_scale_mode), SPMLA_SCALE_RAW, 1},
		{AT(cache_layers), 3, 1},
		{AT(softmax_scale), 0x3f800000u, 1},
		{AT(ring_slots), 9, 1},
		{AT(max_graphs), 9, 1},
		{AT(max_graph_nodes), 9, 1},
		{AT(queue_entries), 9, 1},
		{AT(max_prefill_tokens), 9, 0},
		{AT(max_rows), 9, 0},
		{AT(max_context_tokens), 511, 0},
		{AT(max_table_stores), 17, 0},
		{AT(max_update_pages), 33, 0},
		{AT(bucket_count), 2, 0},
		{AT(buckets[0].tokens), 5, 0},
		{AT(buckets[1].requests), 3, 0},
		{AT(buckets[2].next_n), 3, 0},
		{AT(buckets[2].max_live_context), 4095, 0},
		{AT(groups[0].source), SPMLA_TABLE_DEVICE, 0},
		{AT(groups[0].page_tokens), 32, 0},
		{AT(groups[0].pool_pages), 65, 0},
	};
#undef AT
	spmla_config config;
	uint32_t i;

	fixture_config(&config);
	make(&plan, &config);
	ck_assert_uint_ne(plan.record_key, 0);
	for (i = 0; i < COUNT(cases); i++) {
		fixture_config(&config);
		memcpy((unsigned char *)&config + cases[i].at, &cases[i].value,
		       sizeof cases[i].value);
		ck_assert_msg((key(&config) == plan.record_key) ==
				      cases[i].same,
			      "case %u", i);
		if (cases[i].same)
			ck_assert_uint_eq(other.record_bytes,
					  plan.record_bytes);
	}
}
END_TEST

START_TEST(every_buffer_has_its_row_and_its_texts)
{
	/* In the order of the table. */
	static const struct {
		uint32_t buf;
		const char *name;
	} want[] = {
#define B(name) {SPMLA_BUF_##name, #name}
		B(CONTEXT),          B(BACKEND_STATE),
		B(GRAPH_NODES),      B(QUEUE),
		B(STEP_RING),        B(RING_CONSUMED),
		B(DEVICE_STATUS),    B(TABLE_STAGING),
		B(STEP_STATE),       B(STEP_DEVICE),
		B(ROW_LEN),          B(ADVANCE_BY),
		B(BLOCK_TABLE_MAIN), B(TABLE_COLS_MAIN),
		B(STEP_REQUESTS),    B(QUERY_START_LOC),
		B(SEQ_LENS),         B(REQ_ROW),
		B(REQ_ID_PER_TOKEN), B(TOKEN_ROW),
		B(POSITIONS),        B(CONTEXT_LENS),
		B(SLOT_MAPPING),     B(LOGITS_ROW_STARTS),
		B(TOPK_INDICES),     B(TOPK_LENS),
		B(INDEX_Q),          B(INDEX_WEIGHTS),
		B(LOGITS),           B(INDEX_SCRATCH),
		B(TOPK_SLOTS),       B(ATTEND_SCRATCH),
		B(KV_CACHE),         B(INDEX_CACHE),
#undef B
	};
	spmla_row row = SPMLA_ROW_INIT;
	spmla_config config;
	uint32_t i, k, found;

	fixture_config(&config);
	config.cache_layers = 1;
	make(&plan, &config);
	ck_assert_uint_eq(plan.row_count, COUNT(want));
	for (i = 0; i < COUNT(want); i++) {
		for (k = 0, found = 0; k < plan.row_count; k++) {
			ck_assert_int_eq(spmla_plan_row(&plan, k, &row),
					 SPMLA_OK);
			if (row.buf != want[i].buf)
				continue;
			found++;
			ck_assert_str_eq(row.name, want[i].name);
			ck_assert_uint_gt(strlen(row.shape), 0);
			ck_assert_uint_gt(strlen(row.writer), 0);
			ck_assert_uint_gt(row.bytes, 0);
			ck_assert_uint_eq(row.bytes,
					  row.count * row.elem_bytes);
			ck_assert_uint_eq(row.align_bytes, 256);
			ck_assert_uint_lt(row.memory, SPMLA_MEMORY_COUNT);
			ck_assert_uint_lt(row.life, SPMLA_LIFE_COUNT);
		}
		ck_assert_msg(found == 1, "%s: %u rows", want[i].name, found);
	}
}
END_TEST

START_TEST(buffers_that_are_not_needed_have_no_row)
{
	static const uint32_t absent[] = {
		SPMLA_BUF_BLOCK_TABLE_MAIN, SPMLA_BUF_TABLE_COLS_MAIN,
		SPMLA_BUF_TABLE_STAGING,    SPMLA_BUF_KV_CACHE,
		SPMLA_BUF_INDEX_CACHE,
	};
	spmla_config config;
	uint32_t i, k;

	fixture_config(&config);
	config.groups[0].source = SPMLA_TABLE_DEVICE;
	make(&plan, &config);
	ck_assert_uint_eq(plan.row_count, 34 - COUNT(absent));
	ck_assert_uint_eq(plan.region_bytes[SPMLA_MEMORY_CACHE], 0);
	for (i = 0; i < plan.row_count; i++)
		for (k = 0; k < COUNT(absent); k++)
			ck_assert_uint_ne(plan.extents[i].buf, absent[k]);
}
END_TEST

/* What a call finds as zeros and leaves so shares its bytes with nothing. */
START_TEST(what_is_zeros_between_calls_lives_as_long_as_the_context)
{
	/* of 16 tokens, and two cuts of the prologue */
	static const struct {
		spmla_buf buf;
		uint64_t bytes;
	} zeros[] = {{SPMLA_BUF_SPLIT_KEYS, 16 * 512 * 4},
		     {SPMLA_BUF_SPLIT_COUNTS, 16 * 4},
		     {SPMLA_BUF_STEP_UNITS, 18 * 16 * 4}};
	uint32_t i, j, found = 0;
	spmla_config config;

	v4_layer_config(&config);
	device.kind = SPMLA_BACKEND_CUDA;
	device.arch = 90;
	device.sm_count = 132;
	device.subgroup_width = 32;
	make(&plan, &config);
	for (i = 0; i < plan.row_count; i++)
		for (j = 0; j < COUNT(zeros); j++) {
			const spmla_extent *e = &plan.extents[i];

			if (e->buf != zeros[j].buf)
				continue;
			ck_assert_uint_eq(e->memory, SPMLA_MEMORY_DEVICE);
			ck_assert_uint_eq(e->life, SPMLA_LIFE_CONTEXT);
			ck_assert_uint_eq(e->bytes, zeros[j].bytes);
			found++;
		}
	ck_assert_uint_eq(found, 3);
}
END_TEST

/* V3.2 with 128 heads and 2048 keys: 16 blocks share the keys of a group of
 * heads. Four tokens are 8 groups of 64 heads, 128 blocks, with 8 * (32 + 1024
 * * (4 + 256)) words. With 127 SMs three tokens are the most, 6 groups; with 63
 * one token, 2 groups. With 31 there are no few tokens, but 2 counts for each
 * of 2 groups of 64 heads of 11 tokens that parts share, 176 bytes. With the
 * batch-invariant flag it is 16 tokens. */
START_TEST(few_tokens_have_a_workspace_on_hopper_alone)
{
	static const struct {
		uint32_t arch, sm_count, flags;
		uint64_t bytes;
	} c[] = {{90, 132, 0, 8520704},
		 {90, 127, 0, 6390528},
		 {90, 63, 0, 2130176},
		 {90, 31, 0, 176},
		 {100, 132, 0, 0},
		 {90, 132, SPMLA_CONFIG_BATCH_INVARIANT, 256}};
	uint32_t i, j, found;
	spmla_config config;

	for (i = 0; i < SPMLA_I_COUNT(c); i++) {
		fixture_config(&config);
		config.heads = 128;
		config.topk = 2048;
		config.max_context_tokens = 4096;
		config.flags |= c[i].flags;
		device.kind = SPMLA_BACKEND_CUDA;
		device.arch = c[i].arch;
		device.sm_count = c[i].sm_count;
		device.subgroup_width = 32;
		make(&plan, &config);
		for (found = 0, j = 0; j < plan.row_count; j++) {
			const spmla_extent *e = &plan.extents[j];

			if (e->buf != SPMLA_BUF_DECODE_WORKSPACE)
				continue;
			found = 1;
			ck_assert_uint_eq(e->memory, SPMLA_MEMORY_DEVICE);
			ck_assert_uint_eq(e->life, SPMLA_LIFE_CONTEXT);
			ck_assert_uint_eq(e->bytes, c[i].bytes);
		}
		ck_assert_uint_eq(found, c[i].bytes > 0);
	}
}
END_TEST

START_TEST(a_row_that_cannot_be_had_is_refused_and_nothing_written)
{
	spmla_row row, before;
	spmla_config config;

	fixture_config(&config);
	make(&plan, &config);
	memset(&row, 0x5a, sizeof row);
	row.struct_bytes = (uint32_t)sizeof row;
	before = row;
	ck_assert_int_eq(spmla_plan_row(NULL, 0, &row), SPMLA_E_NULL);
	ck_assert_int_eq(spmla_plan_row(&plan, 0, NULL), SPMLA_E_NULL);
	ck_assert_int_eq(spmla_plan_row(&plan, plan.row_count, &row),
			 SPMLA_E_RANGE);
	ck_assert_int_eq(spmla_plan_row(&plan, UINT32_MAX, &row),
			 SPMLA_E_RANGE);
	ck_assert_mem_eq(&row, &before, sizeof row);
	row.struct_bytes = 79;
	ck_assert_int_eq(spmla_plan_row(&plan, 0, &row), SPMLA_E_STRUCT_SIZE);
	row.struct_bytes = 80;
	ck_assert_mem_eq(&row, &before, sizeof row);
	ck_assert_int_eq(spmla_plan_row(&plan, 0, &row), SPMLA_OK);
	ck_assert_str_eq(row.name, "CONTEXT");
	ck_assert_uint_eq(row.offset_bytes, 0);
}
END_TEST

SUITE
{
	const theme_test c[] = {
		{the_same_config_gives_the_same_bytes, 1},
		{what_lies_in_unused_entries_does_not_matter, 1},
		{a_default_and_its_value_give_the_same_plan, 1},
		{an_overflow_names_the_buffer, 1},
		{the_largest_config_fits_64_bits, 1},
		{plans_share_records_unless_a_limit_of_a_step_differs, 1},
		{every_buffer_has_its_row_and_its_texts, 1},
		{buffers_that_are_not_needed_have_no_row, 1},
		{what_is_zeros_between_calls_lives_as_long_as_the_context, 1},
		{few_tokens_have_a_workspace_on_hopper_alone, 1},
		{a_row_that_cannot_be_had_is_refused_and_nothing_written, 1},
	};
	const theme themes[] = {
		THEME("pure", setup, NULL, c),
	};

	return RUN_THEMES(themes);
}
