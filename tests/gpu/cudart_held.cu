/* SPDX-License-Identifier: Apache-2.0
 *
 * See cudart_rig.h: a kernel of the engine's on another stream holds most of the
 * multiprocessors while sparse_decode has blocks that wait for each other. The
 * call must end while they are held, with the bits that it has undisturbed.
 */
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
	DECODES = 8, /* tokens: 128 blocks */
	KEYS = 2048,
	KV_PAGE = 64,
	KV_PAGES = 64,
	WORKSPACE = 4 << 20,
	OUT = DECODES * HEADS * SPMLA_MLA_LATENT
};

/* What a call gives, and its workspace, which is 0 again. */
typedef struct result {
	std::vector<uint16_t> out;
	std::vector<float> lse;
	std::vector<uint32_t> workspace;
} result;

typedef struct call {
	spmla_sparse_decode_args a;
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

static void
make_call(call *c, uint64_t *rng)
{
	const size_t row = SPMLA_FP8_DS_MLA_BYTES;
	const size_t rows = (size_t)KV_PAGE * KV_PAGES;
	const float scales[4] = {0.25f, 0.5f, 0.125f, 0.75f};
	std::vector<uint8_t> cache(rows * row);
	std::vector<int32_t> slots(DECODES * KEYS);
	spmla_sparse_decode_args *a = &c->a;
	std::vector<uint16_t> q =
		values(rng, (size_t)DECODES * HEADS * SPMLA_MLA_DIM);

	for (size_t i = 0; i < rows; i++) {
		uint8_t *at = &cache[i * row];
		const std::vector<uint16_t> rope = values(rng, 64);

		for (uint32_t d = 0; d < 512; d++)
			at[d] = (uint8_t)(next(rng) & 0xbf); /* no NaN */
		memcpy(at + 512, scales, sizeof scales);
		memcpy(at + 528, rope.data(), 128);
	}
	for (int32_t &slot : slots)
		slot = (int32_t)(next(rng) % rows);
	memset(c, 0, sizeof *c);
	a->struct_bytes = (uint32_t)sizeof *a;
	a->tokens = DECODES;
	a->heads = HEADS;
	a->topk = KEYS;
	a->softmax_scale = 0.0417f;
	a->q = (uint16_t *)device_copy(q.data(), 2 * q.size());
	a->q_token_stride_elems = HEADS * SPMLA_MLA_DIM;
	a->q_head_stride_elems = SPMLA_MLA_DIM;
	a->slots = (int32_t *)device_copy(slots.data(), 4 * slots.size());
	a->slots_stride_elems = KEYS;
	CUDA(cudaMalloc((void **)&a->out, 2 * OUT));
	a->out_token_stride_elems = HEADS * SPMLA_MLA_LATENT;
	a->out_head_stride_elems = SPMLA_MLA_LATENT;
	CUDA(cudaMalloc((void **)&a->lse, 4 * DECODES * HEADS));
	a->lse_token_stride_elems = HEADS;
	a->lse_head_stride_elems = 1;
	a->cache.struct_bytes = (uint32_t)sizeof a->cache;
	a->cache.layout = SPMLA_LAYOUT_FP8_DS_MLA;
	a->cache.entries_per_page = KV_PAGE;
	a->cache.pages = KV_PAGES;
	a->cache.page_stride_bytes = KV_PAGE * row;
	a->cache.base = device_copy(cache.data(), cache.size());
	CUDA(cudaMalloc((void **)&a->workspace, WORKSPACE));
	CUDA(cudaMemset(a->workspace, 0, WORKSPACE));
	a->workspace_bytes = WORKSPACE;
	CUDA(cudaStreamCreateWithFlags(&c->other, cudaStreamNonBlocking));
	CUDA(cudaHostAlloc((void **)&c->held, 4, cudaHostAllocMapped));
	CUDA(cudaHostAlloc((void **)&c->released, 4, cudaHostAllocMapped));
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

	r.out.resize(OUT);
	r.lse.resize(DECODES * HEADS);
	r.workspace.resize(WORKSPACE / 4);
	CUDA(cudaMemcpyAsync(r.out.data(), c->a.out, 2 * OUT,
			     cudaMemcpyDeviceToHost, c->other));
	CUDA(cudaMemcpyAsync(r.lse.data(), c->a.lse, 4 * r.lse.size(),
			     cudaMemcpyDeviceToHost, c->other));
	CUDA(cudaMemcpyAsync(r.workspace.data(), c->a.workspace, WORKSPACE,
			     cudaMemcpyDeviceToHost, c->other));
	CUDA(cudaStreamSynchronize(c->other));
	CUDA(cudaMemset(c->a.out, 0xff, 2 * OUT));
	return r;
}

static void
expect_zero(const result *r)
{
	for (uint32_t word : r->workspace)
		if (word) {
			COMPLAIN("the workspace has 0x%x", word);
			return;
		}
}

/* One call while `blocks` multiprocessors are held, or none. */
static result
decode(rig *r, call *c, uint32_t blocks)
{
	*c->held = *c->released = 0;
	if (blocks)
		hold<<<blocks, 1, HELD_BYTES, c->other>>>(c->held, c->released);
	CUDA(cudaGetLastError());
	if (!becomes(c->held, blocks))
		COMPLAIN("%u of %u blocks hold", *c->held, blocks);
	SPMLA(r->graph.ctx,
	      spmla_sparse_decode(r->graph.ctx, &c->a, r->stream));
	if (!ends(r->stream))
		COMPLAIN("no end while %u multiprocessors are held", blocks);
	*c->released = 1;
	CUDA(cudaStreamSynchronize(r->stream));
	return take(c);
}

void
held_multiprocessors(rig *r)
{
	struct cudaDeviceProp device;
	uint64_t rng = 20260131;
	result want, got;
	call c;

	rig_open(r);
	CUDA(cudaGetDeviceProperties(&device, 0));
	CUDA(cudaFuncSetAttribute(
		hold, cudaFuncAttributeMaxDynamicSharedMemorySize, HELD_BYTES));
	make_call(&c, &rng);
	want = decode(r, &c, 0);
	expect_zero(&want);
	for (uint32_t i = 0; i < 8; i++) {
		/* 24, 12, 6 or 3 are free. */
		const uint32_t free = FREE >> i % 4;

		got = decode(r, &c,
			     (uint32_t)device.multiProcessorCount - free);
		expect_zero(&got);
		if (memcmp(got.out.data(), want.out.data(), 2 * OUT) ||
		    memcmp(got.lse.data(), want.lse.data(),
			   4 * want.lse.size()))
			COMPLAIN("other bits with %u free", free);
	}
	rig_close(r);
}
