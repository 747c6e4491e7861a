/* SPDX-License-Identifier: Apache-2.0
 *
 * topk on Hopper. A row gets eight blocks, two, one, or half a multiprocessor:
 * the more rows, the less. The host chooses by the number of rows and their
 * room. The kernel takes rows of any length.
 *
 * The hard idea is a threshold that costs one pass over registers. A thread's
 * scores form a few buckets. Only the largest score of each bucket goes into a
 * histogram. From it comes a threshold above which somewhat more than a block's
 * share of the k best should lie. The scores above it go to the first block's
 * list, in any order. A histogram between the smallest and the largest score of
 * the list finds the bin of the k-th. The few in that bin are compared. A bit
 * for each selected position then brings the positions into order.
 *
 * The list holds the k best if it has at least k scores and the k-th is not
 * below the threshold of any block; that is checked. If it fails (many equal
 * scores, or all the best in one block's share), the row is counted instead:
 * exact histograms of every score, and a last pass that sets the bits. The set
 * is the same either way.
 *
 * A piece is 32 scores, 128 aligned bytes. Pieces are dealt to the blocks in
 * turn, and a block's pieces to its chunks in registers in turn. So a row that
 * ascends looks the same to every block and chunk. Each turn begins with
 * another block and chunk, which spreads a period evenly too.
 */
#ifndef SPMLA_PLATFORM_GPU_SELECT_TOPK_BY_KERNEL_H
#define SPMLA_PLATFORM_GPU_SELECT_TOPK_BY_KERNEL_H

#include "spmla/platform/gpu/select/index_map_kernel.h"
#include "spmla/platform/gpu/select/topk_count_device.h"
#include "spmla/platform/gpu/select/topk_list_device.h"
#include "spmla/platform/gpu/select/topk_short_device.h"

#define SPMLA_K_topk_by_8(P, S)    SPMLA_K_TOPK(P, S)
#define SPMLA_K_topk_by_2(P, S)    SPMLA_K_TOPK(P, S)
#define SPMLA_K_topk_by_1(P, S)    SPMLA_K_TOPK(P, S)
#define SPMLA_K_topk_by_half(P, S) SPMLA_K_TOPK(P, S)
#define SPMLA_K_topk_short(P, S)   SPMLA_K_TOPK(P, S)
typedef spmla_k_topk_scalars spmla_k_topk_by_8_scalars;
typedef spmla_k_topk_scalars spmla_k_topk_by_2_scalars;
typedef spmla_k_topk_scalars spmla_k_topk_by_1_scalars;
typedef spmla_k_topk_scalars spmla_k_topk_by_half_scalars;
typedef spmla_k_topk_scalars spmla_k_topk_short_scalars;

/* The same kernels with index_map behind the selection. They are kernels of
 * their own, because that code would cost the others 0.1 to 0.8 us. */
#define SPMLA_K_TOPK_MAP(P, S)          \
	SPMLA_K_TOPK(P, SPMLA_I_K_NONE) \
	P(const int32_t, token_row)     \
	P(const int32_t, block_table)   \
	P(const int32_t, table_cols)    \
	P(const int32_t, map_lens)      \
	P(int32_t, slots)               \
	P(int32_t, valid_counts)        \
	P(const int32_t, map_context)   \
	P(const int32_t, other_lens)    \
	P(int32_t, kept_lens)           \
	S(spmla_k_topk_scalars, topk)   \
	S(uint32_t, compact)            \
	S(spmla_k_index_map_scalars, map)
#define SPMLA_K_topk_map_by_8(P, S) SPMLA_K_TOPK_MAP(P, S)
SPMLA_KERNEL_SCALARS(topk_map_by_8)
#define SPMLA_K_topk_map_by_2(P, S)    SPMLA_K_TOPK_MAP(P, S)
#define SPMLA_K_topk_map_by_1(P, S)    SPMLA_K_TOPK_MAP(P, S)
#define SPMLA_K_topk_map_by_half(P, S) SPMLA_K_TOPK_MAP(P, S)
#define SPMLA_K_topk_map_short(P, S)   SPMLA_K_TOPK_MAP(P, S)
typedef spmla_k_topk_map_by_8_scalars spmla_k_topk_map_by_2_scalars;
typedef spmla_k_topk_map_by_8_scalars spmla_k_topk_map_by_1_scalars;
typedef spmla_k_topk_map_by_8_scalars spmla_k_topk_map_by_half_scalars;
typedef spmla_k_topk_map_by_8_scalars spmla_k_topk_map_short_scalars;

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

