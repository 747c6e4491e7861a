/* SPDX-License-Identifier: Apache-2.0
 *
 * The facts of the device that a plan is made for: which are refused, with
 * which words, and which operations the steps of a config need.
 */
#include "tests/core/v4_config.h"
#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spmla/internal/backend.h"

#define COUNT(a) ((uint32_t)(sizeof(a) / sizeof((a)[0])))

static spmla_device device;
static spmla_plan plan;

static void
setup(void)
{
	device = (spmla_device)SPMLA_DEVICE_INIT;
	ck_assert_int_eq(spmla_backend_query(&spmla_cpu, NULL, &device, NULL),
			 SPMLA_OK);
}

START_TEST(a_device_that_is_wrong_is_refused)
{
#define D          "SPMLA_E_RANGE: device."
#define DEV(field) (uint32_t) offsetof(spmla_device, field)
	static const struct {
		uint32_t at;
		uint32_t value;
		const char *text;
	} cases[] = {
		{DEV(struct_bytes), 0,
		 "SPMLA_E_STRUCT_SIZE: device.struct_bytes: got 0, want 32"},
		{DEV(struct_bytes), 36,
		 "SPMLA_E_STRUCT_SIZE: device.struct_bytes: got 36, want 32"},
		{DEV(kind), 0, D "kind: got 0, want 1, 2, 3 or 4"},
		{DEV(kind), 5, D "kind: got 5, want 1, 2, 3 or 4"},
		{DEV(arch), 90, D "arch: got 90, want at most 0"},
		{DEV(sm_count), 0, D "sm_count: got 0, want at least 1"},
		{DEV(sm_count), 4097,
		 D "sm_count: got 4097, want at most 4096"},
		{DEV(subgroup_width), 0,
		 D "subgroup_width: got 0, want at least 1"},
		{DEV(subgroup_width), 65,
		 D "subgroup_width: got 65, want at most 64"},
		{DEV(reserved), 1, D "reserved: got 1, want 0"},
	};
	spmla_config config;
	uint32_t i;

	fixture_config(&config);
	for (i = 0; i < COUNT(cases); i++) {
		setup();
		memcpy((unsigned char *)&device + cases[i].at, &cases[i].value,
		       sizeof cases[i].value);
		v4_config_expect_on(&plan, &config, &device, cases[i].text);
	}
#undef DEV
#undef D
}
END_TEST

/* Architectures are numbers of each platform's own. */
START_TEST(a_device_has_an_architecture_of_its_platform)
{
	static const struct {
		uint32_t kind, arch;
		const char *text;
	} cases[] = {
		{SPMLA_BACKEND_CPU, 1,
		 "SPMLA_E_RANGE: device.arch: got 1, want at most 0"},
		{SPMLA_BACKEND_CUDA, 999, NULL},
		{SPMLA_BACKEND_CUDA, 1000,
		 "SPMLA_E_RANGE: device.arch: got 1000, want at most 999"},
		{SPMLA_BACKEND_HIP, 0x1201, NULL},
		{SPMLA_BACKEND_HIP, 0x10000,
		 "SPMLA_E_RANGE: device.arch: got 65536, want at most 65535"},
		{SPMLA_BACKEND_LEVEL_ZERO, 0xe20b, NULL},
	};
	spmla_config config;
	uint32_t i;

	fixture_config(&config);
	for (i = 0; i < COUNT(cases); i++) {
		device.kind = cases[i].kind;
		device.arch = cases[i].arch;
		v4_config_expect_on(&plan, &config, &device, cases[i].text);
	}
}
END_TEST

/* The sanitizer sees what is read behind the four bytes. */
START_TEST(a_device_that_is_too_short_is_not_read)
{
	const uint32_t bytes = 4;
	void *shorter = malloc(bytes);
	spmla_config config;

	ck_assert_ptr_nonnull(shorter);
	memcpy(shorter, &bytes, sizeof bytes);
	fixture_config(&config);
	ck_assert_int_eq(spmla_plan_make(&plan, &config, shorter, NULL),
			 SPMLA_E_STRUCT_SIZE);
	free(shorter);
}
END_TEST

static const char *const stems[SPMLA_OP_COUNT] = {
#define SPMLA_OP(stem) #stem,
#include "spmla/ops/ops.inc"
#undef SPMLA_OP
};

/* Without that operation alone, the plan is made or refused with its name. */
static void
expect_without(const spmla_config *config, uint32_t op, uint32_t is_needed)
{
	const uint64_t all = device.ops;
	char want[120];

	snprintf(want, sizeof want,
		 "SPMLA_E_UNSUPPORTED: device.ops: %s: got 0, want at least 1",
		 stems[op]);
	device.ops &= ~(UINT64_C(1) << op);
	v4_config_expect_on(&plan, config, &device, is_needed ? want : NULL);
	device.ops = all;
}

