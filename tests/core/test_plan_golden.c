/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans of typical configs, line by line as testdata/plans has them, so that a
 * change of any size or place is seen and has to be meant. To write them anew:
 *
 *     SPMLA_WRITE_PLANS=1 ./bazelw run //tests:plan_golden
 *
 * writes testdata/plans/<name>.txt of the checkout; read the difference.
 */
#include "tests/core/v4_config.h"
#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct text {
	char bytes[16384];
	size_t length;
} text;

static text got;

__attribute__((format(printf, 1, 2))) static void
put(const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(got.bytes + got.length, sizeof got.bytes - got.length,
		      format, args);
	va_end(args);
	ck_assert_int_ge(n, 0);
	ck_assert_uint_lt(got.length + (size_t)n, sizeof got.bytes);
	got.length += (size_t)n;
}

static void
dump(const spmla_plan *plan)
{
	spmla_row r = SPMLA_ROW_INIT;
	uint32_t i;

	got.length = 0;
	put("columns %u\n", plan->columns);
	put("max_tokens %u\n", plan->max_tokens);
	put("max_requests %u\n", plan->max_requests);
	put("record_bytes %" PRIu64 "\n", plan->record_bytes);
	put("logits_elems %" PRIu64 "\n", plan->logits_elems);
	put("record_key %016" PRIx64 "\n", plan->record_key);
	for (i = 0;
	     plan->config.model != SPMLA_MODEL_V32 && i < SPMLA_V4_GROUPS; i++)
		put("group %u table %u columns %u page_tokens %u\n", i,
		    plan->group_table[i], plan->group_columns[i],
		    plan->config.groups[i].page_tokens);
	for (i = 0; i < SPMLA_MEMORY_COUNT; i++)
		put("region %s %" PRIu64 " align %" PRIu64 "\n",
		    spmla_memory_name(i), plan->region_bytes[i],
		    plan->region_align[i]);
	for (i = 0; i < SPMLA_LIFE_COUNT; i++)
		put("life %s %" PRIu64 "\n", spmla_life_name(i),
		    plan->life_bytes[i]);
	put("memory life offset bytes = count * elem name shape\n");
	for (i = 0; i < plan->row_count; i++) {
		ck_assert_int_eq(spmla_plan_row(plan, i, &r), SPMLA_OK);
		put("%s %s %" PRIu64 " %" PRIu64 " = %" PRIu64 " * %u %s %s\n",
		    spmla_memory_name(r.memory), spmla_life_name(r.life),
		    r.offset_bytes, r.bytes, r.count, r.elem_bytes, r.name,
		    r.shape);
	}
}

static void
write_file(const char *path)
{
	FILE *f = fopen(path, "w");

	ck_assert_msg(f != NULL, "cannot write %s", path);
	ck_assert_uint_eq(fwrite(got.bytes, 1, got.length, f), got.length);
	ck_assert_int_eq(fclose(f), 0);
	printf("wrote %s\n", path);
}

/* Says where the first line that differs is. */
static void
compare(const char *path)
{
	static char want[sizeof got.bytes];
	const char *g = got.bytes, *w = want;
	uint32_t line = 1;
	size_t n;
	FILE *f = fopen(path, "r");

	ck_assert_msg(f != NULL, "cannot read %s", path);
	n = fread(want, 1, sizeof want - 1, f);
	fclose(f);
	want[n] = 0;
	while (*g || *w) {
		const size_t gn = strcspn(g, "\n"), wn = strcspn(w, "\n");

		ck_assert_msg(gn == wn && memcmp(g, w, gn) == 0,
			      "%s:%u: got\n  %.*s\nwant\n  %.*s", path, line,
			      (int)gn, g, (int)wn, w);
		ck_assert_msg(g[gn] == w[wn], "%s:%u: one text ends", path,
			      line);
		g += gn + (g[gn] != 0);
		w += wn + (w[wn] != 0);
		line++;
	}
}

