/* SPDX-License-Identifier: Apache-2.0
 *
 * A run of decode_loop as a picture: above, the time of every step, in the
 * colour of the bucket that took it; below, the requests of every step. Both
 * share the steps' axis, so that a long step is seen above what made it long.
 */
#include "examples/decode_loop.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	LEFT = 70,
	RIGHT = 20,
	WIDTH = 780, /* of the axis of steps */
	TIME_TOP = 46,
	TIME_HEIGHT = 220,
	ROOM_TOP = 300,
	ROOM_HEIGHT = 90,
	LEGEND_TOP = 430,
	LEGEND_LINE = 18,
	TICKS = 4
};

static const char *
colour(uint32_t bucket)
{
	static const char *const colours[] = {"#4a7fb5", "#e08a3c", "#4f9d69",
					      "#b0568f", "#8a7a3f", "#5fb0b7",
					      "#c04f4f", "#777f88"};

	return colours[bucket % (sizeof colours / sizeof colours[0])];
}

/* The smallest of 1, 2, 5, 10, 20, .. that is at least x. */
static double
round_up(double x)
{
	double power = 1;

	while (power * 10 <= x)
		power *= 10;
	if (x <= power)
		return power;
	return x <= 2 * power   ? 2 * power
	       : x <= 5 * power ? 5 * power
				: 10 * power;
}

static void
put_text(FILE *f, double x, double y, const char *anchor, const char *text)
{
	fprintf(f,
		"<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" "
		"fill=\"#3c444d\">%s</text>\n",
		x, y, anchor, text);
}

static void
put_line(FILE *f, double y)
{
	fprintf(f,
		"<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" "
		"stroke=\"#d5d9de\" stroke-width=\"0.7\"/>\n",
		LEFT, LEFT + WIDTH, y, y);
}

/* The place of a step on the axis: the middle of its share. */
static double
place(const report *r, uint32_t step)
{
	return LEFT + (step + 0.5) * WIDTH / (r->steps ? r->steps : 1);
}

static void
draw_times(FILE *f, const report *r)
{
	char text[TIME_TEXT];
	double most = 1;
	uint32_t i;

	for (i = 0; i < r->steps; i++)
		if ((double)r->ns[TIMING_STEP][i] > most)
			most = (double)r->ns[TIMING_STEP][i];
	most = round_up(most);
	for (i = 0; i <= TICKS; i++) {
		const double y = TIME_TOP + TIME_HEIGHT -
				 (double)i * TIME_HEIGHT / TICKS;

		put_line(f, y);
		put_text(f, LEFT - 6, y + 4, "end",
			 i ? time_text(most * i / TICKS, text) : "0");
	}
	for (i = 0; i < r->steps; i++)
		fprintf(f,
			"<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\" "
			"fill=\"%s\"/>\n",
			place(r, i),
			TIME_TOP + TIME_HEIGHT -
				(double)r->ns[TIMING_STEP][i] / most *
					TIME_HEIGHT,
			colour(r->bucket[i]));
}

static void
draw_requests(FILE *f, const report *r, uint32_t most)
{
	const double width = (double)WIDTH / (r->steps ? r->steps : 1);
	char text[16];
	uint32_t i;

	for (i = 0; i < 2; i++) {
		put_line(f, ROOM_TOP + (1 - i) * (double)ROOM_HEIGHT);
		snprintf(text, sizeof text, "%" PRIu32, i * most);
		put_text(f, LEFT - 6, ROOM_TOP + (1 - i) * ROOM_HEIGHT + 4.0,
			 "end", text);
	}
	for (i = 0; i < r->steps; i++) {
		const double height = (double)r->active[i] / most * ROOM_HEIGHT;

		fprintf(f,
			"<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" "
			"height=\"%.1f\" fill=\"#9db8d3\"/>\n",
			place(r, i) - width / 2,
			ROOM_TOP + ROOM_HEIGHT - height, width, height);
	}
	snprintf(text, sizeof text, "%" PRIu32, r->steps);
	put_text(f, LEFT, ROOM_TOP + ROOM_HEIGHT + 16, "start", "step 1");
	put_text(f, LEFT + WIDTH, ROOM_TOP + ROOM_HEIGHT + 16, "end", text);
}

/* A line a bucket that took a step. */
static void
draw_legend(FILE *f, const report *r, const spmla_plan *plan)
{
	char text[160], p50[TIME_TEXT], p99[TIME_TEXT], name[64];
	uint32_t lines = 0, i;

	for (i = 0; i <= SPMLA_BUCKET_PREFILL; i++) {
		const bucket_time t = report_bucket(r, i);
		const double y = LEGEND_TOP + (double)lines * LEGEND_LINE;

		if (t.steps == 0)
			continue;
		snprintf(name, sizeof name, "eagerly");
		if (i < plan->config.bucket_count)
			snprintf(name, sizeof name,
				 "bucket of %" PRIu32 " tokens, %" PRIu32
				 " requests",
				 plan->config.buckets[i].tokens,
				 plan->config.buckets[i].requests);
		snprintf(text, sizeof text,
			 "%s: %" PRIu32 " steps, p50 %s, p99 %s", name, t.steps,
			 time_text(t.p50_ns, p50), time_text(t.p99_ns, p99));
		fprintf(f,
			"<circle cx=\"%d\" cy=\"%.1f\" r=\"4\" fill=\"%s\"/>\n",
			LEFT + 4, y - 4, colour(i));
		put_text(f, LEFT + 16, y, "start", text);
		lines++;
	}
}

static int
height_of(const report *r)
{
	uint32_t lines = 0, i;

	for (i = 0; i <= SPMLA_BUCKET_PREFILL; i++)
		lines += report_bucket(r, i).steps > 0;
	return LEGEND_TOP + (int)lines * LEGEND_LINE;
}

static FILE *
open_picture(const char *file, const char *mode)
{
	char path[PATH_BYTES];
	FILE *f = NULL;

	if (path_resolve(file, path, sizeof path))
		f = fopen(path, mode);
	if (!f)
		fprintf(stderr, PROGRAM ": --svg: cannot write %s\n", file);
	return f;
}

int
report_can_draw(const char *file)
{
	FILE *f = open_picture(file, "a");

	return f && fclose(f) == 0;
}

int
report_draw(const report *r, const spmla_plan *plan, const char *file)
{
	FILE *f = open_picture(file, "w");
	int good;

	if (!f)
		return 0;
	fprintf(f,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
		"height=\"%d\" font-family=\"sans-serif\" font-size=\"11\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
		LEFT + WIDTH + RIGHT, height_of(r));
	put_text(f, 10, 22, "start", "time of each step");
	put_text(f, 10, ROOM_TOP - 12, "start", "requests in each step");
	draw_times(f, r);
	draw_requests(f, r, plan->config.max_rows);
	draw_legend(f, r, plan);
	fprintf(f, "</svg>\n");
	good = !ferror(f);
	if (fclose(f) == 0 && good)
		return 1;
	fprintf(stderr, PROGRAM ": --svg: cannot write all of %s\n", file);
	return 0;
}
