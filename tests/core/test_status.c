/* SPDX-License-Identifier: Apache-2.0
 *
 * Names and texts: every rule of a diag in words, cut at every length, and the
 * sticky status of the device.
 */
#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"

#include <stdlib.h>
#include <string.h>

#include "spmla/internal/step_layout.h"

#define COUNT(a) ((uint32_t)(sizeof(a) / sizeof((a)[0])))

static const spmla_diag sample = {
	40, SPMLA_E_RANGE, SPMLA_WANT_AT_LEAST, 12, "config.heads", 0, 1};
static const char sample_text[] =
	"SPMLA_E_RANGE: config.heads[12]: got 0, want at least 1";

START_TEST(every_rule_is_told_in_words)
{
#define X UINT32_MAX
	static const struct {
		spmla_diag diag;
		const char *text;
	} cases[] = {
		{{40, SPMLA_E_STATE, SPMLA_WANT_NOTHING, X, "capture", 3, 4},
		 "SPMLA_E_STATE: capture"},
		{{40, SPMLA_E_STATE, SPMLA_WANT_NOTHING, 0, "capture", 3, 4},
		 "SPMLA_E_STATE: capture[0]"},
		{{40, SPMLA_E_TICKET, SPMLA_WANT_EQUAL, X, "ticket", 3, 4},
		 "SPMLA_E_TICKET: ticket: got 3, want 4"},
		{{40, SPMLA_E_RANGE, SPMLA_WANT_AT_LEAST, X, "a", 0, 1},
		 "SPMLA_E_RANGE: a: got 0, want at least 1"},
		{{40, SPMLA_E_RANGE, SPMLA_WANT_AT_MOST, 7, "a.b", UINT64_MAX,
		  10},
		 "SPMLA_E_RANGE: a.b[7]: got 18446744073709551615, "
		 "want at most 10"},
		{{40, SPMLA_E_REGION, SPMLA_WANT_MULTIPLE_OF, X, "base", 4097,
		  4096},
		 "SPMLA_E_REGION: base: got 4097, want a multiple of 4096"},
		{{40, SPMLA_E_NULL, SPMLA_WANT_NOT_NULL, X, "plan", 0, 0},
		 "SPMLA_E_NULL: plan: got NULL, want a pointer"},
		{{40, SPMLA_E_REGION, SPMLA_WANT_UNIQUE, 3, "memory", 1, 0},
		 "SPMLA_E_REGION: memory[3]: got 1 again, want it once"},
		{{40, SPMLA_E_RANGE, SPMLA_WANT_FINITE, X, "eps", 0x7fc00000,
		  0},
		 "SPMLA_E_RANGE: eps: got bits 0x7fc00000, want a finite value "
		 "above 0"},
		/* Bits 0, 2 and 63; then 16 bits a value. */
		{{40, SPMLA_E_RANGE, SPMLA_WANT_ONE_OF, X, "e", 1,
		  UINT64_C(0x8000000000000005)},
		 "SPMLA_E_RANGE: e: got 1, want 0, 2 or 63"},
		{{40, SPMLA_E_RANGE, SPMLA_WANT_ONE_OF, 2, "e", 9, 2},
		 "SPMLA_E_RANGE: e[2]: got 9, want 1"},
		{{40, SPMLA_E_RANGE, SPMLA_WANT_EITHER, X, "dim", 64,
		  UINT64_C(0x02000240)},
		 "SPMLA_E_RANGE: dim: got 64, want 576 or 512"},
		{{40, SPMLA_E_RANGE, SPMLA_WANT_EITHER, X, "dim", 64,
		  UINT64_C(0xffff000300020001)},
		 "SPMLA_E_RANGE: dim: got 64, want 1, 2, 3 or 65535"},
		/* An index is never taken for "none". */
		{{40, SPMLA_E_RANGE, SPMLA_WANT_EQUAL, X - 1, "a", 1, 2},
		 "SPMLA_E_RANGE: a[4294967294]: got 1, want 2"},
		/* A rule of a later version is left out. */
		{{40, SPMLA_E_RANGE, 10, X, "a", 1, 2}, "SPMLA_E_RANGE: a"},
		{{40, SPMLA_E_RANGE, UINT32_MAX, X, "a", 1, 2},
		 "SPMLA_E_RANGE: a"},
		/* Without a field there is nothing to tell. */
		{{40, SPMLA_E_SPACE, SPMLA_WANT_EQUAL, 1, NULL, 1, 2},
		 "SPMLA_E_SPACE"},
		{{40, SPMLA_OK, 0, X, NULL, 0, 0}, "SPMLA_OK"},
		{{40, 99, 0, X, NULL, 0, 0}, "SPMLA_E_UNKNOWN"},
	};
#undef X
	char text[200];
	uint32_t i;

	for (i = 0; i < COUNT(cases); i++) {
		memset(text, 0x77, sizeof text);
		ck_assert_uint_eq(
			spmla_diag_text(&cases[i].diag, text, sizeof text),
			strlen(cases[i].text));
		ck_assert_str_eq(text, cases[i].text);
	}
	ck_assert_uint_eq(spmla_diag_text(NULL, text, sizeof text), 7);
	ck_assert_str_eq(text, "no diag");
}
END_TEST