static void
check_plan_on(const spmla_config *config, const spmla_device *device,
	      const char *name)
{
	static spmla_plan plan;
	const char *root = getenv("BUILD_WORKSPACE_DIRECTORY");
	spmla_diag diag = SPMLA_DIAG_INIT;
	char path[4096], line[200];

	if (spmla_plan_make(&plan, config, device, &diag) != SPMLA_OK) {
		spmla_diag_text(&diag, line, sizeof line);
		ck_abort_msg("%s", line);
	}
	dump(&plan);
	if (getenv("SPMLA_WRITE_PLANS")) {
		ck_assert_msg(root != NULL, "only under bazel run");
		snprintf(path, sizeof path, "%s/testdata/plans/%s.txt", root,
			 name);
		write_file(path);
		return;
	}
	snprintf(path, sizeof path, "testdata/plans/%s.txt", name);
	compare(path);
}

static void
check_plan(const spmla_config *config, const char *name)
{
	spmla_device device = SPMLA_DEVICE_INIT;

	ck_assert_int_eq(spmla_backend_query(&spmla_cpu, NULL, &device, NULL),
			 SPMLA_OK);
	check_plan_on(config, &device, name);
}

START_TEST(the_plan_of_the_small_config_is_as_it_was)
{
	spmla_config config;

	fixture_config(&config);
	check_plan(&config, "small");
}
END_TEST

/* V3.2 with all heads, decode with one or two draft tokens. */
static void
v32_config(spmla_config *c, uint32_t requests, uint32_t context_tokens)
{
	ck_assert_int_eq(spmla_config_preset(c, SPMLA_MODEL_V32), SPMLA_OK);
	c->max_rows = requests;
	c->max_context_tokens = context_tokens;
	c->groups[SPMLA_GROUP_MAIN].pool_pages = 16384;
	c->bucket_count = 3;
	c->buckets[0] = (spmla_shape){16, 16, 1, 1 << 20};
	c->buckets[1] = (spmla_shape){requests, requests, 1, 1 << 20};
	c->buckets[2] = (spmla_shape){3 * requests, requests, 3, 1 << 20};
}

START_TEST(the_plan_of_64_requests_of_128k_is_as_it_was)
{
	spmla_config config;

	v32_config(&config, 64, 131072);
	check_plan(&config, "v32_64x128k");
}
END_TEST

START_TEST(the_plan_of_a_context_of_1m_is_as_it_was)
{
	spmla_config config;

	v32_config(&config, 16, 1 << 20);
	check_plan(&config, "v32_16x1m");
}
END_TEST

START_TEST(the_plan_of_bf16_rows_is_as_it_was)
{
	spmla_config config;

	v32_config(&config, 64, 131072);
	config.kv_layout = SPMLA_LAYOUT_MLA_BF16;
	config.cache_layers = 2;
	check_plan(&config, "v32_bf16");
}
END_TEST

START_TEST(the_plan_of_the_engines_own_table_is_as_it_was)
{
	spmla_config config;

	v32_config(&config, 64, 131072);
	config.groups[SPMLA_GROUP_MAIN].source = SPMLA_TABLE_DEVICE;
	check_plan(&config, "v32_device_table");
}
END_TEST

START_TEST(the_plan_of_61_layers_of_caches_is_as_it_was)
{
	spmla_config config;

	v32_config(&config, 64, 131072);
	config.cache_layers = 61;
	config.heads = 16;
	check_plan(&config, "v32_caches");
}
END_TEST

START_TEST(the_plan_with_everything_apart_is_as_it_was)
{
	spmla_config config;

	fixture_config(&config);
	config.flags = SPMLA_CONFIG_APART;
	config.cache_layers = 2;
	check_plan(&config, "small_apart");
}
END_TEST

