/* SPDX-License-Identifier: Apache-2.0
 *
 * See cudart_rig.h: the runtime's memory as SpMLA's regions, the engine's
 * tensors, and what is printed where something is not as it should be. A
 * process makes one check, and its end gives the memory back.
 */
#include "tests/gpu/cudart_rig.h"

#include <stdarg.h>
#include <string.h>

uint32_t failures;
const uint32_t input_width[INPUTS] = {
	SPMLA_MLA_LATENT, SPMLA_MLA_ROPE,
	SPMLA_INDEX_DIM,  INDEX_HEADS *SPMLA_INDEX_DIM,
	INDEX_HEADS,      HEADS *SPMLA_MLA_DIM};

/* ---- What is expected --------------------------------------------------- */

void
complain(const char *file, int line, const char *format, ...)
{
	const char *name = strrchr(file, '/');
	va_list list;

	printf("  %s:%d: ", name ? name + 1 : file, line);
	va_start(list, format);
	vprintf(format, list);
	va_end(list);
	printf("\n");
	fflush(stdout);
	failures++;
}

static void
stop(void)
{
	printf("  cannot go on\n");
	fflush(stdout);
	_Exit(1);
}

void
expect_cuda(const char *file, int line, const char *call, cudaError_t got,
	    cudaError_t want)
{
	if (got != want)
		complain(file, line, "%s gives %s (%d: %s), want %s", call,
			 cudaGetErrorName(got), (int)got,
			 cudaGetErrorString(got), cudaGetErrorName(want));
	if (got != want && want == cudaSuccess)
		stop();
	if (got != cudaSuccess)
		(void)cudaGetLastError();
}

/* A hint may stand behind the name. */
static int
is_field(const char *field, const char *name)
{
	const size_t n = strlen(name);

	return strncmp(field, name, n) == 0 &&
	       (field[n] == 0 || strncmp(field + n, " (", 2) == 0);
}

void
expect_spmla(const char *file, int line, const char *call, const spmla_ctx *ctx,
	     spmla_status got, spmla_status want, const char *field)
{
	const spmla_diag *diag = ctx ? spmla_ctx_diag(ctx) : NULL;
	const cudaError_t last = cudaPeekAtLastError();
	char text[256] = "no diag";
	int wrong = got != want;

	if (got != SPMLA_OK && diag) {
		spmla_diag_text(diag, text, sizeof text);
		wrong |= field && !is_field(diag->field, field);
	}
	if (wrong)
		complain(file, line, "%s gives %s (%s), want %s of %s", call,
			 spmla_status_name(got), got ? text : "-",
			 spmla_status_name(want), field ? field : "anything");
	if (last != cudaSuccess)
		complain(file, line, "after %s the runtime's last error is %s",
			 call, cudaGetErrorName(last));
	if (got != want && want == SPMLA_OK)
		stop();
}

/* The driver's function, as the runtime has it. */
static void *
current_context(void)
{
	typedef int get_current(void **);
	cudaDriverEntryPointQueryResult found;
	void *function = NULL, *context = NULL;

#if CUDART_VERSION >= 12050
	CUDA(cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", &function,
					      12000, cudaEnableDefault,
					      &found));
#else
	CUDA(cudaGetDriverEntryPoint("cuCtxGetCurrent", &function,
				     cudaEnableDefault, &found));
#endif
	if (found != cudaDriverEntryPointSuccess ||
	    ((get_current *)function)(&context) != 0)
		COMPLAIN("cuCtxGetCurrent is not there or fails");
	return context;
}

static void
expect_no_report(const side *s, const char *name, const char *where)
{
	spmla_device_status status = SPMLA_DEVICE_STATUS_INIT;

	SPMLA(s->ctx, spmla_status_read(s->ctx, &status));
	if (status.count)
		COMPLAIN("%s: %s: %u reports, first %s of row %u in step %llu",
			 where, name, status.count,
			 spmla_fault_name(status.fault), status.row,
			 (unsigned long long)status.step);
}

void
expect_clean(const rig *r, const char *where)
{
	const cudaError_t last = cudaGetLastError();
	void *context = current_context();
	int device = -1;

	if (last != cudaSuccess)
		COMPLAIN("%s: cudaGetLastError gives %s", where,
			 cudaGetErrorName(last));
	CUDA(cudaGetDevice(&device));
	if (device != r->device || context != r->context)
		COMPLAIN("%s: device %d, context %p; they were %d, %p", where,
			 device, context, r->device, r->context);
	expect_no_report(&r->graph, "the side of graphs", where);
	expect_no_report(&r->eager, "the eager side", where);
}

/* ---- Memory ------------------------------------------------------------- */

static void *
device_memory(uint64_t bytes, int byte)
{
	void *p = NULL;

	CUDA(cudaMalloc(&p, bytes));
	CUDA(cudaMemset(p, byte, bytes));
	return p;
}

