/* SPDX-License-Identifier: Apache-2.0
 *
 * See cudart_rig.h: a kernel of the engine's that ends in a trap, on the shared
 * stream, with steps before and behind it. The driver then refuses everything
 * in this context for good; what SpMLA makes of that is checked here.
 */
#include "tests/gpu/cudart_rig.h"

#include <unistd.h>

enum { PATIENCE_SECONDS = 60 };

__global__ static void
trap_on_the_way(void)
{
	asm volatile("trap;");
}

/* The call says E_DEVICE, with the error that the device has. */
static void
expect_lost(int line, const char *call, const spmla_ctx *ctx, spmla_status got,
	    cudaError_t lost)
{
	const spmla_diag *diag = spmla_ctx_diag(ctx);

	if (got != SPMLA_E_DEVICE || diag->got != (uint64_t)lost)
		complain(__FILE__, line,
			 "%s gives %s, diag: %s, got %llu; want E_DEVICE, %d",
			 call, spmla_status_name(got), diag->field,
			 (unsigned long long)diag->got, (int)lost);
}

/* A call that does not ask the device. */
static void
expect_done(int line, const char *call, spmla_status got)
{
	if (got != SPMLA_OK)
		complain(__FILE__, line, "%s gives %s, want SPMLA_OK", call,
			 spmla_status_name(got));
}

#define LOST(call) expect_lost(__LINE__, #call, c, call, lost)
#define DONE(call) expect_done(__LINE__, #call, call)

/* Three steps, the second behind the trap: what of them runs is the driver's
 * affair. Returns the error that the device then has. */
static cudaError_t
trap_among_steps(rig *r)
{
	spmla_ctx *c = r->graph.ctx;
	const spmla_step none = SPMLA_STEP_INIT;
	uint64_t ticket = 0;
	cudaError_t lost;
	spmla_status s;

	write_step(r, 0, 0);
	r->log[0].how = REPLAY;
	launch_step(r, &r->log[0]);
	trap_on_the_way<<<1, 1, 0, r->stream>>>();
	/* The host does not know yet, or does already. */
	DONE(spmla_step_write(c, &none, &ticket, NULL));
	s = spmla_graph_replay(c, r->replay[0], ticket, r->stream);
	if (s != SPMLA_OK && s != SPMLA_E_DEVICE)
		COMPLAIN("behind the trap: %s", spmla_status_name(s));
	if (s != SPMLA_OK)
		DONE(spmla_step_undo(c, ticket));
	lost = cudaStreamSynchronize(r->stream);
	if (lost == cudaSuccess)
		COMPLAIN("the kernel did not trap");
	return lost;
}

void
lose_device(rig *r)
{
	const spmla_step none = SPMLA_STEP_INIT;
	spmla_device_status status = SPMLA_DEVICE_STATUS_INIT;
	const spmla_shape *shape;
	const spmla_v32_layer *a;
	uint64_t ticket = 0;
	cudaError_t lost;
	spmla_ctx *c;

	alarm(PATIENCE_SECONDS);
	rig_open(r);
	capture_all(r);
	(void)run_steps(r, MIXED, 10);
	shape = shape_of(r, 0);
	a = &r->graph.layer[0];
	c = r->graph.ctx;
	lost = trap_among_steps(r);
	printf("  the device's error is %s (%d)\n", cudaGetErrorName(lost),
	       (int)lost);

	for (uint32_t i = 0; i < 2; i++) {
		LOST(spmla_step_prologue(c, shape, SPMLA_ADVANCE, r->stream));
		LOST(spmla_v32_insert(c, a, shape, r->stream));
		LOST(spmla_v32_index(c, a, shape, r->stream));
		LOST(spmla_v32_attend(c, a, shape, r->stream));
		LOST(spmla_table_write(c, 0, 0, 0, 1, r->stream));
		LOST(spmla_graph_begin(c, r->stream));
		LOST(spmla_status_clear(c));
		/* A launch that failed is taken back as ever. */
		DONE(spmla_step_write(c, &none, &ticket, NULL));
		LOST(spmla_graph_replay(c, r->replay[0], ticket, r->stream));
		DONE(spmla_step_undo(c, ticket));
		DONE(spmla_status_read(c, &status));
	}
	DONE(spmla_fini(r->graph.ctx));
	DONE(spmla_fini(r->eager.ctx));
}
