/* SPDX-License-Identifier: Apache-2.0
 *
 * Adapters of the compressor of DeepSeek V4: saving states, the slots of
 * compressed keys. States may be bf16; the library's are f32.
 */
#include "tests/golden/golden.h"

#include <string.h>

/* States as the library has them, f32; of bf16 a copy, with the tensor that it
 * is given back to. */
typedef struct states {
	spmla_cache cache;
	const golden_tensor *narrow;
} states;

static int
take_state(golden_case *c, states *s)
{
	const golden_tensor *t = golden_find(c, "state_cache");
	const int64_t any[3] = {-1, -1, -1};
	spmla_cache *state = &s->cache;
	golden_floats rows;

	if (!golden_take_floats(c, "state_cache", 3, any, &rows))
		return 0;
	s->narrow = rows.dtype == SPMLA_REAL_BF16 ? t : NULL;
	if (s->narrow && !golden_widen(c, "state_cache", &rows))
		return 0;
	*state = (spmla_cache)SPMLA_CACHE_INIT;
	state->layout = t->shape[2] == 256    ? SPMLA_LAYOUT_STATE_128
			: t->shape[2] == 512  ? SPMLA_LAYOUT_STATE_256
			: t->shape[2] == 1024 ? SPMLA_LAYOUT_STATE_512
					      : SPMLA_LAYOUT_STATE_1024;
	if (spmla_layout_entry_bytes(state->layout) != 4 * t->shape[2] ||
	    (!s->narrow && t->strides[1] != t->shape[2])) {
		(void)golden_fail(c, "state_cache has entries of %d values",
				  (int)t->shape[2]);
		return 0;
	}
	state->entries_per_page = (uint32_t)t->shape[1];
	state->pages = (uint32_t)t->shape[0];
	state->page_stride_bytes = 4 * (uint64_t)rows.stride;
	state->base = (void *)(uintptr_t)rows.first;
	return 1;
}

/* bf16 by round to nearest even; a NaN stays what it was. */
static uint16_t
to_bf16(float x, uint16_t was)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof bits);
	if (x != x)
		return was;
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Gives states of bf16 back to their tensor. */
static void
give_state(const states *s)
{
	const golden_tensor *t = s->narrow;
	int64_t index[GOLDEN_MAX_RANK] = {0};
	uint64_t i;

	for (i = 0; t && i < t->count; i++, golden_step(t, index)) {
		uint8_t *at = t->data + golden_place(t, index) * 2;
		uint16_t bits;

		memcpy(&bits, at, sizeof bits);
		bits = to_bf16(((const float *)s->cache.base)[i], bits);
		memcpy(at, &bits, sizeof bits);
	}
}

static golden_verdict
run_state_save(golden_case *c)
{
	const golden_tensor *slots =
		golden_need(c, "slot_mapping", GOLDEN_I64, 1);
	const int64_t any[2] = {-1, -1};
	spmla_compress_state_save_args a = {0};
	golden_floats kv, score, ape;
	spmla_status status;
	states state;
	double ratio;

	if (!take_state(c, &state) ||
	    !golden_take_floats(c, "kv", 2, any, &kv) ||
	    !golden_take_floats(c, "score", 2, kv.shape, &score) ||
	    !golden_take_table(c, "ape", kv.shape[1], &ape) ||
	    !golden_has(c, slots, kv.shape))
		return GOLDEN_FAILED;
	if (!golden_need_param(c, "cr", &ratio) ||
	    !golden_has(c, golden_find(c, "ape"),
			(const int64_t[]){(int64_t)ratio, -1}))
		return GOLDEN_FAILED;
	if (kv.dtype != score.dtype || ape.dtype != SPMLA_REAL_F32)
		return golden_fail(c, "kv and score of two types, or ape of "
				      "bf16");
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = (uint32_t)kv.shape[0];
	a.ratio = (uint32_t)ratio;
	a.form = SPMLA_STATE_PAGED;
	a.kv = kv.first;
	a.score = score.first;
	a.kv_stride_elems = kv.stride;
	a.score_stride_elems = score.stride;
	a.ape = ape.first;
	a.kv_dtype = kv.dtype;
	a.positions =
		golden_positions(c, "positions", a.tokens, &a.positions_dtype);
	a.slot_mapping = golden_first(slots);
	a.state = state.cache;
	if (!a.positions)
		return GOLDEN_FAILED;
	status = spmla_compress_state_save(c->ctx, &a, NULL);
	give_state(&state);
	return golden_called(c, status);
}

