/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of warpgroups. A product is one of all 128 items: the first item
 * whose wait returns knows that nobody's reads its panels any more. The hard
 * idea is when it is computed: as soon as all have asked for it, or only when
 * one waits for it, or in between, as is drawn for each group of products.
 * Registers of A are read when a thread asks; panels and accumulators are read
 * when the product is computed, so that one shows that is written too early,
 * and a wait that is missing.
 */
#define SPMLA_GPU_KERNELS 1
#include "tests/emulator/machine_state.h"

#include "spmla/platform/gpu/dialect/wgmma.h"

#include <math.h>
#include <stdlib.h>

enum {
	ITEMS = 128,
	ROWS = 64,
	STEP = 32, /* columns of A, at most: 32 bytes of a row */
	MOST_COLUMNS = 256,
	MOST_OPEN = 2,  /* groups that a wait may leave */
	SWIZZLE = 1024, /* bytes, after which it repeats */
	ROW = 128       /* bytes */
};

/* Columns that are computed at once. */
typedef float four __attribute__((vector_size(16)));

typedef struct product {
	spmla_i_emu_product of;
	uint32_t group;
	uint32_t asked; /* items that have asked for it */
	float *d[ITEMS];
	uint32_t a[ITEMS][4];
} product;

typedef enum mode { AT_ONCE, AT_WAIT, AT_ANY_TIME, MODES } mode;

/* What a warpgroup has asked for and is not computed yet, in order. */
typedef struct warpgroup {
	product *products;
	uint32_t room;
	uint32_t first;
	uint32_t end;
	uint32_t done; /* products before the first of those */
	mode mode;     /* of the newest group */
} warpgroup;

/* An item's part in them. */
typedef struct asker {
	uint32_t asked;               /* products */
	uint32_t waited;              /* for so many of them */
	uint32_t groups;              /* that it committed */
	uint32_t ends[MOST_OPEN + 2]; /* products up to the end of group g, by
				       * g % (MOST_OPEN + 2) */
} asker;

static warpgroup warpgroups[FIBERS / ITEMS];
static asker askers[FIBERS];

/* ---- one product --------------------------------------------------------- */

/* Columns of A of a product. */
static uint32_t
step_of(const spmla_i_emu_product *p)
{
	return p->type == WGMMA_e4m3 ? 32 : 16;
}

/* The value at column k of a row of a panel. */
static float
value_at(const uint8_t *row, uint32_t k, uint32_t type)
{
	const uintptr_t at = (uintptr_t)row + (type == WGMMA_e4m3 ? k : 2 * k);
	const uint8_t *from = (const uint8_t *)(at ^ (at / ROW & 7u) << 4);
	uint16_t value;

	if (type == WGMMA_e4m3)
		return g_e4m3_to_f32(*from);
	memcpy(&value, from, 2);
	return mma_f32(type == WGMMA_bf16 ? MMA_BF16 : MMA_F16, value);
}

/* Value i of a word of registers. */
static float
value_in(uint32_t word, uint32_t i, uint32_t type)
{
	if (type == WGMMA_e4m3)
		return g_e4m3_to_f32(word >> 8 * i & 0xffu);
	return mma_f32(type == WGMMA_bf16 ? MMA_BF16 : MMA_F16,
		       word >> 16 * i & 0xffffu);
}

static const uint8_t *
row_of(const g_panel *panel, uint32_t row)
{
	return panel->at + row / 8 * panel->group_bytes + row % 8 * ROW;
}

static void
read_a(const product *p, float a[ROWS][STEP])
{
	const uint32_t type = p->of.type, step = step_of(&p->of);
	const uint32_t in_word = step / 8; /* values of a word */
	uint32_t r, k;

	for (r = 0; r < ROWS; r++) {
		/* Four lanes have words of row g of a subgroup, and of row g +
		 * 8, of the first half of the columns and of the second. */
		const uint32_t first = r / 16 * 32 + r % 8 * 4;
		const uint32_t high = r / 8 % 2;

		for (k = 0; k < step && !p->of.a; k++)
			a[r][k] = value_at(row_of(&p->of.a_panel, r), k, type);
		for (k = 0; k < step && p->of.a; k++)
			a[r][k] = value_in(p->a[first + k / in_word % 4]
					       [high + k / (step / 2) * 2],
					   k % in_word, type);
	}
}

