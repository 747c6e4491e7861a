/* SPDX-License-Identifier: Apache-2.0
 *
 * See cuda_fake.h.
 */
#include "tests/substitutes/cuda_fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "spmla/internal/gpu_sizes.h"
#include "spmla/spmla_cuda.h"
#include "tests/emulator/emulator.h"

enum {
	HANDLES = 512,
	STREAMS = 4,
	NODES = 1024,
	PARAMS_BYTES = 1024,
	DEPTH = 8
};

typedef enum kind {
	FREE,
	CONTEXT,
	MODULE,
	FUNCTION,
	STREAM,
	EVENT,
	GRAPH,
	EXEC
} kind;

/* How a stream takes part in a capture that another one began. */
typedef enum branch { NO_BRANCH, FORKED, UNJOINED } branch;

typedef struct node {
	uint32_t kernel;
	uint32_t blocks;
	_Alignas(16) uint8_t params[PARAMS_BYTES];
} node;

typedef struct handle {
	kind kind;
	uint32_t kernel;        /* of a function */
	struct handle *module;  /* of a function */
	int status;             /* of a stream's capture */
	struct handle *capture; /* the graph that a stream's capture grows; of
	                         * an event, where it was recorded */
	struct handle *stream;  /* of an event, where it was recorded */
	double ms;              /* of an event, when it was recorded */
	branch branch;          /* of a stream */
	uint64_t behind;        /* of a stream, an event: launches that must end
	                         * before whatever follows it begins */
	uint32_t count;
	node *nodes;
} handle;

cuda_fake fake;
static handle handles[HANDLES];
static handle *stack[DEPTH]; /* stack[0] is the caller's own current one */
static handle *streams[STREAMS], *events[STREAMS], *context;

static const char *const names[CUDA_FAKE_CALLS] = {
#define SHARED(field, name, version)   name version,
#define OWN(field, symbol, parameters) symbol,
	SPMLA_CU_NAMES(SHARED) SPMLA_CU_OWN(OWN) SPMLA_HIP_OWN(OWN)
		SPMLA_HIP_PROPERTIES(OWN)
#undef SHARED
#undef OWN
};

/* Ends a program that breaks the driver's rules. It may be no test: libcuda.c
 * also uses this. */
static void
must(int kept, const char *what)
{
	if (kept)
		return;
	fprintf(stderr, "fake driver: %s\n", what);
	abort();
}

const char *
cuda_fake_name(cuda_fake_call call)
{
	return names[call];
}

static handle *
make(kind k)
{
	uint32_t i;

	for (i = 0; i < HANDLES; i++)
		if (handles[i].kind == FREE) {
			memset(&handles[i], 0, sizeof handles[i]);
			handles[i].kind = k;
			if (k == GRAPH)
				handles[i].nodes = calloc(NODES, sizeof(node));
			return &handles[i];
		}
	must(0, "out of handles");
	return NULL;
}

static handle *
known(void *p, kind k)
{
	handle *h = p;

	must(h >= handles && h < handles + HANDLES && h->kind == k,
	     "no live handle of that kind");
	return h;
}

static void
end(void *p, kind k)
{
	handle *h = known(p, k);

	free(h->nodes);
	h->nodes = NULL;
	h->kind = FREE;
	fake.alive--;
}

int
cuda_fake_enter(cuda_fake_call call)
{
	fake.calls[call]++;
	fake.total++;
	if (fake.total != fake.fail_at)
		return 0;
	fake.failed = (int)call;
	return fake.code;
}

/* The same for a call that needs a current context. */
static int
enter_current(cuda_fake_call call)
{
	must(stack[fake.depth] == context, names[call]);
	return cuda_fake_enter(call);
}

/* ---- The driver --------------------------------------------------------- */

static int
f_init(unsigned flags)
{
	must(flags == 0, __func__);
	return cuda_fake_enter(CUDA_FAKE_init);
}

static int
f_driver_version(int *version)
{
	const int r = cuda_fake_enter(CUDA_FAKE_driver_version);

	*version = r ? 0 : fake.version;
	return r;
}

static int
f_ctx_current(spmla_cu_context *ctx)
{
	const int r = cuda_fake_enter(CUDA_FAKE_ctx_current);

	*ctx = r ? NULL : (void *)stack[fake.depth];
	return r;
}

