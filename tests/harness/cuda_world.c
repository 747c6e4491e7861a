/* SPDX-License-Identifier: Apache-2.0
 *
 * The backend that waits; see cuda_world.h. cuda_memory.c makes memory readable
 * by the device.
 */
#include "tests/harness/cuda_world.h"
#include "tests/harness/cuda_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spmla/internal/backend.h"
#include "spmla/spmla_cuda.h"
#include "spmla/spmla_hip.h"
#include "spmla/spmla_level_zero.h"

enum { CONTEXTS = 256, ENTRIES = 4096 };

typedef struct entry {
	uint32_t op; /* SPMLA_OP_COUNT: launch of graph `index` */
	uint32_t index;
	uint32_t bytes;
	spmla_stream stream;
	spmla_i_args args;
} entry;

/* A context's deferred queue; `entries` is NULL without one. */
typedef struct queue {
	const spmla_ctx *ctx;
	entry *entries;
	uint32_t head;
	uint32_t end;
} queue;

static queue queues[CONTEXTS];

/* The backend that does the work. */
static const spmla_backend *
real(void)
{
	switch (cuda_memory_kind()) {
	case SPMLA_BACKEND_HIP:
		return &spmla_hip;
	case SPMLA_BACKEND_LEVEL_ZERO:
		return &spmla_level_zero;
	default:
		return &spmla_cuda;
	}
}

/* The handles that its init wants. */
static const spmla_native *
handles(void)
{
	return real() == &spmla_level_zero ? level_zero_world_native() : NULL;
}

/* Where a graph runs. */
static spmla_stream
queue_or(spmla_stream stream)
{
	return handles() ? handles()->queue : stream;
}

static queue *
queue_of(const spmla_ctx *ctx)
{
	uint32_t i;

	for (i = 0; i < CONTEXTS; i++)
		if (queues[i].ctx == ctx)
			return &queues[i];
	fprintf(stderr, "cuda_sync: too many contexts\n");
	abort();
}

static spmla_stream
stream_or_own(spmla_stream stream)
{
	return stream ? stream : cuda_memory_stream();
}

static uint32_t fault_expected;

void
cuda_world_expect_fault(void)
{
	fault_expected = 1;
}

/* Waits for the launch; on an error ends the program. */
static spmla_status
finish(spmla_status s, spmla_stream stream, const char *what, uint32_t number)
{
	const int r = s == SPMLA_OK ? cuda_memory_sync(stream) : 0;

	if (r) {
		fprintf(stderr,
			"cuda_sync: %s %u: cuStreamSynchronize gives %d\n",
			what, number, r);
		_Exit(fault_expected ? 0 : 1);
	}
	return s;
}

static spmla_status
sync_query(const spmla_native *native, spmla_device *device, spmla_diag *diag)
{
	const char *arch = getenv("SPMLA_TEST_CUDA_ARCH");
	spmla_status s;

	(void)native;
	s = real()->query(NULL, device, diag);
	if (s == SPMLA_OK)
		device->ops = SPMLA_I_OP_BIT(SPMLA_OP_COUNT) - 1;
	if (s == SPMLA_OK && arch)
		device->arch = (uint32_t)strtoul(arch, NULL, 10);
	return s;
}

static const spmla_plan *moved;
static void *const *moved_base;

void
cuda_world_move(const spmla_plan *plan, void *const *base)
{
	moved = plan;
	moved_base = base;
}

/* Lays the buffers anew, before the device knows of them: spmla_init takes no
 * plan but the library's own. */
static void
move_buffers(spmla_ctx *ctx)
{
	uint32_t i;

	ctx->plan = *moved;
	for (i = 0; i < moved->row_count; i++) {
		const spmla_extent *e = &moved->extents[i];

		ctx->buf[e->buf] =
			(uint8_t *)moved_base[e->memory] + e->offset_bytes;
		if (e->memory == SPMLA_MEMORY_PINNED)
			memset(ctx->buf[e->buf], 0, (size_t)e->bytes);
	}
	moved = NULL;
}

static spmla_status
sync_init(spmla_ctx *ctx, const spmla_native *native, spmla_diag *diag)
{
	spmla_status s;
	queue *q;

	if (moved)
		move_buffers(ctx);
	s = real()->init(ctx, handles(), diag);

	if (s == SPMLA_E_NO_BLOB) {
		printf("SKIPPED: built without kernels for the device\n");
		fflush(stdout);
		_Exit(CUDA_WORLD_SKIPPED);
	}
	if (s != SPMLA_OK)
		return s;
	q = queue_of(NULL);
	memset(q, 0, sizeof *q);
	q->ctx = ctx;
	if (native && native->flags & SPMLA_NATIVE_DEFERRED)
		q->entries = malloc(ENTRIES * sizeof(entry));
	return s;
}

static void
sync_fini(spmla_ctx *ctx)
{
	queue *q = queue_of(ctx);

	real()->fini(ctx);
	free(q->entries);
	memset(q, 0, sizeof *q);
}

static entry *
defer(queue *q, spmla_stream stream)
{
	entry *e;

	if (q->end == ENTRIES)
		abort();
	e = &q->entries[q->end++];
	memset(e, 0, sizeof *e);
	e->stream = stream;
	return e;
}

