/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the CUDA bench share: the driver in our own words, memory
 * that is there twice, rows of the table, and how a shape is timed.
 */
#ifndef BENCH_CUDA_H
#define BENCH_CUDA_H

#include <stddef.h>
#include <stdint.h>

#include "spmla/spmla.h"

typedef uint64_t cu_ptr;

/* F(field, symbol, parameters). Handles are void *. */
#define BENCH_CU_FUNCTIONS(F)                                                  \
	F(init, "cuInit", (unsigned flags))                                    \
	F(driver_version, "cuDriverGetVersion", (int *version))                \
	F(device_get, "cuDeviceGet", (int *device, int ordinal))               \
	F(device_name, "cuDeviceGetName", (char *name, int size, int device))  \
	F(pci_bus_id, "cuDeviceGetPCIBusId",                                   \
	  (char *name, int size, int device))                                  \
	F(attribute, "cuDeviceGetAttribute",                                   \
	  (int *value, int attribute, int device))                             \
	F(retain, "cuDevicePrimaryCtxRetain", (void **context, int device))    \
	F(set_current, "cuCtxSetCurrent", (void *context))                     \
	F(sync_all, "cuCtxSynchronize", (void))                                \
	F(alloc, "cuMemAlloc_v2", (cu_ptr * to, size_t bytes))                 \
	F(release, "cuMemFree_v2", (cu_ptr at))                                \
	F(host_alloc, "cuMemHostAlloc",                                        \
	  (void **to, size_t bytes, unsigned flags))                           \
	F(host_release, "cuMemFreeHost", (void *at))                           \
	F(push, "cuMemcpyHtoD_v2", (cu_ptr to, const void *from, size_t n))    \
	F(pull, "cuMemcpyDtoH_v2", (void *to, cu_ptr from, size_t n))          \
	F(copy, "cuMemcpyDtoDAsync_v2",                                        \
	  (cu_ptr to, cu_ptr from, size_t n, void *stream))                    \
	F(set_bytes, "cuMemsetD8Async",                                        \
	  (cu_ptr to, unsigned char byte, size_t n, void *stream))             \
	F(stream_create, "cuStreamCreate", (void **stream, unsigned flags))    \
	F(stream_sync, "cuStreamSynchronize", (void *stream))                  \
	F(module_load, "cuModuleLoadData", (void **module, const void *image)) \
	F(module_function, "cuModuleGetFunction",                              \
	  (void **function, void *module, const char *name))                   \
	F(launch_kernel, "cuLaunchKernel",                                     \
	  (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,  \
	   unsigned block_x, unsigned block_y, unsigned block_z,               \
	   unsigned shared, void *stream, void **params, void **extra))        \
	F(capture_begin, "cuStreamBeginCapture_v2", (void *stream, int mode))  \
	F(capture_end, "cuStreamEndCapture", (void *stream, void **graph))     \
	F(graph_nodes, "cuGraphGetNodes",                                      \
	  (void *graph, void **nodes, size_t *count))                          \
	F(graph_destroy, "cuGraphDestroy", (void *graph))                      \
	F(instantiate, "cuGraphInstantiateWithFlags",                          \
	  (void **exec, void *graph, uint64_t flags))                          \
	F(graph_upload, "cuGraphUpload", (void *exec, void *stream))           \
	F(graph_launch, "cuGraphLaunch", (void *exec, void *stream))           \
	F(exec_destroy, "cuGraphExecDestroy", (void *exec))                    \
	F(event_create, "cuEventCreate", (void **event, unsigned flags))       \
	F(event_record, "cuEventRecord", (void *event, void *stream))          \
	F(event_ms, "cuEventElapsedTime", (float *ms, void *from, void *to))

typedef struct bench_cu {
#define FIELD(field, symbol, parameters) int(*field) parameters;
	BENCH_CU_FUNCTIONS(FIELD)
#undef FIELD
} bench_cu;

/* Where an operation runs: the index into twin.at. */
typedef enum side { ON_HOST, ON_DEVICE } side;

/* The same bytes on the host and on the device. For a result the host's are
 * the CPU backend's, the device's the measured one's. */
typedef struct twin {
	void *at[2];
	uint64_t bytes;
} twin;

