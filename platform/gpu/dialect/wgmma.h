/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix instructions of Hopper's warpgroups, four subgroups of 32 that compute
 * 64 rows together: PTX where nvcc compiles for sm_90a, and for the emulator a
 * model that computes at once what the device may compute until g_wgmma_wait.
 *
 * Operands in local memory are panels: rows of 64 16-bit values, 128 bytes,
 * whose 16-byte pieces are swizzled, piece i of row r where i ^ (r % 8) would
 * be. A panel begins at a multiple of 1024 bytes. Of the accumulators, lane 4 g
 * + t of subgroup w has in d[4 j + 2 i + e] row 16 w + g + 8 i, column 8 j + 2
 * t + e.
 *
 * Order: stores to panels, g_fence_async (which also waits for loads that are
 * under way), BARRIER; g_wgmma_hold of accumulators, g_wgmma_begin, products,
 * g_wgmma_commit; g_wgmma_wait, g_wgmma_hold, and only then are accumulators
 * read and panels written again.
 */
#ifndef SPMLA_PLATFORM_GPU_DIALECT_WGMMA_H
#define SPMLA_PLATFORM_GPU_DIALECT_WGMMA_H

#include "spmla/platform/gpu/dialect/async.h"
#include "spmla/platform/gpu/dialect/mma.h"

/* Only binaries for sm_90a have these instructions. */
#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define G_HAS_WGMMA 0
#else
#define G_HAS_WGMMA 1
#endif

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

enum { G_PANEL = 64 }; /* values of a panel's row */

/* Where column `column` of row `row` lies in a panel, in values. */
FN uint32_t
g_panel_at(uint32_t row, uint32_t column)
{
	return row * G_PANEL + ((column / 8 ^ (row & 7u)) * 8) + (column & 7u);
}

#if defined(__CUDACC__)

