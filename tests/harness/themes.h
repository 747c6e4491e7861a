/* SPDX-License-Identifier: Apache-2.0
 *
 * A suite as a table: themes (Check's test cases), each with its set-up and its
 * tests, and how often a test runs. A source has one suite, which is named
 * after it: tests/ops/select/test_topk.c is "ops/select/test_topk". Suites add
 * themselves to the program that they are linked into; suites.c runs them.
 */
#ifndef TESTS_HARNESS_THEMES_H
#define TESTS_HARNESS_THEMES_H

#include <check.h>
#include <stdint.h>

typedef struct theme_test {
	const TTest *test;
	int runs; /* _i is 0, 1, ..; at most SPMLA_TEST_RUNS are made */
} theme_test;

typedef struct theme {
	const char *name;
	void (*setup)(void);    /* or NULL */
	void (*teardown)(void); /* or NULL */
	const theme_test *tests;
	uint32_t count;
} theme;

#define THEME(name, setup, teardown, tests)                            \
	{                                                              \
		name, setup, teardown, tests,                          \
			(uint32_t)(sizeof(tests) / sizeof((tests)[0])) \
	}

/* Runs them and returns what main returns. */
int run_themes(const char *file, const theme *themes, uint32_t count);

#define RUN_THEMES(themes)           \
	run_themes(__FILE__, themes, \
		   (uint32_t)(sizeof(themes) / sizeof((themes)[0])))

/* A suite that has nothing to test here says why and returns this. */
#define SKIP_SUITE(why) skip_suite(__FILE__, why)

int skip_suite(const char *file, const char *why);

typedef struct suite {
	const char *file;
	int (*run)(void); /* returns what main returns */
	struct suite *next;
} suite;

void suite_add(suite *s);

/* "ops/select/test_topk" of its file. Static buffer. */
const char *suite_name(const char *file);

/* The body of the source's suite. */
#define SUITE                                                    \
	static int run_suite(void);                              \
	__attribute__((constructor)) static void add_suite(void) \
	{                                                        \
		static suite s = {__FILE__, run_suite, NULL};    \
                                                                 \
		suite_add(&s);                                   \
	}                                                        \
	static int run_suite(void)

#endif
