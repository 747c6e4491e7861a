/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the buffers of a plan lie: sizes by hand for a small config, and what
 * must hold of every plan, checked pair by pair on plans drawn at random.
 */
#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) ((uint32_t)(sizeof(a) / sizeof((a)[0])))

static spmla_device device;
static spmla_plan plan;

static void
setup(void)
{
	device = (spmla_device)SPMLA_DEVICE_INIT;
	ck_assert_int_eq(spmla_backend_query(&spmla_cpu, NULL, &device, NULL),
			 SPMLA_OK);
}

static void
make(const spmla_config *config)
{
	spmla_diag diag = SPMLA_DIAG_INIT;
	char text[200];

	if (spmla_plan_make(&plan, config, &device, &diag) == SPMLA_OK)
		return;
	spmla_diag_text(&diag, text, sizeof text);
	ck_abort_msg("%s", text);
}

static const spmla_extent *
extent(uint32_t buf)
{
	uint32_t i;

	for (i = 0; i < plan.row_count; i++)
		if (plan.extents[i].buf == buf)
			return &plan.extents[i];
	ck_abort_msg("no row of buffer %u", buf);
	return NULL;
}

/* The fixture's config: 8 rows, 512 tokens in pages of 16, so 32 columns; at
 * most T = 16 tokens and B = 8 requests; 4 index heads, top-k 8. */
static const struct {
	uint32_t buf;
	uint32_t offset;
	uint32_t bytes;
} by_hand[] = {
	/* record: 64 + 8 requests * 16 + 16 stores * 16 + 32 pages * 4
	 * = 576, a bit a row: 8, and 8: 592, to 128: 640; 4 slots */
	{SPMLA_BUF_STEP_RING, 0, 2560},
	{SPMLA_BUF_RING_CONSUMED, 2560, 128},
	{SPMLA_BUF_DEVICE_STATUS, 2816, 128},
	{SPMLA_BUF_TABLE_STAGING, 3072, 1024}, /* 8 * 32 * 4 */

	{SPMLA_BUF_STEP_STATE, 0, 128},
	{SPMLA_BUF_STEP_DEVICE, 256, 192}, /* 64 + 8 * 16 */
	{SPMLA_BUF_ROW_LEN, 512, 32},
	{SPMLA_BUF_ADVANCE_BY, 768, 32},
	{SPMLA_BUF_BLOCK_TABLE_MAIN, 1024, 1024},
	{SPMLA_BUF_TABLE_COLS_MAIN, 2048, 64}, /* 2 * 8 * 4 */
	{SPMLA_BUF_STEP_REQUESTS, 2304, 128},
	{SPMLA_BUF_QUERY_START_LOC, 2560, 36}, /* (8 + 1) * 4 */
	{SPMLA_BUF_SEQ_LENS, 2816, 32},
	{SPMLA_BUF_REQ_ROW, 3072, 32},
	{SPMLA_BUF_REQ_ID_PER_TOKEN, 3328, 64},
	{SPMLA_BUF_TOKEN_ROW, 3584, 64},
	{SPMLA_BUF_POSITIONS, 3840, 64},
	{SPMLA_BUF_CONTEXT_LENS, 4096, 64},
	{SPMLA_BUF_SLOT_MAPPING, 4352, 128},
	{SPMLA_BUF_LOGITS_ROW_STARTS, 4608, 136}, /* 17 * 8 */
	{SPMLA_BUF_TOPK_INDICES, 4864, 512},      /* 16 * 8 * 4 */
	{SPMLA_BUF_TOPK_LENS, 5376, 64},
	{SPMLA_BUF_TOPK_SLOTS, 5632, 512},
	/* both phases start here */
	{SPMLA_BUF_INDEX_Q, 6144, 8192}, /* 16 * 4 * 128 */
	{SPMLA_BUF_INDEX_WEIGHTS, 14336, 256},
	/* Buckets: 2048; 4096; {16 tokens, next_n 4, 8 * 512 live}:
	 * 4 * 4096 + 16 * 255, but 16 * 512 = 8192 are enough. */
	{SPMLA_BUF_LOGITS, 14592, 32768},
	/* floats: 4 heads count as 16: 16 * (128 + 1) + 16 * 128 = 4112, more
	 * than 2048 bins of 4 B */
	{SPMLA_BUF_INDEX_SCRATCH, 47360, 16448},
	/* floats: 64 * 576 + 4 * (576 + 512 + 64 + 3) = 41484 */
	{SPMLA_BUF_ATTEND_SCRATCH, 6144, 165936},

	/* 2 layers * 64 pages * 16 * 656 and 16 * 132 */
	{SPMLA_BUF_KV_CACHE, 0, 1343488},
	{SPMLA_BUF_INDEX_CACHE, 1343488, 270336},
};

