/* SPDX-License-Identifier: Apache-2.0
 *
 * A read of the sticky status that is broken off anywhere by a clear, or by a
 * clear and a report, still gives something that was reported, or nothing. A
 * signal breaks it off: it comes between any two instructions of the read.
 */
#include <check.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>

#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"

#include "spmla/internal/step_layout.h"

static fixture f;
static volatile sig_atomic_t signals;

/* Rows 1 and 2 in steps 1 and 2, and in between nothing. */
static void
report(uint32_t row)
{
	spmla_i_device_status *d =
		spmla_view(f.ctx, SPMLA_BUF_DEVICE_STATUS, NULL);

	d->step = row;
	d->key = (uint64_t)row << 32 | SPMLA_FAULT_PAGE;
	d->count = row;
}

static void
break_off(int number)
{
	(void)number;
	signals++;
	(void)spmla_status_clear(f.ctx);
	if (signals % 4)
		report(signals % 4 == 1 ? 1 : 2);
}

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

START_TEST(a_read_that_is_broken_off_by_a_clear_gives_a_report_or_none)
{
	const struct itimerval often = {{0, 20}, {0, 20}},
			       never = {{0, 0}, {0, 0}};
	spmla_device_status s = SPMLA_DEVICE_STATUS_INIT;
	struct sigaction action, before;
	uint32_t torn = 0;

	memset(&action, 0, sizeof action);
	action.sa_handler = break_off;
	ck_assert_int_eq(sigaction(SIGALRM, &action, &before), 0);
	report(2);
	ck_assert_int_eq(setitimer(ITIMER_REAL, &often, NULL), 0);
	while (signals < 2000 && !torn) {
		if (spmla_status_read(f.ctx, &s) != SPMLA_OK)
			break;
		torn = s.count ? s.fault != SPMLA_FAULT_PAGE ||
					 s.row != s.step || s.row == 0
			       : s.fault || s.row || s.step;
	}
	ck_assert_int_eq(setitimer(ITIMER_REAL, &never, NULL), 0);
	ck_assert_int_eq(sigaction(SIGALRM, &before, NULL), 0);
	ck_assert_msg(!torn, "count %u, fault %u, row %u, step %u", s.count,
		      s.fault, s.row, (uint32_t)s.step);
	ck_assert_int_ge(signals, 2000);
}
END_TEST

SUITE
{
	const theme_test reads[] = {
		{a_read_that_is_broken_off_by_a_clear_gives_a_report_or_none,
		 1},
	};
	const theme themes[] = {
		THEME("reads", setup, teardown, reads),
	};

	return RUN_THEMES(themes);
}
