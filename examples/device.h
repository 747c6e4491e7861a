/* SPDX-License-Identifier: Apache-2.0
 *
 * The device that the examples run on: the CPU, or a CUDA, HIP or Level Zero
 * device, whose driver is opened by dlopen, so that one program starts
 * everywhere. Both sides read the memory of a step's tensors at the same
 * address. Memory that only the device touches is its own.
 */
#ifndef EXAMPLES_DEVICE_H
#define EXAMPLES_DEVICE_H

#include <stdint.h>

#include "spmla/spmla.h"
#include "spmla/v4.h"

/* Finds a backend by name, "cpu", "cuda", "hip" or "level_zero", and makes a
 * context of the device, a stream, and the streams and events of branches.
 * Returns NULL, after a line on stderr, where there is none. */
const spmla_backend *device_open(const char *program, const char *name);
void device_close(void);

enum { DEVICE_TEXT = 160 };

/* "cpu (avx512), AMD EPYC", "cuda (sm_90), NVIDIA H100 80GB HBM3", "hip
 * (gfx942), AMD Instinct MI300X" or "level_zero (0xe20b), ..". */
void device_text(const spmla_ctx *ctx, char text[DEVICE_TEXT]);

/* For spmla_init, for every call that enqueues, and for replays. */
const spmla_native *device_native(void);
spmla_stream device_stream(void);
spmla_stream device_queue(void);

/* For the branches of a V4 layer; NULL on the CPU and on Level Zero, which have
 * none. */
const spmla_v4_branches *device_branches(void);

/* Memory that both sides read and write; NULL if there is none. */
void *device_shared(uint64_t bytes);
/* Memory of the device alone, zeroed; on the CPU the same as shared. */
void *device_own(uint64_t bytes);
void device_free_all(void);

/* Copies between any two of shared, own and host memory, after the work
 * enqueued before. The copy is done when this returns. */
void device_copy(void *to, const void *from, uint64_t bytes);

/* Waits for all enqueued work. */
void device_wait(void);

#endif