/* ---- long rows ----------------------------------------------------------- */

/* The first place of a thread's load `load` of chunk `chunk`. Threads begin
 * with different chunks, and blocks change places from turn to turn. So scores
 * with a period spread evenly over blocks and chunks. Two blocks swap by the
 * number of bits of the turn: if they swapped each turn, scores with a period
 * of 4 or 8 pieces could all be one block's. The second load of a chunk is some
 * turns ahead, or a thread could have both in the same part of a period. */
FN uint32_t
topk_by_first(topk_by m, uint32_t chunks, uint32_t chunk, uint32_t load)
{
	const uint32_t own = g_item() / 8, turns = m.items / 8 * chunks;
	const uint32_t begin = own * 5 / 4 % 8 * chunks / 8 + chunk;
	uint32_t turn = own * chunks + begin - (begin < chunks ? 0 : chunks);
	uint32_t block;

	if (load > 0) {
		turn += TOPK_BY_AHEAD;
		turn += turn < turns ? turns : 0;
	}
	block = topk_by_own(m) + (m.cluster == 2 ? g_popcount(turn) : turn);
	block %= m.cluster;
	return (turn * m.cluster + block) * TOPK_BY_PIECE + g_item() % 8 * 4;
}

/* The scores of a chunk that lie in 16 aligned bytes of the row, as bits;
 * others are -inf, as are all if there is no such chunk. */
FN void
topk_by_fetch(topk_by m, const PRIVATE topk_by_row *r, uint32_t each,
	      uint32_t chunks, uint32_t chunk, PRIVATE uint32_t *x)
{
	uint32_t i;

	UNROLL
	for (i = 0; i < each; i += 4) {
		/* wraps before the row */
		const uint32_t from =
			topk_by_first(m, chunks, chunk, i / 4) - r->row.pad;

		x[i] = x[i + 1] = x[i + 2] = x[i + 3] = TOPK_NONE;
		if (chunk < chunks && from <= r->row.len - 4)
			g_load4(r->row.at + from, x + i);
	}
}

/* Finds the rank of the threshold among the buckets' largest scores (a thread
 * has one or two buckets): k scores and five standard deviations more should be
 * above it. The rank is 0 if there is no such threshold, and is the same in all
 * blocks. */
FN void
topk_by_rank(topk_by m, const PRIVATE topk_by_row *r, uint32_t each,
	     uint32_t chunks)
{
	const float parts = (float)(chunks * m.cluster);
	const float share = g_div_rn((float)r->k, parts);
	const float want = share + 5.0f * g_sqrt_rn(share);
	const float scores = g_div_rn((float)(r->pieces * 32), parts);
	const float part = g_div_rn(want, scores);
	const uint32_t n =
		each == TOPK_BY_CHUNK && (float)m.items < want ? 2 : 1;
	float buckets = (float)(n * m.items), none;
	uint32_t rank = 0;

	buckets = buckets < 0.25f * scores ? buckets : 0.25f * scores;
	if (part <= 0.75f && r->pieces <= m.words &&
	    want * (float)chunks <= 0.75f * (float)m.entries) {
		/* The share of buckets with none of the `want` best. */
		none = g_exp2_flush(g_div_rn(scores, buckets) *
				    g_log2(1.0f - part));
		if (none >= 0.05f)
			rank = 1 + (uint32_t)(buckets * (1.0f - none));
	}
	m.head->rank = rank;
	m.head->buckets = n;
}

/* The bin of a key: 64 for each power of two, from 2^-40 to 2^24. Smaller
 * magnitudes share a bin with 0 of their sign, larger ones the first or the
 * last. */
