/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan as a picture: one bar per kind of memory, addresses downwards. Buffers
 * of phases that share bytes stand side by side at their offsets.
 *
 * The one idea: a few buffers hold nearly all bytes, so a true scale shows
 * nothing else. Here the bar is cut at every offset where a buffer starts or
 * ends. Each piece gets a height of its own: enough for a label, and more with
 * the logarithm of its bytes. Order and overlap stay true; sizes are in the
 * labels.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "examples/arena_print.h"

enum {
	MAX_CUTS = 2 * SPMLA_MAX_PLAN_ROWS + 1,
	TOP = 96,          /* of the bars */
	BAR_WIDTH = 190,   /* and of each lane of DEVICE */
	OFFSET_WIDTH = 88, /* room for the offsets left of a bar */
	MARGIN = 16,
	LABEL_HEIGHT = 15, /* the least of a buffer */
	LEGEND_LINE = 18,
	FONT = 11
};

/* The offsets of a kind of memory where a buffer starts or ends, and their
 * places in the picture. */
typedef struct axis {
	uint64_t at[MAX_CUTS];
	double y[MAX_CUTS];
	uint32_t count;
} axis;

typedef struct picture {
	FILE *out;
	const spmla_plan *plan;
	spmla_row rows[SPMLA_MAX_PLAN_ROWS];
	uint32_t row_count;
} picture;

static const char *
life_colour(uint32_t life)
{
	static const char *const colour[SPMLA_LIFE_COUNT] = {
		"#d3dbe0", "#ffe2a8", "#b9dfc6", "#cbd2f5", "#f3cfd8"};

	return life < SPMLA_LIFE_COUNT ? colour[life] : "#ffffff";
}

static int
is_v4(const picture *p)
{
	return p->plan->config.model != SPMLA_MODEL_V32;
}

static const char *
life_meaning(const picture *p, uint32_t life)
{
	static const char *const text[2][SPMLA_LIFE_COUNT] = {
		{"from init to fini", "from a prologue to the next",
		 "inside spmla_v32_index", "inside spmla_v32_attend", ""},
		{"from init to fini", "from a prologue to the next",
		 "inside spmla_v4_index", "inside spmla_v4_attend",
		 "inside spmla_v4_output"}};

	return life < SPMLA_LIFE_COUNT ? text[is_v4(p)][life] : "";
}

/* The phases that have a lane, from left to right. */
static uint32_t
lane_count(const picture *p)
{
	return is_v4(p) ? 3 : 2;
}

static void
add_cut(axis *a, uint64_t at)
{
	uint32_t i;

	for (i = 0; i < a->count; i++)
		if (a->at[i] == at)
			return;
	for (i = a->count++; i > 0 && a->at[i - 1] > at; i--)
		a->at[i] = a->at[i - 1];
	a->at[i] = at;
}

static uint32_t
cut_of(const axis *a, uint64_t at)
{
	uint32_t i = 0;

	while (i + 1 < a->count && a->at[i] < at)
		i++;
	return i;
}

/* Whether a buffer starts at a cut, so that its offset is written there. */
static int
is_start(const picture *p, uint32_t memory, uint64_t at)
{
	uint32_t i;

	for (i = 0; i < p->row_count; i++)
		if (p->rows[i].memory == memory &&
		    p->rows[i].offset_bytes == at)
			return 1;
	return 0;
}

/* Computes the heights of the pieces, stretches the pieces of each buffer to
 * hold a label, then sums up the places of the cuts. */
