/* SPDX-License-Identifier: Apache-2.0
 *
 * See init_rig.h.
 */
#include "tests/core/init_rig.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/bytes.h"

void
init_open(init_rig *w)
{
	spmla_device device = SPMLA_DEVICE_INIT;
	spmla_config config;
	uint32_t m;

	memset(w, 0, sizeof *w);
	w->native = (spmla_native)SPMLA_NATIVE_INIT;
	fixture_config(&config);
	config.cache_layers = 1;
	ck_assert_int_eq(spmla_backend_query(&spmla_cpu, NULL, &device, NULL),
			 SPMLA_OK);
	ck_assert_int_eq(spmla_plan_make(&w->plan, &config, &device, NULL),
			 SPMLA_OK);
	for (m = 0; m < 4; m++) {
		w->room[m] = 2 * w->plan.region_bytes[m] + 8192;
		w->regions[m] =
			(spmla_region){24, m, test_alloc(w->room[m], 0xAB),
				       w->plan.region_bytes[m]};
	}
	w->count = 4;
}

void
init_close(init_rig *w)
{
	uint32_t m;

	for (m = 0; m < 4; m++)
		free(w->regions[m].base);
}

void
init_refused_with(init_rig *w, const spmla_backend *backend,
		  const spmla_region *regions, spmla_status status,
		  const char *want)
{
	spmla_diag diag = SPMLA_DIAG_INIT;
	spmla_ctx *const before = (spmla_ctx *)(void *)w;
	spmla_ctx *ctx = before;
	uint32_t m;

	ck_assert_int_eq(spmla_init(&ctx, &w->plan, backend, &w->native,
				    regions, w->count, &diag),
			 status);
	ck_assert_uint_eq(diag.status, status);
	ck_assert_str_eq(test_diag_text(&diag), want);
	ck_assert_int_eq(spmla_init(&ctx, &w->plan, backend, &w->native,
				    regions, w->count, NULL),
			 status);
	ck_assert_ptr_eq(ctx, before);
	memset(w->regions[0].base, 0xAB, w->context);
	for (m = 0; m < 4; m++)
		ck_assert_uint_eq(
			bytes_other(w->regions[m].base, w->room[m], 0xAB),
			w->room[m]);
}

void
init_refused(init_rig *w, const spmla_region *regions, spmla_status status,
	     const char *format, uint64_t a, uint64_t b)
{
	char want[200];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(want, sizeof want, format, a, b);
#pragma GCC diagnostic pop
	init_refused_with(w, &spmla_cpu, regions, status, want);
}
