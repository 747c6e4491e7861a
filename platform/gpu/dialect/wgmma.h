/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix instructions of Hopper's warpgroups, which are four subgroups of 32
 * that compute 64 rows together. With nvcc for sm_90a they are PTX. In the
 * emulator they are calls; it computes a product either at once or when it is
 * waited for.
 *
 * Operands in shared memory are panels: rows of 64 16-bit values, 128 bytes.
 * Their 16-byte pieces are swizzled: piece i of row r lies where piece i ^ (r %
 * 8) would lie. 8 rows follow each other, at a multiple of 1024 bytes; a
 * g_panel says where the next 8 rows and the next 64 columns begin. Accumulator
 * d[4 j + 2 i + e] of lane 4 g + t of subgroup w is row 16 w + g + 8 i, column
 * 8 j + 2 t + e.
 *
 * Order of calls. Before products: stores to panels, g_fence_async (which also
 * waits for loads that are under way), a barrier. Products: g_wgmma_hold of
 * accumulators, g_wgmma_begin, products, g_wgmma_commit. After them:
 * g_wgmma_wait, g_wgmma_hold. Only then may accumulators be read and panels be
 * written again.
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

#if !defined(__CUDACC__)

/* A panel as the emulator has it. */
typedef struct g_panel {
	const uint8_t *at;
	uint32_t group_bytes;
	uint32_t panel_bytes;
} g_panel;

/* d = A B or d += A B; see below. */
typedef struct spmla_i_emu_product {
	float *d;
	const uint32_t *a; /* NULL: A is in a_panel */
	g_panel a_panel;
	g_panel b;
	uint32_t columns;
	uint32_t type; /* WGMMA_f16, .. */
	uint32_t is_across;
	uint32_t adds;
} spmla_i_emu_product;

/* Functions of tests/emulator. */
void spmla_i_emu_multiply(const spmla_i_emu_product *product);
void spmla_i_emu_products_commit(void);
void spmla_i_emu_products_wait_but(uint32_t groups);

#endif

#if defined(SPMLA_GPU_KERNELS) && G_HAS_WGMMA

enum {
	G_PANEL = 64, /* values of a panel's row */
	/* Panels of 64 rows that lie back to back: */
	G_GROUP_BYTES = 8 * 128,
	G_PANEL_BYTES = 64 * 128
};

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

