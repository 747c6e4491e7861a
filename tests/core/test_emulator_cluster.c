/* SPDX-License-Identifier: Apache-2.0
 *
 * Clusters of the emulator: blocks that copy or write to each other correctly
 * give their results under every schedule. Blocks with one fault give wrong
 * results under some schedule, or end the program.
 */
#define SPMLA_GPU_KERNELS 1
#include "spmla/platform/gpu/dialect/async.h"

#include "tests/core/emulator_rig.h"
#include "tests/harness/dies.h"
#include "tests/harness/themes.h"

#include <check.h>
#include <string.h>

enum {
	ITEMS = 128,
	BLOCKS = 6,
	ROUNDS = 5,
	SENT = 4 * ITEMS, /* bytes of a round */
	LOCAL_BYTES = 2 * 1024
};

typedef enum slip {
	NONE,
	FREES_EARLY,  /* says that it has read what it still reads */
	SOURCE_EARLY, /* what is under way is written again */
	READS_EARLY,  /* before all has come */
	NO_FENCE,     /* between the writes and the copy that reads them */
	NO_BEGIN,     /* not even the peer's begin is waited for */
	NO_END,       /* nor its end */
	SLIPS
} slip;

typedef struct exchange {
	uint32_t *out; /* [BLOCKS][ITEMS] */
	slip is;
} exchange;

typedef struct memory {
	uint32_t own[2][ITEMS]; /* of even and of odd rounds */
	uint32_t got[ITEMS];
	g_mbarrier full; /* the peer's copy is here */
	g_mbarrier free; /* the peer has read mine */
} memory;

/* What a block sends in a round. */
static uint32_t
word_of(uint32_t block, uint32_t round, uint32_t i)
{
	return block * 1000003u + round * 1009u + i;
}

static void
exchange_round(const exchange *a, memory *mem, uint32_t round, uint32_t *sum)
{
	const uint32_t item = g_item();
	uint32_t *own = mem->own[round % 2], i;

	if (round)
		g_mbarrier_wait(&mem->free, (round - 1) & 1u);
	own[item] = word_of(g_block(), round, item);
	if (a->is != NO_FENCE)
		g_fence_async();
	BARRIER();
	if (item == 0) {
		g_mbarrier_arrive_expect(&mem->full, SENT);
		g_peer_copy(mem->got, own, SENT, &mem->full);
		if (a->is == SOURCE_EARLY)
			own[0] = 0;
	}
	if (a->is != READS_EARLY)
		g_mbarrier_wait(&mem->full, round & 1u);
	if (a->is == FREES_EARLY)
		g_mbarrier_arrive_peer(&mem->free);
	for (i = 0; i < ITEMS; i++)
		*sum = *sum * 31 + mem->got[(i + item) % ITEMS];
	if (a->is == READS_EARLY)
		g_mbarrier_wait(&mem->full, round & 1u);
	if (a->is != FREES_EARLY)
		g_mbarrier_arrive_peer(&mem->free);
}

static void
exchange_run(const void *params)
{
	LOCAL_DYNAMIC(local, LOCAL_BYTES);
	memory *mem = (memory *)local;
	const exchange *a = params;
	uint32_t sum = g_cluster_rank(), round;

	if (g_item() == 0) {
		g_mbarrier_init(&mem->full, 1);
		g_mbarrier_init(&mem->free, ITEMS);
		g_mbarriers_publish();
	}
	if (a->is == NO_BEGIN)
		BARRIER();
	else
		g_cluster_sync();
	for (round = 0; round < ROUNDS; round++)
		exchange_round(a, mem, round, &sum);
	if (a->is != NO_END)
		g_cluster_sync();
	a->out[g_block() * ITEMS + g_item()] = sum;
}

