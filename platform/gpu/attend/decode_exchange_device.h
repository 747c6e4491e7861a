/* SPDX-License-Identifier: Apache-2.0
 *
 * How the blocks of a unit of sparse_decode_few combine their results without a
 * second kernel. Each writes its own result, unnormalised, to a workspace in
 * L2: first a record of each head, then O. The block of rank h % ranks reads all
 * ranks' results of head h and adds them in rank order. A word that is not
 * written yet is 0, so no fence or flag is needed: written words have their bits
 * inverted and are never 0.
 *
 * The hard idea is a wait that ends though something keeps a block from
 * beginning: another stream, or the launch itself, where it has more blocks
 * than run at the same time (spmla_i_few_always). Each block counts itself in,
 * once for every other rank, before it writes. The block that adds a head is
 * its owner. An owner that has waited too long adds a mark to its own count. If
 * all blocks have counted in by then, they are sure to write, and the owner
 * waits on. If not, it gives up, and the block that counts in last finds the
 * mark and adds that owner's heads, too. The order is the same, so the bits are
 * the same. An owner that has seen all records may clear its count, since each
 * block counted in before.
 *
 * A block that has counted in is sure to write: it runs, a device never takes
 * away one block alone, and until it has written it waits for nobody. So an
 * owner that waits on loses nothing. That wait ends, too, as every wait must
 * (EXCHANGE_LONG), but only on a broken device. A record or a word of O that
 * has not come by then counts as NaN, since its bits are inverted: out and lse
 * of the head are NaN, not wrong numbers. The debug build reports it. The
 * workspace may keep what comes later.
 *
 * The block that adds leaves zeros for the next call.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_DECODE_EXCHANGE_DEVICE_H
#define SPMLA_PLATFORM_GPU_ATTEND_DECODE_EXCHANGE_DEVICE_H

#include "spmla/platform/gpu/attend/decode_few_device.h"

/* Reads of a record until an owner gives up: some 100 us on an H100, more than a
 * block takes. Once it is known that all blocks have counted in, EXCHANGE_LONG:
 * some 0.4 s. */
#ifdef SPMLA_EMULATOR
enum { EXCHANGE_PATIENCE = 16, EXCHANGE_LONG = 1 << 9 };
#else
enum { EXCHANGE_PATIENCE = 256, EXCHANGE_LONG = 1 << 20 };
#endif

enum {
	/* Words of a unit's workspace: counts, padded to a line; then records
	 * [ranks][heads], then O [heads][ranks]. The host knows it as
	 * spmla_i_few_words. */
	EXCHANGE_COUNTS = 32,
	EXCHANGE_RECORD = 4, /* m, L, exponents of O's units by group */
	EXCHANGE_O = 256,    /* pairs of f16 */
	EXCHANGE_GAVE_UP = 1 << 8,
	EXCHANGE_VOTE = 1, /* named barrier */
	/* Exponents above EXCHANGE_LARGE are lowered by EXCHANGE_LOWER while
	 * ranks are added. */
	EXCHANGE_LARGE = 200,
	EXCHANGE_LOWER = 24
};

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

/* Words in shared memory. */
enum {
	EXCHANGE_ORPHANS, /* bit r: this block adds rank r's heads, too */
	EXCHANGE_ALL_IN,  /* 1: all blocks have counted in */
	EXCHANGE_TOKEN,   /* the block's; here it takes no register */
	EXCHANGE_HEAD
};

FN GLOBAL uint32_t *
exchange_counts(const PRIVATE few_block *b)
{
	const uint32_t all = b->kind.ranks * b->kind.heads;

	return b->a->workspace +
	       (uint64_t)b->unit *
		       (EXCHANGE_COUNTS + all * (EXCHANGE_RECORD + EXCHANGE_O));
}

FN GLOBAL uint32_t *
exchange_record(const PRIVATE few_block *b, uint32_t rank, uint32_t head)
{
	return exchange_counts(b) + EXCHANGE_COUNTS +
	       (rank * b->kind.heads + head) * EXCHANGE_RECORD;
}

FN GLOBAL uint32_t *
exchange_o(const PRIVATE few_block *b, uint32_t head, uint32_t rank)
{
	return exchange_record(b, b->kind.ranks, 0) +
	       (head * b->kind.ranks + rank) * EXCHANGE_O;
}

