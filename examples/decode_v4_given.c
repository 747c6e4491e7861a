/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts that are too long to fill: each request joins with tokens in the
 * caches, as after a hit in a prefix cache. Their compressed keys lie in a few
 * pages that all columns name in turn, and are arbitrary numbers of each
 * layout. The window and the states start from zeros.
 */
#include <string.h>

#include "examples/decode_v4.h"
#include "examples/device.h"

/* Codes around 1 of either sign, and scales around 1: ue8m0 or f32. */
static void
fill_page(const spmla_cache *c, uint64_t stream, uint8_t *page)
{
	const uint32_t e4m3 = c->layout == SPMLA_LAYOUT_INDEX_FP8;
	const uint32_t value_bytes = c->layout == SPMLA_LAYOUT_V4_FP8 ? 576
				     : e4m3                           ? 128
								      : 64;
	const uint32_t scale_bytes = c->layout == SPMLA_LAYOUT_V4_FP8 ? 8 : 4;
	uint32_t i, k;
	float x[576];

	for (i = 0; i < c->entries_per_page; i++) {
		uint8_t *values = page + (uint64_t)i * value_bytes;
		uint8_t *scales = page +
				  (uint64_t)c->entries_per_page * value_bytes +
				  (uint64_t)i * scale_bytes;

		values_f32(stream + (uint64_t)i * 1024, value_bytes, x);
		for (k = 0; k < value_bytes; k++)
			values[k] = (uint8_t)((x[k] < 0 ? 0xa0 : 0x20) |
					      ((int)(x[k] * 64) & 31));
		for (k = 0; k < scale_bytes; k++)
			scales[k] = (uint8_t)(124 + (k + i) % 3);
		if (scale_bytes == 8)
			scales[7] = 0;
		if (!e4m3)
			continue;
		x[0] = 0.5f + x[0] * x[0];
		memcpy(scales, x, sizeof x[0]);
	}
}

static void
fill_cache(const v4_model *m, const spmla_cache *c, uint32_t layer,
	   uint8_t *page)
{
	token of = {0, 0, 0, 0};
	uint32_t i;

	for (i = 0; c->base && i < MODEL_GIVEN_PAGES; i++) {
		of.position = i;
		memset(page, 0, c->page_stride_bytes);
		fill_page(c, v4_stream(m, layer, V4_KINDS, of), page);
		device_copy((uint8_t *)c->base + i * c->page_stride_bytes, page,
			    c->page_stride_bytes);
	}
}

void
v4_given_fill(const v4_model *m, uint32_t side)
{
	uint64_t most = 0;
	uint8_t *page;
	uint32_t l;

	for (l = 0; l < m->layers; l++) {
		const spmla_v4_layer *a = &m->sides[side].layer[l].args;

		if (a->compressed.page_stride_bytes > most)
			most = a->compressed.page_stride_bytes;
		if (a->index.page_stride_bytes > most)
			most = a->index.page_stride_bytes;
	}
	page = keep(most);
	for (l = 0; l < m->layers; l++) {
		const spmla_v4_layer *a = &m->sides[side].layer[l].args;

		fill_cache(m, &a->compressed, l, page);
		fill_cache(m, &a->index, l, page);
	}
}
