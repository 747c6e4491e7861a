/* SPDX-License-Identifier: Apache-2.0
 *
 * What the fuzz targets share: promises that must hold, and a context whose
 * buffers lie apart with poisoned bytes between them.
 */
#ifndef TESTS_FUZZ_WORLD_H
#define TESTS_FUZZ_WORLD_H

#include "spmla/internal/backend.h"
#include "spmla/spmla_cpu.h"
#include "tests/harness/input.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/* A broken promise is a crash to libFuzzer. */
#define REQUIRE(x)                                                       \
	do {                                                             \
		if (!(x)) {                                              \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, \
				__LINE__, #x);                           \
			abort();                                         \
		}                                                        \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct world {
	spmla_plan plan; /* row_count 0: not planned yet */
	spmla_region regions[SPMLA_MEMORY_COUNT];
	uint32_t region_count;
	spmla_ctx *ctx;
} world;

/* A small V3.2: 2 heads, 3 index heads, top-k 5, 5 rows, 40 tokens of context,
 * pages of 4, 12 pages, 2 ring slots, 3 buckets up to 8 tokens. */
void world_config(spmla_config *config);

/* A fresh context; memory is the same each time, every buffer filled with the
 * same byte first. */
void world_open(world *w, const spmla_config *config, uint32_t native_flags);
void world_close(world *w);

/* Writes the text of the context's diag into a buffer of any size. */
void world_diag(const world *w, input *in);

#endif
