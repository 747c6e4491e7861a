/* SPDX-License-Identifier: Apache-2.0
 *
 * See soil.h.
 */
#include "tests/harness/soil.h"

#include <check.h>
#include <string.h>

void
soil(void *bytes, uint64_t count, uint64_t *rng)
{
	static const uint32_t edges[] = {0,          0x7fffffff, 0x80000000,
					 0xffffffff, 511,        512,
					 0xfff0bdc0, 64};
	uint64_t i;

	for (i = 0; i + 4 <= count; i += 4) {
		const uint32_t dice = rng_below(rng, 4);
		const uint32_t word = dice == 0   ? edges[rng_below(rng, 8)]
				      : dice == 1 ? (uint32_t)rng_next(rng)
						  : rng_below(rng, 40);

		memcpy((uint8_t *)bytes + i, &word, sizeof word);
	}
}

void
soil_buffers(const fixture *f, uint64_t *rng, uint32_t one_in)
{
	uint32_t i;

	for (i = 0; i < f->plan.row_count; i++) {
		const spmla_extent *e = &f->plan.extents[i];

		if ((e->memory == SPMLA_MEMORY_DEVICE ||
		     e->memory == SPMLA_MEMORY_CACHE) &&
		    e->buf != SPMLA_BUF_STEP_STATE &&
		    rng_below(rng, one_in) == 0)
			soil(spmla_view(f->ctx, (spmla_buf)e->buf, NULL),
			     e->bytes, rng);
	}
}

uint64_t
soil_begin(const fixture *f)
{
	return *(const uint64_t *)spmla_view(f->ctx, SPMLA_BUF_STEP_STATE,
					     NULL);
}

void
soil_end(const fixture *f, uint64_t done)
{
	uint64_t *state = spmla_view(f->ctx, SPMLA_BUF_STEP_STATE, NULL);

	*state = done;
	ck_assert_int_eq(spmla_step_resync(f->ctx), SPMLA_OK);
	*state = *(const uint64_t *)spmla_view(f->ctx, SPMLA_BUF_RING_CONSUMED,
					       NULL);
}
