/* SPDX-License-Identifier: Apache-2.0
 *
 * See themes.h.
 */
#include "tests/harness/themes.h"

static TCase *
tcase_of(const theme *t)
{
	TCase *tc = tcase_create(t->name);
	uint32_t i;

	if (t->setup)
		tcase_add_checked_fixture(tc, t->setup, t->teardown);
	for (i = 0; i < t->count; i++)
		tcase_add_test(tc, t->tests[i]);
	if (t->timeout_s)
		tcase_set_timeout(tc, t->timeout_s);
	return tc;
}

int
run_themes(const char *suite, const theme *themes, uint32_t count)
{
	Suite *s = suite_create(suite);
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
