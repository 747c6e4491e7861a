/* SPDX-License-Identifier: Apache-2.0
 *
 * What the fuzz targets share: bytes of the input as numbers, and a context
 * whose buffers lie apart with poisoned bytes between them. The hard idea is
 * that a number is mostly small and sometimes an edge of its type, so that a
 * few bytes reach both the deep code and the checks before it.
 */
#ifndef TESTS_FUZZ_INPUT_H
#define TESTS_FUZZ_INPUT_H

#include "spmla/internal/backend.h"
#include "spmla/spmla_cpu.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Reads zeros past its end. */
typedef struct input {
	const uint8_t *at;
	const uint8_t *end;
} input;

static inline uint32_t
in_left(const input *in)
{
	return (uint32_t)(in->end - in->at);
}

static inline uint32_t
in_u8(input *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

static inline uint32_t
in_below(input *in, uint32_t bound)
{
	return in_u8(in) % bound;
}

static inline uint32_t
in_u32(input *in)
{
	uint32_t x = in_u8(in);

	x |= in_u8(in) << 8;
	x |= in_u8(in) << 16;
	return x | in_u8(in) << 24;
}

/* One byte below 0xe0 is itself, the others are edges; the last takes four
 * bytes more. */
static inline uint32_t
in_edge(input *in)
{
	static const uint32_t edges[] = {
		0xffffffffu, 0xfffffffeu, 0xffffff00u, 0x80000000u,
		0x80000001u, 0x7fffffffu, 0x7ffffffeu, 0x40000000u,
		0xc0000000u, 0x10000u,    0xffffu,     0x1000000u,
		0x7f800000u, 0x7fc00000u, 0xff800000u, 0x100u,
		0x200u,      0x1000u,     0x7e800000u, 0x7e800001u};
	const uint32_t n = sizeof edges / sizeof *edges;
	const uint32_t x = in_u8(in);

	if (x < 0xe0)
		return x;
	if (x == 0xff)
		return in_u32(in);
	return edges[(x - 0xe0) % n];
}

/* A short pattern, over and over, a little different each time. */
static inline void
in_fill(input *in, void *to, uint64_t bytes)
{
	enum { PERIOD = 4096 };
	const uint32_t length = 1 + in_below(in, 16);
	const uint32_t drift = in_below(in, 8);
	uint8_t pattern[16];
	uint64_t i;

	for (i = 0; i < length; i++)
		pattern[i] = (uint8_t)in_u8(in);
	for (i = 0; i < bytes && i < PERIOD; i++)
		((uint8_t *)to)[i] =
			(uint8_t)(pattern[i % length] + i / length * drift);
	for (; i < bytes; i += PERIOD)
		memcpy((uint8_t *)to + i, to,
		       bytes - i < PERIOD ? bytes - i : PERIOD);
}

static inline void
in_fill_edges(input *in, uint32_t *to, uint64_t count)
{
	const uint32_t length = 1 + in_below(in, 8);
	const uint32_t drift = in_below(in, 3);
	uint32_t pattern[8];
	uint64_t i;

	for (i = 0; i < length; i++)
		pattern[i] = in_edge(in);
	for (i = 0; i < count; i++)
		to[i] = pattern[i % length] + (uint32_t)(i / length) * drift;
}

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
