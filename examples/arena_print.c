/* SPDX-License-Identifier: Apache-2.0
 *
 * See arena_print.h. Everything comes from spmla_plan_row: no size is computed
 * a second time here.
 */
#include "examples/arena_print.h"

#include <inttypes.h>
#include <string.h>

const char *
bytes_text(uint64_t bytes, char text[BYTES_TEXT])
{
	static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double x = (double)bytes;
	uint32_t u = 0;

	while (x >= 1023.95 && u < 4) {
		x /= 1024;
		u++;
	}
	snprintf(text, BYTES_TEXT, u == 0 ? "%.0f %s" : "%.1f %s", x, unit[u]);
	return text;
}

static int
comes_before(const spmla_row *a, const spmla_row *b)
{
	if (a->memory != b->memory)
		return a->memory < b->memory;
	if (a->offset_bytes != b->offset_bytes)
		return a->offset_bytes < b->offset_bytes;
	return a->life < b->life;
}

uint32_t
arena_rows(const spmla_plan *plan, spmla_row rows[SPMLA_MAX_PLAN_ROWS])
{
	uint32_t n = 0, i, k;

	for (i = 0; i < plan->row_count && n < SPMLA_MAX_PLAN_ROWS; i++) {
		spmla_row row = SPMLA_ROW_INIT;

		if (spmla_plan_row(plan, i, &row) != SPMLA_OK || row.bytes == 0)
			continue;
		for (k = n++; k > 0 && comes_before(&row, &rows[k - 1]); k--)
			rows[k] = rows[k - 1];
		rows[k] = row;
	}
	return n;
}

uint64_t
arena_phase_bytes(const spmla_plan *plan, uint32_t life)
{
	uint64_t end = 0;
	uint32_t i;

	for (i = 0; i < plan->row_count; i++) {
		const spmla_extent *e = &plan->extents[i];
		const int alive = e->life == SPMLA_LIFE_CONTEXT ||
				  e->life == life ||
				  (e->life == SPMLA_LIFE_STEP &&
				   life != SPMLA_LIFE_CONTEXT);

		if (e->memory == SPMLA_MEMORY_DEVICE && alive &&
		    e->offset_bytes + e->bytes > end)
			end = e->offset_bytes + e->bytes;
	}
	return end;
}

void
arena_print(const spmla_plan *plan, FILE *out)
{
	spmla_row rows[SPMLA_MAX_PLAN_ROWS];
	const uint32_t n = arena_rows(plan, rows);
	char text[BYTES_TEXT];
	int name = 0, length;
	uint32_t i;

	for (i = 0; i < n; i++) {
		length = (int)strlen(rows[i].name);
		name = length > name ? length : name;
	}
	fprintf(out, "%-7s %-8s %14s %16s  %-*s %-28s %s\n", "memory", "life",
		"offset", "bytes", name, "buffer", "shape", "writer");
	for (i = 0; i < n; i++)
		fprintf(out,
			"%-7s %-8s %14" PRIu64 " %16" PRIu64
			"  %-*s %-28s %s\n",
			spmla_memory_name(rows[i].memory),
			spmla_life_name(rows[i].life), rows[i].offset_bytes,
			rows[i].bytes, name, rows[i].name, rows[i].shape,
			rows[i].writer);
	for (i = 0; i < SPMLA_MEMORY_COUNT; i++)
		fprintf(out,
			"region %-8s %16" PRIu64 "  (%s, aligned %" PRIu64
			")\n",
			spmla_memory_name(i), plan->region_bytes[i],
			bytes_text(plan->region_bytes[i], text),
			plan->region_align[i]);
	for (i = 0; i < SPMLA_LIFE_COUNT; i++) {
		if (plan->life_bytes[i] == 0)
			continue;
		fprintf(out, "peak   %-8s %16" PRIu64 "  (%s of DEVICE)\n",
			spmla_life_name(i), arena_phase_bytes(plan, i),
			bytes_text(arena_phase_bytes(plan, i), text));
	}
	fprintf(out, "a record of a step takes at most %" PRIu64 " bytes\n",
		plan->record_bytes);
}
