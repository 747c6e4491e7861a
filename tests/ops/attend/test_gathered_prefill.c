/* SPDX-License-Identifier: Apache-2.0
 *
 * Prompts of V4 over a gathered workspace, with all that the library has for
 * them: split_gathered_chunks, kv_gather, swa_index, topk or c128a_index,
 * combine_index, sparse_prefill; beside the road that spmla_v4_attn takes, over
 * the paged caches. Each is checked against dense attention, so that they agree
 * within the sum of what both may be off.
 */
#include "spmla/spmla_cpu.h"
#include "tests/harness/themes.h"
#include "tests/ops/attend/road_rig.h"

#define COUNT(list) ((uint32_t)(sizeof(list) / sizeof((list)[0])))

/* The window alone, top-k of 4:1, all of 128:1; and a table of the window whose
 * two columns wrap around. */
static const road_shape shapes[4] = {
	{1, 8, 0, 0}, {4, 8, 60, 0}, {128, 8, 8, 0}, {4, 8, 60, 2}};

/* A prompt shorter than the window; a few tokens behind a long context; more
 * than the window's behind one, over the end of a page, and of a group of 128,
 * at 384; a request that pauses; a prompt longer than the window; and one
 * without compressed keys. */
static const road_request batch[6] = {{2, 6, 6, 0},    {5, 380, 3, 0},
				      {0, 390, 12, 0}, {7, 130, 0, 0},
				      {1, 10, 10, 0},  {4, 2, 2, 0}};

static road_rig r;

/* They gather 6, 3 + 7, 12 + 7, 0, 10 and 2 keys beside the compressed ones. At
 * ratio 4 the first two need 2 * (95 + 10) rows, with the third 3 * (97 + 19);
 * that and the fourth 2 * (97 + 19), and the rest fits easily. At ratio 128
 * these are 2 * (2 + 10), 3 * (3 + 19), 2 * (3 + 19). */
START_TEST(prompts_in_chunks_equal_dense_attention_on_both_roads)
{
	road_result gathered, paged;

	road_open(&r, &shapes[_i]);
	road_step(&r, batch, COUNT(batch));
	road_gathered(&r, shapes[_i].ratio == 4 ? 240 : 50, &gathered);
	ck_assert_uint_eq(gathered.chunks, 3);
	ck_assert_uint_eq(gathered.shared, 2);
	road_check_gathered(&r, &gathered);
	road_paged(&r, &paged);
	road_check_paged(&r, &paged);
	road_free(&gathered);
	road_free(&paged);
	road_close(&r);
}
END_TEST

START_TEST(replay_start_bounds_both_roads)
{
	static const road_request replayed[3] = {
		{5, 380, 3, 375}, {0, 390, 12, 378}, {2, 6, 6, 0}};
	road_result gathered, paged;

	road_open(&r, &shapes[1]);
	road_step(&r, replayed, COUNT(replayed));
	ck_assert_int_eq(r.gather_lens[0], 5); /* 375 .. 379 */
	ck_assert_int_eq(r.gather_lens[1], 12);
	road_gathered(&r, 240, &gathered);
	road_check_gathered(&r, &gathered);
	road_paged(&r, &paged);
	road_check_paged(&r, &paged);
	road_free(&gathered);
	road_free(&paged);
	road_close(&r);
}
END_TEST

/* The largest request needs 390 / ratio + 19 rows. */
START_TEST(bits_do_not_depend_on_the_workspace)
{
	const road_shape *shape = &shapes[1 + _i];
	const uint32_t least = 390 / shape->ratio + 19;
	road_result few, all;

	road_open(&r, shape);
	road_step(&r, batch, COUNT(batch));
	road_gathered(&r, least, &few);
	road_gathered(&r, 6 * least, &all);
	ck_assert_uint_eq(few.chunks, 5);
	ck_assert_uint_eq(all.chunks, 1);
	road_expect_same(&few, 0, &all, 0, r.tokens);
	road_free(&few);
	road_free(&all);
	road_close(&r);
}
END_TEST

/* A request of 12 tokens in steps of 7 and 5, the second's keys not there in
 * the first, beside others or alone; 385 is no multiple of 4. */
START_TEST(request_cut_in_the_middle_keeps_its_bits)
{
	static const road_request head[2] = {{5, 380, 3, 0}, {0, 385, 7, 0}};
	static const road_request tail[2] = {{0, 390, 5, 0}, {4, 2, 2, 0}};
	static const road_request whole[1] = {{0, 390, 12, 0}};
	road_result first, second, once;

	road_open(&r, &shapes[_i]);
	road_step(&r, head, COUNT(head));
	road_gathered(&r, 240, &first);
	road_step(&r, tail, COUNT(tail));
	road_gathered(&r, 240, &second);
	road_step(&r, whole, COUNT(whole));
	road_gathered(&r, 120, &once);
	road_expect_same(&first, 3, &once, 0, 7);
	road_expect_same(&second, 0, &once, 7, 5);
	road_free(&first);
	road_free(&second);
	road_free(&once);
	road_close(&r);
}
END_TEST

/* With the window alone both roads have the keys in one order; matrix
 * instructions may sum them in another. */
START_TEST(window_alone_has_the_bits_of_the_paged_road_on_the_cpu)
{
	road_result gathered, paged;

	road_open(&r, &shapes[0]);
	if (r.f.backend == &spmla_cpu) {
		road_step(&r, batch, COUNT(batch));
		road_gathered(&r, 50, &gathered);
		road_paged(&r, &paged);
		road_expect_same(&gathered, 0, &paged, 0, r.tokens);
		road_free(&gathered);
		road_free(&paged);
	}
	road_close(&r);
}
END_TEST

SUITE
{
	const theme_test shape[] = {
		{prompts_in_chunks_equal_dense_attention_on_both_roads, 4},
	};
	const theme_test edge[] = {
		{replay_start_bounds_both_roads, 1},
	};
	const theme_test determinism[] = {
		{bits_do_not_depend_on_the_workspace, 2},
		{request_cut_in_the_middle_keeps_its_bits, 4},
		{window_alone_has_the_bits_of_the_paged_road_on_the_cpu, 1},
	};
	const theme themes[] = {
		THEME("shape", NULL, NULL, shape),
		THEME("edge", NULL, NULL, edge),
		THEME("determinism", NULL, NULL, determinism),
	};

	return RUN_THEMES(themes);
}