/* Makes a group of the products since the last group. */
FN void
g_wgmma_commit(void)
{
	asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Waits for all groups but the last `groups`, a constant from 0 to 2. */
FN void
g_wgmma_wait_but(uint32_t groups)
{
	if (groups == 0)
		asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
	else if (groups == 1)
		asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
	else
		asm volatile("wgmma.wait_group.sync.aligned 2;" ::: "memory");
}

/* Keeps the compiler from moving uses of an accumulator across a begin or a
 * wait. */
FN void
g_wgmma_hold(PRIVATE float *d)
{
	asm volatile("" : "+f"(*d)::"memory");
}

/* Keeps the compiler from using a value earlier than here. */
FN void
g_wgmma_defer(PRIVATE uint32_t *x)
{
	asm volatile("" : "+r"(*x)::"memory");
}

/* A panel as the instructions take it: its place, and the swizzle by 128 bytes.
 */
typedef uint64_t g_panel;

/* The panel at `at`. Its groups of 8 rows begin `group_bytes` apart, and the
 * panel of the next 64 columns lies `panel_bytes` further on. Both are
 * multiples of 1024, below 2^18. */
FN g_panel
g_panel_of(LOCAL const void *at, uint32_t group_bytes, uint32_t panel_bytes)
{
	const uint32_t from = g_broadcast(async_at(at) >> 4 & 0x3fffu, 0);

	return from | (uint64_t)(panel_bytes >> 4) << 16 |
	       (uint64_t)(group_bytes >> 4) << 32 | (uint64_t)1 << 62;
}

/* The panel `bytes` further on: whole panels, or groups of 8 rows. */
FN g_panel
g_panel_on(g_panel panel, uint32_t bytes)
{
	return panel + (bytes >> 4);
}

/* The panel from its column 16 k on. */
FN g_panel
g_panel_step(g_panel panel, uint32_t k)
{
	return panel + 2 * k;
}

/* Operands of the accumulators of n columns: NUMBERS; SUM if they are added to;
 * NEW if they are only written. Then A and B, from panels and from registers.
 */
#define WGMMA_SUM4(d, i) \
	"+f"((d)[i]), "+f"((d)[i + 1]), "+f"((d)[i + 2]), "+f"((d)[i + 3])
#define WGMMA_SUM16(d, i)                                             \
	WGMMA_SUM4(d, i), WGMMA_SUM4(d, i + 4), WGMMA_SUM4(d, i + 8), \
		WGMMA_SUM4(d, i + 12)
#define WGMMA_SUM64(d, i)                                                  \
	WGMMA_SUM16(d, i), WGMMA_SUM16(d, i + 16), WGMMA_SUM16(d, i + 32), \
		WGMMA_SUM16(d, i + 48)
#define WGMMA_NEW4(d, i) \
	"=f"((d)[i]), "=f"((d)[i + 1]), "=f"((d)[i + 2]), "=f"((d)[i + 3])
#define WGMMA_NEW16(d, i)                                             \
	WGMMA_NEW4(d, i), WGMMA_NEW4(d, i + 4), WGMMA_NEW4(d, i + 8), \
		WGMMA_NEW4(d, i + 12)
#define WGMMA_NEW64(d, i)                                                  \
	WGMMA_NEW16(d, i), WGMMA_NEW16(d, i + 16), WGMMA_NEW16(d, i + 32), \
		WGMMA_NEW16(d, i + 48)
#define WGMMA_SUM_n64(d)  WGMMA_SUM16(d, 0), WGMMA_SUM16(d, 16)
#define WGMMA_SUM_n128(d) WGMMA_SUM64(d, 0)
#define WGMMA_SUM_n256(d) WGMMA_SUM64(d, 0), WGMMA_SUM64(d, 64)
#define WGMMA_NEW_n64(d)  WGMMA_NEW16(d, 0), WGMMA_NEW16(d, 16)
#define WGMMA_NEW_n128(d) WGMMA_NEW64(d, 0)
#define WGMMA_NEW_n256(d) WGMMA_NEW64(d, 0), WGMMA_NEW64(d, 64)
#define WGMMA_NUMBERS16   "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define WGMMA_NUMBERS_n64                                           \
	WGMMA_NUMBERS16                                             \
	",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29," \
	"%30,%31"
#define WGMMA_NUMBERS_n128                                                  \
	WGMMA_NUMBERS_n64                                                   \
		",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45," \
		"%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,"  \
		"%60,%61,%62,%63"
#define WGMMA_NUMBERS_n256                                                   \
	WGMMA_NUMBERS_n128                                                   \
		",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,"                  \
		"%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,"   \
		"%88,%89,%90,%91,%92,%93,%94,%95,%96,%97,%98,%99,%100,%101," \
		"%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,"    \
		"%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,"    \
		"%124,%125,%126,%127"
#define WGMMA_PANEL_n64      "%32, %33"
#define WGMMA_PANEL_n128     "%64, %65"
#define WGMMA_PANEL_n256     "%128, %129"
#define WGMMA_REGISTERS_n64  "{%32, %33, %34, %35}, %36"
#define WGMMA_REGISTERS_n128 "{%64, %65, %66, %67}, %68"
#define WGMMA_REGISTERS_n256 "{%128, %129, %130, %131}, %132"

/* `across` ends the operands: it says which of A and B lie across. */
#define WGMMA_TEXT(type, n, k, operands, adds, across)                       \
	"wgmma.mma_async.sync.aligned.m64" #n "k" #k ".f32." #type "." #type \
	" {" WGMMA_NUMBERS_##n "}, " operands ", " adds ", 1, 1" across ";"

#define WGMMA_ONE(name, type, n, k, d_is, adds, across)                       \
	FN void g_wgmma_##name(PRIVATE float *d, g_panel a, g_panel b)        \
	{                                                                     \
		asm volatile(                                                 \
			WGMMA_TEXT(type, n, k, WGMMA_PANEL_##n, adds, across) \
			: WGMMA_##d_is##_##n(d)                               \
			: "l"(a), "l"(b));                                    \
	}

#define WGMMA_ONE_REGISTERS(name, type, n, k, d_is, adds, across)              \
	FN void g_wgmma_##name(PRIVATE float *d, const PRIVATE uint32_t *a,    \
			       g_panel b)                                      \
	{                                                                      \
		asm volatile(WGMMA_TEXT(type, n, k, WGMMA_REGISTERS_##n, adds, \
					across)                                \
			     : WGMMA_##d_is##_##n(d)                           \
			     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]),     \
			       "l"(b));                                        \
	}

