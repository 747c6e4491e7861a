/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks that memory still has its fill byte. One Check assertion per byte
 * would take minutes.
 */
#ifndef TESTS_HARNESS_BYTES_H
#define TESTS_HARNESS_BYTES_H

#include <stdint.h>

/* The first of `count` bytes that is not `byte`, or count. */
static inline uint64_t
bytes_other(const void *bytes, uint64_t count, uint8_t byte)
{
	const uint8_t *b = bytes;
	uint64_t i;

	for (i = 0; i < count; i++)
		if (b[i] != byte)
			return i;
	return count;
}

#endif