/* Prefetches what the block will add. */
FN void
exchange_prefetch(const PRIVATE few_block *b)
{
	const uint32_t ranks = b->kind.ranks;
	const uint32_t lines = ranks * EXCHANGE_O / 32; /* of a head */
	uint32_t i;

	for (i = g_item(); i < b->kind.heads / ranks * lines;
	     i += few_items(b->kind))
		g_prefetch((GLOBAL const int32_t *)exchange_o(
				   b, i / lines * ranks + b->rank, 0) +
			   i % lines * 32);
	if (g_item() < ranks)
		g_prefetch((GLOBAL const int32_t *)exchange_record(b, g_item(),
								   b->rank));
}

/* The last warp counts the block in. It has no keys, if the block has a warp
 * without keys. */
FN uint32_t
exchange_is_last_warp(const PRIVATE few_block *b)
{
	return b->warp == few_warps(b->kind) - 1;
}

/* Counts the block in. The result is for exchange_note. */
FN uint32_t
exchange_count(const PRIVATE few_block *b)
{
	uint32_t before = 0;

	g_debug_sleep();
	if (exchange_is_last_warp(b) && b->lane < b->kind.ranks &&
	    b->lane != b->rank)
		before = g_add(exchange_counts(b) + b->lane, 1);
	return before;
}

/* Notes for which owners the block adds. A barrier must follow before the block
 * hands on its results. */
FN void
exchange_note(const PRIVATE few_block *b, uint32_t before)
{
	const uint32_t last = EXCHANGE_GAVE_UP + b->kind.ranks - 2;
	uint32_t orphans;

	if (!exchange_is_last_warp(b))
		return;
	orphans = (uint32_t)g_ballot(before == last);
	if (b->lane)
		return;
	few_exchange_notes(b)[EXCHANGE_ORPHANS] = orphans;
	few_exchange_notes(b)[EXCHANGE_TOKEN] = b->token;
	few_exchange_notes(b)[EXCHANGE_HEAD] = b->first_head;
}

/* The words of a record, none of them 0. */
FN void
exchange_make_record(float most, float sum, const PRIVATE uint32_t *exponents,
		     PRIVATE uint32_t *x)
{
	uint32_t i;

	x[0] = ~g_bits(most);
	x[1] = ~g_bits(sum);
	x[2] = ~exponents[0]; /* bytes below 255 */
	x[3] = ~exponents[1];
	UNROLL
	for (i = 0; i < 2; i++)
		x[i] = x[i] ? x[i] : 1; /* a NaN becomes another one */
}

/* The head of an owner whose columns the warp adds. */
FN uint32_t
exchange_head(const PRIVATE few_block *b, uint32_t owner)
{
	const uint32_t ranks = b->kind.ranks, words = b->kind.heads / ranks;

	return b->warp * 64 * words / 512 % words * ranks + owner;
}

/* Whether the lane reads a record: lane r reads rank r's. */
FN uint32_t
exchange_reads(const PRIVATE few_block *b)
{
	return b->lane < b->kind.ranks && b->warp < FEW_WARPS;
}

/* Asks for the lane's record for the block's own heads. */
FN void
exchange_ask(const PRIVATE few_block *b, PRIVATE uint32_t *x)
{
	if (exchange_reads(b))
		g_load4_device(
			exchange_record(b, b->lane, exchange_head(b, b->rank)),
			x);
}

/* Whether a record that was read is there; a part of it may be. */
FN uint32_t
exchange_is_there(const PRIVATE uint32_t *x)
{
	return (x[0] != 0) & (x[1] != 0) & (x[2] != 0) & (x[3] != 0);
}

/* Reads a record until it is there, `patience` times at most. `x` is what was
 * read before, or zeros. */
FN uint32_t
exchange_take_record(GLOBAL const uint32_t *from, uint32_t patience,
		     PRIVATE uint32_t *x)
{
	uint32_t n;

	for (n = 0; n < patience && !exchange_is_there(x); n++) {
		if (n)
			g_sleep(0);
		g_load4_device(from, x);
	}
	return exchange_is_there(x);
}

/* The wait was in vain: the debug build says so. */
FN void
exchange_report_late(const PRIVATE few_block *b)
{
	if (G_DEBUG)
		g_fault(b->a->fault_state, b->a->fault_status, g_block(),
			G_FAULT_TIMEOUT);
}

/* Waits for all ranks' records of an owner's heads. Lane r < ranks gets rank
 * r's record of the warp's head; `x` is what it has read so far. Returns 0 if
 * the block has given up. Barriers. */
