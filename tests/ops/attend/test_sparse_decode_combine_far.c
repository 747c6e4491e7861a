/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_decode that adds up more splits of a token than other suites have.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/ops/attend/decode_world.h"
#include "tests/ops/attend/parts_rig.h"

static fixture f;

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
}

static void
teardown(void)
{
	ck_assert_uint_eq(fixture_status(&f).count, 0);
	fixture_close(&f);
}

/* More than a count of few splits has bits for. All but five are empty. */
START_TEST(a_token_may_have_thousands_of_splits)
{
	enum { SPLITS = 4097 };
	static decode_world world;
	static parts_rig p;
	spmla_sparse_decode_args *a = &world.a;
	int32_t *rows = test_alloc(SPLITS * 8 * 4, 0);
	float *split_out = test_alloc(SPLITS * 2048, 0xFF);
	float *split_lse = test_alloc(SPLITS * 4, 0xFF);
	uint32_t i;

	decode_open(&world, SPMLA_LAYOUT_FP8_DS_MLA, 1, 64, 260);
	decode_choose(&world);
	parts_lend(&p, a);
	a->whole_tokens = a->tokens - 1;
	for (i = 0; i < SPLITS; i++) {
		const int32_t row[8] = {0, 0, (int32_t)(5 * i / SPLITS),
					(int32_t)(5 * (i + 1) / SPLITS),
					(int32_t)i};

		memcpy(rows + 8 * i, row, sizeof row);
	}
	a->parts = a->split_rows = SPLITS;
	p.num_splits[1] = SPLITS;
	a->tile_scheduler_metadata = rows;
	a->split_out = split_out;
	a->split_lse = split_lse;
	decode_check(&f, &world);
	parts_take_back(&p, a);
	decode_close(&world);
	free(rows);
	free(split_out);
	free(split_lse);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{a_token_may_have_thousands_of_splits, 1},
	};
	const theme themes[] = {
		THEME("shape", setup, teardown, shape),
	};

	return RUN_THEMES(themes);
}
