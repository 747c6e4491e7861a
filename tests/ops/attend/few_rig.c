/* SPDX-License-Identifier: Apache-2.0
 *
 * See few_rig.h.
 */
#include "tests/ops/attend/few_rig.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "spmla/internal/few.h"
#include "tests/emulator/machine.h"

enum { MOST_HEADS = 128, ROWS = 300 /* of decode_world */ };

static uint32_t *workspace;
static uint64_t words;
static uint32_t multiprocessors;

void
few_open(fixture *f, uint32_t sms)
{
	spmla_config config;

	fixture_config(&config);
	config.heads = MOST_HEADS;
	multiprocessors = fixture_on_gpu() ? FEW_H100 : sms;
	fixture_multiprocessors(multiprocessors);
	fixture_open(f, &config, 0);
	fixture_multiprocessors(0);
}

void
few_close(fixture *f)
{
	emulator_live(0);
	fixture_close(f);
}

void
few_lend(spmla_sparse_decode_args *a)
{
	const spmla_device device = {.kind = SPMLA_BACKEND_CUDA,
				     .arch = 90,
				     .sm_count = multiprocessors};
	const uint32_t way =
		spmla_i_few_choose(&device, a->cache.layout, a->tokens,
				   a->heads, spmla_i_few_entries(a));

	ck_assert_uint_lt(way, SPMLA_I_FEW_COUNT);
	words = spmla_i_few_words(way, a->tokens, a->heads);
	workspace = test_alloc(words * 4, 0);
	a->workspace = workspace;
	a->workspace_bytes = words * 4;
}

void
few_expect(const fixture *f, const spmla_sparse_decode_args *a, uint32_t way)
{
	const spmla_device *d = &f->plan.device;

	if (d->kind == SPMLA_BACKEND_CUDA && d->arch == 90 &&
	    d->sm_count == multiprocessors)
		ck_assert_uint_eq(spmla_i_few_takes(&f->plan, a), way);
}

void
few_take_back(void)
{
	uint64_t i;

	for (i = 0; i < words; i++)
		if (workspace[i])
			ck_abort_msg("word %llu of the workspace is %08x",
				     (unsigned long long)i, workspace[i]);
	free(workspace);
}

void
few_open_v32(decode_world *w, uint32_t tokens, uint32_t heads, uint32_t topk)
{
	decode_open_tokens(w, SPMLA_LAYOUT_FP8_DS_MLA, tokens, heads, 61, topk);
	few_lend(&w->a);
}

void
few_open_kind(const fixture *f, decode_world *w, int many, uint32_t tokens,
	      uint32_t heads, uint32_t topk)
{
	if (many)
		few_open_v32(w, fixture_on_real_gpu(f) ? 5 : 2, 64, topk);
	else
		few_open_v32(w, tokens, heads, topk);
}

void
few_choose_v32(decode_world *w, int low, int high)
{
	const uint32_t bound = (uint32_t)(high - low + 1);
	int32_t i;
	uint32_t j;

	decode_choose(w);
	for (i = 0; i < ROWS; i++)
		for (j = 0; j < REF_SCALES; j++) {
			const float scale =
				ldexpf(1, low + (int)rng_below(&w->rng, bound));

			memcpy(decode_row(w, i) + 512 + 4 * j, &scale, 4);
		}
}

void
few_close_v32(fixture *f, decode_world *w)
{
	few_take_back();
	decode_expect_status(f, SPMLA_FAULT_NONE, 0);
	decode_close(w);
}