START_TEST(a_text_is_cut_at_any_capacity_and_always_ended)
{
	const uint32_t full = (uint32_t)strlen(sample_text);
	char text[100];
	uint32_t capacity, i;

	for (capacity = 0; capacity <= full + 5; capacity++) {
		const uint32_t kept = capacity > full ? full
				      : capacity      ? capacity - 1
						      : 0;

		memset(text, 0x77, sizeof text);
		ck_assert_uint_eq(spmla_diag_text(&sample, text, capacity),
				  full);
		ck_assert_mem_eq(text, sample_text, kept);
		if (capacity > 0)
			ck_assert_int_eq(text[kept], 0);
		for (i = capacity ? kept + 1 : 0; i < sizeof text; i++)
			ck_assert_msg(text[i] == 0x77,
				      "capacity %u: wrote byte %u", capacity,
				      i);
	}
}
END_TEST

START_TEST(a_null_text_gives_the_length_only)
{
	const uint32_t full = (uint32_t)strlen(sample_text);

	ck_assert_uint_eq(spmla_diag_text(&sample, NULL, 0), full);
	ck_assert_uint_eq(spmla_diag_text(&sample, NULL, 100), full);
	ck_assert_uint_eq(spmla_diag_text(NULL, NULL, 100), 7);
}
END_TEST

START_TEST(every_status_has_its_own_name)
{
#define N(s)          \
	{             \
		s, #s \
	}
	static const struct {
		spmla_status status;
		const char *name;
	} cases[] = {
		N(SPMLA_OK),
		N(SPMLA_E_NULL),
		N(SPMLA_E_STRUCT_SIZE),
		N(SPMLA_E_RANGE),
		N(SPMLA_E_OVERFLOW),
		N(SPMLA_E_REGION),
		N(SPMLA_E_OVERLAP),
		N(SPMLA_E_UNSUPPORTED),
		N(SPMLA_E_STATE),
		N(SPMLA_E_BUSY),
		N(SPMLA_E_RING_FULL),
		N(SPMLA_E_TICKET),
		N(SPMLA_E_RECORD),
		N(SPMLA_E_CAPTURE),
		N(SPMLA_E_SPACE),
		N(SPMLA_E_NO_DRIVER),
		N(SPMLA_E_DRIVER_OLD),
		N(SPMLA_E_NO_BLOB),
		N(SPMLA_E_DEVICE),
	};
#undef N
	uint32_t named = 0, i;

	for (i = 0; i < COUNT(cases); i++)
		ck_assert_str_eq(spmla_status_name(cases[i].status),
				 cases[i].name);
	for (i = 0; i < 1000; i++)
		named += strcmp(spmla_status_name((spmla_status)i),
				"SPMLA_E_UNKNOWN") != 0;
	ck_assert_uint_eq(named, COUNT(cases));
	ck_assert_str_eq(spmla_status_name(SPMLA_STATUS_FORCE_32),
			 "SPMLA_E_UNKNOWN");
	ck_assert_str_eq(spmla_status_name((spmla_status)-1),
			 "SPMLA_E_UNKNOWN");
}
END_TEST

