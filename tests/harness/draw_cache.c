/* SPDX-License-Identifier: Apache-2.0
 *
 * See draw.h: caches of every layout, and block tables.
 */
#include "tests/harness/draw.h"
#include "tests/harness/rng.h"

void
draw_fill_bf16(draw *d, void *to, uint64_t n)
{
	uint8_t *at = to;
	uint64_t i;
	float x;

	for (i = 0; i < n; i++, at += 2) {
		x = rng_float(&d->data);
		memcpy(at, (const uint8_t *)&x + 2, 2);
	}
}

void
draw_fill_codes(draw *d, void *to, uint64_t n)
{
	uint64_t i;

	for (i = 0; i < n; i++)
		((uint8_t *)to)[i] = (uint8_t)(rng_next(&d->data) & 0xbf);
}

void
draw_fill_ue8m0(draw *d, void *to, uint64_t n)
{
	uint64_t i;

	for (i = 0; i < n; i++)
		((uint8_t *)to)[i] = (uint8_t)(120 + rng_below(&d->data, 8));
}

draw_table
draw_pages(draw *d, uint32_t rows, uint32_t columns, uint32_t pool)
{
	draw_table t = {.rows = rows, .columns = columns};

	t.stride = (uint32_t)draw_stride(d, columns);
	t.pages = draw_i32(d, draw_strided(rows, t.stride, columns), 0, pool);
	if (draw_there(d))
		t.cols = draw_i32(d, rows, columns, columns + 1);
	return t;
}

/* ---- Caches -------------------------------------------------------------- */

static void
fill_f32(draw *d, uint8_t *to, uint64_t n, float middle)
{
	uint64_t i;
	float x;

	for (i = 0; i < n; i++) {
		x = middle + 0.25f * rng_float(&d->data);
		memcpy(to + 4 * i, &x, sizeof x);
	}
}

/* Values that are no NaN, and scales of at most 1. */
static void
fill_page(draw *d, uint8_t *page, uint32_t layout, uint64_t entries)
{
	const uint64_t bytes = entries * spmla_layout_entry_bytes(layout);
	uint64_t i;

	switch (layout) {
	case SPMLA_LAYOUT_FP8_DS_MLA:
		for (i = 0; i < entries; i++, page += 656) {
			draw_fill_codes(d, page, 512);
			fill_f32(d, page + 512, 4, 0.75f);
			draw_fill_bf16(d, page + 528, 64);
		}
		break;
	case SPMLA_LAYOUT_INDEX_FP8:
	case SPMLA_LAYOUT_INDEX_FP8_TILED:
		draw_fill_codes(d, page, entries * 128);
		fill_f32(d, page + entries * 128, entries, 0.75f);
		break;
	case SPMLA_LAYOUT_V4_FP8:
		for (i = 0; i < entries; i++) {
			draw_fill_codes(d, page + i * 576, 448);
			draw_fill_bf16(d, page + i * 576 + 448, 64);
		}
		draw_fill_ue8m0(d, page + entries * 576, entries * 8);
		break;
	case SPMLA_LAYOUT_INDEX_MXFP4:
		for (i = 0; i < entries * 64; i++)
			page[i] = (uint8_t)rng_next(&d->data);
		draw_fill_ue8m0(d, page + entries * 64, entries * 4);
		break;
	case SPMLA_LAYOUT_V4_E4M3:
		draw_fill_codes(d, page, bytes);
		break;
	case SPMLA_LAYOUT_MLA_BF16:
	case SPMLA_LAYOUT_V4_BF16:
		draw_fill_bf16(d, page, bytes / 2);
		break;
	default:
		fill_f32(d, page, bytes / 4, 0);
		break;
	}
}