FN uint32_t
exchange_await(const PRIVATE few_block *b, uint32_t owner, uint32_t head,
	       PRIVATE uint32_t *x)
{
	const uint32_t reads = exchange_reads(b);
	LOCAL uint32_t *all_in = few_exchange_notes(b) + EXCHANGE_ALL_IN;
	uint32_t patience =
		owner == b->rank ? EXCHANGE_PATIENCE : EXCHANGE_LONG;

	g_debug_sleep();
	for (;;) {
		const uint32_t there =
			!reads ||
			exchange_take_record(exchange_record(b, b->lane, head),
					     patience, x);

		g_subgroup_barrier();
		if (!g_named_any(EXCHANGE_VOTE, few_items(b->kind), !there))
			return 1;
		if (patience == EXCHANGE_LONG) {
			/* The wait ends with whatever is there. */
			if (g_item() == 0)
				exchange_report_late(b);
			return 1;
		}
		if (g_item() == 0)
			*all_in = (g_add(exchange_counts(b) + owner,
					 EXCHANGE_GAVE_UP) &
				   (EXCHANGE_GAVE_UP - 1)) == b->kind.ranks - 1;
		BARRIER();
		if (!*all_in)
			return 0;
		patience = EXCHANGE_LONG;
	}
}

/* Clears the owner's records and count, once all warps have read them. */
FN void
exchange_clear(const PRIVATE few_block *b, uint32_t owner)
{
	const uint32_t ranks = b->kind.ranks, i = g_item();
	const uint32_t zeros[4] = {0, 0, 0, 0};

	if (i < b->kind.heads)
		g_store4((GLOBAL uint16_t *)exchange_record(
				 b, i % ranks, i / ranks * ranks + owner),
			 zeros);
	if (i == 0)
		exchange_counts(b)[owner] = 0;
}

/* One, two or four words. */
FN void
exchange_load(GLOBAL const uint32_t *p, uint32_t words, PRIVATE uint32_t *x)
{
	if (words == 1)
		x[0] = g_load_device(p);
	else if (words == 2)
		g_load2_device(p, x);
	else
		g_load4_device(p, x);
}

FN void
exchange_store(GLOBAL uint32_t *p, uint32_t words, const PRIVATE uint32_t *x)
{
	if (words == 1)
		*p = x[0];
	else if (words == 2)
		*(GLOBAL uint64_t *)p = (uint64_t)x[1] << 32 | x[0];
	else
		g_store4((GLOBAL uint16_t *)p, x);
}

/* Loads the lane's words of all ranks' O of a head. */
FN void
exchange_load_ranks(GLOBAL const uint32_t *o, uint32_t ranks, uint32_t words,
		    uint32_t v[][4])
{
	uint32_t r;

	UNROLL
	for (r = 0; r < ranks; r++)
		exchange_load(o + r * EXCHANGE_O, words, v[r]);
}

/* The least of a lane's words of a rank: 0 if one is not there yet. */
FN uint32_t
exchange_least(const PRIVATE uint32_t *v, uint32_t words)
{
	uint32_t least = v[0], i;

	UNROLL
	for (i = 1; i < words; i++)
		least = v[i] < least ? v[i] : least;
	return least;
}

/* Whether a word of some lane is not there yet. */
FN uint32_t
exchange_misses(uint32_t v[][4], uint32_t ranks, uint32_t words)
{
	uint32_t least = ~0u, r;

	UNROLL
	for (r = 0; r < ranks; r++) {
		const uint32_t x = exchange_least(v[r], words);

		least = x < least ? x : least;
	}
	return g_ballot(least == 0) != 0;
}

/* Loads again what is not there yet, and nothing else: the blocks that are late
 * need the L2. */
FN void
exchange_load_late(GLOBAL const uint32_t *o, uint32_t ranks, uint32_t words,
		   uint32_t v[][4])
{
	uint32_t r;

	UNROLL
	for (r = 0; r < ranks; r++)
		if (exchange_least(v[r], words) == 0)
			exchange_load(o + r * EXCHANGE_O, words, v[r]);
}

/* What the ranks' records of a head give. */
typedef struct exchange_weights {
	float of_rank; /* weight of the lane's rank / the sum of all */
	float most;    /* largest score of all ranks; 0 if there is none */
	float sum;     /* of weights, without the sink's; 0: no key */
} exchange_weights;

