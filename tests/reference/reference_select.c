/* SPDX-License-Identifier: Apache-2.0
 *
 * The reference's top-k: a full sort, and a judge of somebody else's set. The
 * sort is a merge sort of its own in memory opened before, because qsort may
 * allocate.
 */
#include "tests/reference/reference.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Whether a comes before b: NaN, then higher score, then lower position. */
static int
precedes(const ref_ranked *a, const ref_ranked *b)
{
	if (isnan(a->score) || isnan(b->score)) {
		if (isnan(a->score) && isnan(b->score))
			return a->position < b->position;
		return isnan(a->score);
	}
	if (a->score != b->score)
		return a->score > b->score;
	return a->position < b->position;
}

static void
merge(const ref_ranked *a, uint32_t a_count, const ref_ranked *b,
      uint32_t b_count, ref_ranked *out)
{
	while (a_count > 0 && b_count > 0)
		if (precedes(b, a)) {
			*out++ = *b++;
			b_count--;
		} else {
			*out++ = *a++;
			a_count--;
		}
	memcpy(out, a, a_count * sizeof *a);
	memcpy(out + a_count, b, b_count * sizeof *b);
}

/* Sorts items[n] with room[n]; returns whichever of the two holds the
 * result. */
static const ref_ranked *
sort(ref_ranked *items, ref_ranked *room, uint32_t n)
{
	uint64_t width, at;

	for (width = 1; width < n; width *= 2) {
		ref_ranked *from = items;

		for (at = 0; at < n; at += 2 * width) {
			const uint64_t mid = at + width < n ? at + width : n;
			const uint64_t end = mid + width < n ? mid + width : n;

			merge(items + at, (uint32_t)(mid - at), items + mid,
			      (uint32_t)(end - mid), room + at);
		}
		items = room;
		room = from;
	}
	return items;
}

/* Marks the best min(n, k) of scores in w->chosen; returns how many. */
static uint32_t
choose(ref_work *w, const double *scores, uint32_t n, uint32_t k)
{
	const uint32_t count = n < k ? n : k;
	const ref_ranked *best;
	uint32_t i;

	for (i = 0; i < n; i++) {
		w->order[i].score = scores[i];
		w->order[i].position = i;
	}
	best = sort(w->order, w->order + w->max_keys, n);
	memset(w->chosen, 0, n);
	for (i = 0; i < count; i++)
		w->chosen[best[i].position] = 1;
	return count;
}

uint32_t
ref_select(ref_work *w, const double *scores, uint32_t n, uint32_t k,
	   int32_t *indices)
{
	const uint32_t count = choose(w, scores, n, k);
	uint32_t i, at = 0;

	for (i = 0; i < n; i++)
		if (w->chosen[i])
			indices[at++] = (int32_t)i;
	while (at < k)
		indices[at++] = -1;
	return count;
}

static int
missed(ref_miss *miss, const char *what, int64_t at, double got, double want)
{
	if (miss) {
		miss->what = what;
		miss->at = at;
		miss->got = got;
		miss->want = want;
	}
	return 0;
}

static int
check_form(const int32_t *indices, uint32_t k, uint32_t n, ref_miss *miss)
{
	const uint32_t count = n < k ? n : k;
	int64_t previous = -1;
	uint32_t i;

	for (i = 0; i < k; i++) {
		if (i >= count && indices[i] != -1)
			return missed(miss, "not -1 past the last entry", i,
				      indices[i], -1);
		if (i >= count)
			continue;
		if (indices[i] < 0 || (uint32_t)indices[i] >= n)
			return missed(miss, "not a position of the row", i,
				      indices[i], n);
		if (indices[i] <= previous)
			return missed(miss, "not ascending", i, indices[i],
				      (double)previous);
		previous = indices[i];
	}
	return 1;
}

/* By how much a score may really be higher (side 1) or lower (side -1). NaN
 * ranks above +inf, so it becomes +inf and +inf the highest finite number. */
static double
bound(double score, double tolerance, int side)
{
	if (isnan(score))
		return INFINITY;
	if (score == INFINITY)
		return DBL_MAX;
	return isfinite(score) ? score + side * tolerance : score;
}

/* Every key taken against every key left out, which is the worst taken against
 * the best left out. w->chosen marks what was taken. */
static int
check_worth(const ref_work *w, const double *scores, uint32_t n,
	    const double *tolerance, const uint8_t *uncertain, ref_miss *miss)
{
	double worst = INFINITY, best = -INFINITY;
	int64_t worst_at = -1, best_at = -1;
	uint32_t i;

	for (i = 0; i < n; i++) {
		const double high = bound(scores[i], tolerance[i], 1);
		const double low = bound(scores[i], tolerance[i], -1);

		if (uncertain && uncertain[i])
			continue;
		if (w->chosen[i] && (worst_at < 0 || high < worst)) {
			worst = high;
			worst_at = i;
		}
		if (!w->chosen[i] && (best_at < 0 || low > best)) {
			best = low;
			best_at = i;
		}
	}
	if (worst_at < 0 || best_at < 0 || worst >= best)
		return 1;
	return missed(miss, "took a key and left a better one out", worst_at,
		      scores[worst_at], scores[best_at]);
}

int
ref_check_selection(ref_work *w, const int32_t *indices, uint32_t k,
		    const double *scores, uint32_t n, const double *tolerance,
		    const uint8_t *uncertain, ref_miss *miss)
{
	uint32_t i, count;

	if (!check_form(indices, k, n, miss))
		return 0;
	if (n <= k)
		return 1;
	if (tolerance) {
		memset(w->chosen, 0, n);
		for (i = 0; i < k; i++)
			w->chosen[indices[i]] = 1;
		return check_worth(w, scores, n, tolerance, uncertain, miss);
	}
	count = choose(w, scores, n, k);
	for (i = 0; i < count; i++)
		if (!w->chosen[indices[i]] &&
		    !(uncertain && uncertain[indices[i]]))
			return missed(miss, "not among the best", indices[i],
				      scores[indices[i]], NAN);
	return 1;
}