/* 8192 tokens a step, five longest contexts in the workspace. */
START_TEST(the_plan_of_prefill_is_as_it_was)
{
	spmla_config config;

	v32_config(&config, 64, 131072);
	config.max_prefill_tokens = 8192;
	config.prefill_workspace_tokens = 5 * 131072;
	config.logits_budget_bytes = UINT64_C(512) << 20;
	check_plan(&config, "v32_prefill");
}
END_TEST

/* The same with index keys of MXFP4, and pools of 2 layers: pages of 64 keys
 * have 64 * 68 = 4352 bytes. */
START_TEST(the_plan_of_index_keys_of_mxfp4_is_as_it_was)
{
	spmla_config config;

	v32_config(&config, 64, 131072);
	config.max_prefill_tokens = 8192;
	config.prefill_workspace_tokens = 5 * 131072;
	config.logits_budget_bytes = UINT64_C(512) << 20;
	config.index_layout = SPMLA_LAYOUT_INDEX_MXFP4;
	config.cache_layers = 2;
	check_plan(&config, "v32_mxfp4");
}
END_TEST

/* The preset with pools of 16384 pages. */
static void
v4_preset(spmla_config *c, spmla_model model, uint32_t requests,
	  uint32_t context_tokens)
{
	uint32_t g;

	ck_assert_int_eq(spmla_config_preset(c, model), SPMLA_OK);
	c->max_rows = requests;
	c->max_context_tokens = context_tokens;
	for (g = 0; g < SPMLA_V4_GROUPS; g++)
		c->groups[g].pool_pages = 16384;
}

START_TEST(the_plan_of_a_small_v4_is_as_it_was)
{
	spmla_config config;

	v4_config(&config);
	check_plan(&config, "v4_small");
}
END_TEST

/* V4 Pro, 64 requests of 1M that have 4M in all, with or without a draft. */
START_TEST(the_plan_of_v4_pro_of_1m_is_as_it_was)
{
	spmla_config config;

	v4_preset(&config, SPMLA_MODEL_V4_PRO, 64, 1 << 20);
	config.bucket_count = 2;
	config.buckets[0] = (spmla_shape){64, 64, 1, 1 << 22};
	config.buckets[1] = (spmla_shape){128, 64, 2, 1 << 22};
	check_plan(&config, "v4_pro_64x1m");
}
END_TEST

START_TEST(the_plan_of_v4_flash_with_ragged_lists_is_as_it_was)
{
	spmla_config config;

	v4_preset(&config, SPMLA_MODEL_V4_FLASH, 16, 131072);
	config.bucket_count = 1;
	config.buckets[0] = (spmla_shape){16, 16, 1, 0};
	config.flags = SPMLA_CONFIG_RAGGED;
	check_plan(&config, "v4_flash_ragged");
}
END_TEST

/* V4 Flash with all that a config may have otherwise: index keys in MXFP4 and
 * in pages of their own, a window that does not wrap around, tables of the
 * engine's, planned pools, a step longer than 1024 tokens. */
START_TEST(the_plan_of_v4_flash_with_other_tables_is_as_it_was)
{
	spmla_config config;

	v4_preset(&config, SPMLA_MODEL_V4_FLASH, 16, 131072);
	config.bucket_count = 2;
	config.buckets[0] = (spmla_shape){16, 16, 1, 0};
	config.buckets[1] = (spmla_shape){1536, 16, 512, 0};
	config.index_layout = SPMLA_LAYOUT_INDEX_MXFP4;
	config.groups[SPMLA_GROUP_SWA].ring_columns = 0;
	config.groups[SPMLA_GROUP_INDEX].source = SPMLA_TABLE_RING;
	config.groups[SPMLA_GROUP_INDEX].page_tokens = 512;
	config.groups[SPMLA_GROUP_C128A].source = SPMLA_TABLE_DEVICE;
	config.groups[SPMLA_GROUP_STATE_C4A].source = SPMLA_TABLE_DEVICE;
	config.cache_layers = 3;
	config.c4a_layers = 2;
	config.c128a_layers = 1;
	check_plan(&config, "v4_flash_tables");
}
END_TEST

