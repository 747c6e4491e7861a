/* SPDX-License-Identifier: Apache-2.0
 *
 * See cudart_rig.h: the engine's kernels, and its steps. Each kernel reads what
 * the op before it wrote, or spoils what that op read, so that any two that
 * change places change the result; //tests:cudart_engine proves it.
 */
#include "tests/gpu/cudart_rig.h"

#include <string.h>

enum { BLOCKS = 32, ITEMS = 128 };

typedef struct inputs {
	uint16_t *at[INPUTS];
	uint32_t count[INPUTS];
} inputs;

/* ---- The engine's kernels ----------------------------------------------- */

#define LAUNCH(kernel, stream, ...)                                  \
	do {                                                         \
		kernel<<<BLOCKS, ITEMS, 0, (stream)>>>(__VA_ARGS__); \
		CUDA(cudaPeekAtLastError());                         \
	} while (0)

#define FIRST  (blockIdx.x * blockDim.x + threadIdx.x)
#define STRIDE (gridDim.x * blockDim.x)

__host__ __device__ static uint32_t
mixed(uint32_t x)
{
	x = (x ^ x >> 16) * 0x7feb352du;
	x = (x ^ x >> 15) * 0x846ca68bu;
	return x ^ x >> 16;
}

/* [-1, 1) */
__device__ static float
noise(uint32_t key, uint32_t i)
{
	return (float)(mixed(mixed(i) ^ key) >> 8) * 0x1p-23f - 1.0f;
}

__device__ static float
from_bf16(uint16_t h)
{
	return __uint_as_float((uint32_t)h << 16);
}

__device__ static uint16_t
to_bf16(float x)
{
	return (uint16_t)(__float_as_uint(x) >> 16);
}

/* A layer's inputs, from the step's seed and what the layer before gave. */
__global__ static void
project(inputs in, const uint32_t *seed, uint32_t layer, const uint16_t *hidden,
	uint32_t hidden_count)
{
	for (uint32_t a = 0; a < INPUTS; a++)
		for (uint32_t i = FIRST; i < in.count[a]; i += STRIDE) {
			float x = noise(*seed + 16 * layer + a, i);

			if (hidden)
				x += 0.5f * from_bf16(hidden[i % hidden_count]);
			in.at[a][i] = to_bf16(x);
		}
}

/* Behind insert: what it read is used for something else; and queries turn,
 * before index reads them. */
__global__ static void
reuse(inputs in)
{
	for (uint32_t a = KV_C; a <= INDEX_K; a++)
		for (uint32_t i = FIRST; i < in.count[a]; i += STRIDE)
			in.at[a][i] = 0;
	for (uint32_t i = FIRST; i < in.count[INDEX_Q]; i += STRIDE)
		in.at[INDEX_Q][i] ^= 0x8000u;
}

/* Behind index: queries depend on what was selected. */
__global__ static void
steer(inputs in, const int32_t *topk, uint32_t tokens)
{
	for (uint32_t i = FIRST; i < in.count[QUERY]; i += STRIDE) {
		const uint32_t token = i / (in.count[QUERY] / tokens);
		const int32_t key = topk[token * TOPK + i % TOPK];
		const float x = from_bf16(in.at[QUERY][i]);

		in.at[QUERY][i] = to_bf16(x + 0.125f * (float)(key & 15));
	}
}

/* Behind attend. */
__global__ static void
residual(uint16_t *out, const uint16_t *q, uint32_t count)
{
	for (uint32_t i = FIRST; i < count; i += STRIDE) {
		const uint32_t head = i / SPMLA_MLA_LATENT;
		const uint32_t d = i % SPMLA_MLA_LATENT;
		const float x = from_bf16(q[head * SPMLA_MLA_DIM + d]);

		out[i] = to_bf16(from_bf16(out[i]) + 0.25f * x);
	}
}

/* Before the step, outside of its graph. */
__global__ static void
set_seed(uint32_t *seed, uint32_t value)
{
	if (FIRST == 0)
		*seed = value;
}

/* Behind it. */
__global__ static void
compare(const uint32_t *got, const uint32_t *want, uint32_t count, report *to)
{
	for (uint32_t i = FIRST; i < count; i += STRIDE)
		if (got[i] != want[i]) {
			const unsigned long long at = (unsigned long long)i
						      << 32;

			atomicAdd(&to->count, 1ull);
			atomicMin(&to->got, at | got[i]);
			atomicMin(&to->want, at | want[i]);
		}
}

