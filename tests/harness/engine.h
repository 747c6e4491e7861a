/* SPDX-License-Identifier: Apache-2.0
 *
 * Capture and launch without SpMLA's graph calls, as an engine does them, on
 * the context's backend. On the CPU these are spmla_cpu_capture_begin and the
 * others.
 */
#ifndef TESTS_HARNESS_ENGINE_H
#define TESTS_HARNESS_ENGINE_H

#include "spmla/spmla.h"

typedef uint32_t engine_list; /* 0 is none */

spmla_status engine_capture_begin(spmla_ctx *ctx);
spmla_status engine_capture_end(spmla_ctx *ctx, engine_list *list);
spmla_status engine_capture_abort(spmla_ctx *ctx);
spmla_status engine_launch(spmla_ctx *ctx, engine_list list);

#endif