/* Prompts of 8192 tokens a step: the window's ring holds 127 + 8192 positions,
 * 130 pages of 64; nothing is gathered. */
START_TEST(the_plan_of_v4_flash_with_prefill_is_as_it_was)
{
	spmla_config config;

	v4_preset(&config, SPMLA_MODEL_V4_FLASH, 16, 131072);
	config.bucket_count = 1;
	config.buckets[0] = (spmla_shape){16, 16, 1, 1 << 20};
	config.max_prefill_tokens = 8192;
	check_plan(&config, "v4_flash_prefill");
}
END_TEST

typedef struct typed_device {
	const char *name;
	uint32_t kind, arch, sm_count, width;
} typed_device;

static void
check_plans_on(const typed_device *devices, uint32_t count)
{
	spmla_config config;
	uint32_t i;

	v32_config(&config, 64, 131072);
	for (i = 0; i < count; i++) {
		const spmla_device device = {
			sizeof device,       devices[i].kind,  devices[i].arch,
			devices[i].sm_count, devices[i].width, 0,
			UINT64_MAX};

		check_plan_on(&config, &device, devices[i].name);
	}
}

/* Facts typed by hand, from AMD's data sheets: compute units (W7900: as HIP
 * counts them, work-group processors), and the width that kernels have there. A
 * decode is cut into parts for as many multiprocessors. */
START_TEST(the_plans_of_amd_gpus_are_as_they_were)
{
	static const typed_device devices[] = {
		{"hip_mi300x", SPMLA_BACKEND_HIP, 0x942, 304, 64},
		{"hip_mi210", SPMLA_BACKEND_HIP, 0x90a, 104, 64},
		{"hip_w7900", SPMLA_BACKEND_HIP, 0x1100, 48, 32},
	};

	check_plans_on(devices, 3);
}
END_TEST

/* The same from Intel's: Xe cores, and the numbers on PCI. Each of the Max
 * 1550's two stacks is a device, so its plan has one stack's cores. */
START_TEST(the_plans_of_intel_gpus_are_as_they_were)
{
	static const typed_device devices[] = {
		{"level_zero_max1550", SPMLA_BACKEND_LEVEL_ZERO, 0x0bd5, 64,
		 16},
		{"level_zero_b580", SPMLA_BACKEND_LEVEL_ZERO, 0xe20b, 20, 16},
	};

	check_plans_on(devices, 2);
}
END_TEST

SUITE
{
	const theme_test c[] = {
		{the_plan_of_the_small_config_is_as_it_was, 1},
		{the_plan_of_64_requests_of_128k_is_as_it_was, 1},
		{the_plan_of_a_context_of_1m_is_as_it_was, 1},
		{the_plan_of_bf16_rows_is_as_it_was, 1},
		{the_plan_of_the_engines_own_table_is_as_it_was, 1},
		{the_plan_of_61_layers_of_caches_is_as_it_was, 1},
		{the_plan_with_everything_apart_is_as_it_was, 1},
		{the_plan_of_prefill_is_as_it_was, 1},
		{the_plan_of_index_keys_of_mxfp4_is_as_it_was, 1},
		{the_plan_of_a_small_v4_is_as_it_was, 1},
		{the_plan_of_v4_pro_of_1m_is_as_it_was, 1},
		{the_plan_of_v4_flash_with_ragged_lists_is_as_it_was, 1},
		{the_plan_of_v4_flash_with_other_tables_is_as_it_was, 1},
		{the_plan_of_v4_flash_with_prefill_is_as_it_was, 1},
		{the_plans_of_amd_gpus_are_as_they_were, 1},
		{the_plans_of_intel_gpus_are_as_they_were, 1},
	};
	const theme themes[] = {
		THEME("plans", NULL, NULL, c),
	};

	return RUN_THEMES(themes);
}