START_TEST(a_small_plan_is_as_worked_out_by_hand)
{
	spmla_config config;
	uint32_t i;

	fixture_config(&config);
	config.cache_layers = 2;
	make(&config);
	ck_assert_uint_eq(plan.columns, 32);
	ck_assert_uint_eq(plan.max_tokens, 16);
	ck_assert_uint_eq(plan.max_requests, 8);
	ck_assert_uint_eq(plan.record_bytes, 640);
	ck_assert_uint_eq(plan.logits_elems, 8192);
	for (i = 0; i < COUNT(by_hand); i++) {
		const spmla_extent *e = extent(by_hand[i].buf);

		ck_assert_msg(e->offset_bytes == by_hand[i].offset &&
				      e->bytes == by_hand[i].bytes,
			      "buffer %u: %" PRIu64 " bytes at %" PRIu64,
			      by_hand[i].buf, e->bytes, e->offset_bytes);
	}
	ck_assert_uint_eq(plan.region_bytes[SPMLA_MEMORY_PINNED], 4096);
	/* 6144 + 165936: ATTEND is the larger phase */
	ck_assert_uint_eq(plan.region_bytes[SPMLA_MEMORY_DEVICE], 172080);
	ck_assert_uint_eq(plan.region_bytes[SPMLA_MEMORY_CACHE], 1613824);
	ck_assert_uint_eq(plan.life_bytes[SPMLA_LIFE_CONTEXT], 2304);
	ck_assert_uint_eq(plan.life_bytes[SPMLA_LIFE_STEP], 6144 - 2304);
	/* 8192 + 256 + 32768 + 16448, to 256 */
	ck_assert_uint_eq(plan.life_bytes[SPMLA_LIFE_INDEX], 57856);
	/* to 256 */
	ck_assert_uint_eq(plan.life_bytes[SPMLA_LIFE_ATTEND], 166144);
}
END_TEST

START_TEST(logits_have_room_for_the_live_context_of_a_bucket_only)
{
	spmla_config config;

	fixture_config(&config);
	config.max_context_tokens = 100000;
	/* 1000 live tokens, each row rounded up by at most 255 */
	config.bucket_count = 1;
	config.buckets[0] = (spmla_shape){16, 8, 4, 1000};
	make(&config);
	ck_assert_uint_eq(plan.logits_elems, 4 * 1000 + 16 * 255);
	/* No limit: 16 rows of 100000, to 256: 100096 */
	config.buckets[0].max_live_context = 0;
	make(&config);
	ck_assert_uint_eq(plan.logits_elems, 16 * 100096);
	/* The largest bucket counts, wherever it stands. */
	config.bucket_count = 2;
	config.buckets[1] = (spmla_shape){2, 2, 1, 1};
	make(&config);
	ck_assert_uint_eq(plan.logits_elems, 16 * 100096);
}
END_TEST