static int
f_ctx_push(spmla_cu_context ctx)
{
	const int r = cuda_fake_enter(CUDA_FAKE_ctx_push);

	if (r)
		return r;
	must(fake.depth + 1 < DEPTH, __func__);
	stack[++fake.depth] = known(ctx, CONTEXT);
	return 0;
}

static int
f_ctx_pop(spmla_cu_context *ctx)
{
	const int r = cuda_fake_enter(CUDA_FAKE_ctx_pop);

	must(fake.depth > 0, __func__);
	*ctx = (void *)stack[fake.depth--];
	return r;
}

static int
f_ctx_device(spmla_cu_device *device)
{
	*device = 0;
	return enter_current(CUDA_FAKE_ctx_device);
}

static int
f_attribute(int *value, int attribute, spmla_cu_device device)
{
	const int r = cuda_fake_enter(CUDA_FAKE_attribute);

	must(device == 0, __func__);
	if (r)
		return r;
	switch (attribute) {
	case SPMLA_CU_ATTRIBUTE_WARP_SIZE:
		*value = fake.warp;
		return 0;
	case SPMLA_CU_ATTRIBUTE_SM_COUNT:
		*value = fake.sm_count;
		return 0;
	case SPMLA_CU_ATTRIBUTE_MAJOR:
		*value = fake.major;
		return 0;
	case SPMLA_CU_ATTRIBUTE_MINOR:
		*value = fake.minor;
		return 0;
	case CUDA_FAKE_PAGEABLE:
		*value = 0;
		return 0;
	case CUDA_FAKE_SAME_ADDRESS:
		*value = 1;
		return 0;
	default:
		return 1; /* CUDA_ERROR_INVALID_VALUE */
	}
}

static int
f_module_load(spmla_gpu_module *module, const void *image)
{
	const int r = enter_current(CUDA_FAKE_module_load);

	must(image != NULL, __func__);
	if (r)
		return r;
	*module = (void *)make(MODULE);
	fake.alive++;
	return 0;
}

static int
f_module_unload(spmla_gpu_module module)
{
	uint32_t i;

	for (i = 0; i < HANDLES; i++)
		if (handles[i].kind == FUNCTION &&
		    (void *)handles[i].module == (void *)module)
			handles[i].kind = FREE;
	end(module, MODULE);
	return enter_current(CUDA_FAKE_module_unload);
}

static int
f_module_function(spmla_gpu_function *function, spmla_gpu_module module,
		  const char *name)
{
	const int r = enter_current(CUDA_FAKE_module_function);
	uint32_t i;

	known(module, MODULE);
	if (r)
		return r;
	for (i = 0; i < SPMLA_KERNEL_COUNT; i++)
		if (strcmp(spmla_i_gpu_kernels[i].name, name) == 0) {
			handle *h = make(FUNCTION);

			h->kernel = i;
			h->module = (void *)module;
			*function = (void *)h;
			return 0;
		}
	return 500; /* CUDA_ERROR_NOT_FOUND */
}

static int
f_function_attribute(int *value, int attribute, spmla_gpu_function function)
{
	const int r = enter_current(CUDA_FAKE_function_attribute);

	known(function, FUNCTION);
	must(attribute == SPMLA_GPU_FUNCTION_LOCAL_BYTES, __func__);
	*value = r ? 0 : fake.local_bytes;
	return r;
}

static int
f_set_function_attribute(spmla_gpu_function function, int attribute, int value)
{
	const int r = enter_current(CUDA_FAKE_set_function_attribute);
	const handle *h = known(function, FUNCTION);

	must(attribute == SPMLA_GPU_FUNCTION_DYNAMIC_BYTES, __func__);
	must(value == (int)spmla_i_gpu_kernels[h->kernel].dynamic_bytes,
	     __func__);
	return r;
}

static int
f_occupancy(int *blocks, spmla_gpu_function function, int items,
	    size_t shared_bytes)
{
	const int r = enter_current(CUDA_FAKE_occupancy);
	const handle *h = known(function, FUNCTION);

	must(items == (int)spmla_i_gpu_kernels[h->kernel].items, __func__);
	must(shared_bytes == spmla_i_gpu_kernels[h->kernel].dynamic_bytes,
	     __func__);
	*blocks = r ? 0 : fake.blocks;
	return r;
}

/* Notes what streams and events put in order, though all launches run at once
 * here. */
