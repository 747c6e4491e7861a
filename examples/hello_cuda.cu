/* SPDX-License-Identifier: Apache-2.0
 *
 * hello_v32.c on a CUDA device, beside an engine's own kernels: the runtime's
 * memory and stream, one capture for the kernels of both, the engine's launch.
 *
 *   nvcc hello_cuda.cu $(pkg-config --cflags --libs spmla)
 *
 * The engine's first kernel writes the token's key: 1 and 2 in turn. Queries
 * are zero, so all keys have the same weight, and after 100 steps the first
 * value of the result is 1.5. The engine's second kernel reads it. Exit status
 * 77, with SKIPPED, where there is no device.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "spmla/spmla_cuda.h"
#include "spmla/v32.h"

static void
check(spmla_status s)
{
	if (s != SPMLA_OK) {
		puts(spmla_status_name(s));
		exit(1);
	}
}

static void
check(cudaError_t e)
{
	if (e != cudaSuccess) {
		puts(cudaGetErrorString(e));
		exit(1);
	}
}

/* Zeros on the device. */
static void *
room(uint64_t bytes)
{
	void *p;

	check(cudaMalloc(&p, bytes));
	check(cudaMemset(p, 0, bytes));
	return p;
}

/* The engine's projection: the key depends on the token's place, which the
 * prologue has put on the device. */
__global__ void
project(const int32_t *context_lens, uint16_t *kv_c)
{
	kv_c[0] = context_lens[0] % 2 ? 0x3f80 : 0x4000; /* bf16 1 or 2 */
}

/* The engine's head. A bf16 is the upper half of a float. */
__global__ void
read_out(const uint16_t *out, float *result)
{
	*result = __uint_as_float((uint32_t)out[0] << 16);
}

static spmla_ctx *
open_context(const spmla_shape &shape)
{
	spmla_region regions[SPMLA_MEMORY_COUNT];
	spmla_plan plan;
	spmla_device device = SPMLA_DEVICE_INIT;
	spmla_config config;
	spmla_ctx *ctx;

	check(spmla_config_preset(&config, SPMLA_MODEL_V32));
	config.max_rows = 1;
	config.max_context_tokens = 4096;
	config.cache_layers = 1;
	config.groups[SPMLA_GROUP_MAIN].pool_pages = 64;
	config.bucket_count = 1;
	config.buckets[0] = shape;
	check(spmla_backend_query(&spmla_cuda, NULL, &device, NULL));
	check(spmla_plan_make(&plan, &config, &device, NULL));
	spmla_plan_regions(&plan, NULL, regions);
	for (spmla_region &r : regions)
		if (r.memory == SPMLA_MEMORY_DEVICE ||
		    r.memory == SPMLA_MEMORY_CACHE)
			r.base = room(r.bytes);
		else
			check(cudaMallocHost(&r.base, r.bytes));
	check(spmla_init(&ctx, &plan, &spmla_cuda, NULL, regions,
			 SPMLA_MEMORY_COUNT, NULL));
	return ctx;
}

static spmla_v32_layer
describe(spmla_ctx *ctx, uint16_t *kv_c, uint16_t *out)
{
	spmla_v32_layer layer;

	check(spmla_v32_layer_preset(ctx, 0, &layer));
	layer.kv_c = kv_c;
	layer.k_pe = (uint16_t *)room(64 * 2);
	layer.index_k = (uint16_t *)room(128 * 2);
	layer.index_q = (uint16_t *)room(64 * 128 * 2);
	layer.index_weights = room(64 * 2);
	layer.q = (uint16_t *)room(128 * 576 * 2);
	layer.out = out;
	return layer;
}

int
main()
{
	const spmla_shape shape = {1, 1, 1, 0};
	cudaGraphExec_t exec;
	cudaStream_t stream;
	cudaGraph_t graph;
	float result;
	int devices;

	if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
		puts("SKIPPED: no CUDA device");
		return 77;
	}
	check(cudaFree(NULL)); /* makes the context that SpMLA uses */
	check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

	spmla_ctx *ctx = open_context(shape);
	uint16_t *kv_c = (uint16_t *)room(512 * 2);
	uint16_t *out = (uint16_t *)room(128 * 512 * 2);
	float *sum = (float *)room(sizeof *sum);
	const spmla_v32_layer layer = describe(ctx, kv_c, out);
	const int32_t *lens =
		(int32_t *)spmla_view(ctx, SPMLA_BUF_CONTEXT_LENS, NULL);

	check(cudaDeviceSynchronize());
	check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	check(spmla_step_prologue(ctx, &shape, SPMLA_FROM_RING, stream));
	project<<<1, 1, 0, stream>>>(lens, kv_c);
	check(spmla_v32_attn(ctx, &layer, &shape, stream));
	read_out<<<1, 1, 0, stream>>>(out, sum);
	check(cudaStreamEndCapture(stream, &graph));
	check(cudaGraphInstantiate(&exec, graph, NULL, NULL, 0));

	for (uint32_t len = 1; len <= 100; len++) {
		/* Row 0 has one query token; its page of 64 tokens is page 7,
		 * then page 8. */
		const uint32_t join = len == 1 ? SPMLA_REQUEST_JOIN : 0;
		const uint32_t column = (len - 1) / 64;
		const int32_t page = 7 + (int32_t)column;
		const spmla_request request = {0, 1, len, join};
		const spmla_table_store store = {SPMLA_GROUP_MAIN, 0, column, 1,
						 &page};
		spmla_step step = {sizeof step, 0, 1, 1, &request, &store};
		spmla_status s;
		uint64_t ticket;

		/* A full ring means that the device is some steps behind. */
		while ((s = spmla_step_write(ctx, &step, &ticket, NULL)) ==
		       SPMLA_E_RING_FULL)
			;
		check(s);
		check(cudaGraphLaunch(exec, stream));
		check(spmla_step_launched(ctx, ticket));
	}
	check(cudaStreamSynchronize(stream));
	check(cudaMemcpy(&result, sum, sizeof result, cudaMemcpyDeviceToHost));
	check(cudaGraphExecDestroy(exec));
	check(cudaGraphDestroy(graph));
	check(spmla_fini(ctx));
	printf("out[0] = %.3f\n", result);
	return result != 1.5f;
}
