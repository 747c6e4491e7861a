/* SPDX-License-Identifier: Apache-2.0
 *
 * See few_rig.h.
 */
#include "tests/ops/attend/few_rig.h"

#include <check.h>
#include <stdlib.h>

#include "spmla/internal/few.h"
#include "tests/emulator/machine.h"

enum { MOST_HEADS = 128 };

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
few_take_back(void)
{
	uint64_t i;

	for (i = 0; i < words; i++)
		if (workspace[i])
			ck_abort_msg("word %llu of the workspace is %08x",
				     (unsigned long long)i, workspace[i]);
	free(workspace);
}
