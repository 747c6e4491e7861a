/* SPDX-License-Identifier: Apache-2.0
 *
 * Host checks as data: a table of (field, got, rule, want) that is walked once,
 * so that every failure names its field and nothing is written before it.
 */
#ifndef SPMLA_INTERNAL_CHECK_H
#define SPMLA_INTERNAL_CHECK_H

#include "spmla/spmla.h"

typedef struct spmla_i_check {
	const char *field;
	uint64_t got;
	spmla_want rule;
	uint64_t want;
} spmla_i_check;

/* A pointer as the `got` of SPMLA_WANT_NOT_NULL. */
#define SPMLA_I_PTR(p) ((uint64_t)(uintptr_t)(p))

/* Rule and want of an enum: all values from first to last are allowed. Then of
 * a number: a and b are allowed, and c if it is not 0. */
#define SPMLA_I_FROM_TO(first, last) \
	SPMLA_WANT_ONE_OF, (UINT64_C(2) << (last)) - (UINT64_C(1) << (first))
#define SPMLA_I_EITHER(a, b, c) \
	SPMLA_WANT_EITHER,      \
		(uint64_t)(a) | (uint64_t)(b) << 16 | (uint64_t)(c) << 32

/* A stride as `got`: negative ones count as 0. */
static inline uint64_t
spmla_i_stride(int64_t stride)
{
	return stride < 0 ? 0 : (uint64_t)stride;
}

/* Fills diag (may be NULL) and returns status. */
spmla_status spmla_i_fail(spmla_diag *diag, spmla_status status,
			  const char *field, uint64_t got, spmla_want rule,
			  uint64_t want);

/* The same for element `index` of an array field. */
spmla_status spmla_i_fail_at(spmla_diag *diag, spmla_status status,
			     const char *field, uint32_t index, uint64_t got,
			     spmla_want rule, uint64_t want);

/* Checks that a struct has the size that this library knows: E_STRUCT_SIZE. */
spmla_status spmla_i_check_size(spmla_diag *diag, const char *field,
				uint32_t got, size_t want);

/* Whether got satisfies the rule. */
uint32_t spmla_i_keeps(uint64_t got, spmla_want rule, uint64_t want);

/* Returns the error of the first failed check: E_NULL for NOT_NULL, else
 * E_RANGE. */
spmla_status spmla_i_check_all(spmla_diag *diag, const spmla_i_check *checks,
			       uint32_t count);

/* Checks the state that a call finds, not its arguments: E_STATE. */
spmla_status spmla_i_check_now(spmla_ctx *ctx, const spmla_i_check *checks,
			       uint32_t count);

/* Checks that x is above zero and at most 2^126: E_RANGE. */
spmla_status spmla_i_check_positive(spmla_diag *diag, const char *field,
				    float x);

/* The names of a cache's fields in a diag. */
typedef struct spmla_i_cache_fields {
	const char *struct_bytes;
	const char *layout;
	const char *entries_per_page;
	const char *pages;
	const char *encoding;
	const char *page_stride_bytes;
	const char *base;
} spmla_i_cache_fields;

#define SPMLA_I_CACHE_FIELDS(name)                                   \
	{                                                            \
		name ".struct_bytes", name ".layout",                \
			name ".entries_per_page", name ".pages",     \
			name ".encoding", name ".page_stride_bytes", \
			name ".base"                                 \
	}

/* Checks a cache of an operation. `layouts` has bit L set for each allowed
 * layout L, and SPMLA_I_FNUZ if layouts of e4m3 may have that encoding. */
#define SPMLA_I_FNUZ (1u << 30)
spmla_status spmla_i_check_cache(spmla_diag *diag,
				 const spmla_i_cache_fields *fields,
				 const spmla_cache *cache, uint32_t layouts);

/* Every form that pages of index keys have. */
#define SPMLA_I_INDEX_PAGES                                                  \
	(1u << SPMLA_LAYOUT_INDEX_FP8 | 1u << SPMLA_LAYOUT_INDEX_FP8_TILED | \
	 1u << SPMLA_LAYOUT_INDEX_MXFP4 | SPMLA_I_FNUZ)

/* The last spmla_e4m3 that a layout may have. */
static inline uint32_t
spmla_i_encodings(uint32_t layout)
{
	return layout == SPMLA_LAYOUT_V4_FP8 ||
			       layout == SPMLA_LAYOUT_V4_E4M3 ||
			       layout == SPMLA_LAYOUT_FP8_DS_MLA ||
			       layout == SPMLA_LAYOUT_INDEX_FP8 ||
			       layout == SPMLA_LAYOUT_INDEX_FP8_TILED
		       ? SPMLA_E4M3_FNUZ
		       : SPMLA_E4M3_FN;
}

#define SPMLA_I_COUNT(a) ((uint32_t)(sizeof(a) / sizeof((a)[0])))

#endif