START_TEST(every_fault_memory_and_life_has_its_own_name)
{
	static const char *const faults[] = {
		"NONE",   "TICKET_MISSING", "TOO_LARGE", "ROW",
		"LENGTH", "PAGE",           "SLOT",      "LOGITS",
		"INDEX",  "POSITION",       "TIMEOUT"};
	static const char *const memories[] = {"HOST", "PINNED", "DEVICE",
					       "CACHE"};
	static const char *const lives[] = {"CONTEXT", "STEP", "INDEX",
					    "ATTEND"};
	static const uint32_t unknown[] = {11, 100, SPMLA_FAULT_FORCE_32,
					   UINT32_MAX};
	uint32_t i;

	for (i = 0; i < COUNT(faults); i++)
		ck_assert_str_eq(spmla_fault_name(i), faults[i]);
	for (i = 0; i < COUNT(memories); i++)
		ck_assert_str_eq(spmla_memory_name(i), memories[i]);
	for (i = 0; i < COUNT(lives); i++)
		ck_assert_str_eq(spmla_life_name(i), lives[i]);
	for (i = 0; i < COUNT(unknown); i++) {
		ck_assert_str_eq(spmla_fault_name(unknown[i]), "UNKNOWN");
		ck_assert_str_eq(spmla_memory_name(unknown[i]), "UNKNOWN");
		ck_assert_str_eq(spmla_life_name(unknown[i]), "UNKNOWN");
	}
	ck_assert_str_eq(spmla_memory_name(SPMLA_MEMORY_COUNT), "UNKNOWN");
	ck_assert_str_eq(spmla_life_name(SPMLA_LIFE_COUNT), "UNKNOWN");
}
END_TEST

START_TEST(the_device_status_is_read_and_cleared)
{
	const spmla_i_device_status bad = {UINT64_C(3) << 32 | SPMLA_FAULT_PAGE,
					   UINT64_C(1) << 40, 9, 7, 0};
	spmla_device_status status = SPMLA_DEVICE_STATUS_INIT;
	spmla_config config;
	fixture f;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
	status = fixture_status(&f);
	ck_assert_uint_eq(status.count, 0);
	ck_assert_uint_eq(status.fault, SPMLA_FAULT_NONE);
	memcpy(spmla_view(f.ctx, SPMLA_BUF_DEVICE_STATUS, NULL), &bad,
	       sizeof bad);
	status = fixture_status(&f);
	ck_assert_uint_eq(status.count, 7);
	ck_assert_uint_eq(status.fault, SPMLA_FAULT_PAGE);
	ck_assert_uint_eq(status.row, 3);
	ck_assert_uint_eq(status.step, UINT64_C(1) << 40);
	/* It is sticky: reading does not clear it. */
	status = fixture_status(&f);
	ck_assert_uint_eq(status.count, 7);
	ck_assert_int_eq(spmla_status_clear(f.ctx), SPMLA_OK);
	status = fixture_status(&f);
	ck_assert_uint_eq(status.count, 0);
	ck_assert_uint_eq(status.fault, SPMLA_FAULT_NONE);
	ck_assert_uint_eq(status.row, 0);
	ck_assert_uint_eq(status.step, 0);
	fixture_close(&f);
}
END_TEST

/* A reader may come between a report and its count. */
START_TEST(what_is_not_counted_yet_is_not_told)
{
	const spmla_i_device_status begun = {
		UINT64_C(3) << 32 | SPMLA_FAULT_PAGE, 8, 9, 0, 0};
	spmla_device_status status = {24, 5, 5, 5, 5};
	spmla_config config;
	fixture f;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
	memcpy(spmla_view(f.ctx, SPMLA_BUF_DEVICE_STATUS, NULL), &begun,
	       sizeof begun);
	ck_assert_int_eq(spmla_status_read(f.ctx, &status), SPMLA_OK);
	ck_assert_uint_eq(status.count, 0);
	ck_assert_uint_eq(status.fault, SPMLA_FAULT_NONE);
	ck_assert_uint_eq(status.row, 0);
	ck_assert_uint_eq(status.step, 0);
	fixture_close(&f);
}
END_TEST