START_TEST(pages_of_the_planned_caches_are_padded_to_16_bytes)
{
	spmla_config config;

	fixture_config(&config);
	config.cache_layers = 3;
	config.groups[0].page_tokens = 3;
	config.groups[0].pool_pages = 5;
	make(&config);
	/* 3 * 656 = 1968 = 123 * 16; 3 * 132 = 396, to 16: 400 */
	ck_assert_uint_eq(extent(SPMLA_BUF_KV_CACHE)->bytes, 3 * 5 * 1968);
	ck_assert_uint_eq(extent(SPMLA_BUF_INDEX_CACHE)->bytes, 3 * 5 * 400);
	config.kv_layout = SPMLA_LAYOUT_MLA_BF16;
	make(&config);
	ck_assert_uint_eq(extent(SPMLA_BUF_KV_CACHE)->bytes, 3 * 5 * 3456);
}
END_TEST

static uint32_t
is_phase(uint32_t life)
{
	return life == SPMLA_LIFE_INDEX || life == SPMLA_LIFE_ATTEND;
}

/* What must hold of two rows of one region. */
static void
check_pair(const spmla_extent *a, const spmla_extent *b, uint32_t apart)
{
	const uint64_t zone = apart ? 256 : 0;
	const uint32_t may_share = !apart && is_phase(a->life) &&
				   is_phase(b->life) && a->life != b->life;

	if (may_share)
		return;
	ck_assert_msg(a->offset_bytes + a->bytes + zone <= b->offset_bytes ||
			      b->offset_bytes + b->bytes + zone <=
				      a->offset_bytes,
		      "buffers %u and %u are too near", a->buf, b->buf);
}

/* The least offset of a phase in the DEVICE region, and its end. */
static void
phase_span(uint32_t life, uint64_t *start, uint64_t *end)
{
	uint32_t i;

	*start = UINT64_MAX;
	*end = 0;
	for (i = 0; i < plan.row_count; i++) {
		const spmla_extent *e = &plan.extents[i];

		if (e->memory != SPMLA_MEMORY_DEVICE || e->life != life)
			continue;
		if (e->offset_bytes < *start)
			*start = e->offset_bytes;
		if (e->offset_bytes + e->bytes > *end)
			*end = e->offset_bytes + e->bytes;
	}
}

static void
check_sums(uint32_t apart)
{
	uint64_t life[SPMLA_LIFE_COUNT] = {0}, index[2], attend[2], peak;
	uint64_t resident;
	uint32_t i;

	for (i = 0; i < plan.row_count; i++) {
		const spmla_extent *e = &plan.extents[i];

		if (e->memory == SPMLA_MEMORY_DEVICE)
			life[e->life] += (e->bytes + 255) / 256 * 256;
	}
	ck_assert_mem_eq(life, plan.life_bytes, sizeof life);
	if (apart)
		return;
	resident = life[SPMLA_LIFE_CONTEXT] + life[SPMLA_LIFE_STEP];
	peak = life[SPMLA_LIFE_INDEX] > life[SPMLA_LIFE_ATTEND]
		       ? life[SPMLA_LIFE_INDEX]
		       : life[SPMLA_LIFE_ATTEND];
	ck_assert_uint_eq((plan.region_bytes[SPMLA_MEMORY_DEVICE] + 255) / 256 *
				  256,
			  resident + peak);
	phase_span(SPMLA_LIFE_INDEX, &index[0], &index[1]);
	phase_span(SPMLA_LIFE_ATTEND, &attend[0], &attend[1]);
	ck_assert_uint_eq(index[0], resident);
	ck_assert_uint_eq(attend[0], resident);
}