FN uint32_t
topk_by_coarse(uint32_t key)
{
	const uint32_t is = key >> 31;
	const uint32_t from0 = is ? key - 0x80000000u : 0x7fffffffu - key;
	uint32_t bin = from0 > TOPK_BY_TINY ? from0 - TOPK_BY_TINY : 0;

	bin >>= TOPK_BY_FINE;
	bin = bin < TOPK_BY_BINS / 2 ? bin : TOPK_BY_BINS / 2 - 1;
	return is ? TOPK_BY_BINS / 2 + bin : TOPK_BY_BINS / 2 - 1 - bin;
}

/* Takes the largest score of each of `buckets` buckets of a thread, a bucket
 * for each load or one for both. Adds these to the histogram, and notes the
 * largest of all. */
FN void
topk_by_buckets(topk_by m, const PRIVATE uint32_t *x, uint32_t each,
		uint32_t buckets)
{
	float most[2];
	uint32_t key, i;

	UNROLL
	for (i = 0; i < each / 4; i++) {
		const float a = g_larger_or_nan(g_float(x[4 * i]),
						g_float(x[4 * i + 1]));
		const float b = g_larger_or_nan(g_float(x[4 * i + 2]),
						g_float(x[4 * i + 3]));

		most[i] = g_larger_or_nan(a, b);
	}
	if (each >= 8 && buckets == 1)
		most[0] = g_larger_or_nan(most[0], most[1]);
	key = 0;
	UNROLL
	for (i = 0; i < each / 4; i++)
		if (i < buckets) {
			const uint32_t own = topk_key(g_bits(most[i]));

			g_local_add(topk_by_spot(m, topk_by_coarse(own)), 1);
			key = own > key ? own : key;
		}
	key = g_warp_most(key);
	if (g_lane() == 0)
		g_local_max(&m.head->most, key);
}

/* A block's threshold: the smallest key of the bin that was found, so that no
 * key of the bin is below it. TOPK_LEAST if no bin was found. */
FN uint32_t
topk_by_low(topk_by m)
{
	const uint32_t bin = m.head->found[0];
	const uint32_t side = TOPK_BY_BINS / 2;

	if (bin == 0)
		return TOPK_LEAST;
	if (bin > side)
		return 0x80000000u + TOPK_BY_TINY +
		       ((bin - side) << TOPK_BY_FINE);
	return 0x80000000u -
	       (bin == side ? 0
			    : TOPK_BY_TINY + ((side - bin) << TOPK_BY_FINE));
}

/* The block's share of the list: here, and in the first block. */
FN LOCAL uint32_t *
topk_by_entries(topk_by m)
{
	return m.list + 2 * (topk_by_own(m) * m.entries);
}

/* Lists the scores of a chunk that are not below `low`, in the block's own
 * memory. */
FN void
topk_by_list(topk_by m, const PRIVATE uint32_t *x, uint32_t each,
	     uint32_t chunks, uint32_t chunk, float low)
{
	uint32_t n = 0, upto, first, i;
	g_local_place to;

	UNROLL
	for (i = 0; i < each; i++)
		n += !(g_float(x[i]) < low);
	upto = g_warp_upto(n);
	first = g_lane() == 31 ? g_local_add(&m.head->listed, upto) : 0;
	first = g_shuffle(first, 31) + upto - n;
	if (first + n > m.entries)
		return;
	to = g_local_at(topk_by_entries(m) + 2 * first);
	UNROLL
	for (i = 0; i < each; i++) {
		const uint32_t at = topk_by_first(m, chunks, chunk, i / 4);

		g_local_push2(&to, g_float(x[i]), at + i % 4, low);
	}
}

/* Hands the block's share of the list to the first block, with one copy, and
 * waits there for all shares. A barrier of the cluster would wait for much
 * more. All threads have fenced what they wrote. */