static void
read_b(const spmla_i_emu_product *p, float b[STEP][MOST_COLUMNS])
{
	const uint32_t panel_bytes = p->b.panel_bytes, step = step_of(p);
	uint32_t n, k;

	for (n = 0; n < p->columns && p->is_across; n++)
		for (k = 0; k < step; k++)
			b[k][n] = value_at(row_of(&p->b, k) +
						   n / 64 * panel_bytes,
					   n % 64, p->type);
	for (n = 0; n < p->columns && !p->is_across; n++)
		for (k = 0; k < step; k++)
			b[k][n] = value_at(row_of(&p->b, n), k, p->type);
}

/* The accumulator of column n of row r. */
static float *
sum_of(const product *p, uint32_t r, uint32_t n)
{
	const uint32_t first = r / 16 * 32 + r % 8 * 4;
	const uint32_t high = r / 8 % 2;

	return p->d[first + n / 2 % 4] + n / 8 * 4 + 2 * high + n % 2;
}

/* Row r of A B in f32. */
static void
add_row(const product *p, uint32_t r, const float *a,
	float b[STEP][MOST_COLUMNS])
{
	uint32_t k, j, n;

	for (j = 0; j < p->of.columns; j += 4) {
		four sum = {0.0f}, x;

		for (k = 0; k < step_of(&p->of); k++) {
			memcpy(&x, &b[k][j], sizeof x);
			sum += a[k] * x;
		}
		for (n = 0; n < 4; n++) {
			float *d = sum_of(p, r, j + n);

			*d = (p->of.adds ? *d : 0.0f) + sum[n];
		}
	}
}

/* The power of two of x's exponent; 0: x is 0. */
static float
power_of(float x)
{
	return g_float(g_bits(x) & 0x7f800000u);
}

/* sum += a b as Hopper adds products of e4m3: products, and the sum so far, are
 * cut, toward zero, 13 bits below the largest exponent (a product's exponent is
 * the sum of its factors'). They are added exactly, and the result is cut to 14
 * bits. Found by trial, not documented. */
static float
add_cut(float sum, const float *a, const float *b)
{
	float most = power_of(sum), per;
	int32_t total;
	uint32_t k;

	for (k = 0; k < STEP; k++) {
		sum += isnan(a[k]) || isnan(b[k]) ? NAN : 0.0f;
		most = fmaxf(most, power_of(a[k]) * power_of(b[k]));
	}
	if (isnan(sum) || most == 0.0f)
		return sum;
	per = 0x1p13f / most;
	total = (int32_t)(sum * per);
	for (k = 0; k < STEP; k++)
		total += (int32_t)(a[k] * b[k] * per);
	return g_float(g_bits((float)total / per) & ~0x3ffu);
}

/* Row r of A B of e4m3. */
static void
add_cut_row(const product *p, uint32_t r, const float *a,
	    float b[STEP][MOST_COLUMNS])
{
	uint32_t n, k;

	for (n = 0; n < p->of.columns; n++) {
		float *d = sum_of(p, r, n), column[STEP];

		for (k = 0; k < STEP; k++)
			column[k] = b[k][n];
		*d = add_cut(p->of.adds ? *d : 0.0f, a, column);
	}
}

static void
compute(const product *p)
{
	static float a[ROWS][STEP], b[STEP][MOST_COLUMNS];
	uint32_t r;

	read_a(p, a);
	read_b(&p->of, b);
	for (r = 0; r < ROWS; r++)
		if (p->of.type == WGMMA_e4m3)
			add_cut_row(p, r, a[r], b);
		else
			add_row(p, r, a[r], b);
}

/* ---- when ---------------------------------------------------------------- */

/* Computes all products of the warpgroup before number `end`. */
static void
compute_up_to(warpgroup *w, uint32_t end)
{
	while (w->done < end) {
		compute(&w->products[w->first++]);
		w->done++;
	}
	if (w->first == w->end)
		w->first = w->end = 0;
}

