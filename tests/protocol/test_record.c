/* SPDX-License-Identifier: Apache-2.0
 *
 * Records as bytes: what encode and push want of their arguments, and that a
 * record may be moved, kept, and pushed into every context of its plan.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/ring_rig.h"
#include "tests/harness/themes.h"

static ring_rig r;
static uint8_t *record;
static draft d;

static void
setup(void)
{
	ring_open(&r, 4, SPMLA_NATIVE_DEFERRED);
	record = test_alloc(r.f.plan.record_bytes + 16, 0xAB);
	draft_one(&d, 2, 40);
}

static void
teardown(void)
{
	free(record);
	ring_close(&r);
}

static void
encode(void)
{
	ck_assert_int_eq(spmla_step_encode(&r.f.plan, draft_step(&d), record,
					   r.f.plan.record_bytes, NULL, NULL),
			 SPMLA_OK);
}

/* ---- Arguments --------------------------------------------------------- */

typedef struct call {
	const spmla_plan *plan;
	const spmla_step *step;
	void *record;
	uint64_t bytes;
	spmla_step_info *info;
} call;

static call
good_call(void)
{
	const call c = {&r.f.plan, draft_step(&d), record,
			r.f.plan.record_bytes, NULL};

	return c;
}

static void
refused(const call *c, const char *text)
{
	spmla_diag diag = SPMLA_DIAG_INIT;

	ck_assert_int_ne(spmla_step_encode(c->plan, c->step, c->record,
					   c->bytes, c->info, &diag),
			 SPMLA_OK);
	ck_assert_str_eq(test_diag_text(&diag), text);
}

START_TEST(encode_names_the_pointer_that_is_missing)
{
	call c = good_call();

	c.plan = NULL;
	refused(&c, "SPMLA_E_NULL: plan: got NULL, want a pointer");
	c = good_call();
	c.step = NULL;
	refused(&c, "SPMLA_E_NULL: step: got NULL, want a pointer");
	c = good_call();
	c.record = NULL;
	refused(&c, "SPMLA_E_NULL: record: got NULL, want a pointer");
	c = good_call();
	d.step.requests = NULL;
	refused(&c, "SPMLA_E_NULL: step.requests: got NULL, want a pointer");
	c = good_call();
	d.step.stores = NULL;
	refused(&c, "SPMLA_E_NULL: step.stores: got NULL, want a pointer");
	c = good_call();
	d.stores[0].pages = NULL;
	refused(&c,
		"SPMLA_E_NULL: step.stores.pages[0]: got NULL, want a pointer");
	c = good_call();
	d.step.request_count = d.step.store_count = 0;
	d.step.requests = NULL;
	d.step.stores = NULL;
	ck_assert_int_eq(spmla_step_encode(c.plan, c.step, c.record, c.bytes,
					   NULL, NULL),
			 SPMLA_OK);
}
END_TEST

START_TEST(encode_wants_aligned_room_of_the_planned_size)
{
	call c = good_call();
	char text[160];

	c.record = record + 8;
	ck_assert_int_eq(spmla_step_encode(c.plan, c.step, c.record, c.bytes,
					   NULL, NULL),
			 SPMLA_E_RANGE);
	c.record = record + 16;
	ck_assert_int_eq(spmla_step_encode(c.plan, c.step, c.record, c.bytes,
					   NULL, NULL),
			 SPMLA_OK);
	c = good_call();
	c.bytes--;
	snprintf(text, sizeof text,
		 "SPMLA_E_RANGE: record_capacity_bytes: got %u, want at least "
		 "%u",
		 (uint32_t)c.bytes, (uint32_t)c.bytes + 1);
	refused(&c, text);
	c.bytes = 0;
	ck_assert_int_eq(spmla_step_encode(c.plan, c.step, c.record, c.bytes,
					   NULL, NULL),
			 SPMLA_E_RANGE);
}
END_TEST

