/* SPDX-License-Identifier: Apache-2.0
 *
 * Adapters of V4's front end: vLLM's writers of 584-byte entries, its gathers
 * of them, and the norm, rotation and insertion in one kernel as XPU has it.
 * What is peculiar to those kernels is looked at here, element by element, and
 * then the rest is compared in every byte.
 */
#include "tests/golden/golden.h"

#include <string.h>

enum { DIM = 512, ENTRY = 576, ENTRY_BYTES = 584, NOPE = 448 };

/* A cache of 584-byte entries [pages][entries][584], or [pages][bytes] of so
 * many entries a page. */
static int
v4_cache(golden_case *c, const char *name, int64_t entries, spmla_cache *cache)
{
	const golden_tensor *t = golden_find(c, name);

	if (!t || t->dtype != GOLDEN_U8 || t->rank < 2 || t->rank > 3 ||
	    (t->rank == 3 &&
	     (t->shape[1] != entries || t->shape[2] != ENTRY_BYTES)) ||
	    t->strides[t->rank - 1] != 1 || entries < 1 ||
	    t->strides[0] < entries * ENTRY_BYTES) {
		(void)golden_fail(c, "%s is no cache of V4 entries", name);
		return 0;
	}
	*cache = (spmla_cache)SPMLA_CACHE_INIT;
	cache->layout = SPMLA_LAYOUT_V4_FP8;
	cache->entries_per_page = (uint32_t)entries;
	cache->pages = (uint32_t)t->shape[0];
	cache->page_stride_bytes = (uint64_t)t->strides[0];
	cache->base = golden_first(t);
	return 1;
}

static int64_t
param_of(const golden_case *c, const char *name)
{
	double x;

	return golden_param(c, name, &x) && x >= 0 && x <= 1 << 30 ? (int64_t)x
								   : -1;
}

/* The dense int64 tensor, or NULL with c->reason set. */
static const int64_t *
i64_of(golden_case *c, const char *name, int64_t least)
{
	const golden_tensor *t = golden_need(c, name, GOLDEN_I64, 1);

	if (!golden_has(c, t, (const int64_t[]){-1}))
		return NULL;
	if (t->shape[0] < least) {
		(void)golden_fail(c, "%s is too short", name);
		return NULL;
	}
	return golden_first(t);
}

/* ---- quantize_and_insert_k_cache --------------------------------------- */

static golden_verdict
run_insert(golden_case *c)
{
	const golden_tensor *k = golden_need(c, "k", GOLDEN_BF16, 2);
	const golden_tensor *slots = golden_find(c, "slot_mapping");
	spmla_kv_insert_args a = {0};

	a.struct_bytes = (uint32_t)sizeof a;
	a.slot_mapping = i64_of(c, "slot_mapping", 0);
	if (!golden_has(c, k, (const int64_t[]){-1, DIM}) || !a.slot_mapping ||
	    !v4_cache(c, "k_cache", param_of(c, "bs"), &a.cache))
		return GOLDEN_FAILED;
	if (slots->shape[0] > k->shape[0])
		return golden_fail(c, "more slots than rows");
	a.tokens = (uint32_t)slots->shape[0];
	a.kv_c = golden_first(k);
	a.kv_c_stride_elems = k->strides[0];
	return golden_called(c, spmla_kv_insert(c->ctx, &a, NULL));
}

/* ---- The gathers ------------------------------------------------------- */

/* A NaN of the kernel is 0x7fff, the library's 0x7fc0: where both have one, the
 * library's becomes the kernel's. */
static void
accept_nan(golden_tensor *out)
{
	uint64_t i;

	for (i = 0; i < out->elems; i++) {
		uint16_t got, want;

		memcpy(&got, out->data + 2 * i, sizeof got);
		memcpy(&want, out->want + 2 * i, sizeof want);
		if (got == 0x7fc0 && want == 0x7fff)
			memcpy(out->data + 2 * i, &want, sizeof want);
	}
}

/* The last gather_lens entries of each request, as the contract says that it is
 * to be asked for. */
