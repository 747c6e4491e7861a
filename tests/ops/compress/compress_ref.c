/* SPDX-License-Identifier: Apache-2.0
 *
 * The keys of compress_rig.h against the reference's: reference_v4.h makes the
 * key of what a row gave, and every byte that was stored lies between what it
 * may be.
 */
#include "tests/ops/compress/compress_rig.h"
#include "tests/reference/narrow_ref.h"
#include "tests/reference/reference_v4.h"

#include <check.h>
#include <string.h>

static void
make_key(const compress_rig *r, ref_v4_key *key, uint32_t row, uint32_t pos)
{
	const uint32_t start = pos / r->a.ratio * r->a.ratio;
	ref_v4_group g;
	uint32_t i;

	g.rows = r->group;
	g.dim = r->dim;
	g.norm_weight = r->norm;
	g.norm_eps = (double)r->a.norm_eps;
	g.cos_sin = r->cos_sin + start * 64;
	for (i = 0; i < r->group; i++) {
		const int64_t p = (int64_t)pos - r->group + 1 + i;
		/* The later half of 8 has its own columns. */
		const uint32_t column = i >= r->a.ratio ? r->dim : 0;
		uint64_t at;

		g.kv[i] = NULL;
		if (p < 0)
			continue;
		at = ((uint64_t)row * r->history + (uint64_t)p) * r->width +
		     column;
		g.kv[i] = r->kv + at;
		g.score[i] = r->score + at;
		g.ape[i] =
			r->ape + (uint64_t)p % r->a.ratio * r->width + column;
	}
	ref_v4_compress(key, &g);
}

static uint8_t *
take(compress_rig *r, uint64_t at, uint32_t bytes)
{
	memset(r->seen + at, 1, bytes);
	return r->cache + at;
}

static void
between(const ref_v4_key *key, uint32_t d, double got, double low, double high)
{
	if (!(got >= low && got <= high))
		ck_abort_msg("column %u of %u: got %a, want %a .. %a", d,
			     key->dim, got, low, high);
}

static void
check_bf16(const ref_v4_key *key, const uint8_t *at)
{
	uint32_t d;

	for (d = 0; d < key->dim; d++) {
		const uint16_t bits =
			(uint16_t)(at[2 * d] | at[2 * d + 1] << 8);

		between(key, d, ref_bf16_value(bits), key->low[d],
			key->high[d]);
	}
}

/* One scale for all, an f32 quotient. */
static void
check_e4m3(const ref_v4_key *key, const uint8_t *codes, double scale,
	   uint32_t encoding)
{
	uint32_t d;

	for (d = 0; d < key->dim; d++)
		between(key, d, code_value(codes[d], encoding),
			code_value(
				encoded_quotient(key->low[d], scale, encoding),
				encoding),
			code_value(
				encoded_quotient(key->high[d], scale, encoding),
				encoding));
}

void
compress_ref_check(compress_rig *r, uint32_t t)
{
	const spmla_cache *c = &r->a.cache;
	const uint64_t entries = c->entries_per_page;
	const uint64_t slot = (uint64_t)r->slots[t], entry = slot % entries;
	const uint64_t page = slot / entries * c->page_stride_bytes;
	static ref_v4_key key;
	ref_miss miss = {"", -1, 0, 0};
	const uint8_t *values;
	int good = 1;
	float s;

	make_key(r, &key, (uint32_t)r->row[t], (uint32_t)r->positions[t]);
	switch (c->layout) {
	case SPMLA_LAYOUT_V4_FP8:
		values = take(r, page + entry * 576, 576);
		good = ref_v4_check_row(
			&key, values,
			take(r, page + entries * 576 + entry * 8, 8), &miss);
		break;
	case SPMLA_LAYOUT_V4_BF16:
		check_bf16(&key, take(r, page + entry * 1024, 1024));
		break;
	case SPMLA_LAYOUT_V4_E4M3:
		check_e4m3(&key, take(r, page + entry * 512, 512),
			   (double)r->a.e4m3_scale, c->encoding);
		break;
	case SPMLA_LAYOUT_INDEX_FP8:
		values = take(r, page + entry * 128, 128);
		memcpy(&s, take(r, page + entries * 128 + entry * 4, 4),
		       sizeof s);
		good = ref_v4_check_index(&key, values, (double)s, &miss);
		break;
	default:
		values = take(r, page + entry * 64, 64);
		good = ref_v4_check_mxfp4(
			&key, values,
			take(r, page + entries * 64 + entry * 4, 4), &miss);
	}
	if (!good)
		ck_abort_msg("%s, column %d: got %a, want %a", miss.what,
			     (int)miss.at, miss.got, miss.want);
}
