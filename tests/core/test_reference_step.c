/* SPDX-License-Identifier: Apache-2.0
 *
 * The independent reference's tables, scores, selection and attention against
 * numbers worked out by hand.
 */
#include "tests/harness/themes.h"
#include "tests/reference/reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static ref_work work;

static void
open_work(void)
{
	ck_assert_int_eq(ref_work_open(&work, 64, 2), 1);
}

static void
close_work(void)
{
	ref_work_close(&work);
}

/* ---- Tables and caches ------------------------------------------------- */

START_TEST(table_forgets_on_join_and_truncate)
{
	static const int32_t pages[3] = {7, 2, 9};
	ref_table t;

	ck_assert_int_eq(ref_table_open(&t, 2, 4, 16, 8), 1);
	ck_assert_int_eq(ref_table_slot(&t, 1, 0), -1);
	ck_assert_int_eq(ref_table_store(&t, 1, 1, 3, pages), 1);
	ck_assert_int_eq(ref_table_slot(&t, 1, 15), -1); /* never written */
	ck_assert_int_eq(ref_table_slot(&t, 1, 16), 7 * 16);
	ck_assert_int_eq(ref_table_slot(&t, 1, 47), 2 * 16 + 15);
	ck_assert_int_eq(ref_table_slot(&t, 1, 48), -1); /* page 9 of 8 */
	ck_assert_int_eq(ref_table_slot(&t, 1, 64), -1); /* no such column */
	ck_assert_int_eq(ref_table_slot(&t, 2, 0), -1);
	ck_assert_uint_eq(ref_table_written(&t, 1), 0);
	ck_assert_int_eq(ref_table_store(&t, 1, 0, 1, pages), 1);
	ck_assert_uint_eq(ref_table_written(&t, 1), 4);
	ck_assert_uint_eq(ref_table_written(&t, 2), 0);
	ck_assert_int_eq(ref_table_store(&t, 1, 2, 3, pages), 0);
	ck_assert_int_eq(ref_table_store(&t, 2, 0, 1, pages), 0);
	ref_table_truncate(&t, 1, 2);
	ck_assert_int_eq(ref_table_slot(&t, 1, 16), 7 * 16);
	ck_assert_int_eq(ref_table_slot(&t, 1, 32), -1);
	ref_table_join(&t, 1);
	ck_assert_int_eq(ref_table_slot(&t, 1, 16), -1);
	ref_table_close(&t);
}
END_TEST

/* ---- Scores and selection ---------------------------------------------- */

START_TEST(logits_of_two_heads_and_two_keys)
{
	ref_index_key key[2];
	const ref_index_key *keys[3] = {&key[0], NULL, &key[1]};
	double scores[3], tolerance[3];

	memset(key, 0, sizeof key);
	open_work();
	work.q_values[0] = 2;
	work.q_values[1] = -1;
	work.q_values[REF_INDEX_DIM] = 4;
	work.q_weights[0] = 3;
	work.q_weights[1] = -0.5;
	key[0].value[0] = 5;
	key[0].value[1] = 1;
	key[0].scale = 2;
	key[1].value[0] = -5;
	key[1].scale = 8;
	/* key 0: heads 10 - 1 = 9 and 20: (27 - 10) * 2; key 1: relu gives 0 */
	ref_logits(work.q_values, work.q_weights, 2, keys, 3, REF_SUMS_F32,
		   scores, tolerance);
	ck_assert_double_eq(scores[0], 34);
	ck_assert(isinf(scores[1]) && scores[1] < 0);
	ck_assert_double_eq(scores[2], 0);
	/* |terms|: (11 * 3 + 20 * 0.5) * 2 */
	ck_assert_double_eq(tolerance[0], 86 * 0x1p-18);
	/* the largest: (10 * 3 + 20 * 0.5) * 2 */
	ref_logits(work.q_values, work.q_weights, 2, keys, 3, REF_SUMS_CUT,
		   scores, tolerance);
	ck_assert_double_eq_tol(tolerance[0], 86 * 0x1p-18 + 80 * 0.82, 1e-12);
	close_work();
}
END_TEST

START_TEST(select_takes_the_lower_position_on_ties)
{
	const double s[8] = {1, NAN, 2, -0.0, 0.0, 2, -INFINITY, 0};
	int32_t got[8];

	open_work();
	ck_assert_uint_eq(ref_select(&work, s, 8, 5, got), 5);
	ck_assert_int_eq(got[0], 0); /* NaN 2 2 1, then the first of 3 zeros */
	ck_assert_int_eq(got[1], 1);
	ck_assert_int_eq(got[2], 2);
	ck_assert_int_eq(got[3], 3);
	ck_assert_int_eq(got[4], 5);
	ck_assert_uint_eq(ref_select(&work, s, 8, 7, got), 7);
	ck_assert_int_eq(got[5], 5); /* all but -inf */
	ck_assert_int_eq(got[6], 7);
	ck_assert_uint_eq(ref_select(&work, s, 3, 5, got), 3);
	ck_assert_int_eq(got[2], 2);
	ck_assert_int_eq(got[3], -1);
	ck_assert_int_eq(got[4], -1);
	ck_assert_uint_eq(ref_select(&work, s, 0, 2, got), 0);
	ck_assert_int_eq(got[0], -1);
	close_work();
}
END_TEST

