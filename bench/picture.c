/* SPDX-License-Identifier: Apache-2.0
 *
 * A bar a row: measured over floor, on a logarithmic scale, the floor at 1. The
 * picture says what the floor is, because it is seen without its table.
 */
#include "bench/bench.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "examples/options.h"

enum { LEFT = 350, WIDTH = 460, LINE = 20, TOP = 108 };

static const char *
colour(const char *variant)
{
	if (strcmp(variant, "avx512") == 0)
		return "#4a7fb5";
	return strcmp(variant, "avx2") == 0 ? "#8db6d9" : "#c9ccd1";
}

/* What a reader has to know, below the title. */
static void
draw_words(FILE *f)
{
	static const char *const line[] = {
		"Floor: the time that the bytes to move would take at this "
		"machine's memory rate, or",
		"the multiply-adds at its fastest rate, whichever is longer. "
		"1x is the floor; shorter is better.",
	};
	static const char *const variant[][2] = {
		{"scalar", "scalar"}, {"avx2", "AVX2"}, {"avx512", "AVX-512"}};
	uint32_t i;

	for (i = 0; i < 2; i++)
		fprintf(f,
			"<text x=\"10\" y=\"%u\" fill=\"#5b6470\">%s</text>\n",
			38 + i * 15, line[i]);
	for (i = 0; i < 3; i++)
		fprintf(f,
			"<rect x=\"%u\" y=\"64\" width=\"12\" height=\"12\" "
			"fill=\"%s\"/>\n"
			"<text x=\"%u\" y=\"74\" "
			"fill=\"#5b6470\">%s</text>\n",
			10 + i * 80, colour(variant[i][0]), 27 + i * 80,
			variant[i][1]);
}

static void
draw_axis(FILE *f, double decades, uint32_t bottom)
{
	double x;

	for (x = 0; x <= decades; x++)
		fprintf(f,
			"<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%u\" "
			"stroke=\"#b9bec5\" stroke-width=\"0.7\"/>\n"
			"<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" "
			"fill=\"#5b6470\">%gx</text>\n",
			LEFT + x / decades * WIDTH, LEFT + x / decades * WIDTH,
			TOP - 6, bottom, LEFT + x / decades * WIDTH, TOP - 10,
			pow(10, x));
}

int
bench_draw(const char *path, const char *title, const bench_row *rows,
	   uint32_t count)
{
	const uint32_t bottom = TOP + count * LINE;
	double decades = 1;
	char where[PATH_BYTES];
	FILE *f = NULL;
	uint32_t i;

	if (path_resolve(path, where, sizeof where))
		f = fopen(where, "w");
	if (!f)
		return 0;
	for (i = 0; i < count; i++)
		while (rows[i].median_s / rows[i].floor_s > pow(10, decades))
			decades++;
	fprintf(f,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
		"height=\"%u\" font-family=\"sans-serif\" font-size=\"11\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n"
		"<text x=\"10\" y=\"20\" font-size=\"13\" "
		"fill=\"#1c2429\">%s: measured over floor</text>\n",
		LEFT + WIDTH + 70, bottom + 12, title);
	draw_words(f);
	draw_axis(f, decades, bottom);
	for (i = 0; i < count; i++) {
		const double ratio = rows[i].median_s / rows[i].floor_s;
		const double w =
			WIDTH * (ratio > 1 ? log10(ratio) : 0) / decades;
		const double y = TOP + (double)i * LINE;

		fprintf(f,
			"<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\" "
			"fill=\"#1c2429\">%s, %s, %s</text>\n"
			"<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" "
			"height=\"%d\" fill=\"%s\"/>\n"
			"<text x=\"%.1f\" y=\"%.1f\" "
			"fill=\"#1c2429\">%.2f</text>\n",
			LEFT - 8, y + 13, rows[i].op, rows[i].shape,
			rows[i].variant, LEFT, y + 3, w > 1 ? w : 1, LINE - 6,
			colour(rows[i].variant), LEFT + w + 5, y + 13, ratio);
	}
	fprintf(f, "</svg>\n");
	return fclose(f) == 0;
}
