/* SPDX-License-Identifier: Apache-2.0
 *
 * The checks that every entry point shares. See check.h.
 */
#include "spmla/internal/backend.h"
#include "spmla/internal/bf16.h"

#include <string.h>

spmla_status
spmla_i_fail_at(spmla_diag *diag, spmla_status status, const char *field,
		uint32_t index, uint64_t got, spmla_want rule, uint64_t want)
{
	if (diag) {
		diag->struct_bytes = (uint32_t)sizeof *diag;
		diag->status = (uint32_t)status;
		diag->want_rule = (uint32_t)rule;
		diag->index = index;
		diag->field = field;
		diag->got = got;
		diag->want = want;
	}
	return status;
}

spmla_status
spmla_i_fail(spmla_diag *diag, spmla_status status, const char *field,
	     uint64_t got, spmla_want rule, uint64_t want)
{
	return spmla_i_fail_at(diag, status, field, SPMLA_NO_INDEX, got, rule,
			       want);
}

spmla_status
spmla_i_check_size(spmla_diag *diag, const char *field, uint32_t got,
		   size_t want)
{
	if (got == want)
		return SPMLA_OK;
	return spmla_i_fail(diag, SPMLA_E_STRUCT_SIZE, field, got,
			    SPMLA_WANT_EQUAL, want);
}

uint32_t
spmla_i_keeps(uint64_t got, spmla_want rule, uint64_t want)
{
	switch (rule) {
	case SPMLA_WANT_EQUAL:
		return got == want;
	case SPMLA_WANT_AT_LEAST:
		return got >= want;
	case SPMLA_WANT_AT_MOST:
		return got <= want;
	case SPMLA_WANT_MULTIPLE_OF:
		return got % want == 0;
	case SPMLA_WANT_NOT_NULL:
		return got != 0;
	case SPMLA_WANT_ONE_OF:
		return got < 64 && (want >> got & 1u);
	case SPMLA_WANT_EITHER:
		for (; want; want >>= 16)
			if (got == (want & 0xffff))
				return 1;
		return 0;
	default:
		return 1;
	}
}

spmla_status
spmla_i_check_all(spmla_diag *diag, const spmla_i_check *checks, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		const spmla_i_check *c = &checks[i];

		if (!spmla_i_keeps(c->got, c->rule, c->want))
			return spmla_i_fail(diag,
					    c->rule == SPMLA_WANT_NOT_NULL
						    ? SPMLA_E_NULL
						    : SPMLA_E_RANGE,
					    c->field, c->got, c->rule, c->want);
	}
	return SPMLA_OK;
}

spmla_status
spmla_i_check_now(spmla_ctx *ctx, const spmla_i_check *checks, uint32_t count)
{
	if (spmla_i_check_all(&ctx->diag, checks, count) == SPMLA_OK)
		return SPMLA_OK;
	ctx->diag.status = SPMLA_E_STATE;
	return SPMLA_E_STATE;
}

spmla_status
spmla_i_check_positive(spmla_diag *diag, const char *field, float x)
{
	const uint32_t u = spmla_i_f32_bits(x);

	/* Up to 2^126, so that a factor of log2(e) keeps it finite. */
	if (u != 0 && u <= 0x7e800000u)
		return SPMLA_OK;
	return spmla_i_fail(diag, SPMLA_E_RANGE, field, u, SPMLA_WANT_FINITE,
			    0);
}

spmla_status
spmla_i_check_cache(spmla_diag *diag, const spmla_i_cache_fields *fields,
		    const spmla_cache *cache, uint32_t layouts)
{
	const uint64_t base = SPMLA_I_PTR(cache->base);
	const uint32_t encodings = layouts & SPMLA_I_FNUZ
					   ? spmla_i_encodings(cache->layout)
					   : (uint32_t)SPMLA_E4M3_FN;
	const spmla_i_check checks[] = {
		{fields->layout, cache->layout, SPMLA_WANT_ONE_OF,
		 layouts & ~SPMLA_I_FNUZ},
		{fields->encoding, cache->encoding, SPMLA_WANT_AT_MOST,
		 encodings},
		{fields->entries_per_page, cache->entries_per_page,
		 SPMLA_WANT_AT_LEAST, 1},
		{fields->entries_per_page, cache->entries_per_page,
		 SPMLA_WANT_MULTIPLE_OF,
		 cache->layout == SPMLA_LAYOUT_INDEX_FP8_TILED
			 ? SPMLA_INDEX_TILE
			 : 1},
		{fields->pages, cache->pages, SPMLA_WANT_AT_LEAST, 1},
		{fields->page_stride_bytes, cache->page_stride_bytes,
		 SPMLA_WANT_AT_LEAST,
		 (uint64_t)spmla_layout_entry_bytes(cache->layout) *
			 cache->entries_per_page},
		{fields->page_stride_bytes, cache->page_stride_bytes,
		 SPMLA_WANT_MULTIPLE_OF,
		 spmla_layout_stride_align(cache->layout)},
		{fields->base, base, SPMLA_WANT_NOT_NULL, 0},
		{fields->base, base, SPMLA_WANT_MULTIPLE_OF,
		 SPMLA_PAGE_STRIDE_ALIGN},
		/* The last page ends in the address space. */
		{fields->page_stride_bytes, cache->page_stride_bytes,
		 SPMLA_WANT_AT_MOST,
		 cache->pages ? (UINT64_MAX - base) / cache->pages : 0},
	};

	if (cache->struct_bytes != sizeof *cache)
		return spmla_i_fail(diag, SPMLA_E_STRUCT_SIZE,
				    fields->struct_bytes, cache->struct_bytes,
				    SPMLA_WANT_EQUAL, sizeof *cache);
	return spmla_i_check_all(diag, checks, SPMLA_I_COUNT(checks));
}

spmla_status
spmla_i_op_begin(spmla_ctx *ctx, const void *args, uint32_t bytes,
		 const char *name)
{
	uint32_t got;
	spmla_status s;

	if (!spmla_i_lives(ctx))
		return SPMLA_E_NULL;
	if (!args) {
		s = spmla_i_fail(&ctx->diag, SPMLA_E_NULL, name, 0,
				 SPMLA_WANT_NOT_NULL, 0);
	} else {
		memcpy(&got, args, sizeof got);
		if (got == bytes)
			return SPMLA_OK;
		s = spmla_i_fail(&ctx->diag, SPMLA_E_STRUCT_SIZE, name, got,
				 SPMLA_WANT_EQUAL, bytes);
	}
	return spmla_i_op_failed(ctx, s);
}

spmla_status
spmla_i_op_failed(spmla_ctx *ctx, spmla_status status)
{
	if (ctx->capture_open && ctx->capture_failed == SPMLA_OK)
		ctx->capture_failed = (uint32_t)status;
	return status;
}

spmla_status
spmla_i_op_end(spmla_ctx *ctx, spmla_status checked, spmla_op op,
	       const void *args, uint32_t bytes, spmla_stream stream)
{
	spmla_status s = checked;

	if (s == SPMLA_OK)
		s = ctx->backend->enqueue(ctx, op, args, bytes, stream);
	return s == SPMLA_OK ? s : spmla_i_op_failed(ctx, s);
}