enum { ROWS = 640, TWINS = 64, OUTPUTS = 10, TEXT = 64, SPOILT = 0xa5 };

/* A row of the table. Times in us. */
typedef struct cuda_row {
	const char *op;
	char shape[TEXT];
	char check[24];    /* "exact", the relative error, or "WRONG" */
	char series[TEXT]; /* of the picture; "" is in none */
	uint32_t batch;
	uint32_t nodes; /* of the graph */
	uint32_t best;  /* of the rows of one shape */
	double cold, p99, warm;
	double floor;
	const char *bound; /* what set the floor */
	double peer;       /* 0: not measured */
	double peer_most;  /* where peer is the least of a range */
	double peer_exact; /* a peer that always gives the same set */
	uint32_t peer_sum; /* 1: peer adds kernels that were measured alone */
} cuda_row;

/* A context of one backend, with its memory. */
typedef struct world {
	spmla_ctx *ctx;
	side on;
	spmla_plan plan;
	void *memory[SPMLA_MEMORY_COUNT];
	void *pinned; /* what PINNED lies in, on a device */
} world;

typedef struct gpu {
	bench_cu cu;
	void *stream;
	void *events[2];
	void *empty, *read; /* our kernels; NULL: a driver that has none */
	char name[128];     /* of the device */
	int device, sm_count;
	cu_ptr room;           /* of the flush and the roofs */
	world ops, fixed, cpu; /* for operations alone; the same,
				* batch-invariant */
	double read_bytes_us, copy_bytes_us, launch_us; /* the roofs */
	uint32_t repeats;
	double seconds; /* at most, a row */
	const char *only;
	uint32_t tiny, longer;
	uint32_t arch;  /* whose kernels; 0: the device's */
	uint32_t wrong; /* rows whose check failed */
	uint64_t rng;
	cuda_row rows[ROWS];
	uint32_t count;
	twin twins[TWINS];
	uint32_t twin_count;
} gpu;

typedef enum rate { BY_READ, BY_COPY } rate;
typedef enum product { NO_PRODUCT, BF16, E4M3 } product;

/* What is measured: `run` enqueues an operation on g->stream. If `launch` is
 * not NULL it is a replay of a graph of the library, and `prepare`, if not
 * NULL, is the host's part before it, which is not timed. */
typedef struct shot {
	const char *op;
	void (*run)(gpu *g);
	void (*prepare)(gpu *g);
	void (*launch)(gpu *g);
	const twin *outputs[OUTPUTS]; /* spoilt before the replays */
	uint32_t nodes;               /* with launch */
} shot;

/* ---- cuda_driver.c ------------------------------------------------------ */

/* Ends the program if the driver refuses, or the library does. */
#define CU(g, field, arguments) cu_must((g)->cu.field arguments, #field)
void cu_must(int code, const char *what);
void lib_must(const spmla_ctx *ctx, spmla_status s, const char *what);

/* 0 where there is no device. */
int gpu_open(gpu *g);
void gpu_describe(gpu *g);   /* prints what it is */
unsigned gpu_sm_mhz(gpu *g); /* now; 0: unknown */

/* ---- cuda_memory.c ------------------------------------------------------ */

twin *twin_make(gpu *g, uint64_t bytes);
void twin_push(gpu *g, const twin *t);
void twins_free(gpu *g); /* all of them */
void device_room(gpu *g, cu_ptr *to, uint64_t bytes);
void *host_room(uint64_t bytes); /* for the caller to free */

uint64_t next_random(gpu *g);
void fill_e4m3(gpu *g, void *to, uint64_t n); /* finite, below 2 */
void fill_bf16(gpu *g, void *to, uint64_t n, float most);
void fill_f32(gpu *g, void *to, uint64_t n, float least, float most);
void fill_order(gpu *g, int32_t *to, uint32_t n); /* 0 .. n-1, shuffled */

/* Draws the entries of a pool, on both sides. */
void fill_pool(gpu *g, const twin *t, uint32_t layout, uint32_t entries);
/* Pools of `pages` pages; each side of the twin has its own cache. */
twin *make_pool(gpu *g, uint32_t layout, uint32_t entries, uint32_t pages);
spmla_cache pool_cache(const twin *pool, side on, uint32_t layout,
		       uint32_t entries);

