/* SPDX-License-Identifier: Apache-2.0
 *
 * A field an operation, in it a line a series: time over batch, both on
 * logarithmic scales. What the peer took is the broken line of the same colour.
 */
#include "bench/cuda.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "examples/options.h"

enum {
	ACROSS = 3, /* fields */
	LEFT = 60,
	TOP = 60,
	WIDTH = 270,
	HEIGHT = 210,
	NEXT_X = WIDTH + 70, /* from field to field */
	NEXT_Y = HEIGHT + 145,
	LINE = 14 /* of the names below a field */
};

/* A batch of 1 .. 2^BATCH_LOG, a time of 1 .. 10^DECADES us. */
#define BATCH_LOG 8.0
#define DECADES   3.0

typedef struct field {
	FILE *f;
	double left, top;
	const cuda_row *rows;
	uint32_t count;
} field;

static double
x_of(const field *d, uint32_t batch)
{
	return d->left + log2(batch) / BATCH_LOG * WIDTH;
}

static double
y_of(const field *d, double us)
{
	const double up = log10(us > 1 ? us : 1) / DECADES;

	return d->top + (1 - (up < 1 ? up : 1)) * HEIGHT;
}

static void
draw_axes(const field *d, const char *op)
{
	int i;

	fprintf(d->f,
		"<text x=\"%.1f\" y=\"%.1f\" font-size=\"12\" "
		"fill=\"#1c2429\">%s</text>\n",
		d->left, d->top - 10, op);
	for (i = 0; i <= (int)BATCH_LOG; i += 2)
		fprintf(d->f,
			"<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" "
			"fill=\"#5b6470\">%d</text>\n",
			x_of(d, 1u << i), d->top + HEIGHT + 14, 1 << i);
	for (i = 0; i <= (int)DECADES; i++) {
		const double y = y_of(d, pow(10, i));

		fprintf(d->f,
			"<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" "
			"stroke=\"#b9bec5\" stroke-width=\"0.7\"/>\n"
			"<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\" "
			"fill=\"#5b6470\">%g us</text>\n",
			d->left, d->left + WIDTH, y, y, d->left - 5, y + 4,
			pow(10, i));
	}
}

typedef enum whose { OURS, PEERS } whose;

/* The rows of rows[first]'s series. */
static void
draw_line(const field *d, uint32_t first, const char *colour, whose who)
{
	const cuda_row *r = d->rows;
	uint32_t i;

	fprintf(d->f, "<polyline fill=\"none\" stroke=\"%s\"%s points=\"",
		colour, who == PEERS ? " stroke-dasharray=\"4 3\"" : "");
	for (i = first; i < d->count; i++) {
		const double us = who == OURS ? r[i].cold : r[i].peer;

		if (us > 0 && strcmp(r[i].series, r[first].series) == 0)
			fprintf(d->f, "%.1f,%.1f ", x_of(d, r[i].batch),
				y_of(d, us));
	}
	fprintf(d->f, "\"/>\n");
}

/* Whether it is the first of a series of two rows or more. */
static int
begins(const field *d, uint32_t at)
{
	const char *series = d->rows[at].series;
	uint32_t i, more = 0;

	if (series[0] == 0)
		return 0;
	for (i = 0; i < d->count; i++)
		if (strcmp(d->rows[i].series, series) == 0) {
			if (i < at)
				return 0;
			more += i > at;
		}
	return more > 0;
}

/* The series of the operation. */
static void
draw_field(const field *d, const char *op)
{
	static const char *const colours[] = {"#4a7fb5", "#c8553d", "#588157",
					      "#8d6a9f", "#d19c1d", "#2a9d8f",
					      "#6b705c", "#1d3557"};
	uint32_t i, n = 0;

	draw_axes(d, op);
	for (i = 0; i < d->count; i++) {
		const char *colour = colours[n % 8];

		if (strcmp(d->rows[i].op, op) != 0 || !begins(d, i))
			continue;
		draw_line(d, i, colour, OURS);
		draw_line(d, i, colour, PEERS);
		fprintf(d->f,
			"<text x=\"%.1f\" y=\"%.1f\" fill=\"%s\">%s</text>\n",
			d->left, d->top + HEIGHT + 32 + n * LINE, colour,
			d->rows[i].series);
		n++;
	}
}

/* Whether the operation has a series at `at` and none before. */
static int
op_begins(const field *d, uint32_t at)
{
	uint32_t i;

	for (i = 0; i < at; i++)
		if (strcmp(d->rows[i].op, d->rows[at].op) == 0 && begins(d, i))
			return 0;
	return begins(d, at);
}

int
cuda_draw(const char *path, const cuda_row *rows, uint32_t count)
{
	field d = {NULL, 0, 0, rows, count};
	char where[PATH_BYTES];
	uint32_t i, n = 0;

	if (path_resolve(path, where, sizeof where))
		d.f = fopen(where, "w");
	if (!d.f)
		return 0;
	for (i = 0; i < count; i++)
		n += (uint32_t)op_begins(&d, i);
	fprintf(d.f,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
		"height=\"%u\" font-family=\"sans-serif\" font-size=\"11\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n"
		"<text x=\"10\" y=\"20\" font-size=\"13\" fill=\"#1c2429\">"
		"SpMLA on CUDA: time over batch, L2 cold; broken: the "
		"peer</text>\n",
		LEFT + ACROSS * NEXT_X,
		TOP + (n + ACROSS - 1) / ACROSS * NEXT_Y);
	for (i = 0, n = 0; i < count; i++) {
		if (!op_begins(&d, i))
			continue;
		d.left = LEFT + n % ACROSS * NEXT_X;
		d.top = TOP + (double)(n / ACROSS) * NEXT_Y;
		draw_field(&d, rows[i].op);
		n++;
	}
	fprintf(d.f, "</svg>\n");
	return fclose(d.f) == 0;
}