/* Floats on the device, of [-1, 1] and in no order. */
static float *
floats(uint32_t count)
{
	static float values[CONTEXT * SPMLA_INDEX_ROPE];
	float *p = (float *)device_memory(count * sizeof *p, 0);

	for (uint32_t i = 0; i < count; i++)
		values[i] = (float)(i * 40503u % 65521u) / 32760.5f - 1.0f;
	CUDA(cudaMemcpy(p, values, count * sizeof *p, cudaMemcpyHostToDevice));
	return p;
}

static void *
region_memory(uint32_t memory, uint64_t bytes)
{
	void *p = NULL;

	switch (memory) {
	case SPMLA_MEMORY_HOST:
		p = aligned_alloc(256, (bytes + 255) / 256 * 256);
		break;
	case SPMLA_MEMORY_PINNED:
		CUDA(cudaHostAlloc(&p, bytes, cudaHostAllocDefault));
		memset(p, 0xab, bytes);
		break;
	case SPMLA_MEMORY_DEVICE:
		p = device_memory(bytes, 0xab);
		break;
	default: /* pages that were never written are zeros on both sides */
		p = device_memory(bytes, 0);
	}
	return p;
}

static void
make_plan(rig *r)
{
	const spmla_shape buckets[BUCKETS] = {{4, 4, 1, 0},
					      {TOKENS, ROWS, 3, 0}};
	spmla_device device = SPMLA_DEVICE_INIT;
	spmla_diag diag = SPMLA_DIAG_INIT;
	spmla_config c;
	char text[256];
	spmla_status s = spmla_config_preset(&c, SPMLA_MODEL_V32);

	c.heads = HEADS;
	c.index_heads = INDEX_HEADS;
	c.topk = TOPK;
	c.max_rows = ROWS;
	c.max_context_tokens = CONTEXT;
	c.cache_layers = LAYERS;
	c.groups[SPMLA_GROUP_MAIN].page_tokens = PAGE;
	c.groups[SPMLA_GROUP_MAIN].pool_pages = POOL;
	c.bucket_count = BUCKETS;
	memcpy(c.buckets, buckets, sizeof buckets);
	c.ring_slots = SLOTS;
	if (s == SPMLA_OK)
		s = spmla_backend_query(&spmla_cuda, NULL, &device, &diag);
	if (s == SPMLA_OK)
		s = spmla_plan_make(&r->plan, &c, &device, &diag);
	if (s == SPMLA_OK)
		return;
	spmla_diag_text(&diag, text, sizeof text);
	COMPLAIN("query or plan: %s", text);
	stop();
}

static void
open_context(rig *r, side *s)
{
	spmla_region regions[SPMLA_MEMORY_COUNT];
	spmla_diag diag = SPMLA_DIAG_INIT;
	char text[256];

	for (uint32_t m = 0; m < SPMLA_MEMORY_COUNT; m++) {
		const uint64_t bytes = r->plan.region_bytes[m];

		regions[m] = (spmla_region){(uint32_t)sizeof regions[m], m,
					    region_memory(m, bytes), bytes};
	}
	/* What was set by the legacy stream is there. */
	CUDA(cudaDeviceSynchronize());
	if (spmla_init(&s->ctx, &r->plan, &spmla_cuda, NULL, regions,
		       SPMLA_MEMORY_COUNT, &diag) == SPMLA_OK)
		return;
	spmla_diag_text(&diag, text, sizeof text);
	COMPLAIN("spmla_init: %s", text);
	stop();
}

/* ---- The engine's tensors ----------------------------------------------- */

static void
open_layer(rig *r, side *s, uint32_t l)
{
	const uint32_t out = HEADS * SPMLA_MLA_LATENT;
	spmla_v32_layer *a = &s->layer[l];

	for (uint32_t i = 0; i < INPUTS; i++)
		s->in[l][i] = (uint16_t *)device_memory(
			2 * TOKENS * input_width[i], 0);
	a->struct_bytes = (uint32_t)sizeof *a;
	a->rope_style = SPMLA_ROPE_NEOX;
	a->cos_sin_rows = CONTEXT;
	a->norm_eps = 1e-6f;
	a->kv_c = s->in[l][KV_C];
	a->kv_c_stride_elems = input_width[KV_C];
	a->k_pe = s->in[l][K_PE];
	a->k_pe_stride_elems = input_width[K_PE];
	a->index_k = s->in[l][INDEX_K];
	a->index_k_stride_elems = input_width[INDEX_K];
	a->index_norm_weight = r->norm_weight;
	a->index_norm_bias = r->norm_bias;
	a->cos_sin = r->cos_sin;
	a->index_q = s->in[l][INDEX_Q];
	a->index_q_token_stride_elems = input_width[INDEX_Q];
	a->index_q_head_stride_elems = SPMLA_INDEX_DIM;
	a->index_weights = s->in[l][WEIGHTS];
	a->index_weights_stride_elems = input_width[WEIGHTS];
	a->index_weights_dtype = SPMLA_DTYPE_BF16;
	a->q = s->in[l][QUERY];
	a->q_token_stride_elems = input_width[QUERY];
	a->q_head_stride_elems = SPMLA_MLA_DIM;
	a->out = (uint16_t *)device_memory(2 * TOKENS * out, 0);
	a->out_token_stride_elems = out;
	a->out_head_stride_elems = SPMLA_MLA_LATENT;
	a->lse = (float *)device_memory(4 * TOKENS * HEADS, 0);
	a->lse_token_stride_elems = HEADS;
	a->lse_head_stride_elems = 1;
	SPMLA(s->ctx, spmla_cache_view(s->ctx, SPMLA_BUF_KV_CACHE, l, &a->kv));
	SPMLA(s->ctx,
	      spmla_cache_view(s->ctx, SPMLA_BUF_INDEX_CACHE, l, &a->index));
	if (l == 0) {
		a->topk_indices =
			(int32_t *)device_memory(4 * TOKENS * TOPK, 0);
		a->topk_lens = (int32_t *)device_memory(4 * TOKENS, 0);
	}
}

