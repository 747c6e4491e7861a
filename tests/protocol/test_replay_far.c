/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps whose caches are larger than 4 GiB: with the same pages of a small pool
 * they give the same bits, and the same keys lie where the stride says.
 */
#include <string.h>
#include <sys/mman.h>

#include "tests/harness/step_rig.h"
#include "tests/harness/themes.h"
#include "tests/harness/v32_rig.h"

enum { STEPS = 40, FEW_STEPS = 12, QUERY = 2, PAGE_TOKENS = 16 };

/* Pages of both caches lie that far apart: 64 of them are 6 GiB. */
#define STRIDE (UINT64_C(96) << 20)
#define MAP    (RIG_POOL * STRIDE)

/* Row 0 and row 1 lie high, row 2 low. */
static const int32_t pages[3][5] = {
	{63, 61, 59, 57, 55}, {62, 60, 58, 56, 54}, {1, 3, 5, 7, 9}};

typedef struct place {
	fixture f;
	v32_rig rig;
	spmla_cache kv, index; /* the rig's own */
} place;

static place near_by, far_off;

static void
open_place(place *p)
{
	spmla_config config;

	fixture_config(&config);
	fixture_open(&p->f, &config, 0);
	v32_rig_open(&p->rig, p->f.ctx, 0, 5);
	p->rig.bucket = 2;
	p->kv = p->rig.layer.kv;
	p->index = p->rig.layer.index;
}

static void
close_place(place *p)
{
	ck_assert_uint_eq(fixture_status(&p->f).count, 0);
	p->rig.layer.kv = p->kv;
	p->rig.layer.index = p->index;
	v32_rig_close(&p->rig);
	fixture_close(&p->f);
}

/* Only what is touched takes memory. */
static void *
map_pool(spmla_cache *cache)
{
	void *base = test_map(MAP);

	cache->base = base;
	cache->page_stride_bytes = STRIDE;
	return base;
}

/* Every row grows by QUERY tokens a step. */
static void
draft_step_of(draft *d, uint32_t step)
{
	const uint32_t len = QUERY * (step + 1);
	const uint32_t col = (len - 1) / PAGE_TOKENS;
	uint32_t row;

	draft_clear(d);
	for (row = 0; row < 3; row++) {
		draft_request(d, row, QUERY, len,
			      step == 0 ? SPMLA_REQUEST_JOIN : 0);
		if (step == 0 || (len - QUERY - 1) / PAGE_TOKENS != col)
			draft_store(d, row, col, 1, &pages[row][col]);
	}
}

static void
run_step(place *p, draft *d, uint64_t *seed)
{
	v32_rig_draw(&p->rig, seed);
	replay(&p->f, p->rig.graph, draft_write(&p->f, d));
}

static void
expect_same_keys(const spmla_cache *a, const spmla_cache *b, uint32_t steps)
{
	const size_t bytes = (size_t)a->page_stride_bytes;
	const uint32_t whole = QUERY * steps / PAGE_TOKENS;
	uint32_t row, col;

	ck_assert_uint_gt(whole, 0);
	for (row = 0; row < 3; row++)
		for (col = 0; col < whole; col++) {
			const uint64_t page = (uint64_t)pages[row][col];
			const uint8_t *x = a->base, *y = b->base;

			ck_assert_mem_eq(x + page * a->page_stride_bytes,
					 y + page * STRIDE, bytes);
		}
}

START_TEST(steps_beyond_four_gib_have_the_bits_of_a_small_pool)
{
	const uint32_t steps = fixture_rounds(STEPS, FEW_STEPS);
	uint64_t a = 11, b = 11;
	void *kv, *index;
	uint32_t s;

	open_place(&near_by);
	open_place(&far_off);
	kv = map_pool(&far_off.rig.layer.kv);
	index = map_pool(&far_off.rig.layer.index);
	v32_rig_capture(&near_by.rig, near_by.f.ctx);
	v32_rig_capture(&far_off.rig, far_off.f.ctx);
	for (s = 0; s < steps; s++) {
		draft d;

		draft_step_of(&d, s);
		run_step(&near_by, &d, &a);
		run_step(&far_off, &d, &b);
		ck_assert_mem_eq(near_by.rig.out, far_off.rig.out,
				 near_by.rig.out_bytes);
		ck_assert_mem_eq(near_by.rig.lse, far_off.rig.lse,
				 near_by.rig.lse_bytes);
	}
	if (QUERY * steps >= PAGE_TOKENS) {
		expect_same_keys(&near_by.kv, &far_off.rig.layer.kv, steps);
		expect_same_keys(&near_by.index, &far_off.rig.layer.index,
				 steps);
	}
	munmap(kv, MAP);
	munmap(index, MAP);
	close_place(&near_by);
	close_place(&far_off);
}
END_TEST

SUITE
{
	const theme_test far[] = {
		{steps_beyond_four_gib_have_the_bits_of_a_small_pool, 1},
	};
	const theme themes[] = {
		THEME("large caches", NULL, NULL, far),
	};

	return RUN_THEMES(themes);
}