START_TEST(select_sorts_any_length)
{
	double s[64];
	int32_t got[64];
	uint32_t n, i;

	open_work();
	for (n = 1; n <= 64; n++) {
		for (i = 0; i < n; i++) /* 37 is prime to all but 37 */
			s[i] = n == 37 ? (double)i : (double)(i * 37 % n);
		ck_assert_uint_eq(ref_select(&work, s, n, n / 2, got), n / 2);
		for (i = 0; i < n / 2; i++) {
			ck_assert_double_ge(s[got[i]], n - n / 2);
			ck_assert(i == 0 || got[i] > got[i - 1]);
		}
	}
	close_work();
}
END_TEST

START_TEST(a_selection_is_judged)
{
	const double s[5] = {3, 1, 2.5, 2.5, -INFINITY};
	const double none[5] = {0}, some[5] = {0.3, 0.3, 0.3, 0.3, 0.3};
	const uint8_t unsure[5] = {0, 1, 0, 0, 0};
	const int32_t right[3] = {0, 2, -1}, tie[3] = {0, 3, -1};
	const int32_t low[2] = {0, 1}, least[2] = {0, 4}, order[2] = {2, 0};
	const int32_t twice[2] = {2, 2}, far[2] = {0, 5}, first[3] = {0, 1, -1};
	ref_miss miss = {0};

	open_work();
#define JUDGE(set, k, n, tol, sure) \
	ref_check_selection(&work, set, k, s, n, tol, sure, &miss)
	ck_assert_int_eq(JUDGE(right, 2, 5, NULL, NULL), 1);
	ck_assert_int_eq(JUDGE(tie, 2, 5, NULL, NULL), 0);
	ck_assert_int_eq(JUDGE(tie, 2, 5, none, NULL), 1);
	ck_assert_int_eq(JUDGE(low, 2, 5, some, NULL), 0);
	ck_assert_int_eq((int)miss.at, 1);
	ck_assert_double_eq(miss.got, 1);
	ck_assert_double_eq(miss.want, 2.5);
	ck_assert_int_eq(JUDGE(low, 2, 5, some, unsure), 1);
	ck_assert_int_eq(JUDGE(least, 2, 5, some, NULL), 0);
	ck_assert_int_eq(JUDGE(order, 2, 5, none, NULL), 0);
	ck_assert_int_eq(JUDGE(twice, 2, 5, none, NULL), 0);
	ck_assert_int_eq(JUDGE(far, 2, 5, none, NULL), 0);
	ck_assert_int_eq(JUDGE(first, 3, 2, none, NULL), 1); /* all of a row */
	ck_assert_int_eq(JUDGE(first, 3, 1, none, NULL), 0);
	ck_assert_int_eq(JUDGE(first, 3, 3, none, NULL), 0);
#undef JUDGE
	close_work();
}
END_TEST

START_TEST(nan_beats_even_infinity)
{
	const double s[3] = {1e300, INFINITY, NAN}, none[3] = {0};
	const int32_t good[2] = {1, 2}, bad[2] = {0, 2}, worse[1] = {1};

	open_work();
	ck_assert_int_eq(
		ref_check_selection(&work, good, 2, s, 3, none, NULL, NULL), 1);
	ck_assert_int_eq(
		ref_check_selection(&work, bad, 2, s, 3, none, NULL, NULL), 0);
	ck_assert_int_eq(
		ref_check_selection(&work, worse, 1, s, 3, none, NULL, NULL),
		0);
	close_work();
}
END_TEST

/* ---- Attention --------------------------------------------------------- */

/* Two keys, (4, 0, ..) and (0, 8, ..); q picks up ln 3 of the first only, so
 * that the weights are 3/4 and 1/4. ln 3 is not a bf16 number, hence the
 * scale. */
START_TEST(softmax_of_two_keys_by_hand)
{
	static ref_kv_row row[2];
	const ref_kv_row *rows[2] = {&row[0], &row[1]};
	const float sink = (float)log(4), forever = INFINITY;
	const float never = -INFINITY;
	uint16_t q[REF_DIM] = {0};
	static ref_attend_result r;

	memset(row, 0, sizeof row);
	row[0].k[0] = 4;
	row[1].k[1] = -8;
	q[0] = ref_bf16_bits(0.25);
	open_work();
	ref_attend(&work, q, rows, 2, log(3), NULL, &r);
	ck_assert_double_eq_tol(r.out[0], 3, 1e-14);
	ck_assert_double_eq_tol(r.out[1], -2, 1e-14);
	ck_assert_double_eq_tol(r.magnitude[1], 2, 1e-14);
	ck_assert_double_eq_tol(r.lse, log(4), 1e-14);
	/* a sink of exp(lse) takes half of everything, and no part of lse */
	ref_attend(&work, q, rows, 2, log(3), &sink, &r);
	ck_assert_double_eq_tol(r.out[0], 1.5, 1e-6);
	ck_assert_double_eq_tol(r.lse, log(4), 1e-14);
	ref_attend(&work, q, rows, 2, log(3), &forever, &r);
	ck_assert_double_eq(r.out[0], 0);
	ref_attend(&work, q, rows, 2, log(3), &never, &r);
	ck_assert_double_eq_tol(r.out[0], 3, 1e-14);
	ref_attend(&work, q, rows, 0, log(3), &sink, &r);
	ck_assert_double_eq(r.out[0], 0);
	ck_assert(isinf(r.lse) && r.lse > 0);
	close_work();
}
END_TEST

