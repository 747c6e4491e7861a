/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan with all four kinds of memory and room for each, and the check of a
 * refusal of spmla_init.
 */
#ifndef TESTS_CORE_INIT_RIG_H
#define TESTS_CORE_INIT_RIG_H

#include "tests/harness/fixture.h"

#include "spmla/internal/backend.h"

typedef struct init_rig {
	spmla_plan plan;
	spmla_native native;
	spmla_region regions[5]; /* [k] is kind k; [4] is one too many */
	uint32_t count;
	uint64_t room[4]; /* twice what is needed, for regions that are moved */
	uint64_t context; /* bytes of HOST that a refusal may write */
} init_rig;

void init_open(init_rig *w);
void init_close(init_rig *w);

/* Inits with `regions` and wants this refusal, in these words: nothing is
 * written but the diag, which may be NULL. */
void init_refused_with(init_rig *w, const spmla_backend *backend,
		       const spmla_region *regions, spmla_status status,
		       const char *want);

/* The same on the CPU; the words are a format of two uint64_t. */
void init_refused(init_rig *w, const spmla_region *regions, spmla_status status,
		  const char *format, uint64_t a, uint64_t b);

#endif
