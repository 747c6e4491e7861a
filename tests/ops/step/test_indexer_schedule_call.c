/* SPDX-License-Identifier: Apache-2.0
 *
 * indexer_schedule: what the call refuses and says, and how it is recorded,
 * queued and replayed. What it plans is in test_indexer_schedule.c.
 */
#include <string.h>

#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"
#include "tests/reference/narrow_ref.h"

#include "spmla/ops/indexer_schedule.h"

#define SM90   SPMLA_INDEXER_SCHEDULE_SM90
#define SM100  SPMLA_INDEXER_SCHEDULE_SM100
#define VARLEN SPMLA_INDEXER_SCHEDULE_SM100_VARLEN

#define FIELD(field) ARG_FIELD(spmla_indexer_schedule_args, field)
#define RANGE        SPMLA_E_RANGE, "SPMLA_E_RANGE: indexer_schedule."
#define NO_POINTER   ": got NULL, want a pointer"

static fixture f;
static int32_t lens[32];
static int32_t indices[32];
static int32_t schedule[16 * 2];

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
}

static void
teardown(void)
{
	fixture_close(&f);
}

static spmla_indexer_schedule_args
args_of(uint32_t rule, uint32_t batch, uint32_t next_n, uint32_t num_sms)
{
	const spmla_indexer_schedule_args a = {sizeof a, rule,    batch, next_n,
					       num_sms,  0,       lens,  next_n,
					       indices,  schedule};

	return a;
}

static const arg_error errors[] = {
	{FIELD(struct_bytes), 8, SPMLA_E_STRUCT_SIZE,
	 "SPMLA_E_STRUCT_SIZE: indexer_schedule: got 8, want 56"},
	{FIELD(rule), 0, RANGE "rule: got 0, want at least 1"},
	{FIELD(rule), 4, RANGE "rule: got 4, want at most 3"},
	{FIELD(num_sms), 0, RANGE "num_sms: got 0, want at least 1"},
	{FIELD(num_sms), UINT32_MAX,
	 RANGE "num_sms: got 4294967295, want at most 65536"},
	{FIELD(next_n), 0, RANGE "next_n: got 0, want at least 1"},
	{FIELD(next_n), 2, RANGE "next_n: got 2, want 1"},
	{FIELD(batch), 1u << 31,
	 RANGE "batch: got 2147483648, want at most 2147483647"},
	{FIELD(context_lens), 0, SPMLA_E_NULL,
	 "SPMLA_E_NULL: indexer_schedule.context_lens" NO_POINTER},
	{FIELD(context_lens_stride_elems), UINT64_MAX,
	 RANGE "context_lens_stride_elems: got 0, want at least 1"},
	{FIELD(indices), 0, SPMLA_E_NULL,
	 "SPMLA_E_NULL: indexer_schedule.indices" NO_POINTER},
	{FIELD(schedule), 0, SPMLA_E_NULL,
	 "SPMLA_E_NULL: indexer_schedule.schedule" NO_POINTER},
};

START_TEST(every_field_is_checked_and_named)
{
	const spmla_indexer_schedule_args good = args_of(VARLEN, 3, 1, 4);
	uint32_t i;

	memset(schedule, 0x5A, sizeof schedule);
	for (i = 0; i < sizeof errors / sizeof errors[0]; i++) {
		const arg_error *e = &errors[i];
		spmla_indexer_schedule_args bad = good;

		memcpy((char *)&bad + e->offset, &e->value, e->bytes);
		ck_assert_uint_eq(spmla_indexer_schedule(f.ctx, &bad, NULL),
				  e->status);
		ck_assert_str_eq(fixture_diag(&f), e->text);
	}
	ck_assert_int_eq(schedule[0], 0x5A5A5A5A);
}
END_TEST