FN exchange_weights
exchange_weigh(const PRIVATE few_block *b, const PRIVATE uint32_t *record,
	       float sink)
{
	const PRIVATE few_scalars *s = &b->a->s;
	const uint32_t is = b->lane < b->kind.ranks;
	const float c = s->scale * G_LOG2_E;
	const float own = is ? g_float(~record[0]) : G_MINUS_INF;
	float most = own, weight, sum;
	exchange_weights w;
	uint32_t i;

	UNROLL
	for (i = 1; i < 32; i *= 2)
		most = g_larger(most, g_shuffle_xor_f(most, i));
	most = most == G_MINUS_INF ? 0.0f : most;
	weight = is ? g_exp2_flush((own - most) * c) : 0.0f;
	sum = is ? weight * g_float(~record[1]) : 0.0f;
	UNROLL
	for (i = 1; i < 32; i *= 2)
		sum += g_shuffle_xor_f(sum, i);
	w.most = most;
	w.sum = sum;
	if (s->has_sink)
		sum += g_sink_weight(sink, most * c);
	w.of_rank = g_div_near(weight, sum);
	w.of_rank = w.sum == 0.0f ? 0.0f : w.of_rank;
	return w;
}

/* The head's lse. */
FN float
exchange_lse(const PRIVATE few_block *b, const PRIVATE exchange_weights *w,
	     float sink)
{
	const PRIVATE few_scalars *s = &b->a->s;
	const float c = s->scale * G_LOG2_E;
	const float lse2 = g_log2(w->sum), natural = w->most * s->scale;

	/* The lse may be finite where its log2 value is beyond f32. */
	if (s->base2 || s->lse_sink)
		return decode_result_lse(w->sum == 0.0f, lse2 + w->most * c,
					 natural, s->empty_lse, s->base2,
					 s->lse_sink, sink);
	return w->sum == 0.0f ? s->empty_lse : lse2 * G_LN_2 + natural;
}

/* The factor for a rank's sums of a group of values. */
typedef struct exchange_factor {
	float by;
	uint32_t large; /* 1: until the end sums are 2^24 times smaller */
} exchange_factor;

/* The columns of a warp, from `first` on, lie in one, two or four groups of
 * values that share a unit. Lane l gets the factor of rank l % ranks for the (l
 * / ranks)-th of these groups: 2^(exponent - 127) times the rank's weight. */
FN exchange_factor
exchange_factor_of(const PRIVATE few_block *b, const PRIVATE uint32_t *record,
		   float weight, uint32_t first)
{
	const uint32_t ranks = b->kind.ranks;
	const uint32_t r = b->lane % ranks, at = b->lane - r;
	const uint32_t group = first / b->kind.format.group + at / ranks;
	const uint32_t low = g_shuffle(~record[2], r);
	const uint32_t high = g_shuffle(~record[3], r);
	const uint32_t byte =
		(group < 4 ? low : high) >> 8 * (group % 4) & 0xffu;
	const uint32_t any = (uint32_t)g_ballot(byte > EXCHANGE_LARGE);
	exchange_factor f;
	uint32_t lower;

	f.large = (any >> at & ((1u << ranks) - 1)) != 0;
	lower = f.large ? EXCHANGE_LOWER : 0;
	f.by = g_float(g_shuffle(g_bits(weight), r)) *
	       g_float(byte > lower ? (byte - lower) << 23 : 0);
	return f;
}

/* Adds the ranks' O, times their factors: the lane's part of a head, as pairs
 * of f16 or bf16. */
FN void
exchange_add(const PRIVATE few_block *b, const PRIVATE uint32_t *record,
	     float weight, uint32_t dim, uint32_t words, uint32_t v[][4],
	     PRIVATE float *x)
{
	const decode_format f = b->kind.format;
	const uint32_t first = dim - b->lane * 2 * words;
	const uint32_t is_bf16 = f.bf16_tail && dim / f.group == FEW_GROUPS - 1;
	const exchange_factor factor =
		exchange_factor_of(b, record, weight, first);
	const uint32_t from = (dim - first) / f.group * b->kind.ranks;
	const uint32_t large = g_shuffle(factor.large, from);
	uint32_t r, i;

	UNROLL
	for (i = 0; i < 8; i++)
		x[i] = 0.0f;
	UNROLL
	for (r = 0; r < b->kind.ranks; r++) {
		const float by =
			g_float(g_shuffle(g_bits(factor.by), from + r));

		UNROLL
		for (i = 0; i < words; i++) {
			const uint32_t pair = ~v[r][i];
			float even, odd;

			g_f16x2_to_f32(pair, &even, &odd);
			if (f.bf16_tail) {
				even = is_bf16 ? g_bf16x2_low(pair) : even;
				odd = is_bf16 ? g_bf16x2_high(pair) : odd;
			}
			x[2 * i] = g_fma(by, even, x[2 * i]);
			x[2 * i + 1] = g_fma(by, odd, x[2 * i + 1]);
		}
	}
	UNROLL
	for (i = 0; i < 8; i++)
		x[i] *= large ? (float)(1u << EXCHANGE_LOWER) : 1.0f;
}