FN void
topk_by_send(topk_by m)
{
	LOCAL topk_by_head *head = m.head;
	const uint32_t own = topk_by_own(m), n = head->listed;
	LOCAL topk_by_share *share = &head->share[own];
	const g_cluster_place at = g_cluster_at(&head->shares, 0);

	if (g_item() == 0) {
		share->listed = head->low > TOPK_LEAST ? n : ~0u;
		share->low = head->low;
		share->most = head->most;
		if (m.cluster > 1 && own == 0)
			g_mbarrier_arrive(&head->shares);
	}
	if (g_item() < 32 && own != 0)
		g_fence_async(); /* a whole warp, as the emulator counts */
	if (g_item() == 0 && own != 0) {
		/* The copy may have one entry more, which nobody reads. */
		const uint32_t bytes = n <= m.entries ? (8 * n + 15) & ~15u : 0;

		g_cluster_arrive_expect(at, bytes + 16);
		g_cluster_copy(g_cluster_at(share, 0), share, 16, at);
		if (bytes)
			g_cluster_copy(g_cluster_at(topk_by_entries(m), 0),
				       topk_by_entries(m), bytes, at);
	}
	if (m.cluster == 1)
		BARRIER();
	else if (own == 0)
		g_mbarrier_wait(&head->shares, head->parity);
}

/* The first block's first lanes list what lies beside the row's aligned bytes:
 * up to 3 scores at either end. */
FN void
topk_by_ends(topk_by m, const PRIVATE topk_by_row *r, float low)
{
	const uint32_t end = r->row.pad + r->row.len;
	const uint32_t item = g_item(), lane = item % 4;
	const uint32_t at = item < 4 ? r->row.pad + lane : (end & ~3u) + lane;
	const uint32_t upto = item < 4 ? (r->row.pad + 3) & ~3u : end;

	if (topk_by_own(m) == 0 && item < 8 && at < upto) {
		const float score = r->row.at[at - r->row.pad];

		if (!(score < low)) {
			const uint32_t n = g_local_add(&m.head->listed, 1);

			/* of the first block itself */
			g_local_store2_if(m.list + 2 * n, g_bits(score), at,
					  n < m.entries);
		}
	}
}

/* A block's memory as a row begins. */
FN void
topk_by_begin(topk_by m, const PRIVATE topk_by_row *r)
{
	/* A row with more pieces than words is not listed. */
	const uint32_t words =
		r->pieces <= m.words ? (r->pieces + 3) / 4 * 4 : 0;
	uint32_t i;

	topk_by_clear(m);
	if (topk_by_own(m) == 0) {
		NO_UNROLL
		for (i = g_item(); i < words; i += m.items)
			m.bits[i] = 0;
	}
	if (g_item() == 0) {
		m.head->found[0] = m.head->found[1] = m.head->found[2] = 0;
		m.head->listed = 0;
		m.head->most = 0;
		m.head->close_count = 0;
		m.head->is_done = 1;
	}
}

/* Lists the scores of the block's share of the row that are above its
 * threshold. The first block has the counts when all blocks have met. Returns 0
 * if there is no threshold. */
FN uint32_t
topk_by_collect(topk_by m, const PRIVATE topk_by_row *r, uint32_t each,
		uint32_t chunks)
{
	/* A block with a long row of its own waits for memory, so it has a
	 * third chunk under way. Elsewhere that costs more than it gains. */
	const uint32_t depth =
		m.cluster == 1 && m.items == SPMLA_WIDE_BLOCK ? 3 : 2;
	uint32_t x[TOPK_BY_CHUNK], y[TOPK_BY_CHUNK], z[TOPK_BY_CHUNK], low, i;

	topk_by_fetch(m, r, each, chunks, 0, x);
	topk_by_fetch(m, r, each, chunks, 1, y);
	if (depth == 3)
		topk_by_fetch(m, r, each, chunks, 2, z);
	/* The scores are on their way meanwhile. One thread does it: other
	 * warps' instructions would only take time from its own. */
	if (g_item() == m.items - 1)
		topk_by_rank(m, r, each, chunks);
	topk_by_begin(m, r);
	/* Relaxed, as nothing is handed on here: it says that the first block
	 * has read what it had of the last row. The fence orders these reads
	 * before others' bulk copies to that place. */
	if (m.cluster > 1) {
		g_fence_async();
		g_cluster_arrive_relaxed();
	}
	BARRIER();
	if (UNLIKELY(m.head->rank == 0)) {
		if (m.cluster > 1)
			g_cluster_wait();
		return 0;
	}
	topk_by_buckets(m, x, each, m.head->buckets);
	BARRIER();
	topk_by_pick(m, m.head->rank);
	topk_by_clear(m);
	if (m.cluster > 1)
		g_cluster_wait();
	low = topk_by_low(m);
	if (g_item() == 0)
		m.head->low = low; /* for itself */
	/* What is outside the row shall not be listed. */
	if (low > TOPK_LEAST) {
		const float score =
			g_float(low >> 31 ? low ^ 0x80000000u : ~low);

		NO_UNROLL
		for (i = 0;; i += depth) {
			topk_by_list(m, x, each, chunks, i, score);
			if (i + 1 >= chunks)
				break;
			if (i + depth < chunks)
				topk_by_fetch(m, r, each, chunks, i + depth, x);
			topk_by_list(m, y, each, chunks, i + 1, score);
			if (i + 2 >= chunks)
				break;
			if (i + 1 + depth < chunks)
				topk_by_fetch(m, r, each, chunks, i + 1 + depth,
					      y);
			if (depth == 2)
				continue;
			topk_by_list(m, z, each, chunks, i + 2, score);
			if (i + 3 >= chunks)
				break;
			if (i + 5 < chunks)
				topk_by_fetch(m, r, each, chunks, i + 5, z);
		}
		topk_by_ends(m, r, score);
	}
	if (m.cluster > 1) {
		if (g_item() == 0)
			m.head->parity ^= 1;
		g_fence_async();
	}
	BARRIER();
	topk_by_send(m);
	return 1;
}