static void
follow(handle *s, uint32_t kernel)
{
	const uint32_t n = fake.launches++;

	if (n >= CUDA_FAKE_LAUNCHES)
		return;
	fake.launch[n].kernel = kernel;
	fake.launch[n].behind = s->behind;
	s->behind |= UINT64_C(1) << n;
}

void
cuda_fake_follow(void)
{
	uint32_t i;

	fake.launches = 0;
	for (i = 0; i < HANDLES; i++)
		handles[i].behind = 0;
}

enum { LATER = 512 };
static struct {
	void *to;
	const void *from;
	unsigned char byte;
	size_t bytes;
} later[LATER];
static uint32_t laters;

void
cuda_fake_later(void *to, const void *from, unsigned char byte, size_t bytes)
{
	must(laters < LATER, __func__);
	later[laters].to = to;
	later[laters].from = from;
	later[laters].byte = byte;
	later[laters++].bytes = bytes;
}

void
cuda_fake_catch_up(void)
{
	uint32_t i;

	for (i = 0; i < laters; i++)
		if (later[i].from)
			memmove(later[i].to, later[i].from, later[i].bytes);
		else
			memset(later[i].to, later[i].byte, later[i].bytes);
	laters = 0;
}

static int
f_launch_kernel(spmla_gpu_function function, unsigned grid_x, unsigned grid_y,
		unsigned grid_z, unsigned block_x, unsigned block_y,
		unsigned block_z, unsigned shared_bytes,
		spmla_gpu_stream stream, void **params, void **extra)
{
	const int r = enter_current(CUDA_FAKE_launch_kernel);
	const handle *f = known(function, FUNCTION);
	handle *s = known(stream, STREAM);
	const spmla_i_gpu_kernel *k = &spmla_i_gpu_kernels[f->kernel];
	node n;
	uint32_t i;

	must(grid_x > 0 && grid_y == 1 && grid_z == 1, __func__);
	must(block_x == k->items && block_y == 1 && block_z == 1, __func__);
	must(shared_bytes == k->dynamic_bytes && extra == NULL, __func__);
	must(k->params_bytes <= PARAMS_BYTES, __func__);
	if (r)
		return r;
	if (s->status == 2)
		return 901; /* CUDA_ERROR_STREAM_CAPTURE_INVALIDATED */
	follow(s, f->kernel);
	memset(&n, 0, sizeof n);
	n.kernel = f->kernel;
	n.blocks = grid_x;
	for (i = 0; i < k->pointers; i++)
		memcpy(n.params + i * sizeof(void *), params[i],
		       sizeof(void *));
	memcpy(n.params + k->scalars_offset, params[i],
	       k->params_bytes - k->scalars_offset);
	if (s->status == SPMLA_GPU_CAPTURE_NONE) {
		emulator_run((spmla_i_kernel)n.kernel, n.blocks, n.params);
		cuda_fake_catch_up();
		return 0;
	}
	must(s->capture->count < NODES, __func__);
	s->capture->nodes[s->capture->count++] = n;
	if (s->branch == FORKED)
		s->branch = UNJOINED;
	return 0;
}

static int
f_memset_async(spmla_gpu_ptr to, unsigned char byte, size_t count,
	       spmla_gpu_stream stream)
{
	const int r = enter_current(CUDA_FAKE_memset_async);

	must(known(stream, STREAM)->status == SPMLA_GPU_CAPTURE_NONE, __func__);
	if (r)
		return r;
	memset((void *)(uintptr_t)to, byte, count);
	fake.memset_bytes += (uint32_t)count;
	fake.not_waited_for++;
	return 0;
}

static int
f_stream_create(spmla_gpu_stream *stream, unsigned flags)
{
	const int r = enter_current(CUDA_FAKE_stream_create);

	must(flags == SPMLA_GPU_STREAM_NON_BLOCKING, __func__);
	if (r)
		return r;
	*stream = (void *)make(STREAM);
	fake.alive++;
	return 0;
}

static int
f_stream_destroy(spmla_gpu_stream stream)
{
	end(stream, STREAM);
	return enter_current(CUDA_FAKE_stream_destroy);
}

static int
f_stream_sync(spmla_gpu_stream stream)
{
	if (!stream)
		cuda_fake_catch_up();
	else
		must(known(stream, STREAM)->status == SPMLA_GPU_CAPTURE_NONE,
		     __func__);
	fake.not_waited_for = 0;
	return enter_current(CUDA_FAKE_stream_sync);
}

