/* SPDX-License-Identifier: Apache-2.0
 *
 * What the fake driver of Level Zero, on which the suites stand, insists on: it
 * ends a program that submits or destroys what runs, and runs commands that no
 * barrier separates in either order.
 */
#include "tests/harness/dies.h"
#include "tests/harness/themes.h"
#include "tests/substitutes/ze_fake.h"

enum { ROUNDS = 60 };

static const spmla_i_ze_driver *d;
static spmla_native native;
static spmla_ze_list list;
static spmla_ze_fence fence;
static uint8_t word;

/* Appends a fill of `word` with a value. */
static void
fill(uint8_t value)
{
	ck_assert_int_eq(
		d->append_fill(list, &word, &value, 1, 1, NULL, 0, NULL), 0);
}

static void
submit(void)
{
	(void)d->queue_execute(native.queue, 1, &list, fence);
}

static void
setup(void)
{
	const spmla_ze_list_desc desc = {SPMLA_ZE_LIST_DESC, NULL, 1, 0};
	const spmla_ze_fence_desc of = {SPMLA_ZE_FENCE_DESC, NULL, 0};

	ze_fake_reset();
	d = &ze_fake_driver_table.own;
	ze_fake_native(&native);
	ck_assert_int_eq(
		d->list_create(native.context, native.device, &desc, &list), 0);
	ck_assert_int_eq(d->fence_create(native.queue, &of, &fence), 0);
}

static void
teardown(void)
{
	ze_fake_wait();
	ck_assert_int_eq(d->list_destroy(list), 0);
	ck_assert_int_eq(d->fence_destroy(fence), 0);
}

static void
submit_without_a_fence(void)
{
	(void)d->queue_execute(native.queue, 1, &list, NULL);
}

static void
append_a_barrier(void)
{
	(void)d->append_barrier(list, NULL, 0, NULL);
}

static void
destroy_the_list(void)
{
	(void)d->list_destroy(list);
}

static void
destroy_the_fence(void)
{
	(void)d->fence_destroy(fence);
}

static void
reset_the_fence(void)
{
	(void)d->fence_reset(fence);
}

START_TEST(a_list_that_runs_is_left_alone)
{
	fill(1);
	must_die(submit, "an open list");
	ck_assert_int_eq(d->list_close(list), 0);
	must_die(append_a_barrier, "a closed list");
	submit();
	must_die(submit_without_a_fence, "a list is submitted while it runs");
	must_die(destroy_the_list, "it still runs");
	must_die(destroy_the_fence, "it still runs");
	must_die(reset_the_fence, "it still runs");
	ze_fake_wait();
	must_die(submit, "a fence that was not reset");
	ck_assert_int_eq(d->fence_reset(fence), 0);
	submit();
	ze_fake_wait();
	ck_assert_uint_eq(fake_ze.most_runs, 2);
}
END_TEST

/* _i: whether a barrier separates the two. */
START_TEST(only_a_barrier_orders_commands)
{
	uint32_t round, first = 0;

	fill(1);
	if (_i)
		append_a_barrier();
	fill(2);
	append_a_barrier();
	ck_assert_int_eq(d->list_close(list), 0);
	for (round = 0; round < ROUNDS; round++) {
		submit();
		ze_fake_wait();
		ck_assert_int_eq(d->fence_reset(fence), 0);
		first += word == 1;
	}
	if (_i)
		ck_assert_uint_eq(first, 0);
	else
		ck_assert(first > 0 && first < ROUNDS);
	ck_assert_uint_eq(fake_ze.shuffled, _i ? 0 : ROUNDS);
}
END_TEST

SUITE
{
	const theme_test c[] = {
		{a_list_that_runs_is_left_alone, 1},
		{only_a_barrier_orders_commands, 2},
	};
	const theme themes[] = {
		THEME("order", setup, teardown, c),
	};

	return RUN_THEMES(themes);
}