START_TEST(encode_refuses_structs_of_another_size)
{
	static spmla_plan plan;
	spmla_step_info info = SPMLA_STEP_INFO_INIT;
	call c = good_call();
	char text[160];

	d.step.struct_bytes++;
	snprintf(text, sizeof text,
		 "SPMLA_E_STRUCT_SIZE: step.struct_bytes: got %u, want %u",
		 (uint32_t)sizeof d.step + 1, (uint32_t)sizeof d.step);
	refused(&c, text);
	c = good_call();
	info.struct_bytes = 0;
	c.info = &info;
	snprintf(text, sizeof text,
		 "SPMLA_E_STRUCT_SIZE: info.struct_bytes: got 0, want %u",
		 (uint32_t)sizeof info);
	refused(&c, text);
	c = good_call();
	plan = r.f.plan;
	plan.struct_bytes--;
	c.plan = &plan;
	snprintf(text, sizeof text,
		 "SPMLA_E_STRUCT_SIZE: plan.struct_bytes: got %u, want %u",
		 (uint32_t)sizeof plan - 1, (uint32_t)sizeof plan);
	refused(&c, text);
}
END_TEST

START_TEST(a_record_at_all_its_limits_stays_inside_its_room)
{
	static const int32_t pages[32] = {5, 6, 7};
	const uint64_t bytes = r.f.plan.record_bytes;
	uint32_t i;

	draft_clear(&d);
	for (i = 0; i < 8; i++)
		draft_request(&d, i, 2, 500, SPMLA_REQUEST_JOIN);
	for (i = 0; i < 16; i++)
		draft_store(&d, i % 8, 2 * i, 2, pages);
	encode();
	for (i = 0; i < 16; i++)
		ck_assert_uint_eq(record[bytes + i], 0xAB);
	ck_assert_uint_eq(draft_write(&r.f, &d), 1);
	replay(&r.f, r.graphs[2], 1);
	ring_run_one(&r);
	ring_check(&r, &d, 2);
}
END_TEST

/* ---- Push -------------------------------------------------------------- */

static spmla_status
push(const void *bytes)
{
	uint64_t ticket;

	return spmla_step_push(r.f.ctx, bytes, &ticket);
}

START_TEST(a_record_may_be_moved_and_kept)
{
	uint8_t *other = test_alloc(r.f.plan.record_bytes, 0xCD);
	draft first = d;

	encode();
	memcpy(other, record, (size_t)r.f.plan.record_bytes);
	memset(record, 0xEE, (size_t)r.f.plan.record_bytes);
	memset(&d, 0xEE, sizeof d); /* the step and its lists are gone */
	ck_assert_int_eq(push(other), SPMLA_OK);
	ck_assert_int_eq(push(other), SPMLA_OK); /* and once more */
	memset(other, 0xEE, (size_t)r.f.plan.record_bytes);
	replay(&r.f, r.graphs[0], 1);
	replay(&r.f, r.graphs[1], 2);
	ring_run_one(&r);
	ring_check(&r, &first, 0);
	ring_run_one(&r);
	ring_check(&r, &first, 1);
	free(other);
}
END_TEST

START_TEST(one_record_serves_every_context_of_an_equal_key)
{
	ring_rig two;
	spmla_config config;
	uint64_t ticket;

	fixture_config(&config);
	config.heads = 2; /* another rank's plan: its records are the same */
	config.ring_slots = 7;
	ring_open_config(&two, &config, SPMLA_NATIVE_DEFERRED);
	ck_assert_uint_eq(two.f.plan.record_key, r.f.plan.record_key);
	encode();
	ck_assert_int_eq(push(record), SPMLA_OK);
	ck_assert_int_eq(spmla_step_push(two.f.ctx, record, &ticket), SPMLA_OK);
	replay(&r.f, r.graphs[0], 1);
	replay(&two.f, two.graphs[0], 1);
	ring_run_one(&r);
	ring_run_one(&two);
	ring_check(&r, &d, 0);
	ring_check(&two, &d, 0);
	ring_close(&two);
}
END_TEST

