/* SPDX-License-Identifier: Apache-2.0
 *
 * See cudart_rig.h: a kernel of the engine's on another stream holds most of the
 * multiprocessors while sparse_decode has blocks that wait for each other. The
 * call must end while they are held, with the bits that it has undisturbed.
 */
#include "spmla/decode_parts.h"
#include "spmla/ops/sparse_decode.h"
#include "tests/gpu/cudart_rig.h"

#include <string.h>
#include <unistd.h>
#include <vector>

enum {
	FREE = 24, /* multiprocessors that are not held */
	HELD_BYTES =
		200 * 1024, /* shared memory; it leaves no room for others */
	PATIENCE_MS = 10000,
	DECODE_BLOCKS = 128, /* of each call, if there is room for so many */
	KV_PAGE = 64,
	KV_PAGES = 64,
	WORKSPACE = 4 << 20
};

/* The calls whose blocks wait for each other. In parts it is the 16 splits of a
 * token that do, to add each other up. */
static const struct way {
	const char *name;
	uint32_t layout, tokens, keys, in_parts;
} ways[] = {
	{"few tokens of V3.2", SPMLA_LAYOUT_FP8_DS_MLA, 8, 2048, 0},
	{"few tokens of V4", SPMLA_LAYOUT_V4_FP8, 16, 640, 0},
	{"parts", SPMLA_LAYOUT_FP8_DS_MLA, 8, 2048, 1},
};

/* What a call gives, and its workspace, which is 0 again. */
typedef struct result {
	std::vector<uint16_t> out;
	std::vector<float> lse;
	std::vector<uint32_t> workspace;
} result;

typedef struct call {
	const struct way *way;
	spmla_sparse_decode_args a;
	uint64_t heads; /* of all tokens */
	void *parts;    /* NULL: none */
	uint64_t parts_bytes;
	cudaStream_t other;
	/* In the host's memory, which kernels see: how many blocks hold, and a
	 * 1 that ends them. */
	uint32_t *held, *released;
} call;

__global__ static void
hold(uint32_t *held, const volatile uint32_t *released)
{
	atomicAdd_system(held, 1);
	while (!*released)
		__nanosleep(1000);
}

