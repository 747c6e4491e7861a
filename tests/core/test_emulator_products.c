/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of warpgroups in the emulator. Every kind of them, of panels that
 * are laid out here by what wgmma.h says, is compared with sums over integers.
 * Wrong uses give wrong results or end the program.
 */
#define SPMLA_GPU_KERNELS 1
#include "spmla/platform/gpu/dialect/wgmma.h"

#include "tests/core/emulator_rig.h"
#include "tests/harness/dies.h"
#include "tests/harness/fixture.h"
#include "tests/harness/themes.h"

#include <check.h>
#include <math.h>
#include <string.h>

enum {
	ITEMS = 128,
	ROWS = 64, /* of A */
	STEPS = 4,
	INNER = STEPS * 32, /* columns of A, at most */
	MOST = 256,         /* columns of B */
	A_BYTES = 8 * 3 * 1024,
	B_BYTES = 32 * 3 * 1024,
	LOCAL_BYTES = A_BYTES + B_BYTES
};

/* Where panels lie, apart from the swizzle. */
typedef struct layout {
	uint32_t group_bytes;
	uint32_t panel_bytes;
} layout;

/* What a test multiplies. */
typedef struct matrices {
	int32_t a[ROWS][INNER];
	int32_t b[INNER][MOST];
} matrices;

typedef struct multiply {
	const uint8_t *bytes; /* LOCAL_BYTES: A, and B behind it */
	const uint32_t *a;    /* [STEPS][ITEMS][4] */
	float *out;           /* [ITEMS][MOST / 2] */
	uint32_t kind, in_registers, is_first;
	layout a_layout, b_layout;
} multiply;

/* ---- kinds --------------------------------------------------------------- */

/* name, type, columns, whether B lies across */
#define KINDS(K)                       \
	K(f16_n64, 0, 64, 0)           \
	K(f16_n64_across, 0, 64, 1)    \
	K(f16_n128, 0, 128, 0)         \
	K(f16_n128_across, 0, 128, 1)  \
	K(f16_n256, 0, 256, 1)         \
	K(bf16_n64, 1, 64, 0)          \
	K(bf16_n64_across, 1, 64, 1)   \
	K(bf16_n128, 1, 128, 0)        \
	K(bf16_n128_across, 1, 128, 1) \
	K(bf16_n256, 1, 256, 1)        \
	K(e4m3_n64, 2, 64, 0)          \
	K(e4m3_n128, 2, 128, 0)        \
	K(e4m3_n256, 2, 256, 0)

typedef struct kind {
	uint32_t type; /* WGMMA_f16, .. */
	uint32_t columns;
	uint32_t is_across;
} kind;

static const kind kinds[] = {
#define K(name, type, columns, is_across) {type, columns, is_across},
	KINDS(K)
#undef K
};

enum { KIND_COUNT = sizeof kinds / sizeof *kinds };

static void
one_step(const multiply *m, uint32_t k, float *d, const uint32_t *words,
	 g_panel a, g_panel b)
{
	const uint32_t which =
		4 * m->kind + 2 * m->in_registers + (m->is_first && k == 0);
	uint32_t i = 0;

#define K(name, type, columns, is_across)                \
	if (which == i++)                                \
		g_wgmma_##name(d, a, b);                 \
	if (which == i++)                                \
		g_wgmma_##name##_first(d, a, b);         \
	if (which == i++)                                \
		g_wgmma_##name##_registers(d, words, b); \
	if (which == i++)                                \
		g_wgmma_##name##_registers_first(d, words, b);
	KINDS(K)
#undef K
}

static void
fill_local(const uint8_t *from, uint8_t *local)
{
	uint32_t i;

	for (i = 4 * g_item(); i < LOCAL_BYTES; i += 4 * ITEMS)
		memcpy(local + i, from + i, 4);
	g_fence_async();
	BARRIER();
}