/* A guess of the k-th key: the largest key, if all keys above the threshold are
 * in its bin, since then more keys are likely to equal it than a list holds.
 * Else 0. */
FN uint32_t
topk_by_guess(topk_by m)
{
	const uint32_t most = m.head->most;

	return topk_by_coarse(most) == topk_by_coarse(m.head->low) ? most : 0;
}

/* 0 if the list is not enough; *guess then may be the k-th key, or is 0. */
FN uint32_t
topk_by_long(topk_by m, const PRIVATE topk_by_row *r, PRIVATE uint32_t *guess)
{
	const uint32_t slots = m.items / 8 * m.cluster; /* of one load */
	const uint32_t loads = (r->pieces + slots - 1) / slots;
	uint32_t is;

	if (m.cluster == 8 && loads == 1)
		is = topk_by_collect(m, r, 4, 1);
	else
		is = topk_by_collect(m, r, TOPK_BY_CHUNK, (loads + 1) / 2);
	*guess = 0;
	if (!is)
		return 0;
	if (topk_by_own(m) != 0) {
		g_cluster_sync();
		*guess = m.head->guess;
		return m.head->is_done;
	}
	is = topk_by_select(m, r);
	if (m.cluster > 1 && is)
		g_cluster_arrive_relaxed();
	if (!is)
		*guess = topk_by_guess(m);
	if (m.cluster > 1 && !is) {
		if (g_item() < m.cluster)
			g_cluster_store2_if(
				g_cluster_at(&m.head->is_done, g_item()), 0,
				*guess, 1);
		g_cluster_arrive();
	}
	if (is)
		topk_by_put_listed(m, r);
	if (m.cluster > 1)
		g_cluster_wait();
	return is;
}

/* ---- rows ---------------------------------------------------------------- */

/* Returns the row after the block's last one. */
FN uint32_t
topk_by_rows(topk_by m, const PRIVATE topk_args *a)
{
	/* A short row's scores of a thread. */
	const uint32_t each =
		m.items < SPMLA_WIDE_BLOCK ? TOPK_BY_SHORT_HALF : TOPK_BY_SHORT;
	uint32_t row;

	if (m.cluster > 1 && g_item() == 0) {
		g_mbarrier_init(&m.head->shares, m.cluster);
		g_mbarriers_publish();
		m.head->parity = 1;
	}
	for (row = g_block() / m.cluster; row < a->s.rows;
	     row += g_blocks() / m.cluster) {
		topk_by_row r;
		uint32_t is_short;

		r.row = topk_find(a, row, topk_by_own(m) == 0 && g_item() == 0,
				  0);
		r.row.pad = (uint32_t)((uint64_t)r.row.at / 4 % TOPK_BY_PIECE);
		r.k = a->s.k;
		r.last_ties = a->s.last_ties;
		r.pieces = (r.row.pad + r.row.len + 31) / TOPK_BY_PIECE;
		r.a = a;
		r.index = row;
		is_short = r.pieces * 32 <= each * m.items;
		if (r.row.len <= r.k) {
			if (topk_by_own(m) == 0)
				topk_identity(r.row.len, r.k, m.items,
					      topk_by_out(&r));
		} else if (!is_short || topk_by_own(m) == 0) {
			uint32_t guess;

			if (is_short)
				topk_by_short(m, &r, each);
			else if (UNLIKELY(!topk_by_long(m, &r, &guess)))
				topk_by_count(m, &r, m.cluster, guess);
		}
		BARRIER(); /* what is shared is used anew */
	}
	return row;
}