FN void
g_wgmma_begin(void)
{
	asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

FN void
g_wgmma_commit(void)
{
	asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

FN void
g_wgmma_wait(void)
{
	asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

/* Keeps the compiler from moving uses of an accumulator over a begin or
 * wait. */
FN void
g_wgmma_hold(PRIVATE float *d)
{
	asm volatile("" : "+f"(*d)::"memory");
}

/* Keeps the compiler from using a value before what stands above. */
FN void
g_wgmma_defer(PRIVATE uint32_t *x)
{
	asm volatile("" : "+r"(*x)::"memory");
}

/* A panel as the instructions have it: where it is, swizzled by 128 bytes,
 * groups of 8 rows 1024 bytes apart, panels of 64 rows. */
typedef uint64_t g_panel;

FN g_panel
g_panel_of(LOCAL const uint16_t *at)
{
	const uint32_t from = g_broadcast(
		(uint32_t)__cvta_generic_to_shared(at) >> 4 & 0x3fffu, 0);

	return from | (uint64_t)(64 * 128 >> 4) << 16 |
	       (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}

/* The same `values` further on: whole panels, or 8 rows of one. */
FN g_panel
g_panel_on(g_panel panel, uint32_t values)
{
	return panel + values / 8;
}

/* The same from its column 16 k on. */
FN g_panel
g_panel_step(g_panel panel, uint32_t k)
{
	return panel + 2 * k;
}

#define WGMMA_D4(d, i) \
	"+f"((d)[i]), "+f"((d)[i + 1]), "+f"((d)[i + 2]), "+f"((d)[i + 3])
#define WGMMA_D16(d, i)                                         \
	WGMMA_D4(d, i), WGMMA_D4(d, i + 4), WGMMA_D4(d, i + 8), \
		WGMMA_D4(d, i + 12)
#define WGMMA_D64(d, i)                                              \
	WGMMA_D16(d, i), WGMMA_D16(d, i + 16), WGMMA_D16(d, i + 32), \
		WGMMA_D16(d, i + 48)
#define WGMMA_O4(d, i) \
	"=f"((d)[i]), "=f"((d)[i + 1]), "=f"((d)[i + 2]), "=f"((d)[i + 3])
#define WGMMA_O16(d, i)                                         \
	WGMMA_O4(d, i), WGMMA_O4(d, i + 4), WGMMA_O4(d, i + 8), \
		WGMMA_O4(d, i + 12)
#define WGMMA_O64(d, i)                                              \
	WGMMA_O16(d, i), WGMMA_O16(d, i + 16), WGMMA_O16(d, i + 32), \
		WGMMA_O16(d, i + 48)
#define WGMMA_N16 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define WGMMA_N32                                                             \
	WGMMA_N16 ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29," \
		  "%30,%31"
#define WGMMA_N64                                                             \
	WGMMA_N32 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45," \
		  "%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,"  \
		  "%60,%61,%62,%63"
#define WGMMA_N128                                                             \
	WGMMA_N64 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,"                  \
		  "%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,"   \
		  "%88,%89,%90,%91,%92,%93,%94,%95,%96,%97,%98,%99,%100,%101," \
		  "%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,"    \
		  "%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,"    \
		  "%124,%125,%126,%127"

/* d += A B: A 64 x 16 f16 in registers as mma.h has them, B 16 columns of a
 * panel's 64 rows. */
FN void
g_wgmma_f16_n64(PRIVATE float *d, const PRIVATE uint32_t *a, g_panel b)
{
	asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
		     "{" WGMMA_N32 "}, {%32, %33, %34, %35}, %36, 1, 1, 1, 0;"
		     : WGMMA_D16(d, 0), WGMMA_D16(d, 16)
		     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

/* The same, but d is A B. */
FN void
g_wgmma_f16_n64_first(PRIVATE float *d, const PRIVATE uint32_t *a, g_panel b)
{
	asm volatile("{.reg .pred p; setp.ne.u32 p, 0, 0; "
		     "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
		     "{" WGMMA_N32 "}, {%32, %33, %34, %35}, %36, p, 1, 1, 0;}"
		     : WGMMA_O16(d, 0), WGMMA_O16(d, 16)
		     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

/* As the two above, of 128 rows of a panel. */
FN void
g_wgmma_f16_n128(PRIVATE float *d, const PRIVATE uint32_t *a, g_panel b)
{
	asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
		     "{" WGMMA_N64 "}, {%64, %65, %66, %67}, %68, 1, 1, 1, 0;"
		     : WGMMA_D64(d, 0)
		     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

FN void
g_wgmma_f16_n128_first(PRIVATE float *d, const PRIVATE uint32_t *a, g_panel b)
{
	asm volatile("{.reg .pred p; setp.ne.u32 p, 0, 0; "
		     "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
		     "{" WGMMA_N64 "}, {%64, %65, %66, %67}, %68, p, 1, 1, 0;}"
		     : WGMMA_O64(d, 0)
		     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

/* The same of bf16, A in a panel too. */
FN void
g_wgmma_bf16_n64(PRIVATE float *d, g_panel a, g_panel b)
{
	asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
		     "{" WGMMA_N32 "}, %32, %33, 1, 1, 1, 0, 0;"
		     : WGMMA_D16(d, 0), WGMMA_D16(d, 16)
		     : "l"(a), "l"(b));
}

/* d += A B of bf16: A 64 x 16 in registers; B is 16 rows of four panels of 64
 * rows, one behind the other: 256 columns. */
FN void
g_wgmma_bf16_n256(PRIVATE float *d, const PRIVATE uint32_t *a, g_panel b)
{
	asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
		     "{" WGMMA_N128 "}, {%128, %129, %130, %131}, %132, 1, 1, "
		     "1, 1;"
		     : WGMMA_D64(d, 0), WGMMA_D64(d, 64)
		     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

#else /* the emulator */

FN void
g_wgmma_begin(void)
{
}

FN void
g_wgmma_commit(void)
{
}

FN void
g_wgmma_wait(void)
{
}

FN void
g_wgmma_hold(float *d)
{
	(void)d;
}

FN void
g_wgmma_defer(uint32_t *x)
{
	(void)x;
}

typedef struct g_panel {
	const uint16_t *at;
	uint32_t column;
} g_panel;

/* A value of a panel. */
FN uint32_t
wgmma_value(g_panel p, uint32_t row, uint32_t column)
{
	return p.at[g_panel_at(row, p.column + column)];
}

FN g_panel
g_panel_of(const uint16_t *at)
{
	const g_panel p = {at, 0};

	return p;
}

FN g_panel
g_panel_on(g_panel panel, uint32_t values)
{
	panel.at += values;
	return panel;
}

FN g_panel
g_panel_step(g_panel panel, uint32_t k)
{
	panel.column += 16 * k;
	return panel;
}

/* Rows g and g + 8 of A, of which each lane gives its words. */
FN void
wgmma_rows(float rows[2][16], const uint32_t *a, mma_type type)
{
	const uint32_t *v = spmla_i_emu_exchange(a, 4) + g_lane() / 4 * 4;

	mma_row(rows[0], v, v + 32 * 2, type);
	mma_row(rows[1], v + 32, v + 32 * 3, type);
}

/* What a row of B's panel is. */
typedef enum wgmma_side { WGMMA_COLUMN, WGMMA_ROW } wgmma_side;

/* Column n of B. */
FN void
wgmma_column(float *column, g_panel b, uint32_t n, wgmma_side side,
	     mma_type type)
{
	uint32_t c;

	if (side == WGMMA_ROW)
		b = g_panel_on(b, n / 64 * 64 * G_PANEL);
	for (c = 0; c < 16; c++) {
		const uint32_t value = side == WGMMA_ROW
					       ? wgmma_value(b, c, n % 64)
					       : wgmma_value(b, n, c);

		column[c] = mma_f32(type, value);
	}
}

/* d += A B of `count` accumulators, of which four are rows g and g + 8 of two
 * columns. */
FN void
wgmma_add(float *d, float rows[2][16], g_panel b, wgmma_side side,
	  uint32_t count, mma_type type)
{
	float column[16];
	uint32_t i, j;

	for (i = 0; i < count; i += 4)
		for (j = 0; j < 2; j++) {
			wgmma_column(column, b,
				     i / 4 * 8 + 2 * (g_lane() % 4) + j, side,
				     type);
			d[i + j] += mma_dot(rows[0], column);
			d[i + j + 2] += mma_dot(rows[1], column);
		}
}

FN void
wgmma_f16(float *d, const uint32_t *a, g_panel b, uint32_t count)
{
	float rows[2][16];

	wgmma_rows(rows, a, MMA_F16);
	wgmma_add(d, rows, b, WGMMA_COLUMN, count, MMA_F16);
}

FN void
g_wgmma_f16_n64(float *d, const uint32_t *a, g_panel b)
{
	wgmma_f16(d, a, b, 32);
}

FN void
g_wgmma_f16_n64_first(float *d, const uint32_t *a, g_panel b)
{
	memset(d, 0, 32 * sizeof *d);
	wgmma_f16(d, a, b, 32);
}

FN void
g_wgmma_f16_n128(float *d, const uint32_t *a, g_panel b)
{
	wgmma_f16(d, a, b, 64);
}

FN void
g_wgmma_f16_n128_first(float *d, const uint32_t *a, g_panel b)
{
	memset(d, 0, 64 * sizeof *d);
	wgmma_f16(d, a, b, 64);
}

FN void
g_wgmma_bf16_n64(float *d, g_panel a, g_panel b)
{
	const uint32_t row = g_item() / 32 % 4 * 16 + g_lane() / 4;
	float rows[2][16];
	uint32_t i, c;

	for (i = 0; i < 2; i++)
		for (c = 0; c < 16; c++)
			rows[i][c] =
				g_bf16_to_f32(wgmma_value(a, row + 8 * i, c));
	wgmma_add(d, rows, b, WGMMA_COLUMN, 32, MMA_BF16);
}

FN void
g_wgmma_bf16_n256(float *d, const uint32_t *a, g_panel b)
{
	float rows[2][16];

	wgmma_rows(rows, a, MMA_BF16);
	wgmma_add(d, rows, b, WGMMA_ROW, 128, MMA_BF16);
}

#endif
#endif
#endif