START_TEST(args_and_context_must_be_there)
{
	spmla_indexer_schedule_args a = args_of(SM100, 1u << 29, 4, 4);

	ck_assert_int_eq(spmla_indexer_schedule(NULL, &a, NULL), SPMLA_E_NULL);
	ck_assert_int_eq(spmla_indexer_schedule(f.ctx, NULL, NULL),
			 SPMLA_E_NULL);
	ck_assert_str_eq(fixture_diag(&f),
			 "SPMLA_E_NULL: indexer_schedule" NO_POINTER);
	ck_assert_int_eq(spmla_indexer_schedule(f.ctx, &a, NULL),
			 SPMLA_E_RANGE);
	ck_assert_str_eq(fixture_diag(&f),
			 "SPMLA_E_RANGE: indexer_schedule.batch: got "
			 "536870912, want at most 536870911");
	a = args_of(SM100, 0, 4, 4); /* nothing to read */
	a.context_lens = NULL;
	a.indices = NULL;
	ck_assert_int_eq(spmla_indexer_schedule(f.ctx, &a, NULL), SPMLA_OK);
}
END_TEST

START_TEST(a_replay_reads_what_lies_there_then)
{
	spmla_indexer_schedule_args a = args_of(SM90, 9, 2, 13);
	uint64_t rng = test_seed() + 22;
	spmla_graph graph;
	uint32_t round, i;

	memset(schedule, 0x5A, sizeof schedule);
	ck_assert_int_eq(spmla_graph_begin(f.ctx, NULL), SPMLA_OK);
	ck_assert_int_eq(spmla_indexer_schedule(f.ctx, &a, NULL), SPMLA_OK);
	ck_assert_int_eq(spmla_graph_end(f.ctx, &graph), SPMLA_OK);
	ck_assert_int_eq(schedule[0], 0x5A5A5A5A);
	memset(&a, 0xFF, sizeof a);
	for (round = 0; round < 6; round++) {
		int32_t eager[14 * 2];

		for (i = 0; i < 18; i++)
			lens[i] = (int32_t)rng_below(&rng, 2000);
		a = args_of(SM90, 9, 2, 13);
		ck_assert_int_eq(spmla_indexer_schedule(f.ctx, &a, NULL),
				 SPMLA_OK);
		memcpy(eager, schedule, sizeof eager);
		memset(schedule, 0x5A, sizeof schedule);
		ck_assert_int_eq(spmla_graph_replay(f.ctx, graph, 0, NULL),
				 SPMLA_OK);
		ck_assert_mem_eq(schedule, eager, sizeof eager);
	}
}
END_TEST

START_TEST(a_refused_call_fails_its_capture)
{
	spmla_indexer_schedule_args a = args_of(SM90, 9, 2, 0);
	spmla_graph graph;

	ck_assert_int_eq(spmla_graph_begin(f.ctx, NULL), SPMLA_OK);
	ck_assert_int_eq(spmla_indexer_schedule(f.ctx, &a, NULL),
			 SPMLA_E_RANGE);
	ck_assert_int_eq(spmla_graph_end(f.ctx, &graph), SPMLA_E_CAPTURE);
	ck_assert_int_eq(spmla_graph_abort(f.ctx), SPMLA_OK);
}
END_TEST

START_TEST(a_queued_op_has_its_own_copy_of_the_args)
{
	static const int32_t want[3][2] = {{0, 0}, {0, 1}, {1, 0}};
	spmla_indexer_schedule_args a = args_of(SM100, 1, 1, 2);
	spmla_config config;

	fixture_close(&f);
	fixture_config(&config);
	fixture_open(&f, &config, SPMLA_NATIVE_DEFERRED);
	memset(schedule, 0x5A, sizeof schedule);
	lens[0] = 512;
	ck_assert_int_eq(spmla_indexer_schedule(f.ctx, &a, NULL), SPMLA_OK);
	memset(&a, 0xff, sizeof a);
	ck_assert_int_eq(schedule[0], 0x5A5A5A5A);
	fixture_drain(&f);
	ck_assert_mem_eq(schedule, want, sizeof want);
}
END_TEST

SUITE
{
	const theme_test error[] = {
		{every_field_is_checked_and_named, 1},
		{args_and_context_must_be_there, 1},
	};
	const theme_test graph[] = {
		{a_replay_reads_what_lies_there_then, 1},
		{a_refused_call_fails_its_capture, 1},
		{a_queued_op_has_its_own_copy_of_the_args, 1},
	};
	const theme themes[] = {THEME("error", setup, teardown, error),
				THEME("graph", setup, teardown, graph)};

	return RUN_THEMES(themes);
}