/* The same if one block has each row whole, without the code of long rows. */
FN uint32_t
topk_short_rows(topk_by m, const PRIVATE topk_args *a)
{
	uint32_t row;

	for (row = g_block(); row < a->s.rows; row += g_blocks()) {
		topk_by_row r;

		r.row = topk_find(a, row, g_item() == 0, 0);
		r.k = a->s.k;
		r.last_ties = a->s.last_ties;
		r.a = a;
		r.index = row;
		if (r.row.len <= r.k)
			topk_identity(r.row.len, r.k, m.items, topk_by_out(&r));
		else
			topk_by_short(m, &r, TOPK_BY_SHORT);
		BARRIER(); /* what is shared is used anew */
	}
	return row;
}

typedef struct topk_map_args {
	SPMLA_KERNEL_FIELDS(topk_map_by_8)
} topk_map_args;

/* What index_map needs of a block. */
typedef struct topk_map_shared {
	uint64_t sums[INDEX_MAP_SUMS];
	uint32_t empty[4];
} topk_map_shared;

/* index_map of the block's rows; `end` is the row after the last one. The first
 * block of a cluster has written all indices of its rows. All rows are mapped
 * at the end, so that neither task takes registers from the other. The first
 * row is computed from `end`, which saves a register. */
FN void
topk_by_map(topk_by m, const PRIVATE topk_map_args *a, uint32_t end)
{
	LOCAL topk_map_shared *shared = (LOCAL topk_map_shared *)m.head->close;
	index_map_job job = {a->fault_state,
			     a->fault_status,
			     a->token_row,
			     a->block_table,
			     a->table_cols,
			     a->indices,
			     a->map_lens,
			     a->slots,
			     a->valid_counts,
			     0,
			     0,
			     a->map_context,
			     0,
			     0,
			     0,
			     a->other_lens,
			     a->kept_lens,
			     a->s.map,
			     m.items,
			     end % (g_blocks() / m.cluster),
			     g_blocks() / m.cluster,
			     shared->sums,
			     shared->empty};

	/* Constants, so that there is no code for what is not given. */
	job.s.has_ids = job.s.has_slots = job.s.has_first_cols = 0;
	job.s.is_ragged = job.s.entries_before = 0;
	/* One call with a variable `compact` would spill. */
	if (topk_by_own(m) == 0 && a->s.compact)
		index_map_all(&job, 1);
	else if (topk_by_own(m) == 0)
		index_map_all(&job, 0);
}

#define TOPK_BY(name, blocks, rows, words_, list_, bytes, scalars, then)       \
	do {                                                                   \
		LOCAL_DYNAMIC(local, bytes);                                   \
		const topk_args a = {                                          \
			SPMLA_K_TOPK(SPMLA_I_K_NAME, SPMLA_I_K_NONE) scalars}; \
		topk_by m;                                                     \
                                                                               \
		m.head = (LOCAL topk_by_head *)local;                          \
		m.bits = (LOCAL uint32_t *)(local + sizeof(topk_by_head));     \
		m.list = m.bits + (words_);                                    \
		m.words = (words_);                                            \
		m.entries = (list_) / (blocks);                                \
		m.items = SPMLA_ITEMS_##name;                                  \
		m.cluster = (blocks);                                          \
		const uint32_t end = rows(m, &a);                              \
		then;                                                          \
	} while (0)