typedef enum byte_kind { EXACT, E4M3, BF16, E2M1 } byte_kind;

static byte_kind
kind_of(uint32_t layout, uint32_t entries, uint64_t at)
{
	if (layout == SPMLA_LAYOUT_INDEX_FP8)
		return at < entries * 128u ? E4M3 : EXACT;
	if (layout == SPMLA_LAYOUT_INDEX_MXFP4)
		return at < entries * 64u ? E2M1 : EXACT;
	if (at >= entries * 576u)
		return EXACT;
	return at % 576 < 448 ? E4M3 : BF16;
}

/* Steps from one code of sign and magnitude to another, in the order of their
 * values. */
static int
apart(uint32_t a, uint32_t b, uint32_t sign)
{
	const int x = (int)(a & (sign - 1)), y = (int)(b & (sign - 1));
	const int d = (a & sign ? -x : x) - (b & sign ? -y : y);

	return d < 0 ? -d : d;
}

/* The most steps between codes of a byte, or of two that are a bf16. */
static int
steps(byte_kind kind, const uint8_t *got, const uint8_t *want)
{
	const int nan = (*got & 127) == 127, want_nan = (*want & 127) == 127;
	uint16_t g, w;
	int low, high;

	switch (kind) {
	case E4M3:
		return nan == want_nan ? apart(*got, *want, 128) : 255;
	case BF16:
		memcpy(&g, got, sizeof g);
		memcpy(&w, want, sizeof w);
		return apart(g, w, 0x8000);
	case E2M1:
		low = apart(*got & 15, *want & 15, 8);
		high = apart(*got >> 4, *want >> 4, 8);
		return low > high ? low : high;
	case EXACT:
		break;
	}
	return *got == *want ? 0 : 255;
}

/* Scales, and all that is no code, are the same; codes are, but that one in a
 * thousand may be the next one: the kernel fuses the rotation and has another
 * exp and rsqrt. */
static golden_verdict
judge_pages(golden_case *c, const golden_tensor *t, uint32_t layout)
{
	const uint64_t page = (uint64_t)t->strides[0];
	uint64_t i, next = 0, written = 0;

	for (i = 0; i < t->elems; i++) {
		const byte_kind kind =
			kind_of(layout, (uint32_t)t->shape[1], i % page);
		const int n = steps(kind, t->data + i, t->want + i);

		if (n > 1)
			return golden_fail(
				c, "%s, byte %llu: got 0x%02x, want 0x%02x",
				t->name, (unsigned long long)i, t->data[i],
				t->want[i]);
		next += (uint64_t)n;
		written += t->want[i] != t->before[i];
		i += kind == BF16;
	}
	if (next > 1 + written / 1000)
		return golden_fail(c, "%s: %llu codes are the next ones",
				   t->name, (unsigned long long)next);
	return GOLDEN_RAN;
}

static golden_verdict
judge_v4(golden_case *c, const golden_tensor *t)
{
	return judge_pages(c, t, SPMLA_LAYOUT_V4_FP8);
}

static golden_verdict
judge_index(golden_case *c, const golden_tensor *t)
{
	return judge_pages(c, t, SPMLA_LAYOUT_INDEX_FP8);
}

static golden_verdict
judge_mxfp4(golden_case *c, const golden_tensor *t)
{
	return judge_pages(c, t, SPMLA_LAYOUT_INDEX_MXFP4);
}

