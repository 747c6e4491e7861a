/* SPDX-License-Identifier: Apache-2.0
 *
 * The shared memory of a block of sparse_decode_wgmma, and its barriers, which
 * the loading and the multiplying warps share.
 */
#ifndef SPMLA_PLATFORM_GPU_ATTEND_DECODE_MEMORY_DEVICE_H
#define SPMLA_PLATFORM_GPU_ATTEND_DECODE_MEMORY_DEVICE_H

#include "spmla/platform/gpu/attend/decode_format_device.h"
#include "spmla/platform/gpu/attend/decode_run_device.h"
#include "spmla/platform/gpu/dialect/async.h"
#include "spmla/platform/gpu/dialect/wgmma.h"

/* The named barriers of a block. */
typedef enum decode_barrier {
	DECODE_EVEN_P = 1,  /* weights of the even tile are written */
	DECODE_ODD_P = 2,   /* weights of the odd tile are written */
	DECODE_SUMS = 3,    /* the multiplying warpgroups meet */
	DECODE_QUERIES = 4, /* both convert queries */
	/* The left warpgroup alone. The next number, 6, is for the right one. */
	DECODE_ONE = 5,
	DECODE_LOADERS = 7, /* the warps that load */
	/* Tells the multiplying warps that the first run is made. Its mbarrier
	 * may be in use again by the time they would wait. */
	DECODE_BEGAN = 8,
	DECODE_BEGAN_THREADS = 256 + 32 /* they and one loading warp */
} decode_barrier;

enum {
	DECODE_PANELS = 9,       /* of a key: 8 of values, one of V3.2's rope */
	DECODE_OCTETS = 8,       /* groups of 8 rows of a tile */
	DECODE_PIECES = 5,       /* of a row, at most */
	DECODE_WARPS = 4,        /* of the loader */
	DECODE_UNITS = 4,        /* of a ring, */
	DECODE_FEW_UNITS = 8,    /* with few heads */
	DECODE_UNIT = 1024,      /* bytes; half of them if all rows are e2m1 */
	DECODE_SCALES = 16,      /* bytes of a row's scales in shared memory, */
	DECODE_LONG_SCALES = 32, /* with e2m1 rows */
	DECODE_WARP_ROWS = 16,   /* of a tile that a warp loads, at most */
	/* Bytes of a tile: groups of 8 rows, in each the panels. */
	DECODE_PANEL_BYTES = 8 * 128,
	DECODE_OCTET_BYTES = DECODE_PANELS * DECODE_PANEL_BYTES,
	DECODE_TILE_BYTES = DECODE_OCTETS * DECODE_OCTET_BYTES,
	DECODE_Q_BYTES = 8 * 64 * 128,
	DECODE_FEW_RING_BYTES = DECODE_FEW_UNITS * DECODE_UNIT,
	/* A key is the row's value times 2^DECODE_KEY_BIAS. */
	DECODE_KEY_BIAS = 6
};

/* What is known of 8 rows of a tile before they are multiplied. */
typedef struct decode_note {
	uint32_t keys;  /* bit r: row r is a key */
	uint32_t wide;  /* f16 does not hold one of the rows */
	uint32_t chunk; /* see decode_chunk_of */
	uint32_t reserved;
} decode_note;

/* Shared memory of a block. `left` is the half with panels 0 .. 3. */
typedef struct decode_memory {
	/* Eight panels. With few heads the units of the rings lie behind them.
	 */
	uint8_t queries[DECODE_Q_BYTES];
	uint8_t keys[2][DECODE_TILE_BYTES];
	union {
		struct {
			union {
				uint8_t units[DECODE_UNITS][DECODE_UNIT];
				struct { /* with e2m1 rows */
					uint8_t fewer_units[DECODE_UNITS - 1]
							   [DECODE_UNIT];
					uint8_t long_scales[2][DECODE_WARP_ROWS]
							   [DECODE_LONG_SCALES];
				};
			};
			uint8_t scales[2][DECODE_WARP_ROWS][DECODE_SCALES];
		} rings[DECODE_WARPS];
		struct { /* with bf16 rows */
			uint8_t query_rope[64 * 128];
			float largest[2][DECODE_HEADS];
		};
	};
	decode_note notes[2][DECODE_OCTETS]; /* 16-byte aligned */
	g_mbarrier full[2][2];               /* halves of tiles are there */
	g_mbarrier free[2][2];               /* halves are free */
	g_mbarrier queries_full;
	g_mbarrier made[DECODE_MADE]; /* run r, by r % DECODE_MADE */
	float reach[2][DECODE_HEADS];
	decode_run runs[DECODE_RUNS];
	decode_walk walk;
	uint32_t adds; /* splits whose heads the block adds */
} decode_memory;

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

/* Bytes of a panel of queries. */
FN uint32_t
decode_q_panel(decode_format f)
{
	return f.heads * 128;
}

/* decode_walk_chunk's result. It lies in the note of the first rows that the
 * block loads itself, where no copy of the peer's goes. */
FN LOCAL uint32_t *
decode_chunk_of(LOCAL decode_memory *mem, uint32_t rank)
{
	return &mem->notes[0][rank * (DECODE_OCTETS / 2)].chunk;
}

/* A warp's ring. */
FN LOCAL uint8_t *
decode_ring(LOCAL decode_memory *mem, decode_format f, uint32_t warp)
{
	return f.heads == DECODE_HEADS ? mem->rings[warp].units[0]
				       : mem->queries + 8 * decode_q_panel(f) +
						 warp * DECODE_FEW_RING_BYTES;
}

#endif
#endif
