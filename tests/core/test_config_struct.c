/* SPDX-License-Identifier: Apache-2.0
 *
 * What a config may leave out: the defaults, the preset, and a struct of an
 * engine that was built when the tail did not exist.
 */
#include "tests/harness/bytes.h"
#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(a) ((uint32_t)(sizeof(a) / sizeof((a)[0])))

static spmla_device device;
static spmla_plan plan;

static void
setup(void)
{
	device = (spmla_device)SPMLA_DEVICE_INIT;
	ck_assert_int_eq(spmla_backend_query(&spmla_cpu, NULL, &device, NULL),
			 SPMLA_OK);
	memset(&plan, 0x5a, sizeof plan);
}

static void
expect_error(const spmla_config *config, spmla_status status, const char *want)
{
	spmla_diag diag = SPMLA_DIAG_INIT;

	memset(&plan, 0x5a, sizeof plan);
	ck_assert_int_eq(spmla_plan_make(&plan, config, &device, &diag),
			 status);
	ck_assert_str_eq(test_diag_text(&diag), want);
	ck_assert_uint_eq(bytes_other(&plan, sizeof plan, 0x5a), sizeof plan);
}

/* The first `bytes` of a config, in memory that ends there. */
static spmla_config *
cut(const spmla_config *config, uint32_t bytes)
{
	spmla_config *c = malloc(bytes);

	ck_assert_ptr_nonnull(c);
	memcpy(c, config, bytes);
	c->struct_bytes = bytes;
	return c;
}

START_TEST(an_older_config_that_ends_early_gets_the_defaults)
{
	static spmla_plan full;
	spmla_config config, zeros;
	uint32_t bytes;

	fixture_config(&config);
	config.ring_slots = 7;
	config.max_table_stores = 9;
	config.max_update_pages = 40;
	config.max_graphs = 11;
	config.max_graph_nodes = 333;
	config.queue_entries = 17;
	config.max_prefill_tokens = 19;
	config.logits_budget_bytes = 4096;
	config.prefill_workspace_tokens = 600;
	config.cpu_workers = 5;
	for (bytes = 436; bytes <= 520; bytes += 4) {
		spmla_config *older = cut(&config, bytes);

		zeros = config;
		memset((unsigned char *)&zeros + bytes, 0, 520 - bytes);
		ck_assert_int_eq(spmla_plan_make(&full, &zeros, &device, NULL),
				 SPMLA_OK);
		memset(&plan, 0x5a, sizeof plan);
		ck_assert_int_eq(spmla_plan_make(&plan, older, &device, NULL),
				 SPMLA_OK);
		ck_assert_mem_eq(&plan, &full, sizeof plan);
		ck_assert_uint_eq(plan.config.struct_bytes, 520);
		ck_assert_uint_eq(plan.config.ring_slots, bytes > 436 ? 7 : 4);
		ck_assert_uint_eq(plan.config.queue_entries,
				  bytes > 456 ? 17 : 64);
		ck_assert_uint_eq(plan.config.max_prefill_tokens,
				  bytes > 460 ? 19 : 0);
		ck_assert_uint_eq(plan.config.prefill_workspace_tokens,
				  bytes > 472   ? 600
				  : bytes > 460 ? 512
						: 0);
		free(older);
	}
}
END_TEST

START_TEST(a_config_of_an_unknown_size_is_refused)
{
#define SIZE "SPMLA_E_STRUCT_SIZE: config.struct_bytes: got "
	static const struct {
		uint32_t bytes;
		const char *text;
	} cases[] = {
		{0, SIZE "0, want at least 436"},
		{4, SIZE "4, want at least 436"},
		{432, SIZE "432, want at least 436"},
		{435, SIZE "435, want at least 436"},
		{437, SIZE "437, want a multiple of 4"},
		{459, SIZE "459, want a multiple of 4"},
		{521, SIZE "521, want at most 520"},
		{524, SIZE "524, want at most 520"},
		{UINT32_MAX, SIZE "4294967295, want at most 520"},
	};
	spmla_config config;
	uint32_t i;

	fixture_config(&config);
	for (i = 0; i < COUNT(cases); i++) {
		config.struct_bytes = cases[i].bytes;
		expect_error(&config, SPMLA_E_STRUCT_SIZE, cases[i].text);
	}
#undef SIZE
}
END_TEST

