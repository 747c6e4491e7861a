/* SPDX-License-Identifier: Apache-2.0
 *
 * How a shape is timed: as a graph, between two events, with an L2 that is cold
 * and clean or with what the replay before it left. The hard idea is the flush:
 * 256 MB are written, which drives everything else out, and then another 256 MB
 * are read, so that what is timed does not pay for writing the first ones back.
 */
#include "bench/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	FLUSH_BYTES = 256 << 20,
	ROOF_BYTES = 1 << 30,
	SLACK_BYTES = 16 << 20, /* the last round of reads goes past */
	READ_ITEMS = 512,
	READ_BLOCKS_AN_SM = 2,
	MOST_REPEATS = 4096,
	LEAST_REPEATS = 5,
	THREAD_LOCAL = 1 /* mode of a capture */
};

static double times[MOST_REPEATS];

static void
read_stream(gpu *g, uint64_t from, uint64_t bytes)
{
	cu_ptr at = g->room + from;
	uint64_t vectors = bytes / 16;
	void *params[2] = {&at, &vectors};

	CU(g, launch_kernel,
	   (g->read, (unsigned)(g->sm_count * READ_BLOCKS_AN_SM), 1, 1,
	    READ_ITEMS, 1, 1, 0, g->stream, params, NULL));
}

static void
flush(gpu *g)
{
	static unsigned char byte;

	if (!g->read)
		return;
	CU(g, set_bytes, (g->room, ++byte, FLUSH_BYTES, g->stream));
	read_stream(g, FLUSH_BYTES, FLUSH_BYTES);
}

static int
in_order(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

typedef enum l2 { COLD, WARM } l2;

static double
time_once(gpu *g, const shot *s, void *exec, l2 state)
{
	float ms;

	if (s->prepare)
		s->prepare(g);
	if (state == COLD)
		flush(g);
	CU(g, event_record, (g->events[0], g->stream));
	if (s->launch)
		s->launch(g);
	else
		CU(g, graph_launch, (exec, g->stream));
	CU(g, event_record, (g->events[1], g->stream));
	CU(g, stream_sync, (g->stream));
	CU(g, event_ms, (&ms, g->events[0], g->events[1]));
	return ms * 1e3;
}

/* Median, and p99 if it is wanted, of as many as the row's time allows. */
static double
time_many(gpu *g, const shot *s, void *exec, l2 state, double *p99)
{
	const double first = time_once(g, s, exec, state);
	const double fit = first > 0 ? g->seconds * 1e6 / first : 1e9;
	uint32_t n = g->repeats, i;

	if (fit < n)
		n = fit > LEAST_REPEATS ? (uint32_t)fit : LEAST_REPEATS;
	for (i = 0; i < (g->tiny ? 0 : 2); i++)
		(void)time_once(g, s, exec, state);
	for (i = 0; i < n; i++)
		times[i] = time_once(g, s, exec, state);
	qsort(times, n, sizeof *times, in_order);
	if (p99)
		*p99 = times[(n - 1) * 99 / 100];
	return times[n / 2];
}

/* ---- Roofs -------------------------------------------------------------- */

static void
run_read(gpu *g)
{
	read_stream(g, 0, ROOF_BYTES);
}

static void
run_copy(gpu *g)
{
	CU(g, copy,
	   (g->room + ROOF_BYTES / 2, g->room, ROOF_BYTES / 2, g->stream));
}

static void
run_empty(gpu *g)
{
	CU(g, launch_kernel,
	   (g->empty, 1, 1, 1, 32, 1, 1, 0, g->stream, NULL, NULL));
}

/* Over more than any L2 holds, and without the flush, which would leave it the
 * beginning. */
static double
roof(gpu *g, void (*run)(gpu *g))
{
	const shot s = {.op = "roof", .launch = run};

	return time_many(g, &s, NULL, WARM, NULL);
}

void
measure_roofs(gpu *g)
{
	const shot empty = {.op = "empty kernel", .run = run_empty};
	cuda_row *r;

	/* Without a roof each row's floor is 0, and nothing is said of it. */
	if (!g->read)
		return;
	device_room(g, &g->room, ROOF_BYTES + (uint64_t)SLACK_BYTES);
	CU(g, set_bytes,
	   (g->room, 0x5a, ROOF_BYTES + (size_t)SLACK_BYTES, g->stream));
	g->read_bytes_us = ROOF_BYTES / roof(g, run_read);
	g->copy_bytes_us = ROOF_BYTES / roof(g, run_copy);
	r = measure(g, &empty);
	snprintf(r->shape, sizeof r->shape, "the launch");
	snprintf(r->check, sizeof r->check, "-");
	g->launch_us = r->cold;
}

/* ---- Rows --------------------------------------------------------------- */

static void *
capture(gpu *g, void (*run)(gpu *g), uint32_t *nodes)
{
	void *graph, *exec;
	size_t count = 0;

	CU(g, capture_begin, (g->stream, THREAD_LOCAL));
	run(g);
	CU(g, capture_end, (g->stream, &graph));
	CU(g, graph_nodes, (graph, NULL, &count));
	CU(g, instantiate, (&exec, graph, 0));
	CU(g, graph_upload, (exec, g->stream));
	CU(g, graph_destroy, (graph));
	*nodes = (uint32_t)count;
	return exec;
}

void *
empty_graph(gpu *g)
{
	uint32_t nodes;

	return g->empty ? capture(g, run_empty, &nodes) : NULL;
}

uint32_t
count_nodes(gpu *g, void (*run)(gpu *g))
{
	uint32_t nodes;

	CU(g, exec_destroy, (capture(g, run, &nodes)));
	return nodes;
}

static void
spoil(gpu *g, const shot *s)
{
	uint32_t i;

	for (i = 0; i < OUTPUTS && s->outputs[i]; i++)
		CU(g, set_bytes,
		   ((uintptr_t)s->outputs[i]->at[ON_DEVICE], SPOILT,
		    (size_t)s->outputs[i]->bytes, g->stream));
	CU(g, stream_sync, (g->stream));
}

int
wanted(const gpu *g, const char *op)
{
	const size_t n = strlen(op);
	const char *at = g->only;

	while (at && (strncmp(at, op, n) || (at[n] && at[n] != ','))) {
		at = strchr(at, ',');
		if (at)
			at++;
	}
	return !g->only || at != NULL;
}

cuda_row *
measure(gpu *g, const shot *s)
{
	cuda_row *r = &g->rows[g->count++];
	void *exec = NULL;

	if (g->count > ROWS)
		cu_must(-1, "measure");
	memset(r, 0, sizeof *r);
	r->op = s->op;
	r->nodes = s->nodes;
	r->bound = "";
	if (!s->launch) {
		s->run(g);
		CU(g, stream_sync, (g->stream));
		exec = capture(g, s->run, &r->nodes);
	}
	spoil(g, s);
	r->cold = time_many(g, s, exec, COLD, &r->p99);
	r->warm = time_many(g, s, exec, WARM, NULL);
	if (exec)
		CU(g, exec_destroy, (exec));
	return r;
}