void world_open(gpu *g, world *w, const spmla_config *config, side on);
void world_close(gpu *g, world *w);

/* ---- cuda_check.c ------------------------------------------------------- */

/* The row's result against the CPU's: to the bit, or by the norm of the
 * difference over the norm. */
void check_bytes(gpu *g, cuda_row *r, const twin *t, uint64_t at, uint64_t n);
void check_bf16(gpu *g, cuda_row *r, const twin *t, uint64_t at, uint64_t n);
void check_f32(gpu *g, cuda_row *r, const twin *t, uint64_t at, uint64_t n);

/* The same for bf16 results of a layer that selects some `keys` random keys.
 * Where the scores of two keys differ by no more than rounding, the GPU may
 * select another one than the CPU. The bound allows one such key. */
void check_selected(gpu *g, cuda_row *r, const twin *t, uint64_t at, uint64_t n,
		    double keys);

/* ---- cuda_time.c -------------------------------------------------------- */

void measure_roofs(gpu *g);

/* NULL if --only has it not. */
int wanted(const gpu *g, const char *op);
cuda_row *measure(gpu *g, const shot *s);

/* Nodes that `run` makes in a graph. */
uint32_t count_nodes(gpu *g, void (*run)(gpu *g));
/* A graph of one empty kernel, for the caller to destroy; NULL: none. */
void *empty_graph(gpu *g);

/* ---- cuda_table.c ------------------------------------------------------- */

/* Adds a part of the row's floor: the larger of bytes and flop. */
void add_floor(gpu *g, cuda_row *r, double bytes, rate by, double flop,
	       product of);
void table_head(const gpu *g);
void table_row(gpu *g, cuda_row *r);
/* Marks the faster of two rows, and prints both. */
void table_pair(gpu *g, cuda_row *a, cuda_row *b);
int cuda_draw(const char *path, const cuda_row *rows, uint32_t count);

/* ---- cuda_peers.c ------------------------------------------------------- */

/* The device that the peers' times are of, and their date. */
const char *peers_date(const gpu *g);
/* Fills the row's peer fields. */
void peers_find(const gpu *g, cuda_row *r);

/* ---- cuda_op.c ---------------------------------------------------------- */

typedef enum compare { BY_BYTES, BY_BF16, BY_F32 } compare;

/* An op called alone, the same call on either side. What it leaves of an output
 * has to be left by both. */
typedef struct op_case {
	const char *op;
	spmla_status (*call)(spmla_ctx *ctx, side on, spmla_stream stream);
	const twin *outputs[OUTPUTS];
	compare by[OUTPUTS];
	uint64_t checked[OUTPUTS]; /* bytes that the host makes; 0: all */
	double bytes;              /* that have to move; the floor */
	rate rate;
	double flop;
	product product;
	uint32_t eager; /* no graph takes it: launched as it is */
} op_case;

/* Times it, compares it, prints "batch of", and frees all twins. */
void op_row(gpu *g, const op_case *c, uint32_t batch, const char *of);

/* Inputs, on both sides. */
twin *make_bf16(gpu *g, uint64_t n, float most);
twin *make_f32(gpu *g, uint64_t n, float least, float most);
twin *make_codes(gpu *g, uint64_t n); /* e4m3 */
twin *make_order(gpu *g, uint32_t n); /* i32: 0 .. n-1 in no order */
twin *make_slots(gpu *g, uint32_t n); /* i64: the same */
/* i32: below `below`. */
twin *make_draw(gpu *g, uint32_t n, uint32_t below);
/* i32: first, first + step, .. */
twin *make_steps(gpu *g, uint32_t n, int32_t first, int32_t step);

/* ---- The shapes --------------------------------------------------------- */

void bench_schedules(gpu *g);
void bench_topk(gpu *g);
void bench_logits(gpu *g);
void bench_decode(gpu *g);
void bench_prefill(gpu *g);
void bench_moves(gpu *g);
void bench_gathers(gpu *g);
void bench_metadata(gpu *g);
void bench_projections(gpu *g);
void bench_v4_rows(gpu *g);
void bench_v4_compress(gpu *g);
void bench_v4_index(gpu *g);
void bench_steps(gpu *g);
void bench_v4_steps(gpu *g);
void bench_v4_layers(gpu *g);

#endif
