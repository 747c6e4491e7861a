/* SPDX-License-Identifier: Apache-2.0
 *
 * The adapter of sparse_decode: FlashMLA's sparse decode of V3.2 rows (d 576)
 * and V4 rows (d 512), the latter with a second cache.
 */
#include "tests/golden/golden.h"

/* A stride of a dimension of one element may be anything; the library wants
 * one that could be. */
static int64_t
stride_of(const golden_tensor *t, uint32_t dim, int64_t least)
{
	return t->shape[dim] == 1 && t->strides[dim] < least ? least
							     : t->strides[dim];
}

/* Lengths by batch element as lengths by token, [b][tokens]; NULL without such
 * a tensor, *ok 0 without memory. */
static const int32_t *
lens_of(golden_case *c, const char *name, uint32_t tokens, int *ok)
{
	const golden_tensor *lens = golden_find(c, name);
	int32_t *per_token;
	int64_t b;
	uint32_t t;

	if (!lens)
		return NULL;
	per_token = golden_scratch(c, lens->count * tokens * sizeof *per_token);
	if (!per_token)
		*ok = 0;
	for (b = 0; per_token && b < lens->shape[0]; b++)
		for (t = 0; t < tokens; t++)
			per_token[b * tokens + t] = golden_i32(lens, b, 0);
	return per_token;
}

/* One batch element is a call: lse is [b][h][s_q], so the tokens of two
 * elements have no common stride. */
static spmla_sparse_decode_args
element_of(golden_case *c, spmla_sparse_decode_args a, int64_t b)
{
	const golden_tensor *q = golden_find(c, "q");
	const golden_tensor *indices = golden_find(c, "indices");
	const golden_tensor *extra = golden_find(c, "extra_indices");
	const golden_tensor *out = golden_find(c, "out");
	const golden_tensor *lse = golden_find(c, "lse");

	if (a.topk_lens)
		a.topk_lens += b * a.tokens;
	if (a.extra_topk_lens)
		a.extra_topk_lens += b * a.tokens;
	a.q = (const uint16_t *)golden_first(q) + b * q->strides[0];
	a.slots = (const int32_t *)golden_first(indices) +
		  b * indices->strides[0];
	if (extra)
		a.extra_slots = (const int32_t *)golden_first(extra) +
				b * extra->strides[0];
	a.out = (uint16_t *)golden_first(out) + b * out->strides[0];
	a.lse = (float *)golden_first(lse) + b * lse->strides[0];
	return a;
}

/* The CPU and Hopper are as near to exact results as FlashMLA is. The last
 * rounding, to bf16, makes up most of the error; the limits are for its luck. */
static int
find_exact(golden_case *c, const spmla_sparse_decode_args *a, int64_t batch)
{
	golden_tensor *both[2] = {golden_find(c, "out"), golden_find(c, "lse")};
	const uint64_t entries = a->topk + a->extra_topk;
	const spmla_plan *plan = spmla_ctx_plan(c->ctx);
	const uint32_t is_cpu = plan->device.kind == SPMLA_BACKEND_CPU;
	const uint32_t is_hopper = plan->device.kind == SPMLA_BACKEND_CUDA &&
				   plan->device.arch == 90;
	/* To bf16: 2^-8 for weights, 2^-9 for values. */
	const double rounding = is_hopper ? 0 : 0x1p-8 + (is_cpu ? 0 : 0x1p-9);
	double *work;
	int64_t b;
	int i;

	if (is_cpu || is_hopper) {
		both[0]->error_limit = 1.1;
		both[0]->rms_limit = 1.005;
	}
	work = golden_scratch(c, entries * (1 + SPMLA_MLA_DIM) * sizeof *work);
	for (i = 0; i < 2; i++) {
		both[i]->slack =
			golden_scratch(c, both[i]->count * sizeof *work);
		both[i]->exact =
			golden_scratch(c, both[i]->count * sizeof *work);
		both[i]->slack_why = "FlashMLA is off attention in double";
		if (!work || !both[i]->slack || !both[i]->exact)
			return 0;
	}
	for (b = 0; b < batch; b++) {
		const spmla_sparse_decode_args of = element_of(c, *a, b);

		golden_decode_slack(&of, both[0], both[1], b, rounding, work);
	}
	return 1;
}

static int
has_lens(golden_case *c, const char *name, int64_t b)
{
	return !golden_find(c, name) ||
	       golden_has(c, golden_need(c, name, GOLDEN_I32, 1),
			  (const int64_t[]){b});
}