/* How many products all items have asked for. */
static uint32_t
ready(const warpgroup *w)
{
	uint32_t i = w->first;

	while (i < w->end && w->products[i].asked == ITEMS)
		i++;
	return w->done + (i - w->first);
}

static void
check(const g_panel *panel)
{
	if (panel->group_bytes % SWIZZLE || panel->panel_bytes % SWIZZLE)
		machine_fail("parts of a panel are no multiple of 1024 bytes "
			     "apart");
	/* It begins with one of four steps of 32 bytes. */
	if ((uintptr_t)panel->at % SWIZZLE >= ROW ||
	    (uintptr_t)panel->at % STEP)
		machine_fail("a panel does not begin at a multiple of 1024 "
			     "bytes");
}

/* The item's next product: a new one, or one that others have asked for. */
static product *
next_product(warpgroup *w, asker *item, const spmla_i_emu_product *of)
{
	const uint32_t i = w->first + (item->asked - w->done);
	product *p;

	if (i == w->end) {
		if (w->end == w->room) {
			w->room = w->room ? 2 * w->room : 16;
			w->products = realloc(w->products,
					      w->room * sizeof *w->products);
			if (!w->products)
				abort();
		}
		p = &w->products[w->end++];
		p->of = *of;
		p->asked = 0;
		p->group = item->groups;
		if (i == w->first || p[-1].group != p->group)
			w->mode = machine_draw(MODES);
	}
	p = &w->products[i];
	if (p->group != item->groups || p->of.b.at != of->b.at ||
	    p->of.columns != of->columns || p->of.type != of->type ||
	    p->of.is_across != of->is_across || p->of.adds != of->adds ||
	    !p->of.a != !of->a ||
	    (!of->a && p->of.a_panel.at != of->a_panel.at))
		machine_fail("items of a warpgroup ask for different products");
	return p;
}

void
spmla_i_emu_multiply(const spmla_i_emu_product *of)
{
	warpgroup *w = &warpgroups[machine.current / ITEMS];
	asker *item = &askers[machine.current];
	product *p;

	if (machine.width != 32 || machine.kernel->items % ITEMS)
		machine_fail("no warpgroups");
	check(&of->b);
	if (!of->a)
		check(&of->a_panel);
	p = next_product(w, item, of);
	item->asked++;
	p->d[machine.current % ITEMS] = of->d;
	if (of->a)
		memcpy(p->a[machine.current % ITEMS], of->a, sizeof p->a[0]);
	if (++p->asked < ITEMS)
		return;
	machine_wake(machine.here, AT_PRODUCTS, w, 0);
	if (w->mode == AT_ONCE ||
	    (w->mode == AT_ANY_TIME && machine_draw(4) == 0))
		compute_up_to(w, ready(w));
}

void
spmla_i_emu_products_commit(void)
{
	asker *item = &askers[machine.current];

	item->ends[item->groups++ % (MOST_OPEN + 2)] = item->asked;
}

void
spmla_i_emu_products_wait_but(uint32_t groups)
{
	warpgroup *w = &warpgroups[machine.current / ITEMS];
	asker *item = &askers[machine.current];
	uint32_t end;

	if (groups > MOST_OPEN)
		machine_fail("a wait for all but too many groups of products");
	if (item->groups <= groups)
		return;
	end = item->ends[(item->groups - groups - 1) % (MOST_OPEN + 2)];
	while (ready(w) < end)
		machine_wait(AT_PRODUCTS, w);
	compute_up_to(w, end);
	item->waited = end;
}

void
machine_products_begin(uint32_t first)
{
	const uint32_t end = first + machine.kernel->items;
	uint32_t i;

	memset(askers + first, 0, machine.kernel->items * sizeof *askers);
	for (i = first / ITEMS; i * ITEMS < end; i++)
		warpgroups[i].first = warpgroups[i].end = warpgroups[i].done =
			0;
}

void
machine_products_end(void)
{
	const asker *item = &askers[machine.current];

	if (item->asked != item->waited)
		machine_fail("an item ends before its products");
}
