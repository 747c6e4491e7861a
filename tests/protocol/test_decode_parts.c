/* SPDX-License-Identifier: Apache-2.0
 *
 * What the prologue writes for decode steps that a GPU does in parts: every
 * block of every token belongs to just one part, parts are alike, and
 * NUM_SPLITS counts them; with the batch-invariant flag every split is a part.
 * A backend without parts has no such buffers.
 */
#include <stdlib.h>
#include <string.h>

#include "spmla/internal/few.h"
#include "spmla/internal/splits.h"
#include "spmla/spmla_layout.h"
#include "tests/harness/ring_rig.h"
#include "tests/harness/themes.h"
#include "tests/harness/v32_rig.h"
#include "tests/protocol/parts_check.h"

enum { FEW_HEADS = 4, HEADS = 20 }; /* up to 16 of V3.2 have a way of theirs */

static ring_rig r;

static void
setup_flags(uint32_t flags, uint32_t topk, uint32_t heads)
{
	spmla_config config;

	fixture_config(&config);
	config.flags |= flags;
	config.topk = topk;
	config.heads = heads;
	fixture_multiprocessors(12);
	ring_open_config(&r, &config, 0);
	fixture_multiprocessors(0);
}

static void
setup(void)
{
	/* 8 blocks: several parts a token. */
	setup_flags(0, 512, FEW_HEADS);
}

/* Five blocks, of a context that is long enough. */
static void
setup_fixed(void)
{
	setup_flags(SPMLA_CONFIG_BATCH_INVARIANT, 300, HEADS);
}

static void
setup_one_launch(void)
{
	setup_flags(SPMLA_CONFIG_BATCH_INVARIANT, 300, FEW_HEADS);
}

static void
teardown(void)
{
	ring_close(&r);
}

static const int32_t *
view(spmla_buf buf, uint64_t *bytes)
{
	return spmla_view(r.f.ctx, buf, bytes);
}

/* Checks the parts of the step at hand, which share the tokens from `whole`
 * on. */
static void
check_parts(uint32_t parts, uint32_t whole, int32_t tokens)
{
	const int32_t *lens = view(SPMLA_BUF_CONTEXT_LENS, NULL);
	const parts_step step = {view(SPMLA_BUF_TILE_SCHEDULER_METADATA, NULL),
				 view(SPMLA_BUF_NUM_SPLITS, NULL),
				 lens + whole,
				 tokens,
				 (int32_t)parts,
				 512,
				 0,
				 1};

	parts_check(&step);
}

/* The tokens of the last round, which is at most two thirds full, on Hopper
 * less than three quarters; 0: the step is whole. */
static uint32_t
in_parts(uint32_t tokens, uint32_t parts)
{
	const uint32_t last = tokens % parts;

	if (spmla_i_can_combine(&r.f.plan.device))
		return last * 4 < parts * 3 ? last : 0;
	return last * 3 <= parts * 2 ? last : 0;
}

START_TEST(parts_cover_every_block_of_random_batches_once)
{
	uint64_t bytes = 0;
	uint32_t i;
	sim s;

	view(SPMLA_BUF_TILE_SCHEDULER_METADATA, &bytes);
	if (r.f.plan.device.kind == SPMLA_BACKEND_CPU) {
		ck_assert_uint_eq(bytes, 0);
		return;
	}
	sim_open(&s, &r.f.plan, test_seed());
	for (i = 0; i < 300; i++) {
		const uint32_t bucket = i % 3;
		const uint32_t tokens = r.f.config.buckets[bucket].tokens;
		const uint32_t groups = (r.f.plan.config.heads + 63) / 64;
		const uint32_t parts = r.f.plan.device.sm_count / groups;
		uint32_t last;
		draft d;

		sim_draft(&s, &rig_shapes[bucket], &d);
		replay(&r.f, r.graphs[bucket], draft_write(&r.f, &d));
		fixture_drain(&r.f);
		ring_check(&r, &d, bucket);
		last = in_parts(tokens, parts);
		if (last)
			check_parts(spmla_i_even_parts(last, parts),
				    tokens - last, (int32_t)last);
	}
}
END_TEST

static uint64_t
split_bytes(const spmla_plan *plan)
{
	spmla_row row = SPMLA_ROW_INIT;
	uint64_t bytes = 0;
	uint32_t i;

	for (i = 0; i < plan->row_count; i++) {
		ck_assert_int_eq(spmla_plan_row(plan, i, &row), SPMLA_OK);
		bytes += row.buf == SPMLA_BUF_SPLIT_OUT ? row.bytes : 0;
	}
	return bytes;
}

