/* SPDX-License-Identifier: Apache-2.0
 *
 * One operation without a model: the 4 largest of 10 scores. The result is a
 * set, so its positions come in ascending order. Two scores are 5; the
 * one at the lower position is taken.
 *
 *   gcc one_op.c $(pkg-config --cflags --libs spmla)
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spmla/ops/topk.h"
#include "spmla/spmla_cpu.h"

enum { SCORES = 10, K = 4 };

static void
check(spmla_status s)
{
	if (s != SPMLA_OK)
		errx(1, "%s", spmla_status_name(s));
}

int
main(void)
{
	static const float scores[SCORES] = {1, 5, 7, 0, 9, 5, 2, 8, 3, -4};
	static const int64_t start = 0;
	static const int32_t length = SCORES;
	spmla_device device = SPMLA_DEVICE_INIT;
	spmla_region regions[SPMLA_MEMORY_COUNT];
	spmla_topk_args args;
	spmla_config config;
	spmla_plan plan;
	spmla_ctx *ctx;
	int32_t positions[K];
	uint32_t i;
	void *block;

	check(spmla_config_operations(&config));
	check(spmla_backend_query(&spmla_cpu, NULL, &device, NULL));
	check(spmla_plan_make(&plan, &config, &device, NULL));
	block = aligned_alloc(256, spmla_plan_regions(&plan, NULL, regions));
	spmla_plan_regions(&plan, block, regions);
	check(spmla_init(&ctx, &plan, &spmla_cpu, NULL, regions,
			 SPMLA_MEMORY_COUNT, NULL));

	memset(&args, 0, sizeof args);
	args.struct_bytes = sizeof args;
	args.rows = 1;
	args.k = K;
	args.logits = scores;
	args.logits_elems = SCORES;
	args.row_starts = &start;
	args.context_lens = &length;
	args.indices = positions;
	args.indices_stride_elems = K;
	check(spmla_topk(ctx, &args, NULL));

	check(spmla_fini(ctx));
	free(block);
	for (i = 0; i < K; i++)
		printf("position %d: %g\n", positions[i],
		       (double)scores[positions[i]]);
	return 0;
}
