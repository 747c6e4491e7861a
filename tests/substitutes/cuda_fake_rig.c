/* SPDX-License-Identifier: Apache-2.0
 *
 * A context of SpMLA on the fake driver; see cuda_fake.h.
 */
#include "tests/substitutes/cuda_fake.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/fixture.h"

void
cuda_fake_rig_plan(cuda_fake_rig *rig)
{
	spmla_config config;

	fixture_config(&config);
	cuda_fake_rig_plan_of(rig, &config);
}

void
cuda_fake_rig_plan_of(cuda_fake_rig *rig, const spmla_config *config)
{
	spmla_device device = SPMLA_DEVICE_INIT;
	uint32_t m;

	memset(rig, 0, sizeof *rig);
	rig->native = (spmla_native)SPMLA_NATIVE_INIT;
	rig->diag = (spmla_diag)SPMLA_DIAG_INIT;
	ck_assert_int_eq(spmla_backend_query(&cuda_fake_backend, NULL, &device,
					     &rig->diag),
			 SPMLA_OK);
	ck_assert_int_eq(
		spmla_plan_make(&rig->plan, config, &device, &rig->diag),
		SPMLA_OK);
	for (m = 0; m < SPMLA_MEMORY_COUNT; m++) {
		const uint64_t bytes = rig->plan.region_bytes[m];

		rig->regions[m] = (spmla_region){
			(uint32_t)sizeof(spmla_region), m,
			test_alloc(bytes ? bytes : 256, 0xAB), bytes};
	}
}

spmla_status
cuda_fake_rig_init(cuda_fake_rig *rig)
{
	return spmla_init(&rig->ctx, &rig->plan, &cuda_fake_backend,
			  &rig->native, rig->regions, SPMLA_MEMORY_COUNT,
			  &rig->diag);
}

void
cuda_fake_query_says(const spmla_native *native, spmla_status status,
		     const char *want)
{
	spmla_device device = SPMLA_DEVICE_INIT;
	const spmla_device before = device;
	spmla_diag diag = SPMLA_DIAG_INIT;

	ck_assert_int_eq(
		spmla_backend_query(&cuda_fake_backend, native, &device, &diag),
		status);
	ck_assert_str_eq(test_diag_text(&diag), want);
	ck_assert_mem_eq(&device, &before, sizeof device);
}

void
cuda_fake_rig_init_says(cuda_fake_rig *rig, spmla_status status,
			const char *want)
{
	rig->ctx = NULL;
	ck_assert_int_eq(cuda_fake_rig_init(rig), status);
	ck_assert_str_eq(test_diag_text(&rig->diag), want);
	ck_assert_ptr_null(rig->ctx);
}

void
cuda_fake_rig_free(cuda_fake_rig *rig)
{
	uint32_t m;

	for (m = 0; m < SPMLA_MEMORY_COUNT; m++)
		free(rig->regions[m].base);
}