/* On 132 multiprocessors: with 128 heads rounds of 66 tokens, of which 44 are
 * two thirds and 49 less than three quarters; with 64 heads of 132, of which 99
 * are three quarters. */
START_TEST(a_step_whose_tokens_fill_their_rounds_has_no_parts)
{
	static const struct {
		uint32_t heads, tokens, in_parts, on_hopper;
	} cases[] = {{128, 1, 1, 1},   {128, 32, 1, 1},  {128, 44, 1, 1},
		     {128, 45, 0, 1},  {128, 49, 0, 1},  {128, 50, 0, 0},
		     {128, 66, 0, 0},  {128, 67, 1, 1},  {128, 110, 1, 1},
		     {128, 111, 0, 1}, {128, 115, 0, 1}, {128, 116, 0, 0},
		     {128, 132, 0, 0}, {128, 133, 1, 1}, {128, 176, 1, 1},
		     {128, 177, 0, 1}, {128, 182, 0, 0}, {128, 198, 0, 0},
		     {128, 199, 1, 1}, {128, 256, 0, 0}, {64, 88, 1, 1},
		     {64, 98, 0, 1},   {64, 99, 0, 0}};
	const uint32_t on_gpu = r.f.plan.device.kind != SPMLA_BACKEND_CPU;
	const int hopper = spmla_i_can_combine(&r.f.plan.device);
	spmla_device device = r.f.device;
	spmla_config config = r.f.config;
	spmla_plan plan;
	uint32_t i;

	device.sm_count = 132;
	config.max_rows = 256;
	config.bucket_count = 1;
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		const uint32_t n = cases[i].tokens;

		config.heads = cases[i].heads;
		config.buckets[0] = (spmla_shape){n, n, 1, 0};
		ck_assert_int_eq(spmla_plan_make(&plan, &config, &device, NULL),
				 SPMLA_OK);
		ck_assert_uint_eq(split_bytes(&plan) > 0,
				  on_gpu && (hopper ? cases[i].on_hopper
						    : cases[i].in_parts));
	}
}
END_TEST

/* Operations that an attend enqueues. */
static uint32_t
attend_ops(fixture *f, const spmla_v32_layer *layer)
{
	const uint32_t before = fixture_pending(f);

	v32_must(f->ctx, spmla_v32_attend(f->ctx, layer, &rig_shapes[0], NULL));
	return fixture_pending(f) - before;
}

/* The metadata are of a selection as topk makes it, which is what the planned
 * buffers have, however they are named. */
START_TEST(a_layer_that_shares_the_planned_selection_has_parts_too)
{
	int32_t *own = test_alloc(4 * 512 * sizeof(int32_t), 0);
	uint32_t i, few, in_parts;
	fixture f;
	v32_rig rig;

	fixture_open(&f, &r.f.config, SPMLA_NATIVE_DEFERRED);
	few = spmla_i_few_choose(&f.plan.device, f.plan.config.kv_layout,
				 rig_shapes[0].tokens, f.plan.config.heads,
				 f.plan.config.topk);
	in_parts = few == SPMLA_I_FEW_COUNT ? 2 + parts_launches(&f.plan.device)
					    : 2;
	v32_rig_open(&rig, f.ctx, 0, 1);
	v32_must(f.ctx, spmla_step_prologue(f.ctx, &rig_shapes[0],
					    SPMLA_FROM_DEVICE, NULL));
	for (i = 0; i < 2; i++) {
		spmla_v32_layer l = rig.layer;

		if (i)
			l.index_q = NULL;
		ck_assert_uint_eq(attend_ops(&f, &l), in_parts);
		l.topk_indices =
			spmla_view(f.ctx, SPMLA_BUF_TOPK_INDICES, NULL);
		l.topk_lens = spmla_view(f.ctx, SPMLA_BUF_TOPK_LENS, NULL);
		ck_assert_uint_eq(attend_ops(&f, &l), in_parts);
		/* Another's may be of any length, unless topk wrote it. */
		l.topk_indices = own;
		l.topk_lens = own;
		ck_assert_uint_eq(attend_ops(&f, &l), i ? 2 : in_parts);
	}
	fixture_drain(&f);
	v32_rig_close(&rig);
	fixture_close(&f);
	free(own);
}
END_TEST