static uint32_t
exchanges_right(slip is)
{
	static uint32_t out[BLOCKS * ITEMS], want[BLOCKS * ITEMS];
	const exchange a = {out, is};
	uint32_t block, item, round, i;

	for (block = 0; block < BLOCKS; block++)
		for (item = 0; item < ITEMS; item++) {
			uint32_t sum = block % 2;

			for (round = 0; round < ROUNDS; round++)
				for (i = 0; i < ITEMS; i++)
					sum = sum * 31 +
					      word_of(block ^ 1u, round,
						      (i + item) % ITEMS);
			want[block * ITEMS + item] = sum;
		}
	return rig_count(RIG_CLUSTER(exchange_run, ITEMS, LOCAL_BYTES, 2), 32,
			 BLOCKS, &a, out, want, sizeof want);
}

START_TEST(exchange_is_right_under_every_schedule)
{
	ck_assert_uint_eq(exchanges_right(NONE), RIG_SEEDS);
}
END_TEST

START_TEST(copy_over_what_is_still_read_is_found)
{
	ck_assert_uint_lt(exchanges_right(FREES_EARLY), RIG_SEEDS / 2);
}
END_TEST

START_TEST(source_that_is_written_too_early_is_found)
{
	ck_assert_uint_lt(exchanges_right(SOURCE_EARLY), RIG_SEEDS / 2);
}
END_TEST

START_TEST(source_that_is_not_fenced_is_found)
{
	ck_assert_uint_eq(exchanges_right(NO_FENCE), 0);
}
END_TEST

START_TEST(read_before_the_copy_is_found)
{
	ck_assert_uint_lt(exchanges_right(READS_EARLY), RIG_SEEDS / 2);
}
END_TEST

/* ---- words of more than two blocks -------------------------------------- */

enum { EIGHT = 8 };

typedef enum word_slip {
	WORDS_NONE,
	WORDS_READ_EARLY, /* before all blocks have come */
	WORDS_CLEAR_LATE, /* after others may have written */
	WORDS_NO_BEGIN,   /* without waiting for the first block */
	WORDS_TWICE,      /* arrives again without waiting */
	WORDS_ODD         /* two words at an odd one */
} word_slip;

typedef struct words {
	uint32_t *out; /* [2 * EIGHT] */
	word_slip is;
} words;

typedef struct word_memory {
	uint32_t pairs[EIGHT * ITEMS][2];
	uint32_t sum;
	uint32_t told;
} word_memory;

/* Every thread of eight blocks gives the first block two words and adds one;
 * the first adds all up and tells every block. */
static void
words_run(const void *params)
{
	LOCAL_DYNAMIC(local, sizeof(word_memory));
	word_memory *mem = (word_memory *)(void *)local;
	const words *a = params;
	const uint32_t rank = g_cluster_rank();
	const uint32_t own = rank * ITEMS + g_item();
	uint32_t i;

	if (rank == 0 && g_item() == 0 && a->is != WORDS_CLEAR_LATE)
		mem->sum = 0;
	if (a->is != WORDS_NO_BEGIN)
		g_cluster_arrive();
	if (a->is == WORDS_TWICE)
		g_cluster_arrive();
	if (a->is != WORDS_NO_BEGIN)
		g_cluster_wait();
	if (rank == 0 && g_item() == 0 && a->is == WORDS_CLEAR_LATE)
		mem->sum = 0;
	g_cluster_store2_if(g_cluster_at(mem->pairs[own], 0) +
				    (a->is == WORDS_ODD ? 4 : 0),
			    own, 3 * own, own % 2);
	g_cluster_store2_if(g_cluster_at(mem->pairs[own], 0), 1, 2,
			    own % 2 == 0);
	g_cluster_add(g_cluster_at(&mem->sum, 0), own);
	if (a->is != WORDS_READ_EARLY)
		g_cluster_sync();
	if (rank == 0 && g_item() < EIGHT) {
		uint32_t sum = mem->sum;

		for (i = 0; i < EIGHT * ITEMS; i++)
			sum = sum * 31 + mem->pairs[i][0] + mem->pairs[i][1];
		g_cluster_store(g_cluster_at(&mem->told, g_item()),
				sum + g_item());
	}
	g_cluster_sync();
	if (g_item() == 0)
		a->out[g_block()] = mem->told;
}

