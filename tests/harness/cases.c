/* SPDX-License-Identifier: Apache-2.0
 *
 * See cases.h.
 */
#include "tests/harness/cases.h"

int
run_cases(const char *suite, void (*setup)(void), void (*teardown)(void),
	  const case_group *groups, uint32_t count)
{
	Suite *s = suite_create(suite);
	SRunner *runner;
	uint32_t g, i;
	int failed;

	for (g = 0; g < count; g++) {
		TCase *tc = tcase_create(groups[g].name);

		if (setup)
			tcase_add_checked_fixture(tc, setup, teardown);
		for (i = 0; i < groups[g].count; i++)
			tcase_add_loop_test(tc, groups[g].tests[i].test, 0,
					    groups[g].tests[i].runs);
		tcase_set_timeout(tc, 60);
		suite_add_tcase(s, tc);
	}
	runner = srunner_create(s);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