static int
decode_shapes(golden_case *c, const golden_tensor *q)
{
	const int64_t b = q->shape[0], s_q = q->shape[1], h = q->shape[2];
	const golden_tensor *lse = golden_need(c, "lse", GOLDEN_F32, 3);
	const golden_tensor *sink = golden_find(c, "attn_sink");

	if (!golden_has(c, golden_find(c, "indices"),
			(const int64_t[]){b, s_q, -1}) ||
	    !golden_has(c, golden_find(c, "out"),
			(const int64_t[]){b, s_q, h, SPMLA_MLA_LATENT}))
		return 0;
	if (lse->shape[0] != b || lse->shape[1] != h || lse->shape[2] != s_q) {
		(void)golden_fail(c, "lse is not [b][h][s_q]");
		return 0;
	}
	if (sink && !golden_has(c, golden_need(c, "attn_sink", GOLDEN_F32, 1),
				(const int64_t[]){h}))
		return 0;
	return has_lens(c, "topk_length", b) &&
	       has_lens(c, "extra_topk_length", b);
}

/* [pages][entries][584], where the last two strides say nothing: values of all
 * entries come first. */
static int
v4_cache(golden_case *c, const char *name, spmla_cache *cache)
{
	const golden_tensor *t = golden_need(c, name, GOLDEN_U8, 3);

	if (!golden_has(c, t, (const int64_t[]){-1, -1, SPMLA_V4_FP8_BYTES}))
		return 0;
	*cache = (spmla_cache)SPMLA_CACHE_INIT;
	cache->layout = SPMLA_LAYOUT_V4_FP8;
	cache->entries_per_page = (uint32_t)t->shape[1];
	cache->pages = (uint32_t)t->shape[0];
	cache->page_stride_bytes = (uint64_t)t->strides[0];
	cache->base = golden_first(t);
	return 1;
}

static int
take_caches(golden_case *c, int64_t dim, spmla_sparse_decode_args *a)
{
	const golden_tensor *extra = golden_find(c, "extra_indices");

	if (dim == SPMLA_MLA_DIM && !extra)
		return golden_cache(c, "kv_cache", SPMLA_LAYOUT_FP8_DS_MLA,
				    &a->cache);
	if (dim != SPMLA_V4_DIM) {
		(void)golden_fail(c, "q is of dim %d", (int)dim);
		return 0;
	}
	if (!v4_cache(c, "kv_cache", &a->cache))
		return 0;
	if (!extra)
		return 1;
	extra = golden_need(c, "extra_indices", GOLDEN_I32, 3);
	if (!golden_has(c, extra, (const int64_t[]){-1, a->tokens, -1}))
		return 0;
	a->extra_topk = (uint32_t)extra->shape[2];
	a->extra_slots_stride_elems = stride_of(extra, 1, extra->shape[2]);
	return v4_cache(c, "extra_kv_cache", &a->extra_cache);
}

golden_verdict
golden_run_sparse_decode(golden_case *c)
{
	const golden_tensor *q = golden_need(c, "q", GOLDEN_BF16, 4);
	const golden_tensor *indices = golden_need(c, "indices", GOLDEN_I32, 3);
	const golden_tensor *out = golden_need(c, "out", GOLDEN_BF16, 4);
	const golden_tensor *lse = golden_need(c, "lse", GOLDEN_F32, 3);
	const golden_tensor *sink = golden_find(c, "attn_sink");
	spmla_sparse_decode_args a = {0};
	golden_verdict v = GOLDEN_RAN;
	double scale;
	int64_t b;
	int ok = 1;

	if (!indices || !out || !lse ||
	    !golden_has(c, q, (const int64_t[]){-1, -1, -1, -1}))
		return GOLDEN_FAILED;
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = (uint32_t)q->shape[1];
	if (!decode_shapes(c, q) || !take_caches(c, q->shape[3], &a))
		return GOLDEN_FAILED;
	if (!golden_need_param(c, "softmax_scale", &scale))
		return GOLDEN_FAILED;
	a.heads = (uint32_t)q->shape[2];
	a.topk = (uint32_t)indices->shape[2];
	a.softmax_scale = (float)scale;
	a.q_token_stride_elems = stride_of(q, 1, q->shape[3]);
	a.q_head_stride_elems = stride_of(q, 2, q->shape[3]);
	a.slots_stride_elems = stride_of(indices, 1, indices->shape[2]);
	a.attn_sink = sink ? golden_first(sink) : NULL;
	a.out_token_stride_elems = stride_of(out, 1, SPMLA_MLA_LATENT);
	a.out_head_stride_elems = stride_of(out, 2, SPMLA_MLA_LATENT);
	a.lse_head_stride_elems = stride_of(lse, 1, 1);
	a.lse_token_stride_elems = stride_of(lse, 2, 1);
	a.topk_lens = lens_of(c, "topk_length", a.tokens, &ok);
	a.extra_topk_lens = lens_of(c, "extra_topk_length", a.tokens, &ok);
	if (!ok)
		return GOLDEN_FAILED;
	for (b = 0; v == GOLDEN_RAN && b < q->shape[0]; b++) {
		const spmla_sparse_decode_args of = element_of(c, a, b);

		v = golden_called(c, spmla_sparse_decode(c->ctx, &of, NULL));
	}
	if (v == GOLDEN_RAN && !find_exact(c, &a, q->shape[0]))
		return GOLDEN_FAILED;
	return v;
}