static uint64_t
planned(const spmla_plan *plan, spmla_buf buf)
{
	uint32_t i;

	for (i = 0; i < plan->row_count; i++)
		if (plan->extents[i].buf == (uint32_t)buf)
			return plan->extents[i].bytes;
	return 0;
}

/* 16 tokens of 8 blocks are 32 splits of 4, on any number of multiprocessors;
 * of 4 blocks, one split each. On other devices than CUDA's tokens run whole. */
START_TEST(a_batch_invariant_plan_has_fixed_splits)
{
	static const uint32_t kinds[2] = {SPMLA_BACKEND_CUDA,
					  SPMLA_BACKEND_HIP};
	spmla_device device = r.f.device;
	spmla_config config = r.f.config;
	spmla_plan plan;
	uint32_t i, whole, many;

	config.flags |= SPMLA_CONFIG_BATCH_INVARIANT;
	config.heads = HEADS;
	config.cpu_workers = 0;
	for (i = 0; i < 8; i++) {
		whole = i & 1, many = i >> 1 & 1;
		device.kind = kinds[i >> 2];
		device.arch = i >> 2 ? 0x942 : 90;
		device.sm_count = many ? 132 : 1;
		config.topk = whole ? 256 : 512;
		ck_assert_int_eq(spmla_plan_make(&plan, &config, &device, NULL),
				 SPMLA_OK);
		if (whole || device.kind != SPMLA_BACKEND_CUDA) {
			ck_assert_uint_eq(split_bytes(&plan), 0);
			continue;
		}
		ck_assert_uint_eq(split_bytes(&plan),
				  UINT64_C(32) * config.heads * 2048);
		ck_assert_uint_eq(planned(&plan, SPMLA_BUF_SPLIT_LSE),
				  UINT64_C(32) * config.heads * 4);
		ck_assert_uint_eq(planned(&plan, SPMLA_BUF_NUM_SPLITS), 17 * 4);
		ck_assert_uint_eq(
			planned(&plan, SPMLA_BUF_TILE_SCHEDULER_METADATA),
			32 * 32);
	}
}
END_TEST

/* V3.2 with up to 16 heads and 2048 keys, on Hopper: no splits, but a workspace
 * for the largest bucket, of 16 tokens, however few SMs there are. */
START_TEST(a_batch_invariant_plan_of_few_heads_has_a_workspace)
{
	static const struct {
		uint32_t arch, heads, topk, is;
	} cases[] = {{90, 1, 512, 1},   {90, 16, 2048, 1}, {90, 17, 512, 0},
		     {90, 16, 2049, 0}, {100, 16, 512, 0}, {80, 16, 512, 0}};
	const uint64_t token = 4 * (32 + 16 * 16 * (4 + 256));
	spmla_device device = r.f.device;
	spmla_config config = r.f.config;
	spmla_plan plan;
	uint32_t i;

	config.flags |= SPMLA_CONFIG_BATCH_INVARIANT;
	config.cpu_workers = 0;
	device.kind = SPMLA_BACKEND_CUDA;
	device.sm_count = 1;
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		device.arch = cases[i].arch;
		config.heads = cases[i].heads;
		config.topk = cases[i].topk;
		ck_assert_int_eq(spmla_plan_make(&plan, &config, &device, NULL),
				 SPMLA_OK);
		ck_assert_uint_eq(split_bytes(&plan) > 0, !cases[i].is);
		if (cases[i].is)
			ck_assert_uint_eq(
				planned(&plan, SPMLA_BUF_DECODE_WORKSPACE),
				16 * token);
	}
}
END_TEST

START_TEST(fixed_splits_of_random_batches_are_parts)
{
	uint64_t bytes = 0;
	uint32_t i;
	sim s;

	view(SPMLA_BUF_TILE_SCHEDULER_METADATA, &bytes);
	if (r.f.plan.device.kind != SPMLA_BACKEND_CUDA) {
		ck_assert_uint_eq(bytes, 0);
		return;
	}
	sim_open(&s, &r.f.plan, test_seed());
	for (i = 0; i < 100; i++) {
		const uint32_t bucket = i % 3;
		const int32_t tokens =
			(int32_t)r.f.config.buckets[bucket].tokens;
		parts_step step = {
			view(SPMLA_BUF_TILE_SCHEDULER_METADATA, NULL),
			view(SPMLA_BUF_NUM_SPLITS, NULL),
			view(SPMLA_BUF_CONTEXT_LENS, NULL),
			tokens,
			2 * tokens,
			300,
			0,
			1};
		draft d;

		sim_draft(&s, &rig_shapes[bucket], &d);
		replay(&r.f, r.graphs[bucket], draft_write(&r.f, &d));
		fixture_drain(&r.f);
		ring_check(&r, &d, bucket);
		parts_check_fixed(&step, 4);
	}
}
END_TEST

