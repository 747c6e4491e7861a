/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes of the cache layouts. See spmla_layout.h.
 */
#include "spmla/spmla_layout.h"

SPMLA_STATIC_ASSERT(SPMLA_FP8_DS_MLA_ROPE_BYTE ==
			    SPMLA_MLA_LATENT + 4 * SPMLA_MLA_SCALES,
		    "scales follow the values");
SPMLA_STATIC_ASSERT(SPMLA_FP8_DS_MLA_BYTES ==
			    SPMLA_FP8_DS_MLA_ROPE_BYTE + 2 * SPMLA_MLA_ROPE,
		    "rope follows the scales");
SPMLA_STATIC_ASSERT(SPMLA_MLA_BF16_BYTES == 2 * SPMLA_MLA_DIM, "bf16 row");
SPMLA_STATIC_ASSERT(SPMLA_INDEX_FP8_BYTES == SPMLA_INDEX_DIM + 4,
		    "values and one scale");
SPMLA_STATIC_ASSERT(SPMLA_V4_VALUE_BYTES == SPMLA_V4_NOPE + 2 * SPMLA_V4_ROPE,
		    "codes, then rope");
SPMLA_STATIC_ASSERT(SPMLA_V4_FP8_BYTES ==
			    SPMLA_V4_VALUE_BYTES + SPMLA_V4_SCALE_BYTES,
		    "values and scales");
SPMLA_STATIC_ASSERT(SPMLA_V4_BF16_BYTES == 2 * SPMLA_V4_DIM, "bf16 row");
SPMLA_STATIC_ASSERT(SPMLA_V4_E4M3_BYTES == SPMLA_V4_DIM, "a byte a value");
SPMLA_STATIC_ASSERT(SPMLA_INDEX_MXFP4_VALUE_BYTES == SPMLA_INDEX_DIM / 2 &&
			    SPMLA_INDEX_MXFP4_SCALES * SPMLA_MXFP4_GROUP ==
				    SPMLA_INDEX_DIM &&
			    SPMLA_INDEX_MXFP4_BYTES ==
				    SPMLA_INDEX_MXFP4_VALUE_BYTES +
					    SPMLA_INDEX_MXFP4_SCALES,
		    "two values a byte, then scales");
SPMLA_STATIC_ASSERT(sizeof(spmla_cache) == 40, "embedded, never grows");

uint32_t
spmla_layout_entry_bytes(uint32_t layout)
{
	switch (layout) {
	case SPMLA_LAYOUT_FP8_DS_MLA:
		return SPMLA_FP8_DS_MLA_BYTES;
	case SPMLA_LAYOUT_MLA_BF16:
		return SPMLA_MLA_BF16_BYTES;
	case SPMLA_LAYOUT_INDEX_FP8:
	case SPMLA_LAYOUT_INDEX_FP8_TILED:
		return SPMLA_INDEX_FP8_BYTES;
	case SPMLA_LAYOUT_V4_FP8:
		return SPMLA_V4_FP8_BYTES;
	case SPMLA_LAYOUT_V4_BF16:
		return SPMLA_V4_BF16_BYTES;
	case SPMLA_LAYOUT_V4_E4M3:
		return SPMLA_V4_E4M3_BYTES;
	case SPMLA_LAYOUT_INDEX_MXFP4:
		return SPMLA_INDEX_MXFP4_BYTES;
	case SPMLA_LAYOUT_STATE_128:
		return 128 * 2 * (uint32_t)sizeof(float);
	case SPMLA_LAYOUT_STATE_256:
		return 256 * 2 * (uint32_t)sizeof(float);
	case SPMLA_LAYOUT_STATE_512:
		return 512 * 2 * (uint32_t)sizeof(float);
	case SPMLA_LAYOUT_STATE_1024:
		return 1024 * 2 * (uint32_t)sizeof(float);
	default:
		return 0;
	}
}

uint32_t
spmla_layout_stride_align(uint32_t layout)
{
	switch (layout) {
	case SPMLA_LAYOUT_INDEX_FP8:
	case SPMLA_LAYOUT_INDEX_FP8_TILED:
	case SPMLA_LAYOUT_INDEX_MXFP4:
		return 4;
	case SPMLA_LAYOUT_V4_FP8:
		return 8;
	default:
		return spmla_layout_entry_bytes(layout)
			       ? SPMLA_PAGE_STRIDE_ALIGN
			       : 0;
	}
}

uint64_t
spmla_layout_page_bytes(uint32_t layout, uint32_t entries)
{
	const uint64_t bytes =
		(uint64_t)spmla_layout_entry_bytes(layout) * entries;

	return (bytes + SPMLA_PAGE_STRIDE_ALIGN - 1) / SPMLA_PAGE_STRIDE_ALIGN *
	       SPMLA_PAGE_STRIDE_ALIGN;
}