/* Accumulators begin as the item's number, or as NaN. */
static void
multiply_run(const void *params)
{
	LOCAL_DYNAMIC(local, LOCAL_BYTES);
	const multiply *m = params;
	const kind *is = &kinds[m->kind];
	const g_panel a = g_panel_of(local, m->a_layout.group_bytes, 0);
	const g_panel b = g_panel_of(local + A_BYTES, m->b_layout.group_bytes,
				     m->b_layout.panel_bytes);
	float d[MOST / 2];
	uint32_t k, i;

	fill_local(m->bytes, local);
	for (i = 0; i < is->columns / 2; i++)
		d[i] = m->is_first ? NAN : (float)g_item();
	g_wgmma_begin();
	for (k = 0; k < STEPS; k++)
		one_step(
			m, k, d, m->a + 4 * (k * ITEMS + g_item()),
			g_panel_step(a, k),
			is->is_across
				? g_panel_on(b, 2 * k * m->b_layout.group_bytes)
				: g_panel_step(b, k));
	g_wgmma_commit();
	g_wgmma_wait();
	memcpy(m->out + g_item() * (MOST / 2), d, is->columns / 2 * sizeof *d);
}

/* ---- what is wanted, by hand --------------------------------------------- */

/* Columns of A of a kind. */
static uint32_t
inner_of(const kind *is)
{
	return is->type == WGMMA_e4m3 ? 128 : 64;
}

/* The code of a small integer. */
static uint32_t
code_of(int32_t x, uint32_t type)
{
	const float f = (float)x;
	uint32_t u;

	memcpy(&u, &f, sizeof u);
	if (type == WGMMA_bf16)
		return u >> 16;
	if (type == WGMMA_e4m3)
		return x == 0 ? 0
			      : (u >> 24 & 0x80u) |
					((u >> 20 & 0x7ffu) - (120u << 3));
	return x == 0 ? 0
		      : (u >> 16 & 0x8000u) |
				((u >> 13 & 0x3ffffu) - (112u << 10));
}

/* A value of a row, of so many bytes, into its panel: 16-byte piece i where i ^
 * (row % 8) is. */
static void
put(uint8_t *panels, layout l, uint32_t row, uint32_t column, uint32_t bytes,
    uint32_t code)
{
	const uint32_t at = column * bytes;
	const uint32_t piece = at % 128 / 16 ^ row % 8;

	memcpy(panels + row / 8 * l.group_bytes + at / 128 * l.panel_bytes +
		       row % 8 * 128 + piece * 16 + at % 16,
	       &code, bytes);
}

static void
lay_out(const matrices *x, const multiply *m, uint8_t *bytes, uint32_t *words)
{
	const kind *is = &kinds[m->kind];
	uint32_t r, k, n, i;

	const uint32_t inner = inner_of(is), each = 128 / inner;

	memset(bytes, 0x7F, LOCAL_BYTES); /* NaN */
	memset(words, 0, STEPS * ITEMS * 4 * sizeof *words);
	for (r = 0; r < ROWS; r++)
		for (k = 0; k < inner; k++)
			put(bytes, m->a_layout, r, k, each,
			    code_of(x->a[r][k], is->type));
	for (k = 0; k < inner; k++)
		for (n = 0; n < is->columns; n++)
			put(bytes + A_BYTES, m->b_layout, is->is_across ? k : n,
			    is->is_across ? n : k, each,
			    code_of(x->b[k][n], is->type));
	/* Lane 4 g + t: rows g and g + 8, word t of the first half of a step's
	 * columns, and of the second. */
	for (k = 0; k < STEPS; k++)
		for (i = 0; i < ITEMS * 4 * 4; i++) {
			const uint32_t item = i / 16, word = i / 4 % 4;
			const uint32_t row =
				item / 32 * 16 + item % 32 / 4 + word % 2 * 8;
			const uint32_t first = 32 / each * k +
					       16 / each * (word / 2) +
					       item % 4 * 4 / each;

			if (i % 4 < 4 / each)
				words[(k * ITEMS + item) * 4 + word] |=
					code_of(x->a[row][first + i % 4],
						is->type)
					<< i % 4 * 8 * each;
		}
}