static void
lay_axis(const picture *p, uint32_t memory, axis *a)
{
	double height[MAX_CUTS] = {0};
	uint32_t i, k;

	memset(a, 0, sizeof *a);
	add_cut(a, 0);
	for (i = 0; i < p->row_count; i++) {
		const spmla_row *r = &p->rows[i];

		if (r->memory != memory)
			continue;
		add_cut(a, r->offset_bytes);
		add_cut(a, r->offset_bytes + r->bytes);
	}
	for (i = 0; i + 1 < a->count; i++) {
		const double bytes = (double)(a->at[i + 1] - a->at[i]);

		height[i] = 2;
		if (is_start(p, memory, a->at[i]))
			height[i] = LABEL_HEIGHT - 2;
		if (bytes > 4096)
			height[i] += 4 * log2(bytes / 4096);
	}
	for (i = 0; i < p->row_count; i++) {
		const spmla_row *r = &p->rows[i];
		double sum = 0;

		if (r->memory != memory)
			continue;
		k = cut_of(a, r->offset_bytes);
		for (; a->at[k] < r->offset_bytes + r->bytes; k++)
			sum += height[k];
		if (sum < LABEL_HEIGHT)
			height[cut_of(a, r->offset_bytes)] +=
				LABEL_HEIGHT - sum;
	}
	a->y[0] = TOP;
	for (i = 0; i + 1 < a->count; i++)
		a->y[i + 1] = a->y[i] + height[i];
}

/* Writes a text of the library, escaping XML's own signs. */
static void
put_escaped(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '<')
			fputs("&lt;", out);
		else if (*text == '&')
			fputs("&amp;", out);
		else
			fputc(*text, out);
	}
}

static void
draw_text(const picture *p, double x, double y, double size, const char *anchor,
	  const char *colour, const char *text)
{
	fprintf(p->out,
		"<text x=\"%.1f\" y=\"%.1f\" font-size=\"%.1f\" "
		"text-anchor=\"%s\" fill=\"%s\">",
		x, y, size, anchor, colour);
	put_escaped(p->out, text);
	fputs("</text>\n", p->out);
}

/* The label is as large as the box allows; a monospaced letter is 0.61 of the
 * size wide in any common font. */
static void
draw_buffer(const picture *p, const spmla_row *r, const axis *a, double x,
	    double width)
{
	const double top = a->y[cut_of(a, r->offset_bytes)];
	const double bottom = a->y[cut_of(a, r->offset_bytes + r->bytes)];
	char label[96], hint[256], bytes[BYTES_TEXT];
	double size;

	snprintf(label, sizeof label, "%s %s", r->name,
		 bytes_text(r->bytes, bytes));
	size = (width - 8) / (0.61 * (double)strlen(label));
	if (size > FONT)
		size = FONT;
	fprintf(p->out,
		"<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
		"fill=\"%s\" stroke=\"#6b7780\" stroke-width=\"0.7\"><title>",
		x, top, width, bottom - top, life_colour(r->life));
	snprintf(hint, sizeof hint,
		 "%s %s, %s, at %" PRIu64 ", %" PRIu64 " bytes: %s", r->name,
		 r->shape, spmla_life_name(r->life), r->offset_bytes, r->bytes,
		 r->writer);
	put_escaped(p->out, hint);
	fputs("</title></rect>\n", p->out);
	draw_text(p, x + 4, (top + bottom) / 2 + size * 0.36, size, "start",
		  "#1c2429", label);
}

/* Each phase has a lane; buffers of a longer life take the whole width. */
static double
bar_width(const picture *p, uint32_t memory)
{
	return memory == SPMLA_MEMORY_DEVICE ? lane_count(p) * BAR_WIDTH
					     : BAR_WIDTH;
}

static void
draw_bar(const picture *p, uint32_t memory, double x, double bottom)
{
	const double width = bar_width(p, memory);
	char text[96], bytes[BYTES_TEXT];
	axis a;
	uint32_t i;

	lay_axis(p, memory, &a);
	snprintf(text, sizeof text, "%s %s", spmla_memory_name(memory),
		 bytes_text(p->plan->region_bytes[memory], bytes));
	draw_text(p, x, TOP - 10, 14, "start", "#1c2429", text);
	if (a.count < 2 || a.y[a.count - 1] > bottom)
		return;
	fprintf(p->out,
		"<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%.1f\" "
		"fill=\"#f3f4f5\" stroke=\"#c3c9cd\"/>\n",
		x, TOP, width, a.y[a.count - 1] - TOP);
	for (i = 0; i + 1 < a.count; i++) {
		if (!is_start(p, memory, a.at[i]))
			continue;
		snprintf(text, sizeof text, "%" PRIu64, a.at[i]);
		draw_text(p, x - 5, a.y[i] + 9, 9, "end", "#6b7780", text);
	}
	for (i = 0; i < p->row_count; i++) {
		const spmla_row *r = &p->rows[i];
		const int phase = r->life >= SPMLA_LIFE_INDEX;
		const uint32_t lane = phase ? r->life - SPMLA_LIFE_INDEX : 0;

		if (r->memory == memory)
			draw_buffer(p, r, &a, x + lane * BAR_WIDTH,
				    phase ? BAR_WIDTH : width);
	}
}

