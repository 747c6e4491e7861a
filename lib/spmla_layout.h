/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes of a paged cache. Every layout is described here, once; kernels and
 * callers take offsets only from these names. The page stride is always an
 * input, so a page may be padded or interleaved with other data.
 */
#ifndef SPMLA_LAYOUT_H
#define SPMLA_LAYOUT_H

#ifndef __OPENCL_C_VERSION__ /* kernels read these names too */
#include <stdint.h>
#endif

#ifdef __cplusplus
#define SPMLA_STATIC_ASSERT(cond, text) static_assert(cond, text)
extern "C" {
#else
/* Stops the compilation, with the text, where cond does not hold. */
#define SPMLA_STATIC_ASSERT(cond, text) _Static_assert(cond, text)
#endif

/* Types of 16-bit and 32-bit values. */
typedef enum spmla_dtype {
	SPMLA_DTYPE_BF16 = 0,
	SPMLA_DTYPE_FP16 = 1,
	SPMLA_DTYPE_F32 = 2,
	SPMLA_DTYPE_FORCE_32 = 0x7fffffff
} spmla_dtype;

/* The type of an integer input. The planned buffers have the first. */
typedef enum spmla_int_dtype {
	SPMLA_INT32 = 0,
	SPMLA_INT64 = 1, /* a value outside int32 is bad data */
	SPMLA_INT_FORCE_32 = 0x7fffffff
} spmla_int_dtype;

/* The type of a float input. */
typedef enum spmla_real_dtype {
	SPMLA_REAL_F32 = 0,
	SPMLA_REAL_BF16 = 1,
	SPMLA_REAL_FORCE_32 = 0x7fffffff
} spmla_real_dtype;

/* The two values that a rotation pairs: (i, i + 32) for NEOX, (2i, 2i + 1) for
 * INTERLEAVED.
 *   first' = first * cos - second * sin
 *   second' = second * cos + first * sin */
typedef enum spmla_rope_style {
	SPMLA_ROPE_NONE = 0,
	SPMLA_ROPE_NEOX = 1,
	SPMLA_ROPE_INTERLEAVED = 2,
	SPMLA_ROPE_FORCE_32 = 0x7fffffff
} spmla_rope_style;

/* The least scale of an index query, before rounding up to a power of two. The
 * rules differ only for rows that are nearly zero. With FNUZ codes 224 takes
 * the place of 448. */
typedef enum spmla_q_scale_floor {
	SPMLA_Q_SCALE_FUSED = 0, /* max(amax, 1e-10) / 448 */
	SPMLA_Q_SCALE_GROUP = 1, /* max(max(amax, 1e-10) / 448, 1e-10) */
	SPMLA_Q_SCALE_V4 = 2,    /* max(amax, 1e-4) / 448 */
	SPMLA_Q_SCALE_FORCE_32 = 0x7fffffff
} spmla_q_scale_floor;

/* The lse of a token without keys; the sink does not change it. PLUS_INF: as
 * FlashMLA. MINUS_INF: neutral when ranks are merged. LOWEST: -1e30, as
 * FlashInfer. */
typedef enum spmla_empty_lse {
	SPMLA_EMPTY_LSE_PLUS_INF = 0,
	SPMLA_EMPTY_LSE_MINUS_INF = 1,
	SPMLA_EMPTY_LSE_LOWEST = 2,
	SPMLA_EMPTY_LSE_FORCE_32 = 0x7fffffff
} spmla_empty_lse;

/* The logarithm of an lse, and of max_logits. */
typedef enum spmla_lse_base {
	SPMLA_LSE_NATURAL = 0,
	SPMLA_LSE_BASE2 = 1,
	SPMLA_LSE_BASE_FORCE_32 = 0x7fffffff
} spmla_lse_base;

/* Where the compressor state of a token lies in its row of the block table.
 * PAGED: in column pos / page tokens. RING: the same modulo the columns, so a
 * token replaces the one columns * page tokens before it. With RING, groups are
 * compressed before the tokens of the call are saved. */
typedef enum spmla_state_form {
	SPMLA_STATE_PAGED = 0,
	SPMLA_STATE_RING = 1,
	SPMLA_STATE_FORM_FORCE_32 = 0x7fffffff
} spmla_state_form;

/* What the e4m3 codes of a cache or of index queries mean. FN: OCP's e4m3fn,
 * bias 7, largest 448, NaN 0x7f and 0xff. FNUZ: bias 8, so a code has half the
 * value; largest 240 (0x7f), NaN 0x80, no -0. Writers on gfx942 use it for some
 * caches. Scales that follow from amax then come from amax / 224. With the
 * caller's scale (V4_E4M3) values saturate at 448, with FNUZ at 240.
 * Writers give a NaN the code 0x7f (FNUZ: 0x80), whatever its sign. If the
 * scale follows from amax and amax is infinite, the scale is +inf (as a byte
 * 255), an infinity has the code of NaN, and finite values become zeros of
 * their sign (FNUZ: 0). */
typedef enum spmla_e4m3 {
	SPMLA_E4M3_FN = 0,
	SPMLA_E4M3_FNUZ = 1,
	SPMLA_E4M3_FORCE_32 = 0x7fffffff
} spmla_e4m3;

/* How the entries of a cache lie in its pages. */
typedef enum spmla_layout {
	/* 656 B per entry: 512 e4m3, 4 f32 scales (one per 128 values), 64
	 * 16-bit rope values. Entries follow each other. */
	SPMLA_LAYOUT_FP8_DS_MLA = 1,
	/* 1152 B per entry: 512 latent and 64 rope values, all 16-bit. */
	SPMLA_LAYOUT_MLA_BF16 = 2,
	/* 132 B per entry, stored by page: first entries_per_page x 128 e4m3,
	 * then entries_per_page f32 scales. */
	SPMLA_LAYOUT_INDEX_FP8 = 3,
	/* 584 B per entry, stored by page: first entries_per_page x (448 e4m3,
	 * 64 bf16 rope values), then entries_per_page x (7 ue8m0 scales, one
	 * per 64 e4m3, and a 0). Pages are often padded to a multiple of 576.
	 */
	SPMLA_LAYOUT_V4_FP8 = 4,
	/* 1024 B per entry: 448 and 64 rope values, all bf16. */
	SPMLA_LAYOUT_V4_BF16 = 5,
	/* 512 B per entry: the same values as e4m3, with one scale for the
	 * whole cache. */
	SPMLA_LAYOUT_V4_E4M3 = 6,
	/* 68 B per entry, stored by page: first entries_per_page x 128 e2m1 in
	 * 64 bytes (the even one of a pair in the low half), then
	 * entries_per_page x 4 ue8m0 scales, one per 32 values. */
	SPMLA_LAYOUT_INDEX_MXFP4 = 7,
	/* 2 * W f32 per entry, the compressor state of one token: W of kv, then
	 * W of score + ape. At ratio 128 W is 512 (dim 512) or 128 (dim 128).
	 * At ratio 4 W is 1024 (dim 512) or 256 (dim 128). There a token
	 * belongs to two groups: the first half of its columns is for the group
	 * where it is an older row, the second half for the one where it is a
	 * newer row. */
	SPMLA_LAYOUT_STATE_256 = 8,
	SPMLA_LAYOUT_STATE_512 = 9,
	SPMLA_LAYOUT_STATE_1024 = 10,
	/* 132 B per entry: INDEX_FP8 with the values of 16 entries in a tile,
	 * as ROCm's kernels take them: value d of entry e is byte e / 16 * 2048
	 * + d / 16 * 256 + e % 16 * 16 + d % 16. A page has a multiple of 16
	 * entries. */
	SPMLA_LAYOUT_INDEX_FP8_TILED = 11,
	/* As STATE_512, for index keys: ratio 128, dim 128. Layers have none.
	 */
	SPMLA_LAYOUT_STATE_128 = 12,
	SPMLA_LAYOUT_FORCE_32 = 0x7fffffff
} spmla_layout;

enum {
	SPMLA_MLA_LATENT = 512, /* values of the latent, also of V */
	SPMLA_MLA_ROPE = 64,
	SPMLA_MLA_DIM = 576, /* latent, then rope: a query or a key */
	SPMLA_MLA_SCALE_GROUP = 128,
	SPMLA_MLA_SCALES = 4,
	SPMLA_FP8_DS_MLA_SCALE_BYTE = 512,
	SPMLA_FP8_DS_MLA_ROPE_BYTE = 528,
	SPMLA_FP8_DS_MLA_BYTES = 656,
	SPMLA_MLA_BF16_BYTES = 1152,
	SPMLA_INDEX_DIM = 128,
	SPMLA_INDEX_ROPE = 64, /* of the 128; V3.2: the first, V4: the last */
	SPMLA_INDEX_FP8_BYTES = 132,
	SPMLA_INDEX_TILE = 16, /* entries of a tile, and values of a run */
	SPMLA_V4_DIM = 512,    /* nope, then rope: a query, a key and V */
	SPMLA_V4_NOPE = 448,
	SPMLA_V4_ROPE = 64,
	SPMLA_V4_SCALE_GROUP = 64,
	SPMLA_V4_SCALES = 7,
	SPMLA_V4_VALUE_BYTES = 576, /* e4m3 and rope of an entry */
	SPMLA_V4_SCALE_BYTES = 8,   /* per entry, behind all values */
	SPMLA_V4_FP8_BYTES = 584,
	SPMLA_V4_BF16_BYTES = 1024,
	SPMLA_V4_E4M3_BYTES = 512,
	SPMLA_MXFP4_GROUP = 32,
	SPMLA_INDEX_MXFP4_VALUE_BYTES = 64,
	SPMLA_INDEX_MXFP4_SCALES = 4,
	SPMLA_INDEX_MXFP4_BYTES = 68,
	SPMLA_COMPRESS_OVERLAP = 4,   /* the ratio whose groups overlap */
	SPMLA_COMPRESS_MOST = 128,    /* the other ratio; rows of its groups */
	SPMLA_PAGE_STRIDE_ALIGN = 16, /* of planned pools */
	SPMLA_LOGITS_ROW_ALIGN = 256  /* elements; rows of index logits */
};

/* 128^-0.5, the scale that spmla_v32_index applies to the index scores. */
#define SPMLA_INDEX_SOFTMAX_SCALE 0.08838834764831845f

/* In place of a gathered key's scale: the key is missing and scores -inf. It is
 * -inf as an f32; of four ue8m0 bytes the last is 255. No writer gives either.
 */
#define SPMLA_INDEX_MISSING 0xff800000u

/* A paged cache, embedded by value where it is used. It never grows.
 * Entry `slot` lies in page slot / entries_per_page. Page p begins at base + p
 * * page_stride_bytes (64-bit arithmetic).
 *   layout             spmla_layout
 *   table_group        the group whose block table maps positions to pages
 *   entries_per_page   at least 1; in a layer 1..4096, as its table group has
 *   pages              1 or more behind base; a page id outside [0, pages) is
 *                      bad data: it is skipped and reported, never read
 *   encoding           spmla_e4m3; FP8_DS_MLA, V4_FP8, INDEX_FP8 and
 *                      INDEX_FP8_TILED may also be FNUZ, in operations and
 *                      in layers, and V4_E4M3 in operations; other layouts
 *                      are FN
 *   page_stride_bytes  >= the bytes of the page's entries, a multiple of
 *                      spmla_layout_stride_align(); if not of 16, a GPU reads
 *                      the cache without matrix instructions
 *   base               16-byte aligned */
typedef struct spmla_cache {
	uint32_t struct_bytes;
	uint32_t layout;
	uint32_t table_group;
	uint32_t entries_per_page;
	uint32_t pages;
	uint32_t encoding;
	uint64_t page_stride_bytes;
	void *base;
} spmla_cache;

#define SPMLA_CACHE_INIT                                           \
	{                                                          \
		(uint32_t)sizeof(spmla_cache), 0, 0, 0, 0, 0, 0, 0 \
	}

/* Bytes of one entry; 0 for an unknown layout. */
uint32_t spmla_layout_entry_bytes(uint32_t layout);

/* What a page stride must be a multiple of: 8 for V4_FP8, 4 for the layouts of
 * index keys, else 16; 0 for an unknown layout. */
uint32_t spmla_layout_stride_align(uint32_t layout);

/* The page stride of a planned pool: the bytes of `entries` entries, rounded up
 * to SPMLA_PAGE_STRIDE_ALIGN; 0 for an unknown layout. */
uint64_t spmla_layout_page_bytes(uint32_t layout, uint32_t entries);

#ifdef __cplusplus
}
#endif
#endif
