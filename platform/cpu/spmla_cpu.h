/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU backend: the embedded default, the oracle of all others, and, with
 * its deferred queue, a device whose timeline a test can hold still. The calls
 * are of its contexts: of another backend's, those that give a status give
 * E_UNSUPPORTED, the others 0 or "".
 */
#ifndef SPMLA_CPU_H
#define SPMLA_CPU_H

#include "spmla/spmla.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const spmla_backend spmla_cpu;

/* The instructions that the context's operations use, chosen at init by what
 * the machine has and the native flags allow: "scalar", "avx2" or "avx512"; of
 * NULL "", never NULL. Between variants, results differ within each operation's
 * bounds; under one, the same input gives the same bits. */
const char *spmla_cpu_variant(const spmla_ctx *ctx);

/* With SPMLA_NATIVE_DEFERRED: runs the oldest `count` entries of the queue (a
 * replay is one, an eager op is one); returns how many it ran. */
uint32_t spmla_cpu_queue_run(spmla_ctx *ctx, uint32_t count);

/* Entries that have not run. */
uint32_t spmla_cpu_queue_pending(const spmla_ctx *ctx);

/* The engine's own capture and launch, as an engine does on a GPU without
 * SpMLA's graph calls: what is enqueued in between is recorded. Such a launch
 * is not checked against the tickets; the engine keeps the order and tells
 * spmla_step_launched. Lists share max_graphs and max_graph_nodes with the
 * graphs and live until fini. Errors: as spmla_graph_begin, _end, _abort and
 * _replay, but that an op which failed does not fail the capture. */
typedef uint32_t spmla_cpu_list; /* 0 is none */

spmla_status spmla_cpu_capture_begin(spmla_ctx *ctx);
spmla_status spmla_cpu_capture_end(spmla_ctx *ctx, spmla_cpu_list *list);
spmla_status spmla_cpu_capture_abort(spmla_ctx *ctx);
spmla_status spmla_cpu_launch(spmla_ctx *ctx, spmla_cpu_list list);

#ifdef __cplusplus
}
#endif
#endif