/* A config of what has no default, and zeros. */
static void
bare_config(spmla_config *c)
{
	memset(c, 0, sizeof *c);
	c->struct_bytes = (uint32_t)sizeof *c;
	c->model = SPMLA_MODEL_V32;
	c->heads = 4;
	c->index_heads = 4;
	c->topk = 8;
	c->max_rows = 40;
	c->max_context_tokens = 1000;
	c->groups[0].pool_pages = 100;
	c->bucket_count = 2;
	c->buckets[0] = (spmla_shape){4, 3, 1, 0};
	c->buckets[1] = (spmla_shape){8, 6, 2, 77};
}

START_TEST(what_is_left_out_has_the_documented_default)
{
	const spmla_config *c = &plan.config;
	spmla_config config;
	uint32_t bits;

	bare_config(&config);
	ck_assert_int_eq(spmla_plan_make(&plan, &config, &device, NULL),
			 SPMLA_OK);
	ck_assert_uint_eq(c->kv_layout, SPMLA_LAYOUT_FP8_DS_MLA);
	ck_assert_uint_eq(c->kv_scale_mode, SPMLA_SCALE_POW2);
	/* 192^-0.5 * 1.3688879454^2 = 0.135233779, in f32 0x3e0a7ab9 */
	memcpy(&bits, &c->softmax_scale, sizeof bits);
	ck_assert_uint_eq(bits, 0x3e0a7ab9u);
	ck_assert_uint_eq(c->groups[0].source, SPMLA_TABLE_RING);
	ck_assert_uint_eq(c->groups[0].page_tokens, 64);
	ck_assert_uint_eq(c->flags, 0);
	ck_assert_uint_eq(c->cache_layers, 0);
	ck_assert_uint_eq(c->ring_slots, 4);
	ck_assert_uint_eq(c->max_table_stores, 12); /* 2 * 6 requests */
	/* the larger of 4 * 6 requests and ceil(1000 / 64) = 16 columns */
	ck_assert_uint_eq(c->max_update_pages, 24);
	ck_assert_uint_eq(c->max_graphs, 4); /* 2 buckets, but at least 4 */
	ck_assert_uint_eq(c->max_graph_nodes, 512 * c->max_graphs);
	ck_assert_uint_eq(c->queue_entries, 64);
	ck_assert_uint_eq(c->buckets[0].max_live_context, 3000); /* 3 * 1000 */
	ck_assert_uint_eq(c->buckets[1].max_live_context, 77);
}
END_TEST

START_TEST(defaults_follow_what_they_depend_on)
{
	spmla_config config;
	uint32_t i;

	bare_config(&config);
	config.max_context_tokens = 1601; /* 26 columns: more than 4 * 6 */
	for (i = 2; i < 6; i++)
		config.buckets[i] = config.buckets[0];
	config.bucket_count = 6;
	ck_assert_int_eq(spmla_plan_make(&plan, &config, &device, NULL),
			 SPMLA_OK);
	ck_assert_uint_eq(plan.columns, 26);
	ck_assert_uint_eq(plan.config.max_update_pages, 26);
	ck_assert_uint_eq(plan.config.max_graphs, 6);

	bare_config(&config);
	config.max_rows = 65536;
	config.max_context_tokens = 1 << 24;
	config.buckets[0] = (spmla_shape){65536, 65536, 1, 0};
	config.bucket_count = 1;
	ck_assert_int_eq(spmla_plan_make(&plan, &config, &device, NULL),
			 SPMLA_OK);
	/* 2 * 65536 stores and 2^40 tokens, capped */
	ck_assert_uint_eq(plan.config.max_table_stores, 65536);
	ck_assert_uint_eq(plan.config.buckets[0].max_live_context, UINT32_MAX);
	/* ceil(2^24 / 64) = 4 * 65536 */
	ck_assert_uint_eq(plan.config.max_update_pages, 262144);
}
END_TEST

