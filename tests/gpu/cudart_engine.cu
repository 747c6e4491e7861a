/* SPDX-License-Identifier: Apache-2.0
 *
 * SpMLA in an engine that uses the CUDA runtime: its memory, its stream, its
 * captures and its kernels between SpMLA's. Prints a line a check, and what
 * failed before it. Each check is a process of its own, so that one that ends
 * early hides no other. Exit status 77, with SKIPPED, where there is no device.
 */
#include "tests/gpu/cudart_rig.h"

#include <sys/wait.h>
#include <unistd.h>

enum { SKIPPED = 77 };

/* ---- Checks ------------------------------------------------------------- */

static rig r;

/* The step that was written first is still due, and all goes on. */
static void
go_on(kind first)
{
	r.log[0].how = first;
	launch_step(&r, &r.log[0]);
	check_step(&r, 0);
	EXPECT(read_reports(&r, 1, 0) == 0);
	(void)run_steps(&r, MIXED, 20);
}

static void
own_captures(void)
{
	const cudaStreamCaptureMode modes[] = {cudaStreamCaptureModeThreadLocal,
					       cudaStreamCaptureModeRelaxed,
					       cudaStreamCaptureModeGlobal};

	rig_open(&r);
	for (uint32_t i = 0; i < 3; i++) {
		for (uint32_t b = 0; b < BUCKETS; b++) {
			if (r.exec[b])
				CUDA(cudaGraphExecDestroy(r.exec[b]));
			capture_own(&r, b, modes[i]);
		}
		(void)run_steps(&r, ENGINE, 20);
		expect_clean(&r, "replays of the engine's graphs");
	}
	printf("  %zu and %zu kernels a graph; %u writes waited\n", r.nodes[0],
	       r.nodes[1], r.full);
	rig_close(&r);
}

static void
spmla_captures(void)
{
	rig_open(&r);
	for (uint32_t b = 0; b < BUCKETS; b++)
		capture_spmla(&r, b);
	(void)run_steps(&r, REPLAY, 40);
	rig_close(&r);
}

static void
all_kinds_in_turn(void)
{
	rig_open(&r);
	capture_all(&r);
	(void)run_steps(&r, MIXED, 80);
	rig_close(&r);
}

/* Every change of places of two neighbours in a layer is seen: else equal
 * results would say little. */
static void
order_shows(void)
{
	rig_open(&r);
	capture_all(&r);
	(void)run_steps(&r, MIXED, 20);
	for (uint32_t i = 0; i < OPS - 1; i++) {
		uint32_t seen = 0, n;

		r.swap = i;
		for (n = 0; n < 8 && !seen; n++) {
			write_step(&r, 1, 0);
			r.log[0].how = ENGINE;
			launch_step(&r, &r.log[0]);
			check_step(&r, 0);
			seen = read_reports(&r, 1, 1);
			copy_state(&r);
		}
		if (!seen)
			COMPLAIN("ops %u and %u may change places", i, i + 1);
	}
	r.swap = OPS;
	(void)run_steps(&r, MIXED, 10);
	rig_close(&r);
}

/* A leak shows in every round, another process on the device in one. */
static void
replays_take_no_memory(void)
{
	size_t before, after, all;
	uint32_t less = 0;

	rig_open(&r);
	capture_all(&r);
	(void)run_steps(&r, MIXED, 60);
	for (uint32_t i = 0; i < 3; i++) {
		CUDA(cudaMemGetInfo(&before, &all));
		(void)run_steps(&r, (kind)i, 200);
		CUDA(cudaMemGetInfo(&after, &all));
		printf("  %zu bytes free, then %zu\n", before, after);
		less += after != before;
		expect_clean(&r, "200 steps");
	}
	if (less == 3)
		COMPLAIN("free memory changed in each round");
	rig_close(&r);
}