static int
f_event_record(spmla_gpu_event event, spmla_gpu_stream stream)
{
	const int r = enter_current(CUDA_FAKE_event_record);
	handle *e = known(event, EVENT);
	struct timespec now;

	if (r)
		return r;
	clock_gettime(CLOCK_MONOTONIC, &now);
	e->ms = (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
	e->stream = known(stream, STREAM);
	e->capture = e->stream->capture;
	e->behind = e->stream->behind;
	return 0;
}

static int
f_stream_wait(spmla_gpu_stream stream, spmla_gpu_event event, unsigned flags)
{
	const int r = enter_current(CUDA_FAKE_stream_wait);
	handle *s = known(stream, STREAM);
	const handle *e = known(event, EVENT);

	must(flags == 0 && e->stream, __func__);
	if (!r)
		s->behind |= e->behind;
	if (r || !e->capture)
		return r;
	if (!s->capture) {
		s->status = SPMLA_GPU_CAPTURE_ACTIVE;
		s->capture = e->capture;
		s->branch = FORKED;
	} else if (e->stream->branch == UNJOINED) {
		e->stream->branch = FORKED;
	}
	return 0;
}

static int
f_stream_capturing(spmla_gpu_stream stream, int *status)
{
	const int r = enter_current(CUDA_FAKE_stream_capturing);

	*status = known(stream, STREAM)->status;
	return r;
}

static int
f_capture_begin(spmla_gpu_stream stream, int mode)
{
	const int r = enter_current(CUDA_FAKE_capture_begin);
	handle *s = known(stream, STREAM);

	must(fake.capture_mode < 0 || mode == fake.capture_mode, __func__);
	if (r)
		return r;
	if (s->status)
		return 401; /* CUDA_ERROR_ILLEGAL_STATE */
	s->status = SPMLA_GPU_CAPTURE_ACTIVE;
	s->capture = make(GRAPH);
	fake.alive++;
	return 0;
}

static int
f_capture_end(spmla_gpu_stream stream, spmla_gpu_graph *graph)
{
	const int r = enter_current(CUDA_FAKE_capture_end);
	handle *s = known(stream, STREAM);
	handle *g = s->capture;
	const int bad = s->status == 2;
	int unjoined = 0;
	uint32_t i;

	must(s->status != SPMLA_GPU_CAPTURE_NONE, __func__);
	if (r == SPMLA_GPU_WRONG_THREAD)
		return r;
	for (i = 0; i < HANDLES; i++)
		if (handles[i].kind == STREAM && handles[i].capture == g) {
			if (handles[i].branch == UNJOINED)
				unjoined = 1;
			handles[i].status = SPMLA_GPU_CAPTURE_NONE;
			handles[i].capture = NULL;
			handles[i].branch = NO_BRANCH;
		}
	fake.nodes = g->count;
	*graph = NULL;
	if (r || bad || unjoined) {
		end(g, GRAPH);
		return r ? r : bad ? 901 : 904; /* .._CAPTURE_UNJOINED */
	}
	*graph = (void *)g;
	return 0;
}

static int
f_graph_destroy(spmla_gpu_graph graph)
{
	end(graph, GRAPH);
	return enter_current(CUDA_FAKE_graph_destroy);
}

static int
f_graph_instantiate(spmla_gpu_exec *exec, spmla_gpu_graph graph, uint64_t flags)
{
	const int r = enter_current(CUDA_FAKE_graph_instantiate);
	const handle *g = known(graph, GRAPH);
	handle *e;

	must(flags == 0, __func__);
	if (r) {
		*exec = (void *)&fake; /* worthless */
		return r;
	}
	e = make(EXEC);
	e->nodes = calloc(NODES, sizeof(node));
	memcpy(e->nodes, g->nodes, NODES * sizeof(node));
	e->count = g->count;
	*exec = (void *)e;
	fake.alive++;
	return 0;
}

static int
f_exec_destroy(spmla_gpu_exec exec)
{
	end(exec, EXEC);
	return enter_current(CUDA_FAKE_exec_destroy);
}

static int
f_graph_upload(spmla_gpu_exec exec, spmla_gpu_stream stream)
{
	known(exec, EXEC);
	must(known(stream, STREAM)->status == SPMLA_GPU_CAPTURE_NONE, __func__);
	return enter_current(CUDA_FAKE_graph_upload);
}

static int
f_graph_launch(spmla_gpu_exec exec, spmla_gpu_stream stream)
{
	const int r = enter_current(CUDA_FAKE_graph_launch);
	const handle *e = known(exec, EXEC);
	uint32_t i;

	must(known(stream, STREAM)->status == SPMLA_GPU_CAPTURE_NONE, __func__);
	for (i = 0; r == 0 && i < e->count; i++)
		emulator_run((spmla_i_kernel)e->nodes[i].kernel,
			     e->nodes[i].blocks, e->nodes[i].params);
	cuda_fake_catch_up();
	return r;
}

const spmla_i_cuda_driver cuda_fake_driver = {
#define SHARED(field, parameters)      f_##field,
#define OWN(field, symbol, parameters) f_##field,
	{&spmla_i_cuda_platform, SPMLA_GPU_FUNCTIONS(SHARED)}, SPMLA_CU_OWN(OWN)
#undef SHARED
#undef OWN
};

/* ---- The backend -------------------------------------------------------- */

static spmla_status
backend_query(const spmla_native *native, spmla_device *device,
	      spmla_diag *diag)
{
	const spmla_status s = spmla_i_gpu_query(&cuda_fake_driver.gpu, 13000,
						 native, device, diag);

	if (s == SPMLA_OK)
		device->ops = cuda_fake_backend.ops;
	return s;
}

static spmla_status
backend_init(spmla_ctx *ctx, const spmla_native *native, spmla_diag *diag)
{
	static const spmla_i_gpu_image image = {"fatbin", 6, 13000, NULL};

	memset(ctx->buf[SPMLA_BUF_BACKEND_STATE], 0, sizeof(spmla_i_gpu_state));
	return spmla_i_gpu_init(ctx, &cuda_fake_driver.gpu, &image, native,
				diag);
}

spmla_backend cuda_fake_backend;

void
cuda_fake_reset(void)
{
	uint32_t i;

	for (i = 0; i < HANDLES; i++)
		free(handles[i].nodes);
	memset(handles, 0, sizeof handles);
	memset(&fake, 0, sizeof fake);
	fake.version = 13000;
	fake.major = 9;
	fake.sm_count = 4;
	fake.warp = 32;
	fake.capture_mode = SPMLA_GPU_CAPTURE_THREAD_LOCAL;
	fake.blocks = 2;
	fake.code = 999;
	fake.failed = -1;
	context = make(CONTEXT);
	stack[0] = context;
	for (i = 0; i < STREAMS; i++) {
		streams[i] = make(STREAM);
		events[i] = make(EVENT);
	}
	cuda_fake_backend = spmla_cuda;
	cuda_fake_backend.ops = SPMLA_I_OP_BIT(SPMLA_OP_COUNT) - 1;
	cuda_fake_backend.query = backend_query;
	cuda_fake_backend.init = backend_init;
}

/* ---- The caller --------------------------------------------------------- */

spmla_stream
cuda_fake_stream(uint32_t i)
{
	return streams[i];
}

void *
cuda_fake_event(uint32_t i)
{
	return events[i];
}

double
cuda_fake_event_ms(void *event)
{
	return known(event, EVENT)->ms;
}

void *
cuda_fake_context(void)
{
	return context;
}

void
cuda_fake_set_current(uint32_t on)
{
	stack[0] = on ? context : NULL;
}

void
cuda_fake_capture(uint32_t i)
{
	streams[i]->status = SPMLA_GPU_CAPTURE_ACTIVE;
	streams[i]->capture = make(GRAPH);
}

/* The exec is the graph itself. */
void *
cuda_fake_capture_end(uint32_t i)
{
	handle *g = streams[i]->capture;

	streams[i]->status = SPMLA_GPU_CAPTURE_NONE;
	streams[i]->capture = NULL;
	fake.nodes = g->count;
	return g;
}

void
cuda_fake_capture_launch(void *exec)
{
	const handle *g = known(exec, GRAPH);
	uint32_t i;

	for (i = 0; i < g->count; i++)
		emulator_run((spmla_i_kernel)g->nodes[i].kernel,
			     g->nodes[i].blocks, g->nodes[i].params);
}

void
cuda_fake_invalidate(uint32_t i)
{
	streams[i]->status = 2;
}

void
cuda_fake_join(uint32_t i, uint32_t of)
{
	streams[i]->status = SPMLA_GPU_CAPTURE_ACTIVE;
	streams[i]->capture = streams[of]->capture;
}
