/* SPDX-License-Identifier: Apache-2.0
 *
 * A token's list of keys, in rows or ragged: the attention reads it, and
 * tile_sched counts it.
 */
#ifndef SPMLA_PLATFORM_CPU_STEP_LIST_CPU_H
#define SPMLA_PLATFORM_CPU_STEP_LIST_CPU_H

#include "spmla/platform/cpu/core/cpu.h"

/* Entries of row t that count: lens[t] clamped to [0, most]; NULL: all. */
static inline uint32_t
spmla_i_cpu_row_len(const int32_t *lens, uint32_t t, uint32_t most)
{
	if (!lens || lens[t] >= (int64_t)most)
		return most;
	return lens[t] > 0 ? (uint32_t)lens[t] : 0;
}

/* A token's list of keys. */
typedef struct spmla_i_cpu_list {
	const int32_t *entries;
	uint32_t len;
	uint32_t is_bad; /* an indptr that falls or leads outside; no entries */
} spmla_i_cpu_list;

/* Token t's list among `entries`: row t, with rows `stride` apart, and a length
 * that lens_tokens tokens share (0: not shared). With an indptr: entries
 * indptr[t] .. indptr[t + 1] - 1. `most` counts the entries of a row, or of all
 * ragged lists together. */
static inline spmla_i_cpu_list
spmla_i_cpu_list_of(const int32_t *entries, int64_t stride, const int32_t *lens,
		    uint32_t lens_tokens, const int32_t *indptr, uint32_t most,
		    uint32_t t)
{
	spmla_i_cpu_list list = {entries, 0, 0};

	if (!indptr) {
		if (entries) /* tile_sched asks for lengths alone */
			list.entries += t * stride;
		list.len = spmla_i_cpu_row_len(
			lens, lens_tokens ? t / lens_tokens : t, most);
	} else if (indptr[t] < 0 || indptr[t + 1] < indptr[t] ||
		   (uint32_t)indptr[t + 1] > most) {
		list.is_bad = 1;
	} else {
		if (entries)
			list.entries += indptr[t];
		list.len = (uint32_t)(indptr[t + 1] - indptr[t]);
	}
	return list;
}

#endif
