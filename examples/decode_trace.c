/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a serving trace: one request per row, in order of arrival. Times are
 * ignored: a request joins as soon as there is room.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "examples/decode_loop.h"

static const char header[] = "TIMESTAMP,ContextTokens,GeneratedTokens";

enum { LINE_BYTES = 256 };

typedef struct reader {
	FILE *file;
	const char *path;
	uint32_t line_number;
	char line[LINE_BYTES];
} reader;

static int
bad_line(const reader *r, const char *what)
{
	fprintf(stderr, PROGRAM ": --trace: %s:%" PRIu32 ": %s\n", r->path,
		r->line_number, what);
	return 0;
}

/* 1: a line without its end, 0: no more, -1: too long (reported). */
static int
next_line(reader *r)
{
	size_t n;

	if (!fgets(r->line, LINE_BYTES, r->file))
		return 0;
	r->line_number++;
	n = strlen(r->line);
	if (n == LINE_BYTES - 1 && r->line[n - 1] != '\n') {
		(void)bad_line(r, "the line is too long");
		return -1;
	}
	while (n > 0 && (r->line[n - 1] == '\n' || r->line[n - 1] == '\r'))
		r->line[--n] = 0;
	return 1;
}

/* A number up to `end`, which is then stepped over. */
static int
take_number(const char **text, char end, uint32_t *value)
{
	const char *p = *text;
	uint64_t v = 0;

	while (*p >= '0' && *p <= '9' && v <= UINT32_MAX)
		v = v * 10 + (uint64_t)(*p++ - '0');
	if (p == *text || *p != end || v > UINT32_MAX)
		return 0;
	*value = (uint32_t)v;
	*text = end ? p + 1 : p;
	return 1;
}

static int
parse_row(const reader *r, trace_row *row)
{
	const char *p = strchr(r->line, ',');

	if (!p || p == r->line)
		return bad_line(r, "want time,prompt tokens,answer tokens");
	p++;
	if (!take_number(&p, ',', &row->prompt))
		return bad_line(r, "ContextTokens is not a whole number");
	if (!take_number(&p, 0, &row->answer))
		return bad_line(r, "GeneratedTokens is not a whole number");
	return 1;
}

/* Shortens the prompt in favour of the answer, because generated tokens are
 * what runs. */
static void
clip_row(trace_row *row, uint32_t max_context)
{
	const trace_row was = *row;

	if (row->answer > max_context)
		row->answer = max_context;
	if (row->prompt > max_context - row->answer)
		row->prompt = max_context - row->answer;
	row->clipped = was.prompt != row->prompt || was.answer != row->answer;
}

/* Goes through the rows; keeps them if there is room. */
static int
read_rows(reader *r, trace *t, uint32_t max_context)
{
	int more = next_line(r);

	if (more == 0)
		return bad_line(r, "the file is empty");
	if (more < 0)
		return 0;
	if (strcmp(r->line, header) != 0)
		return bad_line(r, "want the columns TIMESTAMP,ContextTokens,"
				   "GeneratedTokens");
	while ((more = next_line(r)) > 0) {
		trace_row row;

		if (r->line[0] == 0)
			continue;
		if (!parse_row(r, &row))
			return 0;
		if (row.answer == 0)
			continue; /* nothing to decode */
		if (t->rows) {
			if (t->count == t->capacity)
				return bad_line(r, "the file grew");
			clip_row(&row, max_context);
			t->rows[t->count] = row;
		}
		t->count++;
	}
	if (more == 0 && t->count == 0)
		return bad_line(r, "there is no request");
	return more == 0;
}

int
trace_read(trace *t, const char *path, uint32_t max_context)
{
	reader r;
	int good;

	memset(&r, 0, sizeof r);
	memset(t, 0, sizeof *t);
	r.path = path;
	r.file = fopen(path, "r");
	if (!r.file) {
		fprintf(stderr, PROGRAM ": --trace: cannot open %s\n", path);
		return 0;
	}
	/* Once to count and check, once to keep. */
	good = read_rows(&r, t, max_context);
	if (good) {
		t->rows = keep((uint64_t)t->count * sizeof *t->rows);
		t->capacity = t->count;
		t->count = 0;
		r.line_number = 0;
		rewind(r.file);
		good = read_rows(&r, t, max_context);
	}
	fclose(r.file);
	return good;
}