/* The streams that wait for all others; the thread's own is none of them. */
static void
legacy_stream(void)
{
	const cudaStream_t streams[] = {NULL, cudaStreamLegacy};
	const spmla_shape *shape = shape_of(&r, 0);
	const spmla_v32_layer *a = &r.graph.layer[0];
	cudaStream_t own;
	spmla_ctx *c;

#define REFUSED(call) SPMLA_GIVES(SPMLA_E_RANGE, "stream", c, call)
	rig_open(&r);
	own = r.stream;
	c = r.graph.ctx;
	capture_all(&r);
	write_step(&r, 0, 0);
	for (uint32_t i = 0; i < 2; i++) {
		cudaStream_t s = streams[i];

		REFUSED(spmla_step_prologue(c, shape, SPMLA_FROM_RING, s));
		REFUSED(spmla_v32_insert(c, a, shape, s));
		REFUSED(spmla_v32_index(c, a, shape, s));
		REFUSED(spmla_v32_attend(c, a, shape, s));
		REFUSED(spmla_table_write(c, 0, 0, 0, 1, s));
		REFUSED(spmla_graph_begin(c, s));
		REFUSED(spmla_graph_replay(c, r.replay[0], r.log[0].ticket, s));
	}
	go_on(REPLAY);
	r.stream = cudaStreamPerThread;
	capture_spmla(&r, 0);
	(void)run_steps(&r, MIXED, 20);
	r.stream = own;
	(void)run_steps(&r, MIXED, 20);
	rig_close(&r);
}

/* What has no place in the engine's capture says so and leaves it whole. */
static void
calls_in_own_capture(void)
{
	cudaGraph_t graph = NULL;
	spmla_ctx *c;
	uint64_t due;

	rig_open(&r);
	c = r.graph.ctx;
	capture_all(&r);
	write_step(&r, 0, 0);
	due = r.log[0].ticket;
	CUDA(cudaGraphExecDestroy(r.exec[0]));
	CUDA(cudaStreamBeginCapture(r.stream,
				    cudaStreamCaptureModeThreadLocal));
#define NOT_NOW(call) SPMLA_GIVES(SPMLA_E_STATE, "capture", c, call)
	NOT_NOW(spmla_graph_begin(c, r.stream));
	enqueue_step(&r, &r.graph, shape_of(&r, 0));
	NOT_NOW(spmla_graph_replay(c, r.replay[0], due, r.stream));
	NOT_NOW(spmla_table_write(c, 0, 0, 0, 1, r.stream));
	CUDA(cudaStreamEndCapture(r.stream, &graph));
	expect_kernels(&r, graph, 0, "the capture with refused calls");
	CUDA(cudaGraphInstantiateWithFlags(&r.exec[0], graph, 0));
	CUDA(cudaGraphDestroy(graph));
	go_on(ENGINE);
	rig_close(&r);
}

/* The engine waits for the stream that captures, which is forbidden. */
static void
invalidate(void)
{
	CUDA_GIVES(cudaErrorStreamCaptureUnsupported,
		   cudaStreamSynchronize(r.stream));
	expect_capture(&r, cudaStreamCaptureStatusInvalidated);
}