static void *
device_copy(const void *from, size_t bytes)
{
	void *to = NULL;

	CUDA(cudaMalloc(&to, bytes));
	CUDA(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
	return to;
}

static uint32_t
next(uint64_t *rng)
{
	*rng = *rng * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(*rng >> 33);
}

/* bf16 between -1 and 1. */
static std::vector<uint16_t>
values(uint64_t *rng, size_t count)
{
	std::vector<uint16_t> x(count);

	for (uint16_t &v : x)
		v = (uint16_t)((next(rng) & 0x80ffu) | 0x3e00u);
	return x;
}

/* Random rows, without NaN. */
static spmla_cache
make_cache(uint32_t layout, uint64_t *rng)
{
	const uint32_t v4 = layout == SPMLA_LAYOUT_V4_FP8;
	const uint32_t codes = v4 ? 448 : 512, row = v4 ? 576 : 656;
	const float scales[4] = {0.25f, 0.5f, 0.125f, 0.75f};
	spmla_cache c = SPMLA_CACHE_INIT;

	c.layout = layout;
	c.entries_per_page = KV_PAGE;
	c.pages = KV_PAGES;
	c.page_stride_bytes =
		(spmla_layout_page_bytes(layout, KV_PAGE) + 575) / 576 * 576;

	std::vector<uint8_t> pages(KV_PAGES * c.page_stride_bytes);

	for (uint32_t i = 0; i < KV_PAGES * KV_PAGE; i++) {
		uint8_t *page = &pages[i / KV_PAGE * c.page_stride_bytes];
		uint8_t *at = page + i % KV_PAGE * row;
		const std::vector<uint16_t> rope = values(rng, 64);

		for (uint32_t d = 0; d < codes; d++)
			at[d] = (uint8_t)(next(rng) & 0xbf);
		memcpy(at + row - 128, rope.data(), 128);
		if (!v4)
			memcpy(at + codes, scales, sizeof scales);
		for (uint32_t d = 0; v4 && d < 7; d++)
			page[KV_PAGE * row + i % KV_PAGE * 8 + d] =
				(uint8_t)(124 + next(rng) % 4);
	}
	c.base = device_copy(pages.data(), pages.size());
	return c;
}

static void
make_call(call *c, const struct way *w, uint64_t *rng)
{
	const uint32_t v4 = w->layout == SPMLA_LAYOUT_V4_FP8;
	const uint32_t dim = v4 ? SPMLA_V4_DIM : SPMLA_MLA_DIM;
	std::vector<int32_t> slots(w->tokens * w->keys);
	std::vector<uint16_t> q = values(rng, (size_t)w->tokens * HEADS * dim);
	spmla_sparse_decode_args *a = &c->a;

	for (int32_t &slot : slots)
		slot = (int32_t)(next(rng) % (KV_PAGE * KV_PAGES));
	memset(c, 0, sizeof *c);
	c->way = w;
	c->heads = w->tokens * HEADS;
	a->struct_bytes = (uint32_t)sizeof *a;
	a->tokens = w->tokens;
	a->heads = HEADS;
	a->topk = w->keys;
	a->softmax_scale = 0.0417f;
	a->q = (uint16_t *)device_copy(q.data(), 2 * q.size());
	a->q_token_stride_elems = HEADS * dim;
	a->q_head_stride_elems = dim;
	a->slots = (int32_t *)device_copy(slots.data(), 4 * slots.size());
	a->slots_stride_elems = w->keys;
	CUDA(cudaMalloc((void **)&a->out, c->heads * SPMLA_MLA_LATENT * 2));
	a->out_token_stride_elems = HEADS * SPMLA_MLA_LATENT;
	a->out_head_stride_elems = SPMLA_MLA_LATENT;
	CUDA(cudaMalloc((void **)&a->lse, c->heads * 4));
	a->lse_token_stride_elems = HEADS;
	a->lse_head_stride_elems = 1;
	a->cache = make_cache(w->layout, rng);
	CUDA(cudaMalloc((void **)&a->workspace, WORKSPACE));
	CUDA(cudaMemset(a->workspace, 0, WORKSPACE));
	/* Parts need counts only; with more, few tokens would be one launch. */
	a->workspace_bytes = WORKSPACE;
	if (w->in_parts)
		a->workspace_bytes = 8 * w->tokens;
	CUDA(cudaStreamCreateWithFlags(&c->other, cudaStreamNonBlocking));
	CUDA(cudaHostAlloc((void **)&c->held, 4, cudaHostAllocMapped));
	CUDA(cudaHostAlloc((void **)&c->released, 4, cudaHostAllocMapped));
	/* What was set by the legacy stream is there. */
	CUDA(cudaDeviceSynchronize());
}

/* What the parts of the call need, with a workspace or without. */
static void
make_parts(rig *r, call *c)
{
	spmla_decode_parts by = SPMLA_DECODE_PARTS_INIT;

	if (!c->way->in_parts)
		return;
	SPMLA(r->graph.ctx,
	      spmla_decode_parts_choose(r->graph.ctx, &c->a, &by));
	c->parts_bytes = by.workspace_bytes;
	CUDA(cudaMalloc(&c->parts, c->parts_bytes));
}

/* Whether the flag has that value before patience ends. */
static uint32_t
becomes(const volatile uint32_t *flag, uint32_t value)
{
	for (uint32_t ms = 0; ms < PATIENCE_MS && *flag != value; ms++)
		usleep(1000);
	return *flag == value;
}

static uint32_t
ends(cudaStream_t stream)
{
	for (uint32_t ms = 0; ms < PATIENCE_MS; ms++) {
		const cudaError_t e = cudaStreamQuery(stream);

		if (e != cudaErrorNotReady)
			return e == cudaSuccess;
		(void)cudaGetLastError();
		usleep(1000);
	}
	return 0;
}

static result
take(const call *c)
{
	result r;

	r.out.resize(c->heads * SPMLA_MLA_LATENT);
	r.lse.resize(c->heads);
	r.workspace.resize(WORKSPACE / 4);
	CUDA(cudaMemcpy(r.out.data(), c->a.out, 2 * r.out.size(),
			cudaMemcpyDeviceToHost));
	CUDA(cudaMemcpy(r.lse.data(), c->a.lse, 4 * r.lse.size(),
			cudaMemcpyDeviceToHost));
	if (c->a.workspace)
		CUDA(cudaMemcpy(r.workspace.data(), c->a.workspace, WORKSPACE,
				cudaMemcpyDeviceToHost));
	return r;
}

static void
expect_zero(const call *c, const result *r)
{
	for (uint32_t word : r->workspace)
		if (word) {
			COMPLAIN("%s: the workspace has 0x%x", c->way->name,
				 word);
			return;
		}
}

static uint32_t
same(const result *a, const result *b)
{
	return !memcmp(a->out.data(), b->out.data(), 2 * a->out.size()) &&
	       !memcmp(a->lse.data(), b->lse.data(), 4 * a->lse.size());
}

/* One call while `blocks` multiprocessors are held, or none. */
static result
decode(rig *r, call *c, uint32_t blocks)
{
	spmla_ctx *ctx = r->graph.ctx;

	CUDA(cudaMemsetAsync(c->a.out, 0xff, c->heads * SPMLA_MLA_LATENT * 2,
			     r->stream));
	CUDA(cudaMemsetAsync(c->a.lse, 0xff, c->heads * 4, r->stream));
	CUDA(cudaStreamSynchronize(r->stream));
	*c->held = *c->released = 0;
	if (blocks)
		hold<<<blocks, 1, HELD_BYTES, c->other>>>(c->held, c->released);
	CUDA(cudaGetLastError());
	if (!becomes(c->held, blocks))
		COMPLAIN("%u of %u blocks hold", *c->held, blocks);
	SPMLA(ctx,
	      c->parts ? spmla_sparse_decode_in_parts(ctx, &c->a, c->parts,
						      c->parts_bytes, r->stream)
		       : spmla_sparse_decode(ctx, &c->a, r->stream));
	if (!ends(r->stream))
		COMPLAIN("%s: no end while %u multiprocessors are held",
			 c->way->name, blocks);
	*c->released = 1;
	if (!ends(c->other) || !ends(r->stream)) {
		COMPLAIN("%s: no end", c->way->name);
		_Exit(1); /* all else would wait for the kernel */
	}
	return take(c);
}

/* Few tokens and parts have other bits without a workspace: equal ones would
 * say that no block has waited. */
static void
expect_other_kernel(rig *r, call *c, const result *with)
{
	uint32_t *workspace = c->a.workspace;
	result without;

	c->a.workspace = NULL;
	without = decode(r, c, 0);
	c->a.workspace = workspace;
	if (same(&without, with))
		COMPLAIN("%s: the workspace is not used", c->way->name);
}

static void
hold_during(rig *r, call *c, const struct cudaDeviceProp *device)
{
	const uint32_t all = (uint32_t)device->multiProcessorCount;
	const result want = decode(r, c, 0);

	expect_zero(c, &want);
	if (device->major == 9 && all >= DECODE_BLOCKS)
		expect_other_kernel(r, c, &want);
	for (uint32_t i = 0; i < 8; i++) {
		/* 24, 12, 6 or 3 are free. */
		const uint32_t free = FREE >> i % 4;
		const result got = decode(r, c, all - free);

		expect_zero(c, &got);
		if (!same(&got, &want))
			COMPLAIN("%s: other bits with %u free", c->way->name,
				 free);
	}
}

void
held_multiprocessors(rig *r)
{
	struct cudaDeviceProp device;
	uint64_t rng = 20260131;

	rig_open(r);
	CUDA(cudaGetDeviceProperties(&device, 0));
	CUDA(cudaFuncSetAttribute(
		hold, cudaFuncAttributeMaxDynamicSharedMemorySize, HELD_BYTES));
	for (const struct way &w : ways) {
		call c;

		make_call(&c, &w, &rng);
		make_parts(r, &c);
		hold_during(r, &c, &device);
	}
	rig_close(r);
}