static int
ask_for_requests(golden_case *c, spmla_kv_gather_args *a, int64_t m)
{
	const golden_tensor *lens = golden_need(c, "seq_lens", GOLDEN_I32, 1);
	const golden_tensor *some = golden_find(c, "gather_lens");
	const int64_t offset = param_of(c, "offset");
	int32_t *starts, *ends, *first;
	int64_t b, n = a->requests;

	if (!golden_has(c, lens, (const int64_t[]){n}))
		return 0;
	if (some) {
		some = golden_need(c, "gather_lens", GOLDEN_I32, 1);
		if (!golden_has(c, some, (const int64_t[]){n}))
			return 0;
	}
	starts = golden_scratch(c, (uint64_t)n * sizeof *starts);
	ends = golden_scratch(c, (uint64_t)n * sizeof *ends);
	first = golden_scratch(c, (uint64_t)n * sizeof *first);
	if (!starts || !ends || !first)
		return 0;
	for (b = 0; b < n; b++) {
		const int32_t len = golden_i32(lens, b, 0);
		const int32_t take = some ? golden_i32(some, b, 0) : len;

		starts[b] = (int32_t)(b * m + (offset < 0 ? 0 : offset));
		ends[b] = starts[b] + take;
		first[b] = len - take;
	}
	a->workspace_starts = starts;
	a->workspace_ends = ends;
	a->seq_starts = first;
	return 1;
}

static golden_verdict
run_gather(golden_case *c)
{
	const golden_tensor *table =
		golden_need(c, "block_table", GOLDEN_I32, 2);
	golden_tensor *out = golden_need(c, "out", GOLDEN_BF16, 3);
	spmla_kv_gather_args a = {0};
	golden_verdict v;

	if (!golden_has(c, table, (const int64_t[]){-1, -1}) ||
	    !golden_has(c, out, (const int64_t[]){table->shape[0], -1, DIM}) ||
	    !v4_cache(c, "k_cache", param_of(c, "bs"), &a.cache))
		return GOLDEN_FAILED;
	if (out->shape[0] > 1 &&
	    out->strides[0] != out->shape[1] * out->strides[1])
		return golden_fail(c, "out has gaps between requests");
	a.struct_bytes = (uint32_t)sizeof a;
	a.requests = (uint32_t)table->shape[0];
	a.keys = (uint32_t)(out->shape[0] * out->shape[1]);
	a.rows = a.requests;
	a.columns = (uint32_t)table->shape[1];
	a.table_stride_elems = (uint32_t)table->strides[0];
	a.block_table = golden_first(table);
	a.dst = golden_first(out);
	a.dst_stride_elems = out->strides[1];
	if (!ask_for_requests(c, &a, out->shape[1]))
		return GOLDEN_FAILED;
	v = golden_called(c, spmla_kv_gather(c->ctx, &a, NULL));
	if (v == GOLDEN_RAN)
		accept_nan(out);
	return v;
}

static golden_verdict
run_gather_slots(golden_case *c)
{
	const golden_tensor *slots = golden_need(c, "indices", GOLDEN_I32, 1);
	golden_tensor *out = golden_need(c, "out", GOLDEN_BF16, 2);
	spmla_kv_gather_args a = {0};
	golden_verdict v;

	if (!golden_has(c, slots, (const int64_t[]){-1}) ||
	    !golden_has(c, out, (const int64_t[]){slots->shape[0], DIM}) ||
	    !v4_cache(c, "cache", param_of(c, "bs"), &a.cache))
		return GOLDEN_FAILED;
	a.struct_bytes = (uint32_t)sizeof a;
	a.keys = (uint32_t)slots->shape[0];
	a.slots = golden_first(slots);
	a.dst = golden_first(out);
	a.dst_stride_elems = out->strides[0];
	v = golden_called(c, spmla_kv_gather(c->ctx, &a, NULL));
	if (v == GOLDEN_RAN)
		accept_nan(out);
	return v;
}

/* ---- qnorm, rope, insert ----------------------------------------------- */

/* Whether two codes, or two bytes of bf16 values, are neighbours. */
static int
a_step_apart(int is_code, uint8_t got, uint8_t want)
{
	if (is_code && ((got ^ want) & 128))
		return (got & 127) + (want & 127) ==
		       1; /* on either side of 0 */
	return got - want == 1 || want - got == 1;
}