static spmla_status
sync_enqueue(spmla_ctx *ctx, spmla_op op, const void *args, uint32_t bytes,
	     spmla_stream stream)
{
	queue *q = queue_of(ctx);
	spmla_status s;

	stream = stream_or_own(stream);
	if (real()->capturing(ctx, stream))
		return real()->enqueue(ctx, op, args, bytes, stream);
	if (q->entries) {
		entry *e = defer(q, stream);

		e->op = (uint32_t)op;
		e->bytes = bytes;
		memcpy(&e->args, args, bytes);
		return SPMLA_OK;
	}
	s = real()->enqueue(ctx, op, args, bytes, stream);
	return finish(s, stream, "op", (uint32_t)op);
}

static uint32_t
sync_capturing(const spmla_ctx *ctx, spmla_stream stream)
{
	return real()->capturing(ctx, stream_or_own(stream));
}

static spmla_status
sync_begin(spmla_ctx *ctx, spmla_stream stream)
{
	return real()->capture_begin(ctx, stream_or_own(stream));
}

static spmla_status
sync_end(spmla_ctx *ctx, uint32_t index)
{
	return real()->capture_end(ctx, index);
}

static spmla_status
sync_abort(spmla_ctx *ctx)
{
	return real()->capture_abort(ctx);
}

static spmla_status
sync_launch(spmla_ctx *ctx, uint32_t index, spmla_stream stream)
{
	queue *q = queue_of(ctx);

	stream = stream_or_own(stream);
	if (q->entries) {
		entry *e = defer(q, stream);

		e->op = SPMLA_OP_COUNT;
		e->index = index;
		return SPMLA_OK;
	}
	return finish(real()->launch(ctx, index, queue_or(stream)), stream,
		      "graph", index);
}

static spmla_status
sync_zero(spmla_ctx *ctx, spmla_diag *diag)
{
	return real()->zero(ctx, diag);
}

static spmla_status
sync_status_clear(spmla_ctx *ctx)
{
	return real()->status_clear(ctx);
}

static uint32_t
sync_pending(const spmla_ctx *ctx)
{
	return queue_of(ctx)->end - queue_of(ctx)->head;
}

/* Level Zero's graphs are lists of commands, of which several run at a time. A
 * graph whose lists all run is launched when they have ended. */
static spmla_status
launch_graph(spmla_ctx *ctx, const entry *e)
{
	const spmla_stream on = queue_or(e->stream);
	const spmla_status s = real()->launch(ctx, e->index, on);

	if (s != SPMLA_E_BUSY || !handles())
		return s;
	(void)finish(SPMLA_OK, e->stream, "graph", e->index);
	return real()->launch(ctx, e->index, on);
}

/* Whether the next entry of the queue may run beside e. */
static int
runs_on(const queue *q, const entry *e, uint32_t left)
{
	return handles() && left && q->head < q->end &&
	       e->op == SPMLA_OP_COUNT &&
	       q->entries[q->head].op == SPMLA_OP_COUNT;
}

uint32_t
cuda_sync_run(spmla_ctx *ctx, uint32_t count)
{
	queue *q = queue_of(ctx);
	uint32_t ran;

	for (ran = 0; ran < count && q->head < q->end; ran++) {
		entry *e = &q->entries[q->head++];
		spmla_status s;

		if (e->op == SPMLA_OP_COUNT)
			s = launch_graph(ctx, e);
		else
			s = real()->enqueue(ctx, (spmla_op)e->op, &e->args,
					    e->bytes, e->stream);
		if (s != SPMLA_OK) {
			fprintf(stderr, "cuda_sync: op %u gives %s\n", e->op,
				spmla_status_name(s));
			_Exit(1);
		}
		if (!runs_on(q, e, count - ran - 1))
			(void)finish(s, e->stream, "queued op", e->op);
	}
	if (q->head == q->end)
		q->head = q->end = 0;
	return ran;
}

static uint64_t
sync_consumed(const spmla_ctx *ctx)
{
	return real()->consumed(ctx);
}

static uint32_t
sync_readable(const spmla_ctx *ctx)
{
	return real()->readable(ctx);
}

/* No branches: each launch is waited for. */
#define SYNC(name, kind, consumed, readable)                                \
	{                                                                   \
		name, kind, SPMLA_I_OP_BIT(SPMLA_OP_COUNT) - 1, sync_query, \
			sync_init, sync_fini, sync_zero, sync_enqueue,      \
			sync_capturing, sync_begin, sync_end, sync_abort,   \
			sync_launch, NULL, sync_status_clear, sync_pending, \
			NULL, consumed, readable,                           \
	}

const spmla_backend cuda_sync = SYNC("cuda", SPMLA_BACKEND_CUDA, NULL, NULL);
const spmla_backend hip_sync = SYNC("hip", SPMLA_BACKEND_HIP, NULL, NULL);
const spmla_backend level_zero_sync = SYNC(
	"level_zero", SPMLA_BACKEND_LEVEL_ZERO, sync_consumed, sync_readable);
