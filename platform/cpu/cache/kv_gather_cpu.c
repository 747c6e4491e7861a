/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_gather on the CPU. The product of a code and its scale is rounded twice,
 * to f32 and then to bf16, as in the source; one rounding would differ.
 */
#include "spmla/platform/cpu/cache/gather_cpu.h"

enum { GROUP = SPMLA_MLA_SCALE_GROUP, NAN_BITS = 0x7fc0 };

/* out = bf16(code * scale). */
static void
products(const uint8_t *codes, uint32_t n, float scale, uint32_t encoding,
	 uint16_t *out)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		const float x = (encoding == SPMLA_E4M3_FNUZ
					 ? spmla_i_fnuz_to_f32(codes[i])
					 : spmla_i_e4m3_to_f32(codes[i])) *
				scale;

		/* The sign of a NaN differs between machines. */
		out[i] = x != x ? NAN_BITS : spmla_i_f32_to_bf16(x);
	}
}

static void
upconvert(const uint8_t *entry, uint32_t encoding, uint16_t *out)
{
	uint32_t g;

	for (g = 0; g < SPMLA_MLA_SCALES; g++) {
		float scale;

		memcpy(&scale,
		       entry + SPMLA_FP8_DS_MLA_SCALE_BYTE + g * sizeof scale,
		       sizeof scale);
		products(entry + g * GROUP, GROUP, scale, encoding,
			 out + g * GROUP);
	}
	memcpy(out + SPMLA_MLA_LATENT, entry + SPMLA_FP8_DS_MLA_ROPE_BYTE,
	       SPMLA_MLA_ROPE * sizeof *out);
}

static void
upconvert_v4(const uint8_t *values, const uint8_t *scales, uint32_t encoding,
	     uint16_t *out)
{
	uint32_t g;

	for (g = 0; g < SPMLA_V4_SCALES; g++)
		products(values + g * SPMLA_V4_SCALE_GROUP,
			 SPMLA_V4_SCALE_GROUP,
			 spmla_i_f32_from_bits((uint32_t)scales[g] << 23),
			 encoding, out + g * SPMLA_V4_SCALE_GROUP);
	memcpy(out + SPMLA_V4_NOPE, values + SPMLA_V4_NOPE,
	       SPMLA_V4_ROPE * sizeof *out);
}

/* Writes entry `entry` of a page to output row n; zeros without a page. */
static void
copy_key(const spmla_kv_gather_args *a, uint32_t n, const uint8_t *page,
	 uint64_t entry)
{
	const uint64_t entries = a->cache.entries_per_page;
	const uint32_t layout = a->cache.layout;
	uint16_t *out = a->dst + (int64_t)n * a->dst_stride_elems;

	if (!page)
		memset(out, 0,
		       (layout == SPMLA_LAYOUT_FP8_DS_MLA ||
					layout == SPMLA_LAYOUT_MLA_BF16
				? SPMLA_MLA_DIM
				: SPMLA_V4_DIM) *
			       sizeof *out);
	else if (layout == SPMLA_LAYOUT_FP8_DS_MLA)
		upconvert(page + entry * SPMLA_FP8_DS_MLA_BYTES,
			  a->cache.encoding, out);
	else if (layout == SPMLA_LAYOUT_MLA_BF16)
		memcpy(out, page + entry * SPMLA_MLA_BF16_BYTES,
		       SPMLA_MLA_BF16_BYTES);
	else if (layout == SPMLA_LAYOUT_V4_FP8)
		upconvert_v4(page + entry * SPMLA_V4_VALUE_BYTES,
			     page + entries * SPMLA_V4_VALUE_BYTES +
				     entry * SPMLA_V4_SCALE_BYTES,
			     a->cache.encoding, out);
	else if (layout == SPMLA_LAYOUT_V4_BF16)
		memcpy(out, page + entry * SPMLA_V4_BF16_BYTES,
		       SPMLA_V4_BF16_BYTES);
	else
		products(page + entry * SPMLA_V4_E4M3_BYTES, SPMLA_V4_DIM,
			 a->kv_scale_at ? *a->kv_scale_at : a->kv_scale,
			 a->cache.encoding, out);
}