static void
want_of(const matrices *x, const multiply *m, float *want)
{
	uint32_t item, i, k;

	memset(want, 0xAB, ITEMS * (MOST / 2) * sizeof *want);
	for (item = 0; item < ITEMS; item++)
		for (i = 0; i < kinds[m->kind].columns / 2; i++) {
			const uint32_t row =
				item / 32 * 16 + item % 32 / 4 + i / 2 % 2 * 8;
			const uint32_t n = i / 4 * 8 + item % 4 * 2 + i % 2;
			int32_t sum = m->is_first ? 0 : (int32_t)item;

			for (k = 0; k < inner_of(&kinds[m->kind]); k++)
				sum += x->a[row][k] * x->b[k][n];
			want[item * (MOST / 2) + i] = (float)sum;
		}
}

static matrices
some_matrices(uint64_t seed)
{
	uint64_t rng = seed;
	matrices x;
	uint32_t i;

	for (i = 0; i < ROWS * INNER; i++)
		x.a[i / INNER][i % INNER] = (int32_t)(rng_next(&rng) % 17) - 8;
	for (i = 0; i < INNER * MOST; i++)
		x.b[i / MOST][i % MOST] = (int32_t)(rng_next(&rng) % 17) - 8;
	return x;
}

static void
check_kind(multiply m)
{
	static uint8_t bytes[LOCAL_BYTES];
	static uint32_t words[STEPS * ITEMS * 4];
	static float out[ITEMS * (MOST / 2)], want[ITEMS * (MOST / 2)];
	const matrices x = some_matrices(test_seed());
	uint32_t seed;

	m.bytes = bytes;
	m.a = words;
	m.out = out;
	lay_out(&x, &m, bytes, words);
	want_of(&x, &m, want);
	for (seed = 0; seed < 5; seed++) {
		memset(out, 0xAB, sizeof out);
		rig_run(RIG_KERNEL(multiply_run, ITEMS, LOCAL_BYTES), 32, 1, &m,
			seed);
		ck_assert_msg(!memcmp(out, want, sizeof out),
			      "kind %u, registers %u, first %u, groups %u",
			      m.kind, m.in_registers, m.is_first,
			      m.b_layout.group_bytes);
	}
}

START_TEST(every_kind_in_every_layout_is_the_sum)
{
	uint32_t i, wide;

	for (i = 0; i < 4 * KIND_COUNT; i++)
		for (wide = 0; wide < 2; wide++) {
			const kind *is = &kinds[i / 4];
			multiply m = {.kind = i / 4,
				      .in_registers = i / 2 % 2,
				      .is_first = i % 2};

			/* Panel behind panel, or group by group the panels. */
			m.a_layout.group_bytes = wide ? 3 * 1024 : 1024;
			m.b_layout.group_bytes =
				!wide           ? 1024
				: is->is_across ? (is->columns / 64 + 1) * 1024
						: 3 * 1024;
			m.b_layout.panel_bytes = wide ? 1024 : 8 * 1024;
			check_kind(m);
		}
}
END_TEST

/* ---- what e4m3 loses ----------------------------------------------------- */

/* init + 1 * 1 + x * y, of codes x and y. */
typedef struct cut_sum {
	float *out;
	float init;
	uint8_t x, y;
} cut_sum;

static void
cut_run(const void *params)
{
	LOCAL_DYNAMIC(local, LOCAL_BYTES);
	const cut_sum *a = params;
	const g_panel p = g_panel_of(local, G_GROUP_BYTES, G_PANEL_BYTES);
	const g_panel q =
		g_panel_of(local + A_BYTES, G_GROUP_BYTES, G_PANEL_BYTES);
	float d[MOST / 2];
	uint32_t i;

	for (i = g_item(); i < LOCAL_BYTES; i += ITEMS)
		local[i] = 0;
	BARRIER();
	if (g_item() == 0) { /* row 0: its pieces lie in order */
		local[0] = local[A_BYTES] = 0x38;
		local[1] = a->x;
		local[A_BYTES + 1] = a->y;
	}
	g_fence_async();
	BARRIER();
	for (i = 0; i < MOST / 2; i++)
		d[i] = a->init;
	g_wgmma_begin();
	g_wgmma_e4m3_n256(d, p, q);
	g_wgmma_commit();
	g_wgmma_wait();
	if (g_item() == 0)
		*a->out = d[0];
}