START_TEST(push_refuses_what_is_no_record_of_its_plan)
{
	spmla_config config;
	ring_rig two;
	uint64_t ticket;
	uint32_t word = 0;

	ck_assert_int_eq(push(record), SPMLA_E_RECORD); /* never encoded */
	encode();
	ck_assert_int_eq(push(record + 8), SPMLA_E_RANGE); /* misaligned */
	memcpy(record + 8, &word, sizeof word);            /* no magic */
	ck_assert_int_eq(push(record), SPMLA_E_RECORD);
	encode();
	word = 0x40000000; /* longer than any record */
	memcpy(record + 12, &word, sizeof word);
	ck_assert_int_eq(push(record), SPMLA_E_RECORD);
	word = 63; /* shorter than its header */
	memcpy(record + 12, &word, sizeof word);
	ck_assert_int_eq(push(record), SPMLA_E_RECORD);
	encode();
	fixture_config(&config);
	config.max_context_tokens = 496;
	ring_open_config(&two, &config, 0);
	ck_assert_int_eq(spmla_step_push(two.f.ctx, record, &ticket),
			 SPMLA_E_RECORD);
	ring_close(&two);
	ck_assert_uint_eq(draft_write(&r.f, &d), 1);
}
END_TEST

START_TEST(a_step_that_fails_takes_the_record_before_it_away)
{
	encode();
	d.requests[0].row = 8;
	ck_assert_int_eq(spmla_step_encode(&r.f.plan, draft_step(&d), record,
					   r.f.plan.record_bytes, NULL, NULL),
			 SPMLA_E_RECORD);
	ck_assert_int_eq(push(record), SPMLA_E_RECORD);
}
END_TEST

/* Limits of the step that a plan's key must tell apart. */
START_TEST(the_key_tells_plans_of_other_limits_apart)
{
	spmla_config config;
	uint32_t i;

	for (i = 0; i < 12; i++) {
		spmla_table_config *g = &config.groups[SPMLA_GROUP_MAIN];
		fixture f;

		fixture_config(&config);
		config.max_rows += i == 0;
		config.max_context_tokens -= i == 1;
		config.max_table_stores = i == 2 ? 15 : 0;
		config.max_update_pages = i == 3 ? 33 : 0;
		config.bucket_count -= i == 4;
		g->source = i == 5 ? SPMLA_TABLE_DEVICE : SPMLA_TABLE_RING;
		g->pool_pages += i == 6;
		config.buckets[1].tokens += i == 7;
		config.buckets[1].requests += i == 8;
		config.buckets[1].next_n += i == 9;
		config.buckets[1].max_live_context = i == 10 ? 2047 : 0;
		g->page_tokens -= i == 11;
		fixture_open(&f, &config, 0);
		ck_assert_uint_ne(f.plan.record_key, r.f.plan.record_key);
		fixture_close(&f);
	}
}
END_TEST

SUITE
{
	const theme_test arguments[] = {
		{encode_names_the_pointer_that_is_missing, 1},
		{encode_wants_aligned_room_of_the_planned_size, 1},
		{encode_refuses_structs_of_another_size, 1},
		{a_record_at_all_its_limits_stays_inside_its_room, 1},
	};
	const theme_test pushing[] = {
		{a_record_may_be_moved_and_kept, 1},
		{one_record_serves_every_context_of_an_equal_key, 1},
		{push_refuses_what_is_no_record_of_its_plan, 1},
		{a_step_that_fails_takes_the_record_before_it_away, 1},
		{the_key_tells_plans_of_other_limits_apart, 1},
	};
	const theme themes[] = {
		THEME("arguments", setup, teardown, arguments),
		THEME("push", setup, teardown, pushing),
	};

	return RUN_THEMES(themes);
}