SPMLA_KERNEL(topk_short)
void
spmla_k_topk_short(SPMLA_KERNEL_ARGS(topk_short))
{
	TOPK_BY(topk_short, 1, topk_short_rows, 0, 0, TOPK_SHORT_BYTES, s,
		(void)end);
}

SPMLA_KERNEL_CLUSTER(topk_by_8, 8)
void
spmla_k_topk_by_8(SPMLA_KERNEL_ARGS(topk_by_8))
{
	TOPK_BY(topk_by_8, 8, topk_by_rows, TOPK_BY_WORDS, TOPK_BY_LIST,
		TOPK_BY_BYTES, s, (void)end);
}

SPMLA_KERNEL_CLUSTER(topk_by_2, 2)
void
spmla_k_topk_by_2(SPMLA_KERNEL_ARGS(topk_by_2))
{
	TOPK_BY(topk_by_2, 2, topk_by_rows, TOPK_BY_WORDS, TOPK_BY_LIST,
		TOPK_BY_BYTES, s, (void)end);
}

SPMLA_KERNEL(topk_by_1)
void
spmla_k_topk_by_1(SPMLA_KERNEL_ARGS(topk_by_1))
{
	TOPK_BY(topk_by_1, 1, topk_by_rows, TOPK_BY_WORDS, TOPK_BY_LIST,
		TOPK_BY_BYTES, s, (void)end);
}

/* Two rows are on a multiprocessor at a time. */
SPMLA_KERNEL_BLOCKS(topk_by_half, 2)
void
spmla_k_topk_by_half(SPMLA_KERNEL_ARGS(topk_by_half))
{
	TOPK_BY(topk_by_half, 1, topk_by_rows, TOPK_BY_HALF_WORDS,
		TOPK_BY_HALF_LIST, TOPK_BY_HALF_BYTES, s, (void)end);
}

#define TOPK_MAP_BY(name, blocks, rows, words, list, bytes)             \
	do {                                                            \
		const topk_map_args map = {SPMLA_KERNEL_VALUES(name)};  \
                                                                        \
		TOPK_BY(name, blocks, rows, words, list, bytes, s.topk, \
			topk_by_map(m, &map, end));                     \
	} while (0)

SPMLA_KERNEL(topk_map_short)
void
spmla_k_topk_map_short(SPMLA_KERNEL_ARGS(topk_map_short))
{
	TOPK_MAP_BY(topk_map_short, 1, topk_short_rows, 0, 0, TOPK_SHORT_BYTES);
}

SPMLA_KERNEL_CLUSTER(topk_map_by_8, 8)
void
spmla_k_topk_map_by_8(SPMLA_KERNEL_ARGS(topk_map_by_8))
{
	TOPK_MAP_BY(topk_map_by_8, 8, topk_by_rows, TOPK_BY_WORDS, TOPK_BY_LIST,
		    TOPK_BY_BYTES);
}

SPMLA_KERNEL_CLUSTER(topk_map_by_2, 2)
void
spmla_k_topk_map_by_2(SPMLA_KERNEL_ARGS(topk_map_by_2))
{
	TOPK_MAP_BY(topk_map_by_2, 2, topk_by_rows, TOPK_BY_WORDS, TOPK_BY_LIST,
		    TOPK_BY_BYTES);
}

SPMLA_KERNEL(topk_map_by_1)
void
spmla_k_topk_map_by_1(SPMLA_KERNEL_ARGS(topk_map_by_1))
{
	TOPK_MAP_BY(topk_map_by_1, 1, topk_by_rows, TOPK_BY_WORDS, TOPK_BY_LIST,
		    TOPK_BY_BYTES);
}

SPMLA_KERNEL_BLOCKS(topk_map_by_half, 2)
void
spmla_k_topk_map_by_half(SPMLA_KERNEL_ARGS(topk_map_by_half))
{
	TOPK_MAP_BY(topk_map_by_half, 1, topk_by_rows, TOPK_BY_HALF_WORDS,
		    TOPK_BY_HALF_LIST, TOPK_BY_HALF_BYTES);
}

#undef TOPK_MAP_BY
#undef TOPK_BY
#endif
#endif