/* An H100 gave the first six so. */
START_TEST(e4m3_addends_are_cut_below_the_largest)
{
	static const struct {
		float init;
		uint8_t x, y;
		float want;
	} cases[] = {
		{0, 0x08, 0x04, 1 + 0x1p-13f}, /* 2^-6 * 2^-7 */
		{0, 0x04, 0x04, 1},            /* 2^-14 */
		{0, 0x08, 0x86, 1 - 0x1p-13f}, /* -1.5 * 2^-13 */
		{0, 0x04, 0x86, 1},            /* -1.5 * 2^-14 */
		{1 + 0x1p-12f, 0, 0, 2 + 0x1p-12f},
		{1 + 0x1p-13f, 0, 0, 2}, /* 14 bits are left */
		{0x1p-13f, 0, 0, 1 + 0x1p-13f},
		{0x1.8p-14f, 0, 0, 1},
		{-1, 0x08, 0x04, 0x1p-13f},
		{0, 0x7F, 0x38, NAN},
	};
	float out;
	uint32_t i;

	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		const cut_sum a = {&out, cases[i].init, cases[i].x, cases[i].y};

		rig_run(RIG_KERNEL(cut_run, ITEMS, LOCAL_BYTES), 32, 1, &a, 0);
		if (isnan(cases[i].want))
			ck_assert_float_nan(out);
		else
			ck_assert_msg(out == cases[i].want,
				      "case %u: got %a, want %a", i,
				      (double)out, (double)cases[i].want);
	}
}
END_TEST

/* ---- when ---------------------------------------------------------------- */

typedef struct late {
	float *out; /* [ITEMS] */
	uint32_t groups_left;
	uint32_t writes; /* panels are written before the wait */
	uint32_t read_early;
	uint32_t unfenced; /* subgroups that do not fence, a bit each */
} late;

static void
fill_ones(uint8_t *local, uint32_t code, uint32_t unfenced)
{
	uint32_t i;

	for (i = g_item(); i < LOCAL_BYTES / 2; i += ITEMS)
		((uint16_t *)local)[i] = (uint16_t)code;
	if (!(unfenced >> g_item() / 32 & 1u))
		g_fence_async();
	BARRIER();
}

/* Two groups, each a product of ones: 16. The first's sum is out[item], the
 * second's added to it times 100. */
static void
late_run(const void *params)
{
	LOCAL_DYNAMIC(local, LOCAL_BYTES);
	const late *a = params;
	const g_panel p = g_panel_of(local, G_GROUP_BYTES, G_PANEL_BYTES);
	float d[2][32] = {{0.0f}};
	uint32_t i;

	fill_ones(local, 0x3c00, a->unfenced);
	for (i = 0; i < 2; i++) {
		g_wgmma_begin();
		g_wgmma_f16_n64(d[i], p, p);
		g_wgmma_commit();
	}
	if (a->writes)
		((uint16_t *)local)[g_item() * 64] = 0;
	if (!a->read_early)
		g_wgmma_wait_but(a->groups_left);
	a->out[g_item()] = d[0][0] + 100.0f * d[1][0];
	g_wgmma_wait();
}

/* Counts, over all runs, the items whose sum is `one` and those whose sum is
 * `other`. */
static void
late_sums(late a, float one, float other, uint32_t *ones, uint32_t *others)
{
	float out[ITEMS];
	uint32_t seed, i;

	a.out = out;
	*ones = *others = 0;
	for (seed = 0; seed < RIG_SEEDS; seed++) {
		rig_run(RIG_KERNEL(late_run, ITEMS, LOCAL_BYTES), 32, 1, &a,
			seed);
		for (i = 0; i < ITEMS; i++) {
			*ones += out[i] == one;
			*others += out[i] == other;
		}
	}
}