static void
invalidated_captures(void)
{
	const spmla_shape *shape = shape_of(&r, 0);
	const spmla_v32_layer *a = &r.graph.layer[0];
	cudaGraph_t graph = NULL;
	spmla_graph none = 0;
	spmla_ctx *c;

#define BROKEN(field, call) SPMLA_GIVES(SPMLA_E_DEVICE, field, c, call)
#define FAILED(call)        SPMLA_GIVES(SPMLA_E_CAPTURE, NULL, c, call)
	rig_open(&r);
	c = r.graph.ctx;
	write_step(&r, 0, 0);
	CUDA(cudaStreamBeginCapture(r.stream,
				    cudaStreamCaptureModeThreadLocal));
	SPMLA(c, spmla_step_prologue(c, shape, SPMLA_FROM_RING, r.stream));
	SPMLA(c, spmla_v32_insert(c, a, shape, r.stream));
	invalidate();
	BROKEN("cuLaunchKernel", spmla_v32_index(c, a, shape, r.stream));
	EXPECT(spmla_ctx_diag(c)->got == cudaErrorStreamCaptureInvalidated);
	SPMLA_GIVES(SPMLA_E_STATE, "capture", c,
		    spmla_graph_begin(c, r.stream));
	CUDA_GIVES(cudaErrorStreamCaptureInvalidated,
		   cudaStreamEndCapture(r.stream, &graph));
	EXPECT(graph == NULL);
	for (uint32_t op = 0; op < 2; op++) {
		SPMLA(c, spmla_graph_begin(c, r.stream));
		SPMLA(c,
		      spmla_step_prologue(c, shape, SPMLA_FROM_RING, r.stream));
		invalidate();
		if (op) /* it is known before the end */
			BROKEN("cuLaunchKernel",
			       spmla_v32_insert(c, a, shape, r.stream));
		else
			BROKEN("cuStreamEndCapture", spmla_graph_end(c, &none));
		FAILED(spmla_graph_end(c, &none));
		SPMLA(c, spmla_graph_abort(c));
		EXPECT(none == 0);
		expect_capture(&r, cudaStreamCaptureStatusNone);
		expect_clean(&r, "abort");
	}
	capture_all(&r);
	go_on(ENGINE);
	rig_close(&r);
}

static void
a_lost_device(void)
{
	lose_device(&r);
}

/* ---- The program -------------------------------------------------------- */

typedef struct check {
	const char *name;
	void (*run)(void);
} check;

/* The first process that asks the driver: the others are not its children. */
static void
find_device(void)
{
	cudaDeviceProp p;
	int devices = 0, driver = 0;
	cudaError_t e;

	CUDA(cudaDriverGetVersion(&driver)); /* 0: there is none */
	e = driver ? cudaGetDeviceCount(&devices) : cudaErrorNoDevice;
	if (e == cudaErrorNoDevice) {
		printf("SKIPPED: no CUDA device\n");
		fflush(stdout);
		_Exit(SKIPPED);
	}
	expect_cuda(__FILE__, __LINE__, "cudaGetDeviceCount", e, cudaSuccess);
	CUDA(cudaGetDeviceProperties(&p, 0));
	printf("%s, sm_%d%d, driver %d, runtime %d\n", p.name, p.major, p.minor,
	       driver, CUDART_VERSION);
}

/* The exit status of the check's process. */
static int
run_apart(const check *c)
{
	pid_t child;
	int status = 0;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		setvbuf(stdout, NULL, _IOLBF, 0);
		c->run();
		fflush(stdout);
		_Exit(failures ? 1 : 0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child) {
		perror("fork");
		return 1;
	}
	if (WIFSIGNALED(status))
		printf("  ended by signal %d\n", WTERMSIG(status));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static void
others_hold_multiprocessors(void)
{
	held_multiprocessors(&r);
}

int
main(void)
{
	static const check device = {"device", find_device};
	static const check checks[] = {
		{"an engine's own captures", own_captures},
		{"captures by SpMLA", spmla_captures},
		{"both and eager steps in turn on one ring", all_kinds_in_turn},
		{"ops in another order give another result", order_shows},
		{"replays take no memory", replays_take_no_memory},
		{"the legacy stream is refused", legacy_stream},
		{"what has no place in a capture", calls_in_own_capture},
		{"captures that an illegal call ended", invalidated_captures},
		{"blocks wait for each other beside another kernel",
		 others_hold_multiprocessors},
		{"a device that is lost", a_lost_device},
	};
	const uint32_t count = sizeof checks / sizeof checks[0];
	const int found = run_apart(&device);
	uint32_t passed = 0;

	if (found)
		return found;
	for (uint32_t i = 0; i < count; i++) {
		const int bad = run_apart(&checks[i]);

		printf("%s: %s\n", bad ? "FAILED" : "ok", checks[i].name);
		passed += !bad;
	}
	printf("%u passed, %u failed\n", passed, count - passed);
	return passed == count ? 0 : 1;
}
