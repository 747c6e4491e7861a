/* SPDX-License-Identifier: Apache-2.0
 *
 * Adapters of sparse attention as the ROCm and XPU kernels of V4 have it.
 * Ragged lists are handed on as they are. What is peculiar to rows is said in
 * the library's own terms: slots outside the cache, which the ROCm kernels pass
 * over, become -1, and a -1 that the XPU kernel takes for a key of zeros
 * becomes the slot of a row of zeros behind the cache.
 */
#include "tests/golden/golden_v4.h"

#include <string.h>

/* The list of one set of keys, rows or ragged. */
typedef struct key_list {
	const int32_t *slots; /* [tokens][width], or [width] */
	const int32_t *lens;  /* rows */
	const int32_t *indptr;
	uint32_t width;
	uint32_t outside; /* entries of a ragged list that are not -1 and no
			   * slot */
} key_list;

typedef struct key_names {
	const char *dense, *lens, *ragged, *indptr;
} key_names;

/* A ragged list as it is, instead of the rows that it was made of. */
static int
take_ragged(golden_case *c, const key_names *n, uint32_t tokens, int64_t slots,
	    key_list *list)
{
	const golden_tensor *ragged = golden_need(c, n->ragged, GOLDEN_I32, 1);
	const golden_tensor *indptr = golden_need(c, n->indptr, GOLDEN_I32, 1);
	uint32_t i;

	if (!golden_has(c, ragged, (const int64_t[]){-1}) ||
	    !golden_has(c, indptr, (const int64_t[]){(int64_t)tokens + 1}))
		return 0;
	golden_leave_out(c, n->dense);
	golden_leave_out(c, n->lens);
	list->slots = golden_first(ragged);
	list->indptr = golden_first(indptr);
	list->width = (uint32_t)ragged->shape[0];
	for (i = 0; i < list->width && (int32_t)i < list->indptr[tokens]; i++)
		list->outside += list->slots[i] < -1 || list->slots[i] >= slots;
	return 1;
}

/* A list from the tensors, ragged where the case has that. Otherwise it has
 * rows, whole ones without lengths, and entries outside [0, slots) become
 * `none`. */
static int
take_list(golden_case *c, const key_names *n, uint32_t tokens, int64_t slots,
	  int32_t none, key_list *list)
{
	const golden_tensor *dense, *lens;
	uint32_t t, k;
	int32_t *out;

	memset(list, 0, sizeof *list);
	if (golden_find(c, n->ragged) || golden_find(c, n->indptr))
		return take_ragged(c, n, tokens, slots, list);
	dense = golden_need(c, n->dense, GOLDEN_I32, 3);
	lens = golden_find(c, n->lens);
	if (lens)
		lens = golden_need(c, n->lens, GOLDEN_I32, 1);
	if (!golden_has(c, dense, (const int64_t[]){tokens, 1, -1}) ||
	    (golden_find(c, n->lens) &&
	     !golden_has(c, lens, (const int64_t[]){tokens})))
		return 0;
	list->width = (uint32_t)dense->shape[2];
	list->lens = lens ? golden_first(lens) : NULL;
	list->slots = out =
		golden_scratch(c, (uint64_t)tokens * list->width * 4);
	if (!out)
		return 0;
	for (t = 0; t < tokens; t++) {
		const int32_t *in = (const int32_t *)golden_first(dense) +
				    t * dense->strides[0];

		for (k = 0; k < list->width; k++, out++) {
			*out = !lens || (int32_t)k < list->lens[t] ? in[k] : -1;
			if (*out < 0 || *out >= slots)
				*out = none;
		}
	}
	return 1;
}

/* The pages of a case and, behind them, one of zeros. */
static int
take_cache(golden_case *c, const char *name, spmla_cache *cache)
{
	const golden_tensor *t = golden_need(c, name, GOLDEN_U8, 3);
	uint64_t bytes;
	uint8_t *copy;

	if (!golden_has(c, t, (const int64_t[]){-1, -1, SPMLA_V4_FP8_BYTES}))
		return 0;
	*cache = (spmla_cache)SPMLA_CACHE_INIT;
	cache->layout = SPMLA_LAYOUT_V4_FP8;
	cache->entries_per_page = (uint32_t)t->shape[1];
	cache->pages = (uint32_t)t->shape[0] + 1;
	cache->page_stride_bytes = (uint64_t)t->strides[0];
	bytes = (uint64_t)t->shape[0] * cache->page_stride_bytes;
	copy = golden_scratch(c, bytes + cache->page_stride_bytes + 16);
	if (!copy)
		return 0;
	copy += (16 - (uintptr_t)copy % 16) % 16;
	if (bytes > t->elems - (uint64_t)t->offset)
		bytes = t->elems - (uint64_t)t->offset;
	memcpy(copy, golden_first(t), bytes);
	cache->base = copy;
	return 1;
}

/* Slots of a cache without the page of zeros. */
static int64_t
slots_of(const spmla_cache *cache)
{
	return (int64_t)(cache->pages - 1) * cache->entries_per_page;
}

/* The second cache, where the case has one. `zero`: as for run_decode. */
static int
take_extra(golden_case *c, uint32_t zero, spmla_sparse_decode_args *a,
	   uint32_t *outside)
{
	static const key_names names = {"topk_indices", "topk_lens",
					"topk_ragged_indices",
					"topk_ragged_indptr"};
	key_list list;
	int64_t slots;

	if (!golden_find(c, "kv_cache"))
		return 1;
	if (!take_cache(c, "kv_cache", &a->extra_cache))
		return 0;
	slots = slots_of(&a->extra_cache);
	if (!take_list(c, &names, a->tokens, slots, zero ? (int32_t)slots : -1,
		       &list))
		return 0;
	a->extra_topk = list.width;
	a->extra_slots = list.slots;
	a->extra_slots_stride_elems = list.width;
	a->extra_topk_lens = list.lens;
	a->extra_indptr = list.indptr;
	a->extra_cache.pages -= list.indptr != NULL;
	*outside += list.outside;
	return 1;
}