static void
gather_request(spmla_ctx *ctx, const spmla_kv_gather_args *a,
	       const spmla_i_cpu_table *table, uint32_t b,
	       spmla_i_cpu_span span, spmla_i_cpu_rows rows)
{
	const spmla_i_cpu_rows mine = spmla_i_cpu_rows_of(rows, span);
	const int64_t row = a->req_row ? a->req_row[b] : (int64_t)b;
	const uint32_t known = row >= 0 && row < (int64_t)a->rows;
	const uint32_t who = known ? (uint32_t)row : b;
	const int32_t start = a->seq_starts ? a->seq_starts[b] : 0;
	const uint32_t bad = span.moved || (start < 0 && span.first < span.end);
	const uint32_t skip = bad || !known;
	uint32_t n;

	if (rows.first == 0 && bad)
		spmla_i_cpu_fault(ctx, who, SPMLA_FAULT_LENGTH);
	else if (rows.first == 0 && !known && span.first < span.end)
		spmla_i_cpu_fault(ctx, who, SPMLA_FAULT_ROW);
	for (n = mine.first; n < mine.end; n++) {
		/* Both are below 2^31. */
		const uint32_t position = (uint32_t)start + (n - span.first);
		const uint8_t *page = NULL;

		if (!skip) {
			page = spmla_i_cpu_page_of(&a->cache, table, a->ring,
						   who, position);
			if (!page)
				spmla_i_cpu_fault(ctx, who, SPMLA_FAULT_PAGE);
		}
		copy_key(a, n, page, position % a->cache.entries_per_page);
	}
}

static void
gather_slots(spmla_ctx *ctx, const spmla_kv_gather_args *a,
	     spmla_i_cpu_rows rows)
{
	const uint64_t entries = a->cache.entries_per_page;
	uint32_t n;

	for (n = rows.first; n < rows.end; n++) {
		const uint64_t slot = (uint64_t)(int64_t)a->slots[n];
		const uint8_t *page = NULL;

		if (a->slots[n] >= 0 && slot < entries * a->cache.pages)
			page = spmla_i_cpu_page_at(&a->cache, slot / entries);
		else if (a->slots[n] >= 0)
			spmla_i_cpu_fault(ctx, n, SPMLA_FAULT_SLOT);
		copy_key(a, n, page, slot % entries);
	}
}

/* Makes the rows of an item, of any request. */
static void
gather_rows(spmla_ctx *ctx, const void *args, uint32_t worker, uint32_t item)
{
	const spmla_kv_gather_args *a = args;
	const spmla_i_cpu_table table = {
		a->block_table, a->table_cols,         a->rows,
		a->columns,     a->table_stride_elems, a->cache.pages};
	const spmla_i_cpu_rows rows =
		spmla_i_cpu_gather_rows(ctx, a->keys, item);
	uint32_t previous = 0, b;

	(void)worker;
	if (a->slots) {
		gather_slots(ctx, a, rows);
		return;
	}
	for (b = 0; b < a->requests; b++) {
		const int64_t end = a->workspace_ends ? a->workspace_ends[b]
				    : b + 1 < a->requests
					    ? a->workspace_starts[b + 1]
					    : (int64_t)a->keys;
		const spmla_i_cpu_span span = spmla_i_cpu_span_of(
			a->workspace_starts[b], end, previous, a->keys);

		gather_request(ctx, a, &table, b, span, rows);
		previous = span.end;
	}
}

void
spmla_i_cpu_kv_gather(spmla_ctx *ctx, const void *args)
{
	const spmla_kv_gather_args *a = args;

	spmla_i_cpu_for(ctx, a, spmla_i_cpu_gather_items(ctx, a->keys),
			gather_rows);
}