/* ---- Steps -------------------------------------------------------------- */

const spmla_shape *
shape_of(const rig *r, uint32_t bucket)
{
	return &r->plan.config.buckets[bucket];
}

static void
enqueue_op(rig *r, side *s, const spmla_shape *shape, uint32_t l, uint32_t op)
{
	spmla_v32_layer *a = &s->layer[l];
	const uint32_t out_count = shape->tokens * HEADS * SPMLA_MLA_LATENT;
	inputs in;

	for (uint32_t i = 0; i < INPUTS; i++) {
		in.at[i] = s->in[l][i];
		in.count[i] = shape->tokens * input_width[i];
	}
	switch (op) {
	case 0:
		LAUNCH(project, r->stream, in, r->seed, l,
		       l ? s->layer[l - 1].out : NULL, out_count);
		break;
	case 1:
		SPMLA(s->ctx, spmla_v32_insert(s->ctx, a, shape, r->stream));
		break;
	case 2:
		LAUNCH(reuse, r->stream, in);
		break;
	case 3:
		SPMLA(s->ctx, spmla_v32_index(s->ctx, a, shape, r->stream));
		break;
	case 4:
		LAUNCH(steer, r->stream, in, s->topk[l], shape->tokens);
		break;
	case 5:
		SPMLA(s->ctx, spmla_v32_attend(s->ctx, a, shape, r->stream));
		break;
	default:
		LAUNCH(residual, r->stream, a->out, in.at[QUERY], out_count);
	}
}

void
enqueue_step(rig *r, side *s, const spmla_shape *shape)
{
	SPMLA(s->ctx,
	      spmla_step_prologue(s->ctx, shape, SPMLA_FROM_RING, r->stream));
	for (uint32_t l = 0; l < LAYERS; l++)
		for (uint32_t i = 0; i < OPS; i++) {
			uint32_t op = i;

			if (s == &r->eager && r->swap < OPS - 1)
				op += (i == r->swap) - (i == r->swap + 1);
			enqueue_op(r, s, shape, l, op);
		}
}

static uint32_t
below(rig *r, uint32_t bound)
{
	r->rng += UINT64_C(0x9e3779b97f4a7c15);
	return mixed((uint32_t)(r->rng >> 32)) % bound;
}

/* Row i goes on by `query` tokens, or begins, with keys that are taken to be
 * in its pages. */
static spmla_request
grow(rig *r, uint32_t i, uint32_t query, spmla_table_store *store,
     int32_t *pages)
{
	row *w = &r->rows[i];
	spmla_request q = {i, query, 0, 0};

	if (w->len == 0 || w->len + query > CONTEXT) {
		q.flags = SPMLA_REQUEST_JOIN;
		w->cols = 0;
		w->len = below(r, 3 * PAGE - 4);
	}
	w->len += query;
	q.seq_len_tokens = w->len;
	*store = (spmla_table_store){SPMLA_GROUP_MAIN, i, w->cols, 0, pages};
	for (; w->cols * PAGE < w->len; w->cols++)
		pages[store->count++] = (int32_t)(w->cols * 8 + i);
	return q;
}

/* Waits for a slot, if it has to. */
static uint64_t
write_to(rig *r, side *s, const spmla_step *step)
{
	uint64_t ticket = 0;
	spmla_status status = spmla_step_write(s->ctx, step, &ticket, NULL);

	if (status == SPMLA_E_RING_FULL) {
		r->full++;
		CUDA(cudaStreamSynchronize(r->stream));
		status = spmla_step_write(s->ctx, step, &ticket, NULL);
	}
	expect_spmla(__FILE__, __LINE__, "spmla_step_write", s->ctx, status,
		     SPMLA_OK, NULL);
	return ticket;
}

