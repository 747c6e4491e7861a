/* SPDX-License-Identifier: Apache-2.0
 *
 * See world.h.
 */
#include "tests/fuzz/world.h"
#include "tests/harness/draw.h"

#include <sanitizer/asan_interface.h>

void
world_config(spmla_config *config)
{
	static const spmla_shape buckets[3] = {
		{2, 2, 1, 0}, {4, 2, 2, 60}, {8, 4, 4, 100}};

	REQUIRE(spmla_config_preset(config, SPMLA_MODEL_V32) == SPMLA_OK);
	config->flags = SPMLA_CONFIG_APART;
	config->heads = 2;
	config->index_heads = 3;
	config->topk = 5;
	config->max_rows = 5;
	config->max_context_tokens = 40;
	config->cache_layers = 1;
	config->groups[0].page_tokens = 4;
	config->groups[0].pool_pages = 12;
	config->bucket_count = 3;
	memcpy(config->buckets, buckets, sizeof buckets);
	config->ring_slots = 2;
	config->max_table_stores = 6;
	config->max_update_pages = 14;
	config->max_graphs = 3;
	config->max_graph_nodes = 24;
	config->queue_entries = 6;
}

static int
by_place(const void *a, const void *b)
{
	const spmla_extent *x = a, *y = b;

	if (x->memory != y->memory)
		return x->memory < y->memory ? -1 : 1;
	return x->offset_bytes < y->offset_bytes ? -1 : 1;
}

/* Whatever no buffer has must not be touched. */
static void
poison_gaps(const world *w)
{
	spmla_extent rows[SPMLA_MAX_PLAN_ROWS];
	uint32_t i, r;

	memcpy(rows, w->plan.extents, sizeof rows);
	qsort(rows, w->plan.row_count, sizeof *rows, by_place);
	for (r = 0; r < w->region_count; r++) {
		const spmla_region *region = &w->regions[r];
		uint64_t end = 0;

		for (i = 0; i < w->plan.row_count; i++) {
			if (rows[i].memory != region->memory)
				continue;
			ASAN_POISON_MEMORY_REGION((uint8_t *)region->base + end,
						  rows[i].offset_bytes - end);
			end = rows[i].offset_bytes + rows[i].bytes;
		}
	}
}

static void
plan(world *w, const spmla_config *config)
{
	spmla_device device = SPMLA_DEVICE_INIT;
	uint32_t m;

	REQUIRE(spmla_backend_query(&spmla_cpu, NULL, &device, NULL) ==
		SPMLA_OK);
	REQUIRE(spmla_plan_make(&w->plan, config, &device, NULL) == SPMLA_OK);
	for (m = 0; m < SPMLA_MEMORY_COUNT; m++) {
		spmla_region *r = &w->regions[w->region_count];

		if (w->plan.region_bytes[m] == 0)
			continue;
		r->struct_bytes = (uint32_t)sizeof *r;
		r->memory = m;
		r->bytes = w->plan.region_bytes[m];
		REQUIRE(posix_memalign(&r->base, w->plan.region_align[m],
				       r->bytes) == 0);
		w->region_count++;
	}
	poison_gaps(w);
}

void
world_open(world *w, const spmla_config *config, uint32_t native_flags)
{
	spmla_native native = SPMLA_NATIVE_INIT;
	uint32_t i, r;

	native.flags = native_flags;
	if (w->plan.row_count == 0)
		plan(w, config);
	for (i = 0; i < w->plan.row_count; i++) {
		const spmla_extent *e = &w->plan.extents[i];

		for (r = 0; r < w->region_count; r++)
			if (w->regions[r].memory == e->memory)
				memset((uint8_t *)w->regions[r].base +
					       e->offset_bytes,
				       0xAB, e->bytes);
	}
	REQUIRE(spmla_init(&w->ctx, &w->plan, &spmla_cpu, &native, w->regions,
			   w->region_count, NULL) == SPMLA_OK);
}

void
world_close(world *w)
{
	spmla_device_status status = SPMLA_DEVICE_STATUS_INIT;
	spmla_status s;

	(void)spmla_cpu_queue_run(w->ctx, UINT32_MAX);
	REQUIRE(spmla_status_read(w->ctx, &status) == SPMLA_OK);
	REQUIRE((status.count == 0) == (status.fault == SPMLA_FAULT_NONE));
	REQUIRE(strlen(spmla_fault_name(status.fault)) > 0);
	s = spmla_fini(w->ctx);
	REQUIRE(s == SPMLA_OK || s == SPMLA_E_STATE || s == SPMLA_E_BUSY);
}

void
world_diag(const world *w, input *in)
{
	const uint32_t capacity = in_below(in, 160);
	char *text = malloc(capacity ? capacity : 1);

	REQUIRE(text);
	(void)spmla_diag_text(spmla_ctx_diag(w->ctx), text, capacity);
	REQUIRE(capacity == 0 || strlen(text) < capacity);
	free(text);
}

void *
draw_alloc(uint64_t bytes)
{
	void *p = malloc(bytes);

	REQUIRE(p);
	return p;
}
