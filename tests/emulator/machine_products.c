/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of warpgroups. All 128 items share a product: when the first item's
 * wait returns, no item's product reads its panels any more. The hard idea is
 * when it is computed: as soon as all items have asked for it, only when one
 * waits for it, or in between. A draw for each group of products decides.
 * Registers of A are read when an item asks. Panels and accumulators are read
 * when the product is computed, so a panel that is written too early shows, and
 * so does a missing wait.
 */
#define SPMLA_GPU_KERNELS 1
#include "tests/emulator/machine_state.h"
#include "tests/emulator/machine_sums.h"

#include "spmla/platform/gpu/dialect/wgmma.h"

#include <stdlib.h>
#include <string.h>

enum {
	ITEMS = 128,
	ROWS = 64,
	WARP_ROWS = 16, /* of a subgroup */
	STEP = 32,      /* columns of A, at most: 32 bytes of a row */
	MOST_COLUMNS = 256,
	MOST_OPEN = 2,  /* groups that a wait may leave */
	SWIZZLE = 1024, /* bytes, after which it repeats */
	ROW = 128,      /* bytes */
	PIECE = 16      /* bytes that stay together */
};

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

/* Values of 16 bytes: 8, or 16 of e4m3. */
static void
values_of(float *to, const uint8_t bytes[PIECE], uint32_t type)
{
	static float e4m3[256];
	uint32_t i;

	if (type != WGMMA_e4m3) {
		machine_values(to, bytes, type == WGMMA_bf16);
		return;
	}
	if (e4m3[1] == 0.0f)
		for (i = 0; i < 256; i++)
			e4m3[i] = g_e4m3_to_f32(i);
	for (i = 0; i < PIECE; i++)
		to[i] = e4m3[bytes[i]];
}

/* `count` values of a row of a panel, which are one or more pieces. */
static void
read_row(float *to, const g_panel *panel, uint32_t row, uint32_t count,
	 uint32_t type)
{
	const uint32_t in_piece = type == WGMMA_e4m3 ? PIECE : PIECE / 2;
	const uintptr_t first = (uintptr_t)panel->at +
				row / 8 * panel->group_bytes + row % 8 * ROW;
	uint8_t bytes[PIECE];
	uint32_t i;

	for (i = 0; i < count / in_piece; i++) {
		const uintptr_t at = first + i * PIECE;

		machine_read(bytes, (const void *)(at ^ (at / ROW & 7u) << 4),
			     PIECE);
		values_of(to + i * in_piece, bytes, type);
	}
}

/* Four lanes share rows g and g + 8 of a subgroup: two words have the first
 * half of the columns of both rows, two the second half. */
static void
read_registers(const product *p, uint32_t r, float *to)
{
	const uint32_t first = r / 16 * 32 + r % 8 * 4, high = r / 8 % 2;
	const uint32_t half = step_of(&p->of) / 2;
	uint32_t words[4], i, t;

	for (i = 0; i < 2; i++) {
		for (t = 0; t < 4; t++)
			words[t] = p->a[first + t][high + 2 * i];
		values_of(to + i * half, (const uint8_t *)words, p->of.type);
	}
}

static void
read_a(const product *p, float a[ROWS][STEP])
{
	uint32_t r;

	for (r = 0; r < ROWS; r++)
		if (p->of.a)
			read_registers(p, r, a[r]);
		else
			read_row(a[r], &p->of.a_panel, r, step_of(&p->of),
				 p->of.type);
}

static void
read_b(const spmla_i_emu_product *p, float b[STEP][MOST_COLUMNS])
{
	const uint32_t step = step_of(p);
	float eight[8][STEP]; /* columns */
	g_panel panel = p->b;
	uint32_t n, k, i;

	for (n = 0; n < p->columns && p->is_across; n += G_PANEL) {
		for (k = 0; k < step; k++)
			read_row(&b[k][n], &panel, k, G_PANEL, p->type);
		panel.at += panel.panel_bytes;
	}
	for (n = 0; n < p->columns && !p->is_across; n += 8) {
		for (i = 0; i < 8; i++)
			read_row(eight[i], &p->b, n + i, step, p->type);
		for (k = 0; k < step; k++)
			for (i = 0; i < 8; i++)
				b[k][n + i] = eight[i][k];
	}
}

/* Item i of the warpgroup has two columns of every eight of row r and of row
 * r + 8. Its accumulators, of both rows in turn, are moved to rows of sums of
 * its subgroup, or from there, added to what they are or not. */
static void
take_sums(const product *p, uint32_t i, float sums[WARP_ROWS][MOST_COLUMNS])
{
	const float *d = p->d[i];
	const uint32_t r = i % 32 / 4;
	uint32_t n;

	for (n = 2 * (i % 4); n < p->of.columns; n += 8, d += 4) {
		memcpy(sums[r] + n, d, 2 * sizeof *d);
		memcpy(sums[r + 8] + n, d + 2, 2 * sizeof *d);
	}
}

static void
put_sums(const product *p, uint32_t i, float sums[WARP_ROWS][MOST_COLUMNS],
	 uint32_t adds)
{
	float *d = p->d[i];
	const uint32_t r = i % 32 / 4;
	uint32_t n;

	for (n = 2 * (i % 4); n < p->of.columns; n += 8, d += 4) {
		const float *low = sums[r] + n, *high = sums[r + 8] + n;

		d[0] = (adds ? d[0] : 0.0f) + low[0];
		d[1] = (adds ? d[1] : 0.0f) + low[1];
		d[2] = (adds ? d[2] : 0.0f) + high[0];
		d[3] = (adds ? d[3] : 0.0f) + high[1];
	}
}

static void
compute(const product *p)
{
	static float a[ROWS][STEP], b[STEP][MOST_COLUMNS];
	static float sums[WARP_ROWS][MOST_COLUMNS];
	const uint32_t cuts = p->of.type == WGMMA_e4m3, adds = p->of.adds;
	const uint32_t columns = p->of.columns;
	uint32_t first, i, r;

	read_a(p, a);
	read_b(&p->of, b);
	for (first = 0; first < ITEMS; first += 32) {
		float(*rows)[STEP] = a + first / 32 * WARP_ROWS;

		if (cuts && !adds)
			memset(sums, 0, sizeof sums);
		for (i = first; i < first + 32 && cuts && adds; i++)
			take_sums(p, i, sums);
		for (r = 0; r < WARP_ROWS && cuts; r++)
			machine_add_cut(sums[r], rows[r], b[0], MOST_COLUMNS,
					columns);
		if (!cuts)
			machine_add(sums[0], rows[0], STEP, WARP_ROWS, b[0],
				    MOST_COLUMNS, columns, step_of(&p->of));
		for (i = first; i < first + 32; i++)
			put_sums(p, i, sums, adds && !cuts);
	}
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
	/* A panel begins at one of the four steps of 32 bytes of a row. */
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