static void
check_plan(uint32_t apart)
{
	uint64_t end[SPMLA_MEMORY_COUNT] = {0};
	uint32_t i, k, m;

	for (i = 0; i < plan.row_count; i++) {
		const spmla_extent *e = &plan.extents[i];

		ck_assert_uint_gt(e->bytes, 0);
		ck_assert_uint_lt(e->memory, SPMLA_MEMORY_COUNT);
		ck_assert_uint_lt(e->life, SPMLA_LIFE_COUNT);
		ck_assert_uint_eq(e->offset_bytes % 256, 0);
		if (e->offset_bytes + e->bytes > end[e->memory])
			end[e->memory] = e->offset_bytes + e->bytes;
		for (k = 0; k < i; k++)
			if (plan.extents[k].memory == e->memory)
				check_pair(e, &plan.extents[k], apart);
	}
	for (m = 0; m < SPMLA_MEMORY_COUNT; m++) {
		ck_assert_uint_eq(plan.region_bytes[m], end[m]);
		/* No more than the CUDA driver's allocators give. */
		ck_assert_uint_eq(plan.region_align[m], 256);
	}
	/* init puts the context at the start of the HOST region. */
	ck_assert_uint_eq(extent(SPMLA_BUF_CONTEXT)->offset_bytes, 0);
	ck_assert_uint_eq(extent(SPMLA_BUF_CONTEXT)->memory, SPMLA_MEMORY_HOST);
	/* Unused rows are zeros: a plan is compared with memcmp. */
	for (i = plan.row_count; i < SPMLA_MAX_PLAN_ROWS; i++)
		ck_assert_uint_eq(plan.extents[i].bytes, 0);
	check_sums(apart);
}

static void
draw(spmla_config *c, uint64_t *seed)
{
	uint32_t i;

	fixture_config(c);
	c->heads = 1 + rng_below(seed, 128);
	c->index_heads = 1 + rng_below(seed, 64);
	c->topk = 1 + rng_below(seed, 2048);
	c->kv_layout = rng_below(seed, 3);
	c->max_rows = 1 + rng_below(seed, 300);
	c->max_context_tokens = 1 + rng_below(seed, 1 << 20);
	c->cache_layers = rng_below(seed, 4);
	c->groups[0].source = rng_below(seed, 3);
	c->groups[0].page_tokens = 1 + rng_below(seed, 128);
	c->groups[0].pool_pages = 1 + rng_below(seed, 10000);
	c->bucket_count = 1 + rng_below(seed, 16);
	for (i = 0; i < c->bucket_count; i++) {
		spmla_shape *b = &c->buckets[i];

		b->tokens = 1 + rng_below(seed, 600);
		b->requests = 1 + rng_below(seed, c->max_rows);
		b->next_n = 1 + rng_below(seed, b->tokens);
		b->max_live_context = rng_below(seed, 1 << 22);
	}
	c->ring_slots = rng_below(seed, 9);
	c->max_table_stores = rng_below(seed, 100);
	c->max_update_pages = rng_below(seed, 1000);
	c->queue_entries = rng_below(seed, 100);
	c->max_graph_nodes = rng_below(seed, 2000);
}

START_TEST(no_two_buffers_that_live_at_once_share_bytes)
{
	uint64_t seed = test_seed();
	spmla_config config;
	uint32_t i;

	for (i = 0; i < 300; i++) {
		draw(&config, &seed);
		config.flags = 0;
		make(&config);
		check_plan(0);
	}
}
END_TEST

START_TEST(with_apart_256_bytes_lie_between_all_buffers)
{
	uint64_t seed = test_seed(), index[2], attend[2];
	spmla_config config;
	uint32_t i;

	for (i = 0; i < 300; i++) {
		draw(&config, &seed);
		config.flags = SPMLA_CONFIG_APART;
		make(&config);
		check_plan(1);
		phase_span(SPMLA_LIFE_INDEX, &index[0], &index[1]);
		phase_span(SPMLA_LIFE_ATTEND, &attend[0], &attend[1]);
		ck_assert(index[1] + 256 <= attend[0]);
	}
}
END_TEST

SUITE
{
	const theme_test c[] = {
		{a_small_plan_is_as_worked_out_by_hand, 1},
		{logits_have_room_for_the_live_context_of_a_bucket_only, 1},
		{pages_of_the_planned_caches_are_padded_to_16_bytes, 1},
		{no_two_buffers_that_live_at_once_share_bytes, 1},
		{with_apart_256_bytes_lie_between_all_buffers, 1},
	};
	const theme themes[] = {
		THEME("layout", setup, NULL, c),
	};

	return RUN_THEMES(themes);
}