START_TEST(wait_leaves_the_groups_that_it_shall)
{
	const late all = {.groups_left = 0}, one = {.groups_left = 1};
	const late early = {.read_early = 1};
	uint32_t ones, others;

	late_sums(all, 1616.0f, 0.0f, &ones, &others);
	ck_assert_uint_eq(ones, RIG_SEEDS * ITEMS);
	late_sums(one, 1616.0f, 16.0f, &ones, &others);
	ck_assert_uint_eq(ones + others, RIG_SEEDS * ITEMS);
	ck_assert_uint_gt(ones, 0);
	ck_assert_uint_gt(others, 0);
	late_sums(early, 1616.0f, 0.0f, &ones, &others);
	ck_assert_uint_gt(ones, 0);
	ck_assert_uint_gt(others, 0);
}
END_TEST

/* Some items' rows of A, or their columns of B, lose a one. */
START_TEST(panel_that_is_written_before_the_wait_is_found)
{
	const late a = {.writes = 1};
	uint32_t ones, others;

	late_sums(a, 1616.0f, 0.0f, &ones, &others);
	ck_assert_uint_gt(ones, 0);
	ck_assert_uint_lt(ones, RIG_SEEDS * ITEMS * 3 / 4);
}
END_TEST

/* Without any fence nothing is seen. If one subgroup forgets its fence, the
 * others' may come too early for what it writes. */
START_TEST(panel_that_is_not_fenced_is_found)
{
	const late none = {.unfenced = 0xf}, three = {.unfenced = 0x4};
	uint32_t ones, others;

	late_sums(none, 1616.0f, 0.0f, &ones, &others);
	ck_assert_uint_eq(ones + others, 0);
	late_sums(three, 1616.0f, 0.0f, &ones, &others);
	ck_assert_uint_lt(ones, RIG_SEEDS * ITEMS);
}
END_TEST

/* ---- used wrongly -------------------------------------------------------- */

typedef enum slip { NO_WAIT, NO_COMMIT, ODD_PANEL, UNLIKE, SLIPS } slip;

static void
slip_run(const void *params)
{
	LOCAL_DYNAMIC(local, LOCAL_BYTES);
	const slip is = *(const slip *)params;
	const uint32_t odd = is == ODD_PANEL                 ? 512
			     : is == UNLIKE && g_item() == 7 ? 1024
							     : 0;
	const g_panel p = g_panel_of(local, G_GROUP_BYTES, G_PANEL_BYTES);
	float d[32] = {0.0f};

	fill_ones(local, 0x3c00, 0);
	g_wgmma_f16_n64(d, p, g_panel_on(p, odd));
	if (is != NO_COMMIT)
		g_wgmma_commit();
	if (is != NO_WAIT)
		g_wgmma_wait();
}

static slip slip_is;

static void
slips(void)
{
	rig_run(RIG_KERNEL(slip_run, ITEMS, LOCAL_BYTES), 32, 1, &slip_is, 0);
}

START_TEST(product_that_is_used_wrongly_ends_the_program)
{
	static const char *const says[SLIPS] = {
		"an item ends before its products",
		"an item ends before its products",
		"a panel does not begin at a multiple of 1024 bytes",
		"items of a warpgroup ask for different products"};

	for (slip_is = 0; slip_is < SLIPS; slip_is++)
		must_die(slips, says[slip_is]);
}
END_TEST

SUITE
{
	const theme_test sums[] = {
		{every_kind_in_every_layout_is_the_sum, 1},
		{e4m3_addends_are_cut_below_the_largest, 1},
	};
	const theme_test times[] = {
		{wait_leaves_the_groups_that_it_shall, 1},
		{panel_that_is_written_before_the_wait_is_found, 1},
		{panel_that_is_not_fenced_is_found, 1},
	};
	const theme_test wrong[] = {
		{product_that_is_used_wrongly_ends_the_program, 1},
	};
	const theme themes[] = {
		THEME("sums", NULL, NULL, sums),
		THEME("times", NULL, NULL, times),
		THEME("slips", NULL, NULL, wrong),
	};

	return RUN_THEMES(themes);
}