/* Random keys, scales of 1. */
static void
fill_kv(const spmla_cache *cache, uint64_t *rng)
{
	static const float ones[4] = {1, 1, 1, 1};
	const uint64_t n = (uint64_t)cache->pages * cache->entries_per_page;
	uint8_t *entry = cache->base;
	uint64_t i;
	uint32_t k;

	for (i = 0; i < n; i++, entry += 656) {
		for (k = 0; k < 512; k++)
			entry[k] = (uint8_t)(rng_next(rng) & 0xbf);
		memcpy(entry + 512, ones, sizeof ones);
		for (k = 528; k < 656; k += 2) {
			const uint16_t x = test_bf16(rng_float(rng));

			memcpy(entry + k, &x, sizeof x);
		}
	}
}

/* Rows 0 .. 3 join with so many tokens; what is written is a row's own. */
static void
join_four(fixture *f, const uint32_t *lens)
{
	static int32_t pages[4][32];
	spmla_request requests[4];
	spmla_table_store stores[4];
	spmla_step step = SPMLA_STEP_INIT;
	uint64_t ticket;
	uint32_t row, k;

	for (row = 0; row < 4; row++) {
		for (k = 0; k < 32; k++)
			pages[row][k] = (int32_t)((row + 4 * k) % 64);
		requests[row] =
			(spmla_request){row, 1, lens[row], SPMLA_REQUEST_JOIN};
		stores[row] = (spmla_table_store){SPMLA_GROUP_MAIN, row, 0, 32,
						  pages[row]};
	}
	step.requests = requests;
	step.request_count = 4;
	step.stores = stores;
	step.store_count = 4;
	v32_must(f->ctx, spmla_step_write(f->ctx, &step, &ticket, NULL));
}

/* Attends with the first tokens, when nothing is left of calls before. */
static void
attend_first(fixture *f, v32_rig *rig, uint32_t tokens)
{
	const spmla_shape shape = {tokens, tokens, 1, 0};
	const spmla_buf splits[2] = {SPMLA_BUF_SPLIT_OUT, SPMLA_BUF_SPLIT_LSE};
	uint32_t i;

	for (i = 0; i < 2; i++) {
		uint64_t bytes = 0;
		void *rows = spmla_view(f->ctx, splits[i], &bytes);

		if (bytes)
			memset(rows, 0xFF, bytes);
	}
	memset(rig->out, 0xFF, rig->out_bytes);
	memset(rig->lse, 0xFF, rig->lse_bytes);
	v32_must(f->ctx, spmla_v32_attend(f->ctx, &rig->layer, &shape, NULL));
	fixture_drain(f);
	ck_assert_uint_eq(fixture_status(f).count, 0);
}

/* With fixed splits the first token has one, the others two: of 3 tokens there
 * are 6 parts, and the last of them is the fourth token's. */
