/* SPDX-License-Identifier: Apache-2.0
 *
 * See kv_insert_rig.h.
 */
#include "tests/ops/cache/kv_insert_rig.h"
#include "tests/reference/narrow_ref.h"
#include "tests/reference/v4_row_ref.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { KV_STRIDE = 520, PE_STRIDE = 72, ROOM = 576, RED_ZONE = 64 };

/* Rows of all magnitudes and, one in 8, of any bits. */
static void
kv_rig_fill(kv_rig *r)
{
	static uint64_t rng;
	uint32_t t;

	if (rng == 0)
		rng = test_seed();
	for (t = 0; t < r->a.tokens; t++) {
		fill_row16(&rng, r->kv + t * KV_STRIDE, 512);
		fill_bits16(&rng, r->pe + t * PE_STRIDE, 64);
	}
	fill_slots(&rng, r->slots, r->a.tokens,
		   r->a.cache.pages * r->a.cache.entries_per_page);
}

void
kv_rig_open(kv_rig *r, uint32_t layout, uint32_t tokens, uint32_t entries,
	    uint32_t pages, uint64_t pad)
{
	const uint64_t page_bytes =
		layout == SPMLA_LAYOUT_FP8_DS_MLA ? 656 * (uint64_t)entries
		: layout == SPMLA_LAYOUT_MLA_BF16
			? 1152 * (uint64_t)entries
			: v4_ref_page_bytes(layout, entries);
	const spmla_cache cache = SPMLA_CACHE_INIT;
	spmla_config config;

	memset(r, 0, sizeof *r);
	fixture_config(&config);
	fixture_open(&r->f, &config, 0);
	r->a.struct_bytes = (uint32_t)sizeof r->a;
	r->a.tokens = tokens;
	r->a.dtype = SPMLA_DTYPE_BF16;
	r->a.scale_mode = SPMLA_SCALE_POW2;
	r->a.kv_scale = 1;
	r->a.cache = cache;
	r->a.cache.layout = layout;
	r->a.cache.entries_per_page = entries;
	r->a.cache.pages = pages;
	r->a.cache.page_stride_bytes = page_bytes + pad;
	r->pool_bytes = pages * r->a.cache.page_stride_bytes + RED_ZONE;
	r->pool = test_alloc(r->pool_bytes, 0xAB);
	r->want = test_alloc(r->pool_bytes, 0xAB);
	r->kv = test_alloc((tokens + 1) * ROOM * 2, 0xff); /* NaN */
	r->pe = test_alloc((tokens + 1) * PE_STRIDE * 2, 0xff);
	r->slots = test_alloc(tokens * sizeof *r->slots, 0xff);
	r->a.kv_c = r->kv;
	r->a.k_pe = r->pe;
	r->a.kv_c_stride_elems = KV_STRIDE;
	r->a.k_pe_stride_elems = PE_STRIDE;
	r->a.slot_mapping = r->slots;
	r->a.cache.base = r->pool;
	kv_rig_fill(r);
}

void
kv_rig_open_v4(kv_rig *r, uint32_t layout, uint32_t tokens, uint32_t entries,
	       uint32_t pages, uint64_t pad)
{
	kv_rig_open(r, layout, tokens, entries, pages, pad);
	r->a.k_pe = NULL; /* not read, nor what else is not of V4 */
	r->a.k_pe_stride_elems = 0;
	r->a.scale_mode = 0;
	r->a.kv_scale = 0;
}

void
kv_rig_close(kv_rig *r)
{
	fixture_close(&r->f);
	free(r->pool);
	free(r->want);
	free(r->kv);
	free(r->pe);
	free(r->slots);
}

/* Fills the pool with 0xAB. */
static void
kv_rig_reset(kv_rig *r)
{
	memset(r->pool, 0xAB, r->pool_bytes);
}

void
kv_rig_run(kv_rig *r)
{
	kv_rig_reset(r);
	ck_assert_int_eq(spmla_kv_insert(r->f.ctx, &r->a, NULL), SPMLA_OK);
	fixture_drain(&r->f);
}

static void
model_fp8(const kv_rig *r, const uint16_t *kv, uint8_t *entry)
{
	const uint32_t encoding = r->a.cache.encoding;
	uint32_t g, i;

	for (g = 0; g < 4; g++) {
		double x[128], s;
		float stored;

		for (i = 0; i < 128; i++)
			x[i] = value16(kv[g * 128 + i], r->a.dtype);
		s = ref_round_f32(ref_amax(x, 128) /
				  (encoding == SPMLA_E4M3_FNUZ ? 224 : 448));
		if (r->a.scale_mode == SPMLA_SCALE_POW2)
			s = ref_pow2up(s > (double)1e-4f ? s : (double)1e-4f);
		else if (s < 0x1p-126)
			s = 0x1p-126;
		for (i = 0; i < 128; i++)
			entry[g * 128 + i] =
				encoded_quotient(x[i], s, encoding);
		stored = (float)s;
		memcpy(entry + 512 + 4 * g, &stored, 4);
	}
}

/* The pool as it should be after the op, into r->want. */
static void
kv_rig_model(kv_rig *r)
{
	const spmla_cache *c = &r->a.cache;
	const uint16_t *kv = r->a.kv_c;
	const uint16_t *pe = r->a.k_pe ? r->a.k_pe : r->pe;
	const int64_t entries = c->entries_per_page;
	uint32_t t;

	memset(r->want, 0xAB, r->pool_bytes);
	for (t = 0; t < r->a.tokens; t++) {
		const int64_t slot = r->a.slot_mapping[t];
		const uint16_t *kv_row = kv + t * r->a.kv_c_stride_elems;
		const uint16_t *pe_row = pe + t * r->a.k_pe_stride_elems;
		uint8_t *page = r->want;

		if (c->layout >= SPMLA_LAYOUT_V4_FP8) {
			v4_ref_write(c, r->want, slot, kv_row, r->a.kv_scale);
			continue;
		}
		if (slot < 0 || slot / entries >= c->pages)
			continue;
		page += (uint64_t)(slot / entries) * c->page_stride_bytes;
		if (c->layout == SPMLA_LAYOUT_MLA_BF16) {
			memcpy(page + slot % entries * 1152, kv_row, 1024);
			memcpy(page + slot % entries * 1152 + 1024, pe_row,
			       128);
			continue;
		}
		model_fp8(r, kv_row, page + slot % entries * 656);
		memcpy(page + slot % entries * 656 + 528, pe_row, 128);
	}
}

void
kv_rig_check(kv_rig *r)
{
	kv_rig_model(r);
	kv_rig_run(r);
	check_bytes(r->pool, r->want, r->pool_bytes);
}