static uint32_t
words_right(word_slip is)
{
	static uint32_t out[2 * EIGHT], want[2 * EIGHT];
	const words a = {out, is};
	uint32_t sum = 0, i;

	for (i = 0; i < EIGHT * ITEMS; i++)
		sum += i;
	for (i = 0; i < EIGHT * ITEMS; i++)
		sum = sum * 31 + (i % 2 ? 4 * i : 3);
	for (i = 0; i < 2 * EIGHT; i++)
		want[i] = sum + i % EIGHT;
	return rig_count(
		RIG_CLUSTER(words_run, ITEMS, sizeof(word_memory), EIGHT), 32,
		2 * EIGHT, &a, out, want, sizeof want);
}

START_TEST(words_of_eight_blocks_are_right_under_every_schedule)
{
	ck_assert_uint_eq(words_right(WORDS_NONE), RIG_SEEDS);
}
END_TEST

START_TEST(words_that_are_read_before_all_came_are_found)
{
	ck_assert_uint_lt(words_right(WORDS_READ_EARLY), RIG_SEEDS / 2);
}
END_TEST

START_TEST(memory_that_is_cleared_after_others_write_is_found)
{
	ck_assert_uint_lt(words_right(WORDS_CLEAR_LATE), RIG_SEEDS / 2);
}
END_TEST

/* ---- used wrongly -------------------------------------------------------- */

static void
no_begin(void)
{
	(void)exchanges_right(NO_BEGIN);
}

static void
no_end(void)
{
	(void)exchanges_right(NO_END);
}

static void
words_no_begin(void)
{
	(void)words_right(WORDS_NO_BEGIN);
}

static void
words_twice(void)
{
	(void)words_right(WORDS_TWICE);
}

static void
words_odd(void)
{
	(void)words_right(WORDS_ODD);
}

static void
array_run(const void *params)
{
	LOCAL_ARRAY(uint32_t, array, 4);

	(void)params;
	array[g_item() % 4] = 0;
}

static void
array(void)
{
	rig_run(RIG_CLUSTER(array_run, 32, 0, 2), 32, 2, NULL, 0);
}

static void
half(void)
{
	rig_run(RIG_CLUSTER(array_run, 32, 0, 2), 32, 3, NULL, 0);
}

static void
outside_run(const void *params)
{
	LOCAL_DYNAMIC(local, 64);
	static uint64_t global[2];

	(void)params;
	g_cluster_sync();
	if (g_item() == 0)
		g_peer_copy(global, local, 16, (g_mbarrier *)local);
}

static void
outside(void)
{
	rig_run(RIG_CLUSTER(outside_run, 32, 64, 2), 32, 2, NULL, 0);
}

START_TEST(cluster_that_is_used_wrongly_ends_the_program)
{
	must_die(no_begin, "emulator: exchange_run, block ");
	must_die(no_end, "emulator: exchange_run, block ");
	must_die(words_no_begin, "a peer has not begun, or has ended");
	must_die(words_twice, "an item arrives twice");
	must_die(words_odd, "words of the cluster at an odd place");
	must_die(array, "LOCAL_ARRAY, where blocks are alive together");
	must_die(half, "no such grid");
	must_die(outside, "a place in the peer is none of LOCAL_DYNAMIC");
}
END_TEST

SUITE
{
	const theme_test exchanges[] = {
		{exchange_is_right_under_every_schedule, 1},
		{copy_over_what_is_still_read_is_found, 1},
		{source_that_is_written_too_early_is_found, 1},
		{source_that_is_not_fenced_is_found, 1},
		{read_before_the_copy_is_found, 1},
		{words_of_eight_blocks_are_right_under_every_schedule, 1},
		{words_that_are_read_before_all_came_are_found, 1},
		{memory_that_is_cleared_after_others_write_is_found, 1},
	};
	const theme_test slips[] = {
		{cluster_that_is_used_wrongly_ends_the_program, 1},
	};
	const theme themes[] = {
		THEME("exchanges", NULL, NULL, exchanges),
		THEME("slips", NULL, NULL, slips),
	};

	return RUN_THEMES(themes);
}
