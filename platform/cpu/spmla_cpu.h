/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU backend: the embedded default, the oracle of all others and, with its
 * deferred queue, a device whose timeline a test can stop.
 *
 * The functions below are for contexts of this backend. For a context of
 * another backend, those that return a status return E_UNSUPPORTED, the others
 * 0 or "".
 */
#ifndef SPMLA_CPU_H
#define SPMLA_CPU_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The CPU backend, for spmla_init. */
extern const spmla_backend spmla_cpu;

/* The instruction set of the context's operations: "scalar", "avx2" or
 * "avx512", the best that the machine has and the native flags allow, chosen at
 * init. Returns "" for NULL, and never NULL. Between variants, results differ
 * within each operation's bounds. Under one variant, the same input gives the
 * same bits. */
const char *spmla_cpu_variant(const spmla_ctx *ctx);

/* With SPMLA_NATIVE_DEFERRED: runs the oldest `count` entries of the queue and
 * returns how many it ran. A replay is one entry, an eager operation is one. */
uint32_t spmla_cpu_queue_run(spmla_ctx *ctx, uint32_t count);

/* The number of entries that have not run. */
uint32_t spmla_cpu_queue_pending(const spmla_ctx *ctx);

/* A recorded list; 0 is none. */
typedef uint32_t spmla_cpu_list;

/* Capture and launch without SpMLA's graph calls, as an engine on a GPU may do.
 * The calls enqueued between begin and end are recorded. A launch is not
 * checked against the tickets: the engine keeps the order and calls
 * spmla_step_launched. Lists share max_graphs and max_graph_nodes with the
 * graphs and live until fini.
 * Errors: as spmla_graph_begin, _end, _abort and _replay, except that a failed
 * operation does not fail the capture. */
spmla_status spmla_cpu_capture_begin(spmla_ctx *ctx);
spmla_status spmla_cpu_capture_end(spmla_ctx *ctx, spmla_cpu_list *list);
spmla_status spmla_cpu_capture_abort(spmla_ctx *ctx);
spmla_status spmla_cpu_launch(spmla_ctx *ctx, spmla_cpu_list list);

#ifdef __cplusplus
}
#endif
#endif