#define WGMMA_PRODUCTS(name, type, n, across)                              \
	WGMMA_ONE(name, type, n, 16, SUM, "1", ", 0, " #across)            \
	WGMMA_ONE(name##_first, type, n, 16, NEW, "0", ", 0, " #across)    \
	WGMMA_ONE_REGISTERS(name##_registers, type, n, 16, SUM, "1",       \
			    ", " #across)                                  \
	WGMMA_ONE_REGISTERS(name##_registers_first, type, n, 16, NEW, "0", \
			    ", " #across)

#define WGMMA_BYTE_PRODUCTS(name, type, n)                               \
	WGMMA_ONE(name, type, n, 32, SUM, "1", "")                       \
	WGMMA_ONE(name##_first, type, n, 32, NEW, "0", "")               \
	WGMMA_ONE_REGISTERS(name##_registers, type, n, 32, SUM, "1", "") \
	WGMMA_ONE_REGISTERS(name##_registers_first, type, n, 32, NEW, "0", "")

#else /* the emulator */

FN void
g_wgmma_begin(void)
{
}

FN void
g_wgmma_commit(void)
{
	spmla_i_emu_products_commit();
}

FN void
g_wgmma_wait_but(uint32_t groups)
{
	spmla_i_emu_products_wait_but(groups);
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

FN g_panel
g_panel_of(const void *at, uint32_t group_bytes, uint32_t panel_bytes)
{
	const g_panel panel = {at, group_bytes, panel_bytes};

	return panel;
}

FN g_panel
g_panel_on(g_panel panel, uint32_t bytes)
{
	panel.at += bytes;
	return panel;
}

FN g_panel
g_panel_step(g_panel panel, uint32_t k)
{
	panel.at += 32 * k;
	return panel;
}

/* The type and n as the emulator takes them. */
enum {
	WGMMA_f16 = 0,
	WGMMA_bf16 = 1,
	WGMMA_e4m3 = 2,
	WGMMA_n64 = 64,
	WGMMA_n128 = 128,
	WGMMA_n256 = 256
};

#define WGMMA_ONE(name, adds, type, n, across)                                 \
	FN void g_wgmma_##name(float *d, g_panel a, g_panel b)                 \
	{                                                                      \
		const spmla_i_emu_product p = {                                \
			d, NULL, a, b, WGMMA_##n, WGMMA_##type, across, adds}; \
                                                                               \
		spmla_i_emu_multiply(&p);                                      \
	}

#define WGMMA_ONE_REGISTERS(name, adds, type, n, across)                    \
	FN void g_wgmma_##name(float *d, const uint32_t *a, g_panel b)      \
	{                                                                   \
		const spmla_i_emu_product p = {                             \
			d, a, b, b, WGMMA_##n, WGMMA_##type, across, adds}; \
                                                                            \
		spmla_i_emu_multiply(&p);                                   \
	}

#define WGMMA_PRODUCTS(name, type, n, across)                     \
	WGMMA_ONE(name, 1, type, n, across)                       \
	WGMMA_ONE(name##_first, 0, type, n, across)               \
	WGMMA_ONE_REGISTERS(name##_registers, 1, type, n, across) \
	WGMMA_ONE_REGISTERS(name##_registers_first, 0, type, n, across)

#define WGMMA_BYTE_PRODUCTS(name, type, n) WGMMA_PRODUCTS(name, type, n, 0)

#endif

/* Waits for all products. */
FN void
g_wgmma_wait(void)
{
	g_wgmma_wait_but(0);
}

/* g_wgmma_hold of n accumulators. */
FN void
g_wgmma_hold_all(PRIVATE float *d, uint32_t n)
{
	uint32_t i;

	UNROLL
	for (i = 0; i < n; i++)
		g_wgmma_hold(d + i);
}

/* d += A B in f32, where A is 64 x 16 and B 16 x n. g_wgmma_<line>(d, a, b)
 * takes A from 16 columns of a panel's 64 rows; _registers takes it from
 * registers, as mma.h has them; _first sets d = A B. B is 16 columns of n rows
 * of a panel: a row is a column of B. In lines with a 1 B lies across: 16 rows
 * of n / 64 panels. */
WGMMA_PRODUCTS(f16_n64, f16, n64, 0)
WGMMA_PRODUCTS(f16_n64_across, f16, n64, 1)
WGMMA_PRODUCTS(f16_n128, f16, n128, 0)
WGMMA_PRODUCTS(f16_n128_across, f16, n128, 1)
WGMMA_PRODUCTS(f16_n256, f16, n256, 1)
WGMMA_PRODUCTS(bf16_n64, bf16, n64, 0)
WGMMA_PRODUCTS(bf16_n64_across, bf16, n64, 1)
WGMMA_PRODUCTS(bf16_n128, bf16, n128, 0)
WGMMA_PRODUCTS(bf16_n128_across, bf16, n128, 1)
WGMMA_PRODUCTS(bf16_n256, bf16, n256, 1)

/* The same for e4m3, where A is 64 x 32 and B 32 x n, which never lies across.
 * A panel's row is 128 bytes here, too: 128 codes. A product takes 32 of them,
 * which is as many bytes as with 16-bit values. A word in registers has four
 * neighbours of a row. */
WGMMA_BYTE_PRODUCTS(e4m3_n64, e4m3, n64)
WGMMA_BYTE_PRODUCTS(e4m3_n128, e4m3, n128)
WGMMA_BYTE_PRODUCTS(e4m3_n256, e4m3, n256)

#undef WGMMA_BYTE_PRODUCTS
#undef WGMMA_PRODUCTS
#undef WGMMA_ONE_REGISTERS
#undef WGMMA_ONE

#endif
#endif