static void
add(side *s, uint32_t *i, const char *name, void *at, uint64_t bytes)
{
	s->pieces[*i].name = name;
	s->pieces[*i].words = (uint32_t *)at;
	s->pieces[*i].count = bytes / 4;
	(*i)++;
}

static void
add_view(side *s, uint32_t *i, const char *name, spmla_buf buf)
{
	uint64_t bytes = 0;
	void *at = spmla_view(s->ctx, buf, &bytes);

	add(s, i, name, at, bytes);
}

static void
open_side(rig *r, side *s)
{
	static const char *const names[LAYERS][4] = {
		{"out of layer 0", "lse of layer 0", "top-k of layer 0",
		 "top-k lengths of layer 0"},
		{"out of layer 1", "lse of layer 1", "TOPK_INDICES",
		 "TOPK_LENS"}};
	uint32_t i = 0;

	open_context(r, s);
	for (uint32_t l = 0; l < LAYERS; l++) {
		const spmla_v32_layer *a = &s->layer[l];
		const uint32_t rows = TOKENS;

		open_layer(r, s, l);
		add(s, &i, names[l][0], a->out,
		    (uint64_t)2 * rows * HEADS * SPMLA_MLA_LATENT);
		add(s, &i, names[l][1], a->lse, (uint64_t)4 * rows * HEADS);
		if (l == 0) {
			s->topk[l] = a->topk_indices;
			add(s, &i, names[l][2], a->topk_indices,
			    (uint64_t)4 * rows * TOPK);
			add(s, &i, names[l][3], a->topk_lens, 4 * rows);
			continue;
		}
		s->topk[l] = (int32_t *)spmla_view(
			s->ctx, SPMLA_BUF_TOPK_INDICES, NULL);
		add_view(s, &i, names[l][2], SPMLA_BUF_TOPK_INDICES);
		add_view(s, &i, names[l][3], SPMLA_BUF_TOPK_LENS);
	}
	add_view(s, &i, "KV_CACHE", SPMLA_BUF_KV_CACHE);
	add_view(s, &i, "INDEX_CACHE", SPMLA_BUF_INDEX_CACHE);
}

void
rig_open(rig *r)
{
	memset(r, 0, sizeof *r);
	r->swap = OPS;
	r->rng = 20260131;
	CUDA(cudaSetDevice(0));
	CUDA(cudaFree(NULL)); /* makes the context current, also before 12 */
	r->context = current_context();
	CUDA(cudaStreamCreateWithFlags(&r->stream, cudaStreamNonBlocking));
	r->seed = (uint32_t *)device_memory(4, 0);
	r->cos_sin = floats(CONTEXT * SPMLA_INDEX_ROPE);
	r->norm_weight = floats(SPMLA_INDEX_DIM);
	r->norm_bias = floats(SPMLA_INDEX_DIM);
	r->reports = (report *)device_memory(
		(uint64_t)MAX_STEPS * PIECES * sizeof *r->reports, 0xff);
	make_plan(r);
	open_side(r, &r->graph);
	open_side(r, &r->eager);
	CUDA(cudaDeviceSynchronize());
	(void)read_reports(r, MAX_STEPS, 1);
	/* Warm: kernels of the runtime are loaded when they first run, which
	 * is not to be in a capture. */
	write_step(r, 1, 0);
	enqueue_step(r, &r->graph, shape_of(r, 1));
	check_step(r, 0);
	if (read_reports(r, 1, 0))
		COMPLAIN("two eager steps differ");
	expect_clean(r, "open");
}

void
rig_close(rig *r)
{
	CUDA(cudaStreamSynchronize(r->stream));
	expect_clean(r, "close");
	SPMLA(NULL, spmla_fini(r->graph.ctx));
	SPMLA(NULL, spmla_fini(r->eager.ctx));
	for (uint32_t b = 0; b < BUCKETS; b++)
		if (r->exec[b])
			CUDA(cudaGraphExecDestroy(r->exec[b]));
	CUDA(cudaStreamDestroy(r->stream));
	if (cudaGetLastError() != cudaSuccess ||
	    current_context() != r->context)
		COMPLAIN("spmla_fini left an error or another context");
}