static const int64_t *
key_slots(golden_case *c, int64_t tokens)
{
	const golden_tensor *state =
		golden_need(c, "slot_mapping", GOLDEN_I64, 1);
	const golden_tensor *keys =
		golden_need(c, "kv_slot_mapping", GOLDEN_I64, 1);
	const int64_t *s, *k;
	int64_t *out, t;

	if (!golden_has(c, state, (const int64_t[]){tokens}) ||
	    !golden_has(c, keys, (const int64_t[]){tokens}))
		return NULL;
	out = golden_scratch(c, (uint64_t)tokens * sizeof *out);
	s = golden_first(state);
	k = golden_first(keys);
	for (t = 0; out && t < tokens; t++)
		out[t] = s[t] < 0 ? -1 : k[t];
	return out;
}

static int
take_weights(golden_case *c, spmla_kv_compress_args *a)
{
	const uint32_t layout = a->state.layout;
	const int64_t dim = layout == SPMLA_LAYOUT_STATE_128 ||
					    layout == SPMLA_LAYOUT_STATE_256
				    ? 128
				    : 512;
	golden_floats rope, norm;
	double eps;

	if (!golden_take_table(c, "cos_sin_cache", 64, &rope) ||
	    !golden_take_floats(c, "rms_norm_weight", 1, &dim, &norm))
		return 0;
	if (!golden_need_param(c, "rms_norm_eps", &eps))
		return 0;
	a->norm_eps = (float)eps;
	a->cos_sin_rows = (uint32_t)rope.shape[0];
	a->cos_sin = rope.first;
	a->cos_sin_dtype = rope.dtype;
	a->norm_weight = norm.first;
	a->norm_dtype = norm.dtype;
	return 1;
}

static int
take_tokens(golden_case *c, spmla_kv_compress_args *a)
{
	const golden_tensor *row =
		golden_need(c, "token_to_req_indices", GOLDEN_I32, 1);
	const golden_tensor *table =
		golden_need(c, "block_table", GOLDEN_I32, 2);
	double ratio;

	if (!golden_has(c, row, (const int64_t[]){-1}) ||
	    !golden_has(c, table, (const int64_t[]){-1, -1}))
		return 0;
	if (!golden_need_param(c, "cr", &ratio))
		return 0;
	a->tokens = (uint32_t)row->shape[0];
	a->ratio = (uint32_t)ratio;
	a->rows = (uint32_t)table->shape[0];
	a->columns = (uint32_t)table->shape[1];
	a->table_stride_elems = (uint32_t)table->strides[0];
	a->token_row = golden_first(row);
	a->block_table = golden_first(table);
	a->positions = golden_positions(c, "positions", a->tokens,
					&a->positions_dtype);
	a->slot_mapping = key_slots(c, a->tokens);
	return a->positions && a->slot_mapping;
}

static golden_verdict
run_compress(golden_case *c, uint32_t layout,
	     golden_verdict (*judge)(golden_case *, const golden_tensor *))
{
	golden_tensor *cache = golden_need(c, "kv_cache", GOLDEN_U8, 3);
	const int64_t shape[3] = {-1, -1, spmla_layout_entry_bytes(layout)};
	spmla_kv_compress_args a = {0};
	states state;

	if (!golden_has(c, cache, shape) || !take_state(c, &state))
		return GOLDEN_FAILED;
	a.state = state.cache;
	if (!take_tokens(c, &a) || !take_weights(c, &a))
		return GOLDEN_FAILED;
	if (cache->offset || cache->role != GOLDEN_INOUT ||
	    cache->elems != (uint64_t)(cache->shape[0] * cache->strides[0]))
		return golden_fail(c, "kv_cache is not whole pages");
	a.cache = (spmla_cache)SPMLA_CACHE_INIT;
	a.cache.layout = layout;
	a.cache.entries_per_page = (uint32_t)cache->shape[1];
	a.cache.pages = (uint32_t)cache->shape[0];
	a.cache.page_stride_bytes = (uint64_t)cache->strides[0];
	a.cache.base = cache->data;
	a.struct_bytes = (uint32_t)sizeof a;
	a.form = SPMLA_STATE_PAGED;
	cache->judge = judge;
	return golden_called(c, spmla_kv_compress(c->ctx, &a, NULL));
}