START_TEST(a_call_of_fewer_tokens_gives_the_same_bits)
{
	static const uint32_t lens[4] = {1, 500, 400, 512};
	static const int32_t splits[5] = {0, 1, 3, 5, 7};
	spmla_config config = r.f.config;
	uint64_t rng = test_seed();
	uint16_t *out;
	float *lse;
	uint32_t n;
	fixture f;
	v32_rig rig;

	config.max_update_pages = 128;
	fixture_open(&f, &config, 0);
	v32_rig_open(&rig, f.ctx, 0, rng_next(&rng));
	fill_kv(&rig.layer.kv, &rng);
	out = test_alloc(rig.out_bytes, 0);
	lse = test_alloc(rig.lse_bytes, 0);
	join_four(&f, lens);
	v32_must(f.ctx, spmla_step_prologue(f.ctx, &rig_shapes[0],
					    SPMLA_FROM_RING, NULL));
	v32_must(f.ctx,
		 spmla_v32_attn(f.ctx, &rig.layer, &rig_shapes[0], NULL));
	fixture_drain(&f);
	if (f.plan.device.kind == SPMLA_BACKEND_CUDA && config.heads == HEADS)
		ck_assert_mem_eq(spmla_view(f.ctx, SPMLA_BUF_NUM_SPLITS, NULL),
				 splits, sizeof splits);
	attend_first(&f, &rig, 4);
	memcpy(out, rig.out, rig.out_bytes);
	memcpy(lse, rig.lse, rig.lse_bytes);
	for (n = 3; n > 0; n--) {
		const uint64_t heads = (uint64_t)n * rig.heads;

		attend_first(&f, &rig, n);
		/* Tokens behind them are not written. */
		memset(out + heads * SPMLA_MLA_LATENT, 0xFF,
		       rig.out_bytes - heads * SPMLA_MLA_LATENT * sizeof *out);
		memset(lse + heads, 0xFF, rig.lse_bytes - heads * sizeof *lse);
		ck_assert_mem_eq(rig.out, out, rig.out_bytes);
		ck_assert_mem_eq(rig.lse, lse, rig.lse_bytes);
	}
	free(lse);
	free(out);
	v32_rig_close(&rig);
	fixture_close(&f);
}
END_TEST

/* A shape may be smaller than its bucket, and be done in parts where that is
 * not: of {4, 8} tokens on 3 multiprocessors, one of 5. */
START_TEST(whatever_shape_is_done_in_parts_has_room)
{
	spmla_device device = r.f.device;
	spmla_config config = r.f.config;
	uint64_t rng = test_seed();
	uint32_t i, t, seen = 0, behind = 0;
	spmla_plan p;

	device.kind = SPMLA_BACKEND_CUDA;
	device.arch = 90;
	config.cpu_workers = 0;
	for (i = 0; i < 200; i++) {
		const uint32_t last = config.bucket_count - 1;

		device.sm_count = 1 + rng_below(&rng, 12);
		for (t = 0; t <= last; t++)
			config.buckets[t].tokens =
				4 * t + 4 + rng_below(&rng, 4);
		ck_assert_int_eq(spmla_plan_make(&p, &config, &device, NULL),
				 SPMLA_OK);
		for (t = 1; t <= config.buckets[last].tokens; t++) {
			const spmla_i_cut cut = spmla_i_step_cut(&p, t);
			const uint64_t shared = t - cut.whole;
			const uint64_t rows = shared + cut.parts;

			if (cut.parts == 0)
				continue;
			seen++;
			behind += cut.whole > 0;
			ck_assert_uint_ge(planned(&p, SPMLA_BUF_NUM_SPLITS),
					  4 * (shared + 1));
			ck_assert_uint_ge(
				planned(&p, SPMLA_BUF_TILE_SCHEDULER_METADATA),
				UINT64_C(32) * cut.parts);
			ck_assert_uint_ge(planned(&p, SPMLA_BUF_SPLIT_LSE),
					  4 * config.heads * rows);
			ck_assert_uint_ge(planned(&p, SPMLA_BUF_SPLIT_OUT),
					  4 * config.heads * SPMLA_MLA_LATENT *
						  rows);
		}
	}
	ck_assert_uint_gt(seen, 200);
	ck_assert_uint_gt(behind, 20);
}
END_TEST

SUITE
{
	const theme_test tests[] = {
		{parts_cover_every_block_of_random_batches_once, 1},
		{a_step_whose_tokens_fill_their_rounds_has_no_parts, 1},
		{a_batch_invariant_plan_has_fixed_splits, 1},
		{a_batch_invariant_plan_of_few_heads_has_a_workspace, 1},
		{a_layer_that_shares_the_planned_selection_has_parts_too, 1},
		{whatever_shape_is_done_in_parts_has_room, 1},
	};
	const theme_test fixed[] = {
		{fixed_splits_of_random_batches_are_parts, 1},
		{a_call_of_fewer_tokens_gives_the_same_bits, 1},
	};
	const theme_test one_launch[] = {
		{a_call_of_fewer_tokens_gives_the_same_bits, 1},
	};
	const theme themes[] = {
		THEME("parts", setup, teardown, tests),
		THEME("fixed splits", setup_fixed, teardown, fixed),
		THEME("one launch", setup_one_launch, teardown, one_launch),
	};

	return RUN_THEMES(themes);
}
