/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of ops out of fuzz input: scalars, arrays, tables, caches. Part of
 * fuzz_ops.c.
 */
#ifndef TESTS_FUZZ_OPS_INPUT_H
#define TESTS_FUZZ_OPS_INPUT_H

#include "tests/fuzz/world.h"

enum { MOST_ARRAYS = 32, MOST_OPS = 8 };

/* The arrays of one call. */
static void *arrays[MOST_ARRAYS];
static uint32_t array_count;

static void *
array(int64_t bytes)
{
	/* Something to point to, if the count is none or below none. */
	void *p = malloc(bytes > 0 ? (size_t)bytes : 1);

	REQUIRE(p && array_count < MOST_ARRAYS);
	arrays[array_count++] = p;
	return p;
}

static void
free_arrays(void)
{
	while (array_count > 0)
		free(arrays[--array_count]);
}

/* Elements of [n][stride] of which a row uses `width`. */
static int64_t
strided(uint32_t n, int64_t stride, uint32_t width)
{
	return n == 0 ? 0 : (int64_t)(n - 1) * stride + width;
}

/* The same of [tokens][heads], each with a stride. */
static int64_t
nested(uint32_t tokens, int64_t token_stride, uint32_t heads,
       int64_t head_stride, uint32_t width)
{
	if (tokens == 0 || heads == 0)
		return 0;
	return (tokens - 1) * token_stride + strided(heads, head_stride, width);
}

/* Arrays of the input's values: bytes, 16-bit and f32 ones as bytes. */
static void *
bytes_of(input *in, int64_t elems, uint32_t elem_bytes)
{
	void *p = array(elems * elem_bytes);

	if (elems > 0)
		in_fill(in, p, (uint64_t)elems * elem_bytes);
	return p;
}

static int32_t *
i32_of(input *in, int64_t elems)
{
	int32_t *p = array(elems * 4);

	if (elems > 0)
		in_fill_edges(in, (uint32_t *)p, (uint64_t)elems);
	return p;
}

/* Sign-extended, some with other upper halves. */
static int64_t *
i64_of(input *in, int64_t elems)
{
	const uint32_t high = in_below(in, 8) == 7 ? in_edge(in) : 0;
	int64_t *p = array(elems * 8);
	int64_t i;

	for (i = 0; i < elems; i++) {
		uint64_t x = (uint64_t)(int32_t)in_edge(in);

		x ^= (uint64_t)high << 32;
		memcpy(&p[i], &x, sizeof x);
	}
	return p;
}

static float *
f32_of(input *in, int64_t elems)
{
	float *p = array(elems * 4);

	if (elems <= 0)
		return p;
	if (in_below(in, 2))
		in_fill_edges(in, (uint32_t *)(void *)p, (uint64_t)elems);
	else
		in_fill(in, p, (uint64_t)elems * 4);
	return p;
}

/* Ascending from 0 for the most part, as start locations are. */
static int32_t *
starts_of(input *in, int64_t elems)
{
	int32_t *p = array(elems * 4);
	int32_t last = 0;
	int64_t i;

	for (i = 0; i < elems; i++) {
		const uint32_t kind = in_u8(in);

		last = kind < 0xf0 ? (last & 0xff) + (int32_t)(kind % 4)
				   : (int32_t)in_edge(in);
		p[i] = last;
	}
	return p;
}

static uint32_t
maybe(input *in)
{
	return in_below(in, 4) > 0;
}

/* A stride of rows of `width`: the least, a little more, or too little. */
static int64_t
stride_of(input *in, uint32_t width)
{
	static const int8_t more[8] = {0, 0, 0, 1, 5, 8, 16, -1};

	return (int64_t)width + more[in_below(in, 8)];
}

/* A finite positive float, or an edge. */
static float
scale_of(input *in)
{
	const uint32_t kind = in_u8(in);
	uint32_t u;
	float x;

	if (kind < 0xc0)
		return (float)(kind + 1) / 64.0f;
	u = in_edge(in);
	memcpy(&x, &u, sizeof x);
	return x;
}

static spmla_cache
cache_of(input *in, uint32_t layout)
{
	spmla_cache c = SPMLA_CACHE_INIT;

	c.layout = layout;
	c.entries_per_page = 1 + in_below(in, 5);
	c.pages = 1 + in_below(in, 6);
	c.page_stride_bytes =
		spmla_layout_page_bytes(layout, c.entries_per_page) +
		16 * (uint64_t)in_below(in, 3);
	/* The last page ends with its entries, not with its stride. */
	c.base = bytes_of(in,
			  (int64_t)((c.pages - 1) * c.page_stride_bytes +
				    spmla_layout_entry_bytes(layout) *
					    c.entries_per_page),
			  1);
	return c;
}

static uint32_t
mla_layout(input *in)
{
	return in_below(in, 2) ? SPMLA_LAYOUT_FP8_DS_MLA
			       : SPMLA_LAYOUT_MLA_BF16;
}

/* The same, or one of V4's. */
static uint32_t
kv_layout(input *in)
{
	return in_below(in, 2) ? mla_layout(in)
			       : SPMLA_LAYOUT_V4_FP8 + in_below(in, 3);
}

/* A block table, as several ops have it. */
typedef struct table {
	uint32_t rows;
	uint32_t columns;
	uint32_t stride;
	const int32_t *pages;
	const int32_t *cols;
} table;

static table
table_of(input *in)
{
	table t;

	t.rows = in_below(in, 5);
	t.columns = in_below(in, 6);
	t.stride = t.columns ? (uint32_t)stride_of(in, t.columns) : 0;
	t.pages = i32_of(in, strided(t.rows, t.stride, t.columns));
	t.cols = maybe(in) ? i32_of(in, t.rows) : NULL;
	return t;
}

/* The call of an op, by its generic type. */
#define CALL(stem)                                                        \
	static spmla_status call_##stem(spmla_ctx *ctx, const void *args) \
	{                                                                 \
		return spmla_##stem(ctx, args, NULL);                     \
	}

#endif
