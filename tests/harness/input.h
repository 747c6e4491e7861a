/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes of an input as numbers. The hard idea is that a number is mostly small
 * and sometimes an edge of its type, so that a few bytes reach both the deep
 * code and the checks before it.
 */
#ifndef TESTS_HARNESS_INPUT_H
#define TESTS_HARNESS_INPUT_H

#include <stdint.h>
#include <string.h>

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

#endif
