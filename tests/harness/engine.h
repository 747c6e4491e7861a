/* SPDX-License-Identifier: Apache-2.0
 *
 * What an engine does without SpMLA's graph calls: its own capture and launch,
 * on the backend that the context has. As spmla_cpu_capture_begin and the
 * others, which they are on the CPU.
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