void
write_step(rig *r, uint32_t bucket, uint32_t n)
{
	const spmla_shape *limit = shape_of(r, bucket);
	const uint32_t count = below(r, limit->requests + 1);
	const uint32_t first = below(r, ROWS);
	spmla_request requests[ROWS];
	spmla_table_store stores[ROWS];
	int32_t pages[ROWS][COLUMNS];
	spmla_step step = SPMLA_STEP_INIT;
	trace *t = &r->log[n];

	t->bucket = bucket;
	t->requests = count;
	t->tokens = 0;
	step.requests = requests;
	step.stores = stores;
	for (; step.request_count < count; step.request_count++) {
		const uint32_t i = (first + step.request_count) % ROWS;
		const uint32_t left = limit->tokens - t->tokens;
		uint32_t query = below(r, limit->next_n + 1);
		spmla_table_store *store = &stores[step.store_count];

		query = query < left ? query : left;
		if (query == 0) /* paused */
			requests[step.request_count] =
				(spmla_request){i, 0, r->rows[i].len, 0};
		else
			requests[step.request_count] =
				grow(r, i, query, store, pages[i]);
		step.store_count += query > 0 && store->count > 0;
		t->tokens += query;
	}
	t->ticket = write_to(r, &r->graph, &step);
	if (write_to(r, &r->eager, &step) != t->ticket)
		COMPLAIN("step %u: tickets differ", n);
	LAUNCH(set_seed, r->stream, r->seed, mixed((uint32_t)r->rng));
}

void
launch_step(rig *r, const trace *t)
{
	side *s = &r->graph;

	switch (t->how) {
	case ENGINE:
		CUDA(cudaGraphLaunch(r->exec[t->bucket], r->stream));
		SPMLA(s->ctx, spmla_step_launched(s->ctx, t->ticket));
		break;
	case REPLAY:
		SPMLA(s->ctx, spmla_graph_replay(s->ctx, r->replay[t->bucket],
						 t->ticket, r->stream));
		break;
	default:
		enqueue_step(r, s, shape_of(r, t->bucket));
	}
}

void
check_step(rig *r, uint32_t n)
{
	enqueue_step(r, &r->eager, shape_of(r, r->log[n].bucket));
	for (uint32_t p = 0; p < PIECES; p++)
		LAUNCH(compare, r->stream, r->graph.pieces[p].words,
		       r->eager.pieces[p].words,
		       (uint32_t)r->graph.pieces[p].count,
		       &r->reports[n * PIECES + p]);
}

static void
print_report(const rig *r, uint32_t n, uint32_t p, const report *found)
{
	static const char *const hows[] = {"the engine's graph",
					   "spmla_graph_replay", "eager"};
	const trace *t = &r->log[n];

	COMPLAIN("step %u (ticket %llu, %s, bucket %u, %u requests, %u "
		 "tokens): %s: %llu of %llu words differ, first %u: 0x%08x, "
		 "eager 0x%08x",
		 n, (unsigned long long)t->ticket, hows[t->how], t->bucket,
		 t->requests, t->tokens, r->graph.pieces[p].name, found->count,
		 (unsigned long long)r->graph.pieces[p].count,
		 (unsigned)(found->got >> 32), (unsigned)found->got,
		 (unsigned)found->want);
}

uint32_t
read_reports(rig *r, uint32_t count, uint32_t quiet)
{
	static report found[MAX_STEPS][PIECES];
	uint32_t wrong = 0;

	CUDA(cudaStreamSynchronize(r->stream));
	CUDA(cudaMemcpy(found, r->reports, sizeof found,
			cudaMemcpyDeviceToHost));
	for (uint32_t n = 0; n < count; n++) {
		uint32_t pieces = 0;

		for (uint32_t p = 0; p < PIECES; p++) {
			/* What follows the first ones follows from them. */
			if (found[n][p].count && !quiet && wrong < 3)
				print_report(r, n, p, &found[n][p]);
			pieces += found[n][p].count > 0;
			memset(&found[n][p], 0xff, sizeof found[n][p]);
			found[n][p].count = 0;
		}
		wrong += pieces > 0;
	}
	/* On the stream, as its kernels do not wait for the legacy one. */
	CUDA(cudaMemcpyAsync(r->reports, found, count * sizeof found[0],
			     cudaMemcpyHostToDevice, r->stream));
	return wrong;
}

uint32_t
run_steps(rig *r, kind how, uint32_t count)
{
	uint32_t wrong;

	for (uint32_t n = 0; n < count; n++) {
		write_step(r, below(r, BUCKETS), n);
		r->log[n].how = how == MIXED ? (kind)below(r, MIXED) : how;
		launch_step(r, &r->log[n]);
		check_step(r, n);
	}
	wrong = read_reports(r, count, 0);
	if (wrong)
		COMPLAIN("%u of %u steps differ", wrong, count);
	return wrong;
}

void
copy_state(rig *r)
{
	for (uint32_t p = 0; p < PIECES; p++)
		CUDA(cudaMemcpyAsync(r->eager.pieces[p].words,
				     r->graph.pieces[p].words,
				     r->graph.pieces[p].count * 4,
				     cudaMemcpyDeviceToDevice, r->stream));
}