/* Each alone. Any decode step needs the first twelve. */
static void
expect_needed(const spmla_config *config, const uint32_t *more, uint32_t count)
{
	uint32_t op, i;

	ck_assert_str_eq(stems[11], "sparse_decode");
	for (op = 0; op < SPMLA_OP_COUNT; op++) {
		uint32_t is_needed = op <= SPMLA_OP_sparse_decode;

		for (i = 0; i < count; i++)
			is_needed |= op == more[i];
		expect_without(config, op, is_needed);
	}
}

START_TEST(an_operation_that_the_device_lacks_is_named)
{
	spmla_config config;

	fixture_config(&config);
	expect_needed(&config, NULL, 0);
	device.ops = 0;
	v4_config_expect_on(&plan, &config, &device,
			    "SPMLA_E_UNSUPPORTED: device.ops: step_prologue: "
			    "got 0, want at least 1");
	/* More than this version knows of does no harm. */
	device.ops = UINT64_MAX;
	v4_config_expect_on(&plan, &config, &device, NULL);
}
END_TEST

START_TEST(a_gpu_combines_parts)
{
	static const uint32_t parts[] = {SPMLA_OP_split_combine};
	spmla_config config;
	uint32_t v4;

	device.kind = SPMLA_BACKEND_CUDA;
	fixture_config(&config);
	expect_needed(&config, parts, 1);
	for (v4 = 0; v4 < 2; v4++) {
		if (v4)
			v4_config(&config);
		config.flags = 0;
		expect_without(&config, SPMLA_OP_split_combine, 1);
		device.kind = SPMLA_BACKEND_HIP;
		expect_without(&config, SPMLA_OP_split_combine, 1);
		config.flags = SPMLA_CONFIG_BATCH_INVARIANT;
		expect_without(&config, SPMLA_OP_split_combine, 0);
		device.kind = SPMLA_BACKEND_CUDA;
		expect_without(&config, SPMLA_OP_split_combine, 1);
	}
}
END_TEST

START_TEST(prefill_of_v32_needs_operations_of_its_own)
{
	static const uint32_t prefill[] = {
		SPMLA_OP_indexer_k_gather, SPMLA_OP_kv_gather,
		SPMLA_OP_sparse_prefill, SPMLA_OP_mqa_logits_gathered,
		SPMLA_OP_prefill_rows};
	spmla_config config;

	fixture_config(&config);
	config.max_prefill_tokens = 16;
	expect_needed(&config, prefill, COUNT(prefill));
}
END_TEST

START_TEST(prefill_of_v4_needs_no_more_than_its_decode)
{
	static const uint32_t v4[] = {
		SPMLA_OP_qnorm_rope_kv_insert, SPMLA_OP_compress_state_save,
		SPMLA_OP_kv_compress,          SPMLA_OP_swa_index,
		SPMLA_OP_c128a_index,          SPMLA_OP_inv_rope_quant,
		SPMLA_OP_o_group_proj};
	spmla_config config;

	v4_config(&config);
	expect_needed(&config, v4, COUNT(v4));
	config.max_prefill_tokens = 16;
	expect_needed(&config, v4, COUNT(v4));
}
END_TEST

START_TEST(a_device_may_be_typed_by_hand)
{
	const spmla_device typed = {32,   SPMLA_BACKEND_CPU, 0, 4096, 64, 0,
				    0xfff};
	spmla_config config;

	fixture_config(&config);
	ck_assert_int_eq(spmla_plan_make(&plan, &config, &typed, NULL),
			 SPMLA_OK);
	ck_assert_mem_eq(&plan.device, &typed, sizeof typed);
}
END_TEST

SUITE
{
	const theme_test facts[] = {
		{a_device_that_is_wrong_is_refused, 1},
		{a_device_has_an_architecture_of_its_platform, 1},
		{a_device_that_is_too_short_is_not_read, 1},
		{a_device_may_be_typed_by_hand, 1},
	};
	const theme_test ops[] = {
		{an_operation_that_the_device_lacks_is_named, 1},
		{a_gpu_combines_parts, 1},
		{prefill_of_v32_needs_operations_of_its_own, 1},
		{prefill_of_v4_needs_no_more_than_its_decode, 1},
	};
	const theme themes[] = {
		THEME("facts", setup, NULL, facts),
		THEME("operations", setup, NULL, ops),
	};

	return RUN_THEMES(themes);
}
