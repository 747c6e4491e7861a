/* SPDX-License-Identifier: Apache-2.0
 *
 * The positions that a token's window covers: its last keys, and the keys of
 * the image that it is in, also behind it.
 */
#ifndef SPMLA_PLATFORM_GPU_SELECT_WINDOW_DEVICE_H
#define SPMLA_PLATFORM_GPU_SELECT_WINDOW_DEVICE_H

#include "spmla/platform/gpu/dialect/dialect.h"

#ifdef SPMLA_GPU_KERNELS

/* Positions [start, end); never empty. */
typedef struct g_window {
	uint32_t start;
	uint32_t end;
} g_window;

/* The window of position pos >= 0, with image [first, last] if pos is in it. It
 * begins at position `from` <= pos or later, and has at most `most` > pos -
 * start positions. */
FN g_window
g_window_of(int32_t pos, uint32_t window, int32_t first, int32_t last,
	    uint32_t max_image, uint32_t from, uint32_t most)
{
	const uint32_t own = (uint32_t)pos;
	uint32_t back = window - 1, ahead = 0;
	g_window w;

	if (first <= pos && pos <= last) {
		const uint32_t left = own - (uint32_t)first;
		const uint32_t held = left < max_image ? left : max_image - 1;

		back = held > back ? held : back;
		ahead = (uint32_t)last - own;
		ahead = ahead < max_image ? ahead : max_image;
	}
	w.start = own > back ? own - back : 0;
	w.start = w.start < from ? from : w.start;
	w.end = own + 1 + ahead;
	w.end = w.end - w.start > most ? w.start + most : w.end;
	return w;
}

#endif
#endif