/* Writes the lane's part of a result. */
FN void
exchange_write(const PRIVATE few_block *b, uint32_t h, uint32_t dim,
	       uint32_t words, const PRIVATE uint32_t *y)
{
	const PRIVATE few_scalars *s = &b->a->s;

	exchange_store(
		(GLOBAL uint32_t *)(b->a->out +
				    decode_token_at(b->token, s->next_n,
						    s->out_request_stride,
						    s->out_token_stride) +
				    (int64_t)h * s->out_head_stride + dim),
		words, y);
}

/* Adds the owner's heads and writes their results. `record` has what the lane
 * has read of its record so far, or zeros. The whole block calls it: barriers. A
 * warp has 64, 128 or 256 columns of one head, or both halves of its 512. */
FN void
exchange_sum(const PRIVATE few_block *b, uint32_t owner,
	     PRIVATE uint32_t *record)
{
	const PRIVATE few_scalars *s = &b->a->s;
	const uint32_t ranks = b->kind.ranks;
	const uint32_t all = b->kind.heads / ranks; /* words of a lane */
	const uint32_t words = all < 4 ? all : 4, parts = all / words;
	const uint32_t head = exchange_head(b, owner);
	const uint32_t dim = b->warp * 64 * all % 512 + b->lane * 2 * words;
	const uint32_t h = b->first_head + head;
	GLOBAL uint32_t *o = exchange_o(b, head, 0) + dim / 2;
	const float sink =
		s->has_sink && h < s->heads ? b->a->attn_sink[h] : G_MINUS_INF;
	const uint32_t zeros[4] = {0, 0, 0, 0};
	uint32_t v[16][4], y[4], n, r, i, k;
	exchange_weights w;
	float x[8];

	if (!exchange_await(b, owner, head, record))
		return;
	exchange_clear(b, owner);
	if (b->warp >= FEW_WARPS)
		return;
	UNROLL
	for (k = 0; k < parts; k++)
		exchange_load_ranks(o + 128 * k, ranks, words, v + k * ranks);
	w = exchange_weigh(b, record, sink);
	UNROLL
	for (k = 0; k < parts; k++) {
		for (n = 0; n < EXCHANGE_LONG &&
			    exchange_misses(v + k * ranks, ranks, words);
		     n++) {
			g_sleep(0);
			exchange_load_late(o + 128 * k, ranks, words,
					   v + k * ranks);
		}
		if (n == EXCHANGE_LONG && b->lane == 0)
			exchange_report_late(b);
		UNROLL
		for (r = 0; r < ranks; r++)
			exchange_store(o + 128 * k + r * EXCHANGE_O, words,
				       zeros);
		exchange_add(b, record, w.of_rank, dim + 256 * k, words,
			     v + k * ranks, x);
		UNROLL
		for (i = 0; i < words; i++)
			y[i] = w.sum == 0.0f ? 0
					     : g_f32_to_bf16x2(x[2 * i],
							       x[2 * i + 1]);
		if (h < s->heads)
			exchange_write(b, h, dim + 256 * k, words, y);
	}
	if (h < s->heads && dim == 0 && s->has_lse)
		b->a->lse[decode_token_at(b->token, s->next_n,
					  s->lse_request_stride,
					  s->lse_token_stride) +
			  (int64_t)h * s->lse_head_stride] =
			exchange_lse(b, &w, sink);
}

/* Adds the block's own heads, and the heads of owners that have given up.
 * `record` is from exchange_ask. */
FN void
exchange_finish(const PRIVATE few_block *of, PRIVATE uint32_t *record)
{
	LOCAL const uint32_t *notes = few_exchange_notes(of);
	few_block b = *of;
	uint32_t owner = b.rank, orphans;

	b.token = notes[EXCHANGE_TOKEN];
	b.first_head = notes[EXCHANGE_HEAD];
	NO_UNROLL
	for (;;) {
		/* Read again, they take no registers between rounds. */
		b.warp = g_item_again() / 32;
		b.lane = g_item_again() % 32;
		exchange_sum(&b, owner, record);
		orphans = notes[EXCHANGE_ORPHANS]; /* never the block's own */
		if (owner != b.rank)
			orphans &= (1u << owner) - 1;
		if (!orphans)
			break;
		record[0] = 0;
		owner = 31 - g_clz(orphans);
	}
}

#endif
#endif
