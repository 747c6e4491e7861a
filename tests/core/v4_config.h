/* SPDX-License-Identifier: Apache-2.0
 *
 * Configs of V4 for tests of the plan, and what the refusal of any must say.
 */
#ifndef TESTS_CORE_V4_CONFIG_H
#define TESTS_CORE_V4_CONFIG_H

#include "spmla/spmla.h"

/* 1000 tokens of context, 8 rows, 3 tokens of a request at most; of the groups
 * only pools, of 64 pages: all else is default. */
void v4_config(spmla_config *config);

/* Plans for the CPU: *plan is it if want is NULL; else the words of the refusal
 * are `want` and the plan is untouched. Fails the test otherwise. */
void v4_config_expect(spmla_plan *plan, const spmla_config *config,
		      const char *want);

/* The same for that device. */
void v4_config_expect_on(spmla_plan *plan, const spmla_config *config,
			 const spmla_device *device, const char *want);

/* What the plan made of group g: whose table, and columns of it. */
void v4_config_group(const spmla_plan *plan, uint32_t g, uint32_t source,
		     uint32_t page_tokens, uint32_t ring_columns,
		     uint32_t table, uint32_t columns);

#endif