static void
draw_legend(const picture *p, double y)
{
	char line[128], bytes[BYTES_TEXT];
	uint32_t i;

	for (i = 0; i < SPMLA_LIFE_INDEX + lane_count(p); i++) {
		fprintf(p->out,
			"<rect x=\"%d\" y=\"%.1f\" width=\"14\" height=\"12\" "
			"fill=\"%s\" stroke=\"#6b7780\" "
			"stroke-width=\"0.7\"/>\n",
			MARGIN, y - 10, life_colour(i));
		snprintf(line, sizeof line, "%s: %s; peak of DEVICE %s",
			 spmla_life_name(i), life_meaning(p, i),
			 bytes_text(arena_phase_bytes(p->plan, i), bytes));
		draw_text(p, MARGIN + 22, y, FONT, "start", "#1c2429", line);
		y += LEGEND_LINE;
	}
}

static void
draw_title(const picture *p)
{
	const spmla_config *c = &p->plan->config;
	static const char *const title[] = {
		[SPMLA_MODEL_V32] = "The arena of a DeepSeek V3.2 plan",
		[SPMLA_MODEL_V4_FLASH] =
			"The arena of a DeepSeek V4-Flash plan",
		[SPMLA_MODEL_V4_PRO] = "The arena of a DeepSeek V4-Pro plan"};
	char line[160];

	snprintf(line, sizeof line,
		 "%" PRIu32 " heads, %" PRIu32 " index heads, top-k %" PRIu32
		 ", %" PRIu32 " requests, %" PRIu32
		 " tokens of context, %" PRIu32 " layers of %" PRIu32
		 " pages%s",
		 c->heads, c->index_heads, c->topk, c->max_rows,
		 c->max_context_tokens, c->cache_layers,
		 c->groups[SPMLA_GROUP_MAIN].pool_pages,
		 is_v4(p) ? " of the window" : "");
	draw_text(p, MARGIN, 26, 16, "start", "#1c2429", title[c->model]);
	draw_text(p, MARGIN, 45, FONT, "start", "#1c2429", line);
	draw_text(p, MARGIN, 61, FONT, "start", "#6b7780",
		  "Offsets in bytes at the left of each bar. Heights grow with "
		  "the logarithm of the size; order and overlap are true.");
}

void
arena_draw(const spmla_plan *plan, FILE *out)
{
	picture p;
	double width = MARGIN, bottom = TOP, x = MARGIN, height;
	uint32_t m;
	axis a;

	p.out = out;
	p.plan = plan;
	p.row_count = arena_rows(plan, p.rows);
	for (m = 0; m < SPMLA_MEMORY_COUNT; m++) {
		if (plan->region_bytes[m] == 0)
			continue;
		lay_axis(&p, m, &a);
		if (a.y[a.count - 1] > bottom)
			bottom = a.y[a.count - 1];
		width += OFFSET_WIDTH + bar_width(&p, m);
	}
	width += MARGIN;
	height = bottom +
		 (SPMLA_LIFE_INDEX + lane_count(&p) + 1) * (double)LEGEND_LINE +
		 MARGIN;
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f "
		"%.0f\" width=\"%.0f\" height=\"%.0f\" "
		"font-family=\"ui-monospace, Menlo, Consolas, "
		"'DejaVu Sans Mono', monospace\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
		width, height, width, height);
	draw_title(&p);
	for (m = 0; m < SPMLA_MEMORY_COUNT; m++) {
		if (plan->region_bytes[m] == 0)
			continue;
		draw_bar(&p, m, x + OFFSET_WIDTH, bottom);
		x += OFFSET_WIDTH + bar_width(&p, m);
	}
	draw_legend(&p, bottom + 2 * LEGEND_LINE);
	fprintf(out, "</svg>\n");
}
