/* SPDX-License-Identifier: Apache-2.0
 *
 * The sticky status: the smallest row and fault of the first bad step, how
 * many reports there were, and reading and clearing it.
 */
#include <string.h>

#include "tests/harness/ring_rig.h"
#include "tests/harness/themes.h"

#include "spmla/ops/ops.h"

static ring_rig r;

static void
setup(void)
{
	ring_open(&r, 4, SPMLA_NATIVE_DEFERRED);
}

static void
setup_immediate(void)
{
	ring_open(&r, 4, 0);
}

static void
teardown(void)
{
	ring_close(&r);
}

/* A step whose rows have no pages: one report a token. */
static uint64_t
bad_rows(const uint32_t *rows, uint32_t count)
{
	draft d;
	uint32_t i;

	draft_clear(&d);
	for (i = 0; i < count; i++)
		draft_request(&d, rows[i], 1, 9, SPMLA_REQUEST_JOIN);
	return draft_write(&r.f, &d);
}

START_TEST(the_status_keeps_the_smallest_row_of_the_first_bad_step)
{
	static const uint32_t first[3] = {6, 4, 5}, second[2] = {1, 0};

	replay(&r.f, r.graphs[0], write_one(&r.f, 0, 5));
	replay(&r.f, r.graphs[0], bad_rows(first, 3));
	replay(&r.f, r.graphs[0], bad_rows(second, 2));
	expect_status(&r.f, 0, SPMLA_FAULT_NONE, 0, 0);
	ring_run_one(&r);
	expect_status(&r.f, 0, SPMLA_FAULT_NONE, 0, 0);
	ring_run_one(&r);
	expect_status(&r.f, 3, SPMLA_FAULT_PAGE, 4, 2);
	ring_run_one(&r);
	expect_status(&r.f, 5, SPMLA_FAULT_PAGE, 4, 2);
	ck_assert_int_eq(spmla_status_clear(r.f.ctx), SPMLA_OK);
	expect_status(&r.f, 0, SPMLA_FAULT_NONE, 0, 0);
	replay(&r.f, r.graphs[0], bad_rows(second, 2));
	ring_run_one(&r);
	expect_status(&r.f, 2, SPMLA_FAULT_PAGE, 0, 4);
}
END_TEST

START_TEST(every_prologue_is_a_step_of_its_own)
{
	static const uint32_t rows[1] = {5};
	spmla_step_device head = {1, 0, {0}};
	const spmla_request smaller = {0, 1, 9, 0};
	uint8_t *device = spmla_view(r.f.ctx, SPMLA_BUF_STEP_DEVICE, NULL);

	/* A launch without a record, then the record of the same number. */
	ring_launch(&r, 0);
	ring_run_one(&r);
	expect_status(&r.f, 1, SPMLA_FAULT_TICKET_MISSING, SPMLA_NO_INDEX, 1);
	replay(&r.f, r.graphs[0], bad_rows(rows, 1));
	ring_run_one(&r);
	expect_status(&r.f, 2, SPMLA_FAULT_TICKET_MISSING, SPMLA_NO_INDEX, 1);
	/* A bad step of the ring, then one of the device. */
	ck_assert_int_eq(spmla_status_clear(r.f.ctx), SPMLA_OK);
	replay(&r.f, r.graphs[0], bad_rows(rows, 1));
	ring_run_one(&r);
	memcpy(device, &head, sizeof head);
	memcpy(device + sizeof head, &smaller, sizeof smaller);
	ck_assert_int_eq(spmla_step_prologue(r.f.ctx, &rig_shapes[0],
					     SPMLA_FROM_DEVICE, NULL),
			 SPMLA_OK);
	ring_run_one(&r);
	expect_status(&r.f, 2, SPMLA_FAULT_PAGE, 5, 2);
}
END_TEST

