/* SPDX-License-Identifier: Apache-2.0
 *
 * The positions that a token sees: its window, and all of its image, which may
 * go on behind the token.
 */
#ifndef SPMLA_PLATFORM_CPU_SELECT_WINDOW_CPU_H
#define SPMLA_PLATFORM_CPU_SELECT_WINDOW_CPU_H

#include <stddef.h>
#include <stdint.h>

/* Positions [start, end); never empty. */
typedef struct spmla_i_cpu_window {
	uint32_t start;
	uint32_t end;
} spmla_i_cpu_window;

/* The window of position pos >= 0. It starts at `from` <= pos or later and has
 * at most `most` positions, enough to include pos. `span` has the first and
 * last position of the token's image, if it is not NULL and holds pos. */
static inline spmla_i_cpu_window
spmla_i_cpu_window_of(int32_t pos, uint32_t window, const int32_t *span,
		      uint32_t max_image, uint32_t from, uint32_t most)
{
	const uint32_t own = (uint32_t)pos;
	uint32_t back = window - 1, ahead = 0;
	spmla_i_cpu_window w;

	if (span && span[0] <= pos && pos <= span[1]) {
		const uint32_t left = own - (uint32_t)span[0];
		const uint32_t held = left < max_image ? left : max_image - 1;

		back = held > back ? held : back;
		ahead = (uint32_t)span[1] - own;
		ahead = ahead < max_image ? ahead : max_image;
	}
	w.start = own > back ? own - back : 0;
	if (w.start < from)
		w.start = from;
	w.end = own + 1 + ahead;
	if (w.end - w.start > most)
		w.end = w.start + most;
	return w;
}

#endif