START_TEST(rope_dims_score_but_are_no_values)
{
	static ref_kv_row row[2];
	const ref_kv_row *rows[2] = {&row[0], &row[1]};
	uint16_t q[REF_DIM] = {0};
	static ref_attend_result r;

	memset(row, 0, sizeof row);
	row[0].k[0] = 4;
	row[0].k[575] = 1;
	q[575] = ref_bf16_bits(1);
	open_work();
	ref_attend(&work, q, rows, 2, log(3), NULL, &r);
	ck_assert_double_eq_tol(r.out[0], 3, 1e-14);
	close_work();
}
END_TEST

START_TEST(a_row_attends_through_its_table)
{
	static uint16_t kv_c[2][REF_LATENT];
	static ref_attend_result r;
	const uint16_t k_pe[REF_ROPE] = {0}, q[REF_DIM] = {0};
	const int32_t page[1] = {1}, picks[4] = {1, -1, 3, 0};
	ref_table t;
	ref_cache c;

	kv_c[0][0] = ref_bf16_bits(2);
	kv_c[1][0] = ref_bf16_bits(4);
	open_work();
	ck_assert_int_eq(ref_table_open(&t, 1, 2, 2, 2), 1);
	ck_assert_int_eq(ref_cache_open(&c, 4), 1);
	ck_assert_int_eq(ref_table_store(&t, 0, 0, 1, page), 1);
	ck_assert_int_eq(ref_cache_put_kv(&c, ref_table_slot(&t, 0, 0), kv_c[0],
					  k_pe, REF_SCALE_POW2),
			 1);
	ck_assert_int_eq(
		ref_attend_row(&work, &c, &t, 0, picks, 4, q, 1, NULL, &r),
		0); /* position 1 was never put */
	ck_assert_int_eq(ref_cache_put_kv(&c, ref_table_slot(&t, 0, 1), kv_c[1],
					  k_pe, REF_SCALE_POW2),
			 1);
	ck_assert_int_eq(ref_cache_put_kv(&c, 4, kv_c[1], k_pe, REF_SCALE_POW2),
			 0);
	/* position 3 has no page: the mean of 2 and 4 */
	ck_assert_int_eq(
		ref_attend_row(&work, &c, &t, 0, picks, 4, q, 1, NULL, &r), 1);
	ck_assert_double_eq_tol(r.out[0], 3, 1e-14);
	ck_assert_double_eq_tol(r.lse, log(2), 1e-14);
	ref_cache_close(&c);
	ref_table_close(&t);
	close_work();
}
END_TEST

START_TEST(close_is_as_stated)
{
	ck_assert_int_eq(ref_close_out(1.0166, 1, 0), 1); /* 1e-3 + 0.0157 */
	ck_assert_int_eq(ref_close_out(1.0168, 1, 0), 0);
	ck_assert_int_eq(ref_close_out(0.0041, 0, 1), 1); /* 17/16 * 2^-8 */
	ck_assert_int_eq(ref_close_out(0.0042, 0, 1), 0);
	ck_assert_int_eq(ref_close_out(NAN, 1, 1), 0);
	ck_assert_int_eq(ref_close_lse(8.00097, 8), 1); /* 1e-6 + 0.000978 */
	ck_assert_int_eq(ref_close_lse(8.00098, 8), 0);
	ck_assert_int_eq(ref_close_lse(INFINITY, INFINITY), 1);
	ck_assert_int_eq(ref_close_lse(-INFINITY, INFINITY), 0);
	ck_assert_int_eq(ref_close_lse(1, INFINITY), 0);
}
END_TEST

SUITE
{
	const theme_test table[] = {
		{table_forgets_on_join_and_truncate, 1},
	};
	const theme_test select[] = {
		{logits_of_two_heads_and_two_keys, 1},
		{select_takes_the_lower_position_on_ties, 1},
		{select_sorts_any_length, 1},
		{a_selection_is_judged, 1},
		{nan_beats_even_infinity, 1},
	};
	const theme_test attend[] = {
		{softmax_of_two_keys_by_hand, 1},
		{rope_dims_score_but_are_no_values, 1},
		{a_row_attends_through_its_table, 1},
		{close_is_as_stated, 1},
	};
	const theme themes[] = {
		THEME("table", NULL, NULL, table),
		THEME("select", NULL, NULL, select),
		THEME("attend", NULL, NULL, attend),
	};

	return RUN_THEMES(themes);
}
