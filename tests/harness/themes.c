/* SPDX-License-Identifier: Apache-2.0
 *
 * See themes.h.
 */
#include "tests/harness/themes.h"

#include "tests/harness/cuda_world.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* More than the longest test takes where everything is slow. */
enum { TIMEOUT_S = 300 };

/* Check writes a file at each assertion that holds, to know the last one before
 * a crash. That takes longer than what most suites assert. */
void __wrap__mark_point(const char *file, int line);

void
__wrap__mark_point(const char *file, int line)
{
	(void)file;
	(void)line;
}

/* SPMLA_TEST_RUNS, where calls and not values are looked at, or no limit. */
static int
most_runs(void)
{
	const char *text = getenv("SPMLA_TEST_RUNS");

	return text ? atoi(text) : INT_MAX;
}

static TCase *
tcase_of(const theme *t)
{
	TCase *tc = tcase_create(t->name);
	const int most = most_runs();
	uint32_t i;

	if (t->setup || t->teardown)
		tcase_add_checked_fixture(tc, t->setup, t->teardown);
	for (i = 0; i < t->count; i++) {
		const theme_test *test = &t->tests[i];

		tcase_add_loop_test(tc, test->test, 0,
				    test->runs < most ? test->runs : most);
	}
	tcase_set_timeout(tc, TIMEOUT_S);
	return tc;
}

int
run_themes(const char *file, const theme *themes, uint32_t count)
{
	Suite *s = suite_create(suite_name(file));
	SRunner *runner;
	uint32_t i;
	int failed;

	for (i = 0; i < count; i++)
		suite_add_tcase(s, tcase_of(&themes[i]));
	runner = srunner_create(s);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}

int
skip_suite(const char *file, const char *why)
{
	printf("SKIPPED: %s: %s\n", suite_name(file), why);
	return CUDA_WORLD_SKIPPED;
}