static golden_verdict
run_sparse_512(golden_case *c)
{
	return run_compress(c, SPMLA_LAYOUT_V4_FP8, judge_v4);
}

static golden_verdict
run_indexer_fp8(golden_case *c)
{
	return run_compress(c, SPMLA_LAYOUT_INDEX_FP8, judge_index);
}

static golden_verdict
run_indexer_mxfp4(golden_case *c)
{
	return run_compress(c, SPMLA_LAYOUT_INDEX_MXFP4, judge_mxfp4);
}

/* Any page id is valid there. A column past the table is -1, which the library
 * reports as well. */
static golden_verdict
run_slot_map(golden_case *c)
{
	const golden_tensor *starts =
		golden_need(c, "query_start_loc", GOLDEN_I32, 1);
	const golden_tensor *lens = golden_need(c, "seq_lens", GOLDEN_I32, 1);
	const golden_tensor *table =
		golden_need(c, "block_table", GOLDEN_I32, 2);
	const golden_tensor *out = golden_need(c, "out", GOLDEN_I64, 1);
	spmla_slot_map_args a = {0};
	spmla_status status;
	int32_t *row, *position, *context;
	double ratio, entries;
	int64_t b, t = 0;

	if (!golden_has(c, lens, (const int64_t[]){-1}) ||
	    !golden_has(c, starts, (const int64_t[]){lens->shape[0] + 1}) ||
	    !golden_has(c, table, (const int64_t[]){-1, -1}) ||
	    !golden_has(c, out, (const int64_t[]){-1}))
		return GOLDEN_FAILED;
	if (!golden_need_param(c, "cr", &ratio) ||
	    !golden_need_param(c, "bs", &entries))
		return GOLDEN_FAILED;
	row = golden_scratch(c, out->count * sizeof *row);
	position = golden_scratch(c, out->count * sizeof *position);
	context = golden_scratch(c, out->count * sizeof *context);
	if (!row || !position || !context)
		return GOLDEN_FAILED;
	for (b = 0; b < lens->shape[0]; b++) {
		const int64_t end = golden_i32(starts, b + 1, 0);

		for (; t < end && t < out->shape[0]; t++) {
			row[t] = (int32_t)b;
			position[t] =
				(int32_t)(golden_i32(lens, b, 0) - (end - t));
			context[t] = position[t] < 0 ? 0 : position[t] + 1;
		}
	}
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = (uint32_t)out->count;
	a.rows = (uint32_t)table->shape[0];
	a.columns = (uint32_t)table->shape[1];
	a.page_tokens = (uint32_t)(entries * ratio);
	a.compress_ratio = (uint32_t)ratio;
	a.pool_pages = INT32_MAX;
	a.table_stride_elems = (uint32_t)table->strides[0];
	a.token_row = row;
	a.positions = position;
	a.block_table = golden_first(table);
	a.context_lens = context;
	a.slot_mapping = golden_first(out);
	status = spmla_slot_map(c->ctx, &a, NULL);
	if (status == SPMLA_OK)
		status = spmla_status_clear(c->ctx);
	return golden_called(c, status);
}

const golden_op golden_compress_ops[] = {
	{"compressed_slot_mapping", run_slot_map},
	{"save_partial_states", run_state_save},
	{"compress_sparse_512", run_sparse_512},
	{"compress_indexer_fp8", run_indexer_fp8},
	{"compress_indexer_mxfp4", run_indexer_mxfp4},
	{NULL, NULL}};
