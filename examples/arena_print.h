/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan as text: one row per buffer, and the peak by phase.
 */
#ifndef EXAMPLES_ARENA_PRINT_H
#define EXAMPLES_ARENA_PRINT_H

#include <stdio.h>

#include "spmla/spmla.h"

enum { BYTES_TEXT = 16 };

/* "33.6 MiB" */
const char *bytes_text(uint64_t bytes, char text[BYTES_TEXT]);

/* The plan's rows in the order of memory and offset; returns their number. */
uint32_t arena_rows(const spmla_plan *plan,
		    spmla_row rows[SPMLA_MAX_PLAN_ROWS]);

/* The end of the last DEVICE buffer that is alive in a phase: of the phase
 * itself or of a longer life. */
uint64_t arena_phase_bytes(const spmla_plan *plan, uint32_t life);

void arena_print(const spmla_plan *plan, FILE *out);

/* The same as a picture, an SVG (arena_svg.c). */
void arena_draw(const spmla_plan *plan, FILE *out);

#endif