START_TEST(prefill_has_its_own_defaults)
{
	const spmla_config *c = &plan.config;
	spmla_config config;

	bare_config(&config);
	config.max_prefill_tokens = 1;
	ck_assert_int_eq(spmla_plan_make(&plan, &config, &device, NULL),
			 SPMLA_OK);
	ck_assert_uint_eq(c->prefill_workspace_tokens, 1000);
	ck_assert_uint_eq(c->logits_budget_bytes, 64 << 20);
	/* the same 16 columns, and one more for each of 6 requests: 22 < 24 */
	ck_assert_uint_eq(c->max_update_pages, 24);
	config.prefill_workspace_tokens = 2000;
	ck_assert_int_eq(spmla_plan_make(&plan, &config, &device, NULL),
			 SPMLA_OK);
	ck_assert_uint_eq(c->max_update_pages, 38); /* 32 + 6 */
	/* A row of 2^24 floats is 64 MiB; pages are fewer than a row needs. */
	config.max_context_tokens = 1 << 24;
	ck_assert_int_eq(spmla_plan_make(&plan, &config, &device, NULL),
			 SPMLA_OK);
	ck_assert_uint_eq(c->logits_budget_bytes, 64 << 20);
}
END_TEST

START_TEST(the_preset_is_that_of_the_model)
{
	spmla_config config, want;

	memset(&config, 0x77, sizeof config);
	ck_assert_int_eq(spmla_config_preset(&config, SPMLA_MODEL_V32),
			 SPMLA_OK);
	memset(&want, 0, sizeof want);
	want.struct_bytes = 520;
	want.model = SPMLA_MODEL_V32;
	want.heads = 128;
	want.index_heads = 64;
	want.topk = 2048;
	want.kv_layout = SPMLA_LAYOUT_FP8_DS_MLA;
	want.kv_scale_mode = SPMLA_SCALE_POW2;
	want.softmax_scale = 0.1352337788608801f;
	want.groups[0].source = SPMLA_TABLE_RING;
	want.groups[0].page_tokens = 64;
	ck_assert_mem_eq(&config, &want, sizeof config);
	/* It lacks what only the engine knows. */
	expect_error(&config, SPMLA_E_RANGE,
		     "SPMLA_E_RANGE: config.max_rows: got 0, want at least 1");
}
END_TEST

START_TEST(a_preset_of_an_unknown_model_changes_nothing)
{
	spmla_config config, before;

	memset(&config, 0x77, sizeof config);
	before = config;
	ck_assert_int_eq(spmla_config_preset(NULL, SPMLA_MODEL_V32),
			 SPMLA_E_NULL);
	ck_assert_int_eq(spmla_config_preset(&config, (spmla_model)0),
			 SPMLA_E_RANGE);
	ck_assert_int_eq(spmla_config_preset(&config, (spmla_model)4),
			 SPMLA_E_RANGE);
	ck_assert_mem_eq(&config, &before, sizeof config);
}
END_TEST

SUITE
{
	const theme_test c[] = {
		{an_older_config_that_ends_early_gets_the_defaults, 1},
		{a_config_of_an_unknown_size_is_refused, 1},
		{what_is_left_out_has_the_documented_default, 1},
		{defaults_follow_what_they_depend_on, 1},
		{prefill_has_its_own_defaults, 1},
		{the_preset_is_that_of_the_model, 1},
		{a_preset_of_an_unknown_model_changes_nothing, 1},
	};
	const theme themes[] = {
		THEME("defaults", setup, NULL, c),
	};

	return RUN_THEMES(themes);
}
