/* SPDX-License-Identifier: Apache-2.0
 *
 * A read of the sticky status that is broken off anywhere by a clear, or by a
 * clear and a report, still gives something that was reported, or nothing. The
 * read runs one instruction at a time, so that each test breaks it off at one
 * of them: at the first, at the second, and so on to the last.
 */
#include <check.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>

#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"

#include "spmla/internal/step_layout.h"

#ifdef __x86_64__

enum { TRAP_FLAG = 0x100 };

static fixture f;
static volatile sig_atomic_t at, break_at, next_row;

/* Row r in step r. */
static void
report(uint32_t row)
{
	spmla_i_device_status *d =
		spmla_view(f.ctx, SPMLA_BUF_DEVICE_STATUS, NULL);

	d->step = row;
	d->key = (uint64_t)row << 32 | SPMLA_FAULT_PAGE;
	d->count = row;
}

/* After each instruction. */
static void
on_step(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	if (at++ != break_at)
		return;
	((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
	(void)spmla_status_clear(f.ctx);
	if (next_row)
		report((uint32_t)next_row);
}

/* Pushes below the red zone. */
static inline void
set_trap_flag(int on)
{
	__asm__ volatile("lea -128(%%rsp), %%rsp\n\t"
			 "pushfq\n\t"
			 "andq %0, (%%rsp)\n\t"
			 "orq %1, (%%rsp)\n\t"
			 "popfq\n\t"
			 "lea 128(%%rsp), %%rsp"
			 :
			 : "r"(~(uint64_t)TRAP_FLAG),
			   "r"((uint64_t)(on ? TRAP_FLAG : 0))
			 : "memory", "cc");
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

/* Whether the read lasted until it was broken off. */
static int
read_broken_off_at(int instruction, uint32_t first, uint32_t next)
{
	spmla_device_status s = SPMLA_DEVICE_STATUS_INIT;
	spmla_status r;

	(void)spmla_status_clear(f.ctx);
	if (first)
		report(first);
	at = 0;
	break_at = instruction;
	next_row = (int)next;
	set_trap_flag(1);
	r = spmla_status_read(f.ctx, &s);
	set_trap_flag(0);
	ck_assert_int_eq(r, SPMLA_OK);
	if (s.count) {
		ck_assert_uint_eq(s.fault, SPMLA_FAULT_PAGE);
		ck_assert_uint_eq(s.row, s.step);
		ck_assert(s.row == first || s.row == next);
		ck_assert_uint_ne(s.row, 0);
	} else {
		ck_assert_uint_eq(s.fault, 0);
		ck_assert_uint_eq(s.row, 0);
		ck_assert_uint_eq(s.step, 0);
	}
	return at > instruction;
}

START_TEST(a_read_that_is_broken_off_by_a_clear_gives_a_report_or_none)
{
	static const uint32_t rows[4][2] = {{2, 0}, {2, 1}, {1, 2}, {0, 1}};
	struct sigaction action, before;
	int n = 0;

	memset(&action, 0, sizeof action);
	action.sa_sigaction = on_step;
	action.sa_flags = SA_SIGINFO;
	ck_assert_int_eq(sigaction(SIGTRAP, &action, &before), 0);
	while (read_broken_off_at(n, rows[_i][0], rows[_i][1]))
		n++;
	ck_assert_int_eq(sigaction(SIGTRAP, &before, NULL), 0);
	ck_assert_int_ge(n, 10);
}
END_TEST

SUITE
{
	const theme_test reads[] = {
		{a_read_that_is_broken_off_by_a_clear_gives_a_report_or_none,
		 4},
	};
	const theme themes[] = {
		THEME("reads", setup, teardown, reads),
	};

	return RUN_THEMES(themes);
}

#else

SUITE
{
	return SKIP_SUITE("single steps of x86-64");
}

#endif
