/* SPDX-License-Identifier: Apache-2.0
 *
 * Whatever lies in the buffers of the device: a step runs to its end, inside
 * the regions, and writes only what is its own.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/harness/soil.h"
#include "tests/harness/step_rig.h"
#include "tests/harness/themes.h"
#include "tests/harness/v32_rig.h"

static fixture f;
static v32_rig rig;

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
	v32_rig_open(&rig, f.ctx, 0, 7);
}

static void
teardown(void)
{
	v32_rig_close(&rig);
	fixture_close(&f);
}

START_TEST(any_bytes_in_the_buffers_of_the_device_give_an_end)
{
	static const spmla_source sources[3] = {
		SPMLA_FROM_RING, SPMLA_FROM_DEVICE, SPMLA_ADVANCE};
	uint64_t rng = test_seed() + 77;
	const uint32_t rounds = fixture_rounds(300, 8);
	uint32_t round, i;

	for (round = 0; round < rounds; round++) {
		const spmla_shape *shape = &rig_shapes[rng_below(&rng, 3)];
		const uint32_t which = rng_below(&rng, f.plan.row_count);
		const spmla_extent *e = &f.plan.extents[which];
		uint64_t *state = spmla_view(f.ctx, SPMLA_BUF_STEP_STATE, NULL);
		const uint64_t done = soil_begin(&f);

		for (i = 0; i < f.plan.row_count; i++)
			if (f.plan.extents[i].memory == SPMLA_MEMORY_DEVICE &&
			    rng_below(&rng, 2))
				soil(spmla_view(
					     f.ctx,
					     (spmla_buf)f.plan.extents[i].buf,
					     NULL),
				     f.plan.extents[i].bytes, &rng);
		if (e->buf != SPMLA_BUF_STEP_STATE || rng_below(&rng, 2))
			*state = done; /* else the record is missing */
		(void)write_one(&f, rng_below(&rng, RIG_ROWS), 5);
		for (i = 0; i < 3; i++) {
			ck_assert_int_eq(spmla_step_prologue(f.ctx, shape,
							     sources[i], NULL),
					 SPMLA_OK);
			if (rng_below(&rng, 2))
				soil_buffers(&f, &rng, 4);
			v32_must(f.ctx, spmla_v32_attn(f.ctx, &rig.layer, shape,
						       NULL));
		}
		soil_end(&f, done);
	}
}
END_TEST

START_TEST(a_table_whose_columns_are_nonsense_is_written_inside)
{
	static const int32_t nonsense[] = {-1, -1000000, INT32_MIN, 33,
					   INT32_MAX};
	const uint32_t rows = f.plan.config.max_rows;
	int32_t *cols = spmla_view(f.ctx, SPMLA_BUF_TABLE_COLS_MAIN, NULL);
	int32_t *table = spmla_view(f.ctx, SPMLA_BUF_BLOCK_TABLE_MAIN, NULL);
	const int32_t page = 3;
	uint32_t i;

	for (i = 0; i < sizeof nonsense / sizeof nonsense[0]; i++) {
		draft d;

		cols[2] = cols[rows + 2] = nonsense[i];
		draft_clear(&d);
		draft_store(&d, 2, 5, 1, &page);
		(void)draft_write(&f, &d);
		ck_assert_int_eq(spmla_step_prologue(f.ctx, &rig_shapes[0],
						     SPMLA_FROM_RING, NULL),
				 SPMLA_OK);
		ck_assert_int_eq(cols[2], 0); /* columns before 5 are missing */
		ck_assert_int_eq(cols[rows + 2], 6);
		ck_assert_int_eq(table[2 * RIG_COLUMNS + 5], 3);
		ck_assert_int_eq(table[2 * RIG_COLUMNS + 4], -1);
		ck_assert_int_eq(table[2 * RIG_COLUMNS], -1);
	}
}
END_TEST

SUITE
{
	const theme_test hostile[] = {
		{any_bytes_in_the_buffers_of_the_device_give_an_end, 1},
		{a_table_whose_columns_are_nonsense_is_written_inside, 1},
	};
	const theme themes[] = {
		THEME("hostile", setup, teardown, hostile),
	};

	return RUN_THEMES(themes);
}
