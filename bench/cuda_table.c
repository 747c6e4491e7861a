/* SPDX-License-Identifier: Apache-2.0
 *
 * The table: a row's time beside its floor and beside the peer's time. The hard
 * idea is the floor, the largest of three times: the bytes that have to move,
 * at the rate of a stream that the same run measures; the flop, at the rate
 * that a large product reached; and a graph with an empty kernel. That graph is
 * most of a small shape's time. So the table also has the rest of the time, and
 * how much of the rest the floor's bytes or flop would take.
 */
#include "bench/cuda.h"

#include <stdio.h>

/* An 8192^3 product in bf16 on an H100, 2026-11-20; e4m3 has twice the rate. */
#define BF16_FLOP_US 796e6

void
add_floor(gpu *g, cuda_row *r, double bytes, rate by, double flop, product of)
{
	const double speed =
		by == BY_READ ? g->read_bytes_us : g->copy_bytes_us;
	const double move = speed > 0 ? bytes / speed : 0;
	const double flops = flop / BF16_FLOP_US / (of == E4M3 ? 2 : 1);
	const char *bound = flops > move ? "flop" : "bytes";

	if (speed <= 0)
		return;
	r->bound = r->floor > 0 ? "sum" : bound;
	r->floor += flops > move ? flops : move;
}

void
table_head(const gpu *g)
{
	printf("\n| op | shape | cold us | p99 us | warm us | floor us | bound "
	       "| over floor | past launch us | floor of it | peer us "
	       "(%s) | over peer | check |\n"
	       "|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
	       peers_date(g));
}

static void
print_peer(const cuda_row *r)
{
	if (r->peer_exact > 0)
		printf(" %.1f; exact %.1f | %.2f; %.2f |", r->peer,
		       r->peer_exact, r->cold / r->peer,
		       r->cold / r->peer_exact);
	else if (r->peer_most > 0)
		printf(" %.1f to %.1f | %.2f to %.2f |", r->peer, r->peer_most,
		       r->cold / r->peer_most, r->cold / r->peer);
	else if (r->peer > 0)
		printf(" %s%.1f | %.2f |", r->peer_sum ? "sum " : "", r->peer,
		       r->cold / r->peer);
	else
		printf(" - | - |");
}

void
table_row(gpu *g, cuda_row *r)
{
	const double past = r->cold - g->launch_us, moves = r->floor;

	peers_find(g, r);
	if (r->floor < g->launch_us) {
		r->floor = g->launch_us;
		r->bound = "launch";
	}
	printf("| %s | %s | %s%.1f%s | %.1f | %.1f |", r->op, r->shape,
	       r->best ? "**" : "", r->cold, r->best ? "**" : "", r->p99,
	       r->warm);
	if (r->floor > 0)
		printf(" %.1f | %s | %.2f |", r->floor, r->bound,
		       r->cold / r->floor);
	else
		printf(" - | - | - |");
	if (moves > 0 && past > 0)
		printf(" %.1f | %.0f %% |", past, 100 * moves / past);
	else
		printf(" - | - |");
	print_peer(r);
	printf(" %s |\n", r->check[0] ? r->check : "none");
	fflush(stdout);
}

void
table_pair(gpu *g, cuda_row *a, cuda_row *b)
{
	a->best = a->cold <= b->cold;
	b->best = !a->best;
	table_row(g, a);
	table_row(g, b);
}
