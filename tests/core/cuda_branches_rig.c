/* SPDX-License-Identifier: Apache-2.0
 *
 * See cuda_branches_rig.h.
 */
#include "tests/core/cuda_branches_rig.h"

#include <check.h>

void
v4_branches_open(cuda_fake_rig *r, v4_layer_rig *rig)
{
	spmla_config config;

	cuda_fake_reset();
	v4_layer_config(&config);
	config.max_graphs = 8;
	cuda_fake_rig_plan_of(r, &config);
	ck_assert_int_eq(cuda_fake_rig_init(r), SPMLA_OK);
	v4_layer_open(rig, r->ctx, 3);
}

void
v4_branches_close(cuda_fake_rig *r, v4_layer_rig *rig)
{
	fake.fail_at = 0;
	v4_layer_close(rig);
	ck_assert_int_eq(spmla_fini(r->ctx), SPMLA_OK);
	ck_assert_uint_eq(fake.alive, 0);
	cuda_fake_rig_free(r);
}

spmla_v4_branches
v4_branches_both(void)
{
	spmla_v4_branches b = SPMLA_V4_BRANCHES_INIT;
	uint32_t i;

	for (i = 0; i < 2; i++)
		b.streams[i] = cuda_fake_stream(i + 1);
	for (i = 0; i < 3; i++)
		b.events[i] = cuda_fake_event(i);
	return b;
}
