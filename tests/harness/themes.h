/* SPDX-License-Identifier: Apache-2.0
 *
 * A test program as a table: a suite of themes (Check's test cases), each with
 * its set-up and its tests.
 */
#ifndef TESTS_HARNESS_THEMES_H
#define TESTS_HARNESS_THEMES_H

#include <check.h>
#include <stdint.h>

typedef struct theme {
	const char *name;
	void (*setup)(void);    /* or NULL */
	void (*teardown)(void); /* or NULL */
	const TTest *const *tests;
	uint32_t count;
	uint32_t timeout_s; /* 0: Check's own */
} theme;

#define THEME(name, setup, teardown, tests)                               \
	{                                                                 \
		name, setup, teardown, tests,                             \
			(uint32_t)(sizeof(tests) / sizeof((tests)[0])), 0 \
	}

/* A theme whose tests take longer than Check allows by itself. */
#define LONG_THEME(name, setup, teardown, tests)                            \
	{                                                                   \
		name, setup, teardown, tests,                               \
			(uint32_t)(sizeof(tests) / sizeof((tests)[0])), 240 \
	}

/* Runs them and returns what main returns. */
int run_themes(const char *suite, const theme *themes, uint32_t count);

#define RUN_THEMES(suite, themes) \
	run_themes(suite, themes, \
		   (uint32_t)(sizeof(themes) / sizeof((themes)[0])))

#endif
