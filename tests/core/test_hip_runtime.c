/* SPDX-License-Identifier: Apache-2.0
 *
 * The HIP runtime that is there, a substitute or AMD's own: each function that
 * gives a device's properties, in the layout of its own, says the same of the
 * device. SKIPPED unless suites run on HIP.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spmla/platform/hip/driver_hip.h"
#include "spmla/spmla_hip.h"

#include "tests/harness/themes.h"

enum { LAYOUTS = 3 };

/* Leaves the runtime one of the functions for properties; 0: it has not. */
static uint32_t
keep_one(spmla_i_hip_driver *d, uint32_t which)
{
	if (which != 0)
		d->properties_0600 = NULL;
	if (which != 1)
		d->properties_0000 = NULL;
	if (which != 2)
		d->properties_before = NULL;
	return d->properties_0600 || d->properties_0000 || d->properties_before;
}

START_TEST(each_layout_of_the_properties_says_the_same)
{
	const char *name = getenv("SPMLA_TEST_HIP_ARCH");
	spmla_device want = SPMLA_DEVICE_INIT;
	spmla_i_hip_driver all;
	uint32_t i, seen = 0;
	char arch[16];

	ck_assert_int_eq(spmla_backend_query(&spmla_hip, NULL, &want, NULL),
			 SPMLA_OK);
	if (name) {
		snprintf(arch, sizeof arch, "gfx%" PRIx32, want.arch);
		ck_assert_str_eq(arch, name);
	}
	ck_assert_int_eq(
		spmla_i_gpu_open(&all.gpu, &spmla_i_hip_platform, NULL),
		SPMLA_OK);
	for (i = 0; i < LAYOUTS; i++) {
		spmla_i_hip_driver one = all;
		spmla_device got = SPMLA_DEVICE_INIT;

		if (!keep_one(&one, i)) {
			printf("SKIPPED: the runtime has not all three\n");
			continue;
		}
		seen++;
		ck_assert_int_eq(spmla_i_gpu_query(&one.gpu, SPMLA_HIP_OLDEST,
						   NULL, &got, NULL),
				 SPMLA_OK);
		got.ops = want.ops; /* the backend's */
		ck_assert_mem_eq(&got, &want, sizeof got);
	}
	ck_assert_uint_ge(seen, 1);
}
END_TEST

SUITE
{
	const theme_test c[] = {
		{each_layout_of_the_properties_says_the_same, 1},
	};
	const theme themes[] = {
		THEME("layout", NULL, NULL, c),
	};

	if (!getenv("SPMLA_TEST_HIP"))
		return SKIP_SUITE("for the HIP runtime");
	return RUN_THEMES(themes);
}
