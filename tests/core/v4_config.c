/* SPDX-License-Identifier: Apache-2.0
 *
 * See v4_config.h.
 */
#include "tests/core/v4_config.h"

#include "spmla/spmla_cpu.h"
#include "tests/harness/bytes.h"

#include <check.h>
#include <string.h>

void
v4_config(spmla_config *c)
{
	uint32_t g;

	memset(c, 0, sizeof *c);
	c->struct_bytes = (uint32_t)sizeof *c;
	c->model = SPMLA_MODEL_V4_FLASH;
	c->heads = 4;
	c->index_heads = 4;
	c->topk = 8;
	c->max_rows = 8;
	c->max_context_tokens = 1000;
	c->bucket_count = 2;
	c->buckets[0] = (spmla_shape){4, 4, 1, 0};
	c->buckets[1] = (spmla_shape){16, 8, 3, 0};
	for (g = 0; g < SPMLA_V4_GROUPS; g++)
		c->groups[g].pool_pages = 64;
}

void
v4_config_expect(spmla_plan *plan, const spmla_config *config, const char *want)
{
	spmla_device device = SPMLA_DEVICE_INIT;

	ck_assert_int_eq(spmla_backend_query(&spmla_cpu, NULL, &device, NULL),
			 SPMLA_OK);
	v4_config_expect_on(plan, config, &device, want);
}

void
v4_config_expect_on(spmla_plan *plan, const spmla_config *config,
		    const spmla_device *device, const char *want)
{
	spmla_diag diag = SPMLA_DIAG_INIT;
	char text[200];
	spmla_status s;

	memset(plan, 0x5a, sizeof *plan);
	s = spmla_plan_make(plan, config, device, &diag);
	spmla_diag_text(&diag, text, sizeof text);
	if (!want) {
		ck_assert_msg(s == SPMLA_OK, "refused: %s", text);
		return;
	}
	ck_assert_int_ne(s, SPMLA_OK);
	ck_assert_uint_eq(diag.status, s);
	ck_assert_str_eq(text, want);
	ck_assert_int_eq(spmla_plan_make(plan, config, device, NULL), s);
	ck_assert_uint_eq(bytes_other(plan, sizeof *plan, 0x5a), sizeof *plan);
}

void
v4_config_group(const spmla_plan *plan, uint32_t g, uint32_t source,
		uint32_t page_tokens, uint32_t ring_columns, uint32_t table,
		uint32_t columns)
{
	const spmla_table_config *t = &plan->config.groups[g];
	const uint32_t got[5] = {t->source, t->page_tokens, t->ring_columns,
				 plan->group_table[g], plan->group_columns[g]};
	const uint32_t want[5] = {source, page_tokens, ring_columns, table,
				  columns};
	static const char *const names[5] = {
		"source", "page_tokens", "ring_columns", "table", "columns"};
	uint32_t i;

	for (i = 0; i < 5; i++)
		ck_assert_msg(got[i] == want[i], "group %u: %s %u, want %u", g,
			      names[i], got[i], want[i]);
}