/* The last page ends with its entries, not with its stride. */
spmla_cache
draw_cache_of(draw *d, uint32_t layout, uint32_t entries, uint32_t pages,
	      draw_role role)
{
	spmla_cache c = SPMLA_CACHE_INIT;
	uint64_t bytes;
	uint32_t p;

	c.layout = layout;
	c.entries_per_page = entries;
	c.pages = pages;
	c.page_stride_bytes = spmla_layout_page_bytes(layout, entries) +
			      16 * (uint64_t)draw_choice(d, 3);
	/* Pages without gaps, or with small ones. */
	if (draw_choice(d, 4) == 3)
		c.page_stride_bytes =
			(uint64_t)spmla_layout_entry_bytes(layout) * entries +
			spmla_layout_stride_align(layout) *
				(uint64_t)draw_choice(d, 3);
	bytes = (pages - 1) * c.page_stride_bytes +
		(uint64_t)spmla_layout_entry_bytes(layout) * entries;
	c.base = draw_room(d, bytes, 16, role);
	if (role == DRAW_OUT)
		return c;
	if (d->in)
		in_fill(d->in, c.base, bytes);
	else
		memset(c.base, 0, bytes);
	for (p = 0; !d->in && p < pages; p++)
		fill_page(d, (uint8_t *)c.base + p * c.page_stride_bytes,
			  layout, entries);
	return c;
}

uint32_t
draw_index_layout(draw *d)
{
	return draw_choice(d, 3) == 2 ? SPMLA_LAYOUT_INDEX_FP8_TILED
				      : SPMLA_LAYOUT_INDEX_FP8;
}

/* Entries of a page; tiled pages have whole tiles. */
static uint32_t
draw_entries(draw *d, uint32_t layout)
{
	if (layout == SPMLA_LAYOUT_INDEX_FP8_TILED)
		return SPMLA_INDEX_TILE * draw_size(d, 2);
	return draw_many(d, 5, 16);
}

spmla_cache
draw_cache(draw *d, uint32_t layout)
{
	const uint32_t entries = draw_entries(d, layout);

	return draw_cache_of(d, layout, entries, draw_many(d, 6, 64), DRAW_IN);
}

spmla_cache
draw_cache_out(draw *d, uint32_t layout, uint32_t tokens)
{
	const uint32_t entries = draw_entries(d, layout);

	return draw_cache_of(d, layout, entries,
			     draw_many(d, 6, 64) + tokens / entries, DRAW_OUT);
}

/* Code 0x80, -0 or NaN, as 0, in n codes at each of `rows` rows. */
static void
no_nan(uint8_t *codes, uint32_t rows, uint32_t row_bytes, uint32_t n)
{
	uint32_t r, i;

	for (r = 0; r < rows; r++, codes += row_bytes)
		for (i = 0; i < n; i++)
			codes[i] = codes[i] == 0x80 ? 0 : codes[i];
}

void
draw_encoding(draw *d, spmla_cache *cache, draw_role role)
{
	const uint32_t entries = cache->entries_per_page;
	uint8_t *page = cache->base;
	uint32_t p;

	if (cache->layout != SPMLA_LAYOUT_V4_FP8 &&
	    cache->layout != SPMLA_LAYOUT_V4_E4M3 &&
	    cache->layout != SPMLA_LAYOUT_FP8_DS_MLA &&
	    cache->layout != SPMLA_LAYOUT_INDEX_FP8 &&
	    cache->layout != SPMLA_LAYOUT_INDEX_FP8_TILED)
		return;
	cache->encoding = draw_choice(d, 2) ? SPMLA_E4M3_FNUZ : SPMLA_E4M3_FN;
	if (cache->encoding == SPMLA_E4M3_FN || role == DRAW_OUT || d->in)
		return;
	for (p = 0; p < cache->pages; p++, page += cache->page_stride_bytes) {
		if (cache->layout == SPMLA_LAYOUT_V4_FP8)
			no_nan(page, entries, SPMLA_V4_VALUE_BYTES,
			       SPMLA_V4_NOPE);
		else if (cache->layout == SPMLA_LAYOUT_V4_E4M3)
			no_nan(page, entries, SPMLA_V4_DIM, SPMLA_V4_DIM);
		else if (cache->layout != SPMLA_LAYOUT_FP8_DS_MLA)
			no_nan(page, entries, SPMLA_INDEX_DIM, SPMLA_INDEX_DIM);
		else
			no_nan(page, entries, SPMLA_FP8_DS_MLA_BYTES,
			       SPMLA_MLA_LATENT);
	}
}
