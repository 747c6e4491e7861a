/* SPDX-License-Identifier: Apache-2.0
 *
 * See cudart_rig.h: captures, by the engine and by SpMLA, and what is in them.
 */
#include "tests/gpu/cudart_rig.h"

void
expect_kernels(rig *r, cudaGraph_t graph, uint32_t bucket, const char *whose)
{
	cudaGraphNode_t nodes[512];
	size_t count = 512;

	CUDA(cudaGraphGetNodes(graph, nodes, &count));
	for (size_t i = 0; i < count; i++) {
		cudaGraphNodeType type = cudaGraphNodeTypeCount;

		CUDA(cudaGraphNodeGetType(nodes[i], &type));
		if (type != cudaGraphNodeTypeKernel)
			COMPLAIN("%s, bucket %u: node %zu of %zu has type %d",
				 whose, bucket, i, count, (int)type);
	}
	if (r->nodes[bucket] == 0)
		r->nodes[bucket] = count;
	if (count != r->nodes[bucket] || count <= LAYERS * OPS)
		COMPLAIN("%s, bucket %u: %zu nodes, before %zu", whose, bucket,
			 count, r->nodes[bucket]);
}

void
expect_capture(const rig *r, cudaStreamCaptureStatus want)
{
	cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;

	CUDA(cudaStreamIsCapturing(r->stream, &status));
	if (status != want)
		COMPLAIN("the stream's capture has status %d, want %d",
			 (int)status, (int)want);
}

void
capture_own(rig *r, uint32_t bucket, cudaStreamCaptureMode mode)
{
	cudaGraph_t graph = NULL;

	CUDA(cudaStreamBeginCapture(r->stream, mode));
	enqueue_step(r, &r->graph, shape_of(r, bucket));
	expect_capture(r, cudaStreamCaptureStatusActive);
	CUDA(cudaStreamEndCapture(r->stream, &graph));
	expect_kernels(r, graph, bucket, "the engine's capture");
	CUDA(cudaGraphInstantiateWithFlags(&r->exec[bucket], graph, 0));
	CUDA(cudaGraphDestroy(graph));
}

/* The runtime may look into the capture that SpMLA began. */
static cudaGraph_t
captured_so_far(const rig *r)
{
	cudaStreamCaptureStatus status;
	cudaGraph_t graph = NULL;

#if CUDART_VERSION >= 13000
	CUDA(cudaStreamGetCaptureInfo(r->stream, &status, NULL, &graph, NULL,
				      NULL, NULL));
#else
	CUDA(cudaStreamGetCaptureInfo_v2(r->stream, &status, NULL, &graph, NULL,
					 NULL));
#endif
	if (status != cudaStreamCaptureStatusActive || !graph)
		COMPLAIN("spmla_graph_begin began no capture: status %d",
			 (int)status);
	return graph;
}

void
capture_spmla(rig *r, uint32_t bucket)
{
	spmla_ctx *ctx = r->graph.ctx;

	SPMLA(ctx, spmla_graph_begin(ctx, r->stream));
	enqueue_step(r, &r->graph, shape_of(r, bucket));
	expect_kernels(r, captured_so_far(r), bucket, "spmla_graph_begin");
	SPMLA(ctx, spmla_graph_end(ctx, &r->replay[bucket]));
	expect_capture(r, cudaStreamCaptureStatusNone);
}

/* Thread-local is what this is about; global is the runtime's default. */
void
capture_all(rig *r)
{
	capture_own(r, 0, cudaStreamCaptureModeThreadLocal);
	capture_spmla(r, 0);
	capture_own(r, 1, cudaStreamCaptureModeGlobal);
	capture_spmla(r, 1);
	printf("  %zu and %zu kernels a graph\n", r->nodes[0], r->nodes[1]);
}
