/* SPDX-License-Identifier: Apache-2.0
 *
 * A test program as a table, for suites whose tests run several times: a suite
 * of test cases that share their set-up, each a list of tests and how often
 * they run (_i is 0, 1, ..).
 */
#ifndef TESTS_HARNESS_CASES_H
#define TESTS_HARNESS_CASES_H

#include <check.h>
#include <stdint.h>

typedef struct case_test {
	const TTest *test;
	int runs;
} case_test;

typedef struct case_group {
	const char *name;
	const case_test *tests;
	uint32_t count;
} case_group;

#define CASES(name, tests)                                                  \
	{                                                                   \
		name, tests, (uint32_t)(sizeof(tests) / sizeof((tests)[0])) \
	}

/* Runs them and returns what main returns. setup may be NULL. */
int run_cases(const char *suite, void (*setup)(void), void (*teardown)(void),
	      const case_group *groups, uint32_t count);

#define RUN_CASES(suite, setup, teardown, groups) \
	run_cases(suite, setup, teardown, groups, \
		  (uint32_t)(sizeof(groups) / sizeof((groups)[0])))

#endif