START_TEST(the_status_keeps_the_smallest_fault_of_a_row)
{
	/* Ops alone report to the step that is there: 0, none yet. */
	int32_t row[1] = {5}, position[1] = {0}, page[6] = {0}, lens[1];
	int64_t starts[2], slot[1];
	const spmla_logits_rows_args no_room = {sizeof no_room, 1,     0, row,
						lens,           starts};
	const spmla_slot_map_args no_page = {
		sizeof no_page, 1,    6,    1,    16, 64, 1, 0, row, position,
		page,           page, lens, slot, 0,  0,  0, 0, 0,   0};
	uint32_t i;

	for (i = 0; i < 3; i++) {
		lens[0] = 1;
		ck_assert_int_eq(
			i % 2 ? spmla_slot_map(r.f.ctx, &no_page, NULL)
			      : spmla_logits_rows(r.f.ctx, &no_room, NULL),
			SPMLA_OK);
		expect_status(&r.f, i + 1,
			      i ? SPMLA_FAULT_PAGE : SPMLA_FAULT_LOGITS, 5, 0);
	}
}
END_TEST

START_TEST(the_status_takes_the_smaller_row_before_the_smaller_fault)
{
	int32_t *row_len = spmla_view(r.f.ctx, SPMLA_BUF_ROW_LEN, NULL);
	draft d;

	draft_clear(&d); /* row 2 has no page, row 3 too great a length */
	d.flags = SPMLA_STEP_LENS_ON_DEVICE;
	draft_request(&d, 3, 1, 9, SPMLA_REQUEST_JOIN);
	draft_request(&d, 2, 1, 9, SPMLA_REQUEST_JOIN);
	r.m.row_len[3] = row_len[3] = 10;
	r.m.row_len[2] = row_len[2] = 9;
	replay(&r.f, r.graphs[2], draft_write(&r.f, &d));
	expect_status(&r.f, 2, SPMLA_FAULT_PAGE, 2, 1);
	ring_check(&r, &d, 2);
}
END_TEST

START_TEST(status_is_read_without_a_sync_and_clearing_is_for_good)
{
	spmla_device_status s = SPMLA_DEVICE_STATUS_INIT;

	ck_assert_int_eq(spmla_status_read(NULL, &s), SPMLA_E_NULL);
	ck_assert_int_eq(spmla_status_read(r.f.ctx, NULL), SPMLA_E_NULL);
	ck_assert_int_eq(spmla_status_clear(NULL), SPMLA_E_NULL);
	s.struct_bytes--;
	ck_assert_int_eq(spmla_status_read(r.f.ctx, &s), SPMLA_E_STRUCT_SIZE);
	ring_launch(&r, 0); /* runs at once, and has no record */
	expect_status(&r.f, 1, SPMLA_FAULT_TICKET_MISSING, SPMLA_NO_INDEX, 1);
	ck_assert_int_eq(spmla_status_clear(r.f.ctx), SPMLA_OK);
	replay(&r.f, r.graphs[0], write_one(&r.f, 0, 5));
	expect_status(&r.f, 0, SPMLA_FAULT_NONE, 0, 0);
}
END_TEST

START_TEST(every_fault_has_a_name)
{
	uint32_t i, j;

	for (i = 0; i <= SPMLA_FAULT_POSITION; i++)
		for (j = 0; j <= i; j++)
			ck_assert_int_eq(strcmp(spmla_fault_name(i),
						spmla_fault_name(j)) == 0,
					 i == j);
	ck_assert_str_eq(spmla_fault_name(SPMLA_FAULT_TICKET_MISSING),
			 "TICKET_MISSING");
	ck_assert_str_eq(spmla_fault_name(SPMLA_FAULT_POSITION), "POSITION");
	ck_assert_str_eq(spmla_fault_name(99), "UNKNOWN");
}
END_TEST

SUITE
{
	const theme_test queued[] = {
		{the_status_keeps_the_smallest_row_of_the_first_bad_step, 1},
		{every_prologue_is_a_step_of_its_own, 1},
	};
	const theme_test at_once[] = {
		{the_status_keeps_the_smallest_fault_of_a_row, 1},
		{the_status_takes_the_smaller_row_before_the_smaller_fault, 1},
		{status_is_read_without_a_sync_and_clearing_is_for_good, 1},
		{every_fault_has_a_name, 1},
	};
	const theme themes[] = {
		THEME("queued", setup, teardown, queued),
		THEME("at once", setup_immediate, teardown, at_once),
	};

	return RUN_THEMES(themes);
}