/* zero: a slot that is none is a key of zeros. */
static golden_verdict
run_decode(golden_case *c, const char *cache, const char *output,
	   const char *scale_name, const golden_tensor *sink, uint32_t zero)
{
	static const key_names names = {"swa_indices", "swa_lens",
					"swa_ragged_indices",
					"swa_ragged_indptr"};
	const golden_tensor *q = golden_need(c, "q", GOLDEN_BF16, 3);
	const golden_tensor *out = golden_need(c, output, GOLDEN_BF16, 3);
	spmla_sparse_decode_args a = {0};
	key_list list;
	uint32_t outside = 0;
	int64_t slots;
	double scale;

	if (!golden_has(c, q, (const int64_t[]){-1, -1, SPMLA_V4_DIM}) ||
	    !golden_has(c, out, q->shape) || !take_cache(c, cache, &a.cache))
		return GOLDEN_FAILED;
	if (!golden_need_param(c, scale_name, &scale))
		return GOLDEN_FAILED;
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = (uint32_t)q->shape[0];
	a.heads = (uint32_t)q->shape[1];
	slots = slots_of(&a.cache);
	if (!take_list(c, &names, a.tokens, slots, zero ? (int32_t)slots : -1,
		       &list) ||
	    !take_extra(c, zero, &a, &outside))
		return GOLDEN_FAILED;
	if (sink && (sink->dtype != GOLDEN_F32 || sink->rank != 1 ||
		     sink->shape[0] < q->shape[1]))
		return golden_fail(c, "attn_sink is too short");
	a.topk = list.width;
	a.softmax_scale = (float)scale;
	a.q = golden_first(q);
	a.q_token_stride_elems = q->strides[0];
	a.q_head_stride_elems = q->strides[1];
	a.slots = list.slots;
	a.slots_stride_elems = list.width;
	a.topk_lens = list.lens;
	a.indptr = list.indptr;
	a.cache.pages -= list.indptr != NULL;
	a.attn_sink = sink ? golden_first(sink) : NULL;
	a.out = golden_first(out);
	a.out_token_stride_elems = out->strides[0];
	a.out_head_stride_elems = out->strides[1];
	return golden_reported(c, spmla_sparse_decode(c->ctx, &a, NULL),
			       SPMLA_FAULT_INDEX, outside + list.outside);
}

static golden_verdict
run_rocm_decode(golden_case *c)
{
	return run_decode(c, "swa_k_cache", "output", "scale",
			  golden_find(c, "attn_sink"), 0);
}

/* It takes a sink and does not look at it. */
static golden_verdict
run_xpu_decode(golden_case *c)
{
	golden_leave_out(c, "attn_sink");
	return run_decode(c, "swa_kv_cache", "out", "softmax_scale", NULL, 1);
}

static golden_verdict
run_rocm_prefill(golden_case *c)
{
	static const key_names names = {"indices", "topk_length",
					"ragged_indices", "ragged_indptr"};
	const golden_tensor *q = golden_need(c, "q", GOLDEN_BF16, 3);
	const golden_tensor *kv = golden_need(c, "kv", GOLDEN_BF16, 3);
	const golden_tensor *out = golden_need(c, "output", GOLDEN_BF16, 3);
	const golden_tensor *sink = golden_find(c, "attn_sink");
	spmla_sparse_prefill_args a = {0};
	key_list list;
	double scale;

	if (!golden_has(c, q, (const int64_t[]){-1, -1, SPMLA_V4_DIM}) ||
	    !golden_has(c, out, q->shape) ||
	    !golden_has(c, kv, (const int64_t[]){-1, 1, SPMLA_V4_DIM}))
		return GOLDEN_FAILED;
	if (!golden_need_param(c, "scale", &scale))
		return GOLDEN_FAILED;
	a.struct_bytes = (uint32_t)sizeof a;
	a.tokens = (uint32_t)q->shape[0];
	a.heads = (uint32_t)q->shape[1];
	a.dim = SPMLA_V4_DIM;
	if (!take_list(c, &names, a.tokens, INT32_MAX, -1, &list))
		return GOLDEN_FAILED;
	if (sink && (sink->dtype != GOLDEN_F32 || sink->rank != 1 ||
		     sink->shape[0] < q->shape[1]))
		return golden_fail(c, "attn_sink is too short");
	a.topk = list.width;
	a.kv_rows = (uint32_t)kv->shape[0];
	a.softmax_scale = (float)scale;
	a.q = golden_first(q);
	a.q_token_stride_elems = q->strides[0];
	a.q_head_stride_elems = q->strides[1];
	a.kv = golden_first(kv);
	a.kv_stride_elems = kv->strides[0];
	a.indices = list.slots;
	a.indices_stride_elems = list.width;
	a.topk_lens = list.lens;
	a.indptr = list.indptr;
	a.attn_sink = sink ? golden_first(sink) : NULL;
	a.out = golden_first(out);
	a.out_token_stride_elems = out->strides[0];
	a.out_head_stride_elems = out->strides[1];
	return golden_called(c, spmla_sparse_prefill(c->ctx, &a, NULL));
}

/* clang-format off: a line an op */
const golden_op golden_v4_attend_ops[] = {
	{"rocm_sparse_decode", run_rocm_decode},
	{"rocm_sparse_prefill", run_rocm_prefill},
	{"xpu_sparse_decode_fp8", run_xpu_decode},
	{NULL, NULL},
};
/* clang-format on */