/* The rotation may be fused, so a code or a bf16 value may be a step off, on
 * one in a thousand. What is accepted becomes the kernel's; then the cache is
 * compared in every byte. */
static golden_verdict
accept_cache(golden_case *c, golden_tensor *t, const spmla_cache *cache,
	     const int64_t *slots, uint32_t tokens)
{
	uint32_t n, i;

	t->accepted = 0;
	t->accepted_why = "a step off";
	t->rule = GOLDEN_EXACT;
	for (n = 0; n < tokens; n++) {
		const uint64_t slot = (uint64_t)slots[n];
		uint64_t at;

		if (slots[n] < 0)
			continue;
		at = (uint64_t)t->offset +
		     slot / cache->entries_per_page * cache->page_stride_bytes +
		     slot % cache->entries_per_page * ENTRY;
		for (i = 0; i < ENTRY; i++) {
			uint8_t *got = t->data + at + i;
			const uint8_t want = t->want[at + i];

			if (*got == want)
				continue;
			if (!a_step_apart(i < NOPE, *got, want))
				continue; /* the comparison will say so */
			t->accepted++;
			*got = want;
		}
	}
	if (t->accepted > 1 + (uint64_t)tokens * DIM / 1000)
		return golden_fail(c, "%s: a step off in %d places", t->name,
				   (int)t->accepted);
	return GOLDEN_RAN;
}

static int
take_queries(golden_case *c, spmla_qnorm_rope_kv_insert_args *a)
{
	const golden_tensor *q = golden_need(c, "q", GOLDEN_BF16, 3);
	golden_floats table;
	double eps;

	if (!golden_has(c, q, (const int64_t[]){-1, -1, DIM}) ||
	    !golden_take_table(c, "cos_sin_cache", 64, &table))
		return 0;
	if (!golden_need_param(c, "eps", &eps))
		return 0;
	a->tokens = (uint32_t)q->shape[0];
	a->heads = a->padded_heads = (uint32_t)q->shape[1];
	a->cos_sin_rows = (uint32_t)table.shape[0];
	a->norm_eps = (float)eps;
	a->q = golden_first(q);
	a->q_out = golden_first(q);
	a->q_token_stride_elems = a->q_out_token_stride_elems = q->strides[0];
	a->q_head_stride_elems = a->q_out_head_stride_elems = q->strides[1];
	a->positions = golden_positions(c, "positions", a->tokens,
					&a->positions_dtype);
	a->cos_sin = table.first;
	a->cos_sin_dtype = table.dtype;
	return a->positions != NULL;
}

static golden_verdict
run_front(golden_case *c)
{
	const golden_tensor *kv = golden_need(c, "kv", GOLDEN_BF16, 2);
	const golden_tensor *slots = golden_find(c, "slot_mapping");
	spmla_qnorm_rope_kv_insert_args a = {0};
	golden_verdict v;

	a.struct_bytes = (uint32_t)sizeof a;
	a.slot_mapping = i64_of(c, "slot_mapping", 0);
	if (!golden_has(c, kv, (const int64_t[]){-1, DIM}) || !a.slot_mapping ||
	    !take_queries(c, &a) ||
	    !v4_cache(c, "swa_kv_cache", param_of(c, "bs"), &a.cache))
		return GOLDEN_FAILED;
	if (slots->shape[0] > kv->shape[0])
		return golden_fail(c, "more slots than rows");
	a.kv_tokens = (uint32_t)slots->shape[0];
	a.kv = golden_first(kv);
	a.kv_stride_elems = kv->strides[0];
	v = golden_called(c, spmla_qnorm_rope_kv_insert(c->ctx, &a, NULL));
	if (v == GOLDEN_RAN)
		v = accept_cache(c, golden_find(c, "swa_kv_cache"), &a.cache,
				 a.slot_mapping, a.kv_tokens);
	return v;
}

const golden_op golden_v4_front_ops[] = {
	{"quantize_and_insert_k_cache", run_insert},
	{"dequantize_and_gather_k_cache", run_gather},
	{"dequant_gather_slots", run_gather_slots},
	{"xpu_qnorm_rope_kv_insert", run_front},
	{NULL, NULL}};