START_TEST(a_device_status_that_cannot_be_had_is_refused)
{
	spmla_device_status status = {24, 5, 5, 5, 5};
	spmla_config config;
	fixture f;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
	ck_assert_int_eq(spmla_status_read(NULL, &status), SPMLA_E_NULL);
	ck_assert_int_eq(spmla_status_read(f.ctx, NULL), SPMLA_E_NULL);
	ck_assert_int_eq(spmla_status_clear(NULL), SPMLA_E_NULL);
	status.struct_bytes = 20;
	ck_assert_int_eq(spmla_status_read(f.ctx, &status),
			 SPMLA_E_STRUCT_SIZE);
	ck_assert_uint_eq(status.count, 5);
	ck_assert_uint_eq(status.step, 5);
	fixture_close(&f);
}
END_TEST

START_TEST(a_layout_that_is_unknown_has_no_bytes)
{
	static const uint32_t unknown[] = {0, 13, 31, 32, UINT32_MAX};
	uint32_t i;

	ck_assert_uint_eq(spmla_layout_entry_bytes(SPMLA_LAYOUT_FP8_DS_MLA),
			  656);
	ck_assert_uint_eq(spmla_layout_entry_bytes(SPMLA_LAYOUT_MLA_BF16),
			  1152);
	ck_assert_uint_eq(spmla_layout_entry_bytes(SPMLA_LAYOUT_INDEX_FP8),
			  132);
	for (i = 0; i < COUNT(unknown); i++) {
		ck_assert_uint_eq(spmla_layout_entry_bytes(unknown[i]), 0);
		ck_assert_uint_eq(spmla_layout_page_bytes(unknown[i], 64), 0);
		ck_assert_uint_eq(spmla_layout_stride_align(unknown[i]), 0);
	}
	/* 64 * 656 and 64 * 132 are multiples of 16; 132 and 3 * 132 are not */
	ck_assert_uint_eq(spmla_layout_page_bytes(1, 64), 41984);
	ck_assert_uint_eq(spmla_layout_page_bytes(2, 64), 73728);
	ck_assert_uint_eq(spmla_layout_page_bytes(3, 64), 8448);
	ck_assert_uint_eq(spmla_layout_page_bytes(3, 1), 144);
	ck_assert_uint_eq(spmla_layout_page_bytes(4, 64), 37376);
	ck_assert_uint_eq(spmla_layout_page_bytes(4, 2), 1168);
	ck_assert_uint_eq(spmla_layout_page_bytes(5, 2), 2048);
	ck_assert_uint_eq(spmla_layout_page_bytes(6, 64), 32768);
	ck_assert_uint_eq(spmla_layout_page_bytes(7, 64), 4352);
	ck_assert_uint_eq(spmla_layout_page_bytes(8, 4), 8192);
	ck_assert_uint_eq(spmla_layout_page_bytes(9, 8), 32768);
	ck_assert_uint_eq(spmla_layout_page_bytes(10, 4), 32768);
	ck_assert_uint_eq(spmla_layout_page_bytes(3, 3), 400);
	ck_assert_uint_eq(spmla_layout_page_bytes(3, 0), 0);
	ck_assert_uint_eq(spmla_layout_stride_align(1), 16);
	ck_assert_uint_eq(spmla_layout_stride_align(3), 4);
	ck_assert_uint_eq(spmla_layout_stride_align(4), 8);
	ck_assert_uint_eq(spmla_layout_stride_align(5), 16);
	ck_assert_uint_eq(spmla_layout_stride_align(7), 4);
	ck_assert_uint_eq(spmla_layout_stride_align(10), 16);
	ck_assert_uint_eq(spmla_layout_page_bytes(11, 64), 8448);
	ck_assert_uint_eq(spmla_layout_stride_align(11), 4);
	ck_assert(spmla_layout_page_bytes(2, UINT32_MAX) ==
		  UINT64_C(1152) * UINT32_MAX);
}
END_TEST

SUITE
{
	const theme_test c[] = {
		{every_rule_is_told_in_words, 1},
		{a_text_is_cut_at_any_capacity_and_always_ended, 1},
		{a_null_text_gives_the_length_only, 1},
		{every_status_has_its_own_name, 1},
		{every_fault_memory_and_life_has_its_own_name, 1},
		{the_device_status_is_read_and_cleared, 1},
		{what_is_not_counted_yet_is_not_told, 1},
		{a_device_status_that_cannot_be_had_is_refused, 1},
		{a_layout_that_is_unknown_has_no_bytes, 1},
	};
	const theme themes[] = {
		THEME("text", NULL, NULL, c),
	};

	return RUN_THEMES(themes);
}
