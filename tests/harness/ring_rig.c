/* SPDX-License-Identifier: Apache-2.0
 *
 * See ring_rig.h.
 */
#include "tests/harness/ring_rig.h"

#include <check.h>
#include <string.h>

void
ring_open_config(ring_rig *r, const spmla_config *config, uint32_t native_flags)
{
	spmla_config six = *config;
	uint32_t i;

	six.max_graphs = 6;
	memset(r, 0, sizeof *r);
	fixture_open(&r->f, &six, native_flags);
	model_open(&r->m, &r->f);
	for (i = 0; i < 3; i++) {
		r->graphs[i] = capture_prologue(&r->f, &rig_shapes[i],
						SPMLA_FROM_RING);
		r->lists[i] =
			capture_list(&r->f, &rig_shapes[i], SPMLA_FROM_RING);
	}
}

void
ring_open(ring_rig *r, uint32_t slots, uint32_t native_flags)
{
	spmla_config config;

	fixture_config(&config);
	config.ring_slots = slots;
	ring_open_config(r, &config, native_flags);
}

void
ring_close(ring_rig *r)
{
	fixture_drain(&r->f);
	model_close(&r->m);
	fixture_close(&r->f);
}

void
ring_launch(ring_rig *r, uint32_t bucket)
{
	ck_assert_int_eq(engine_launch(r->f.ctx, r->lists[bucket]), SPMLA_OK);
}

void
ring_launch_ticket(ring_rig *r, uint32_t bucket, uint64_t ticket)
{
	ring_launch(r, bucket);
	ck_assert_int_eq(spmla_step_launched(r->f.ctx, ticket), SPMLA_OK);
}

void
ring_run_one(ring_rig *r)
{
	ck_assert_uint_eq(fixture_run(&r->f, 1), 1);
}

uint64_t
ring_consumed(const ring_rig *r)
{
	return *(const uint64_t *)spmla_view(r->f.ctx, SPMLA_BUF_RING_CONSUMED,
					     NULL);
}

uint8_t *
ring_slot(const ring_rig *r, uint64_t ticket)
{
	uint8_t *ring = spmla_view(r->f.ctx, SPMLA_BUF_STEP_RING, NULL);

	return ring +
	       ticket % r->f.plan.config.ring_slots * r->f.plan.record_bytes;
}

uint64_t
ring_slot_ticket(const ring_rig *r, uint64_t ticket)
{
	uint64_t got;

	memcpy(&got, ring_slot(r, ticket), sizeof got);
	return got;
}

void
ring_check(ring_rig *r, const draft *d, uint32_t bucket)
{
	model_record(&r->m, d, &rig_shapes[bucket]);
	model_check(&r->m, &r->f, &rig_shapes[bucket]);
}
