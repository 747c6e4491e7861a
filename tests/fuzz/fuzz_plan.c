/* SPDX-License-Identifier: Apache-2.0
 *
 * Any config and device into a plan. The input is a base and then words that
 * replace its words, so that few bytes change few fields; both structs lie at
 * the end of their memory, as long as they say that they are.
 */
#include "tests/fuzz/world.h"

enum {
	CONFIG_WORDS = sizeof(spmla_config) / 4,
	DEVICE_WORDS = sizeof(spmla_device) / 4,
	ALIGN = 256,
	INIT_BYTES = 1 << 20 /* of all regions, above which init is skipped */
};

/* V4 with few of everything, small enough for init. */
static void
v4_base(spmla_config *c)
{
	uint32_t g;

	REQUIRE(spmla_config_preset(c, SPMLA_MODEL_V4_PRO) == SPMLA_OK);
	c->heads = 2;
	c->index_heads = 3;
	c->topk = 5;
	c->max_rows = 5;
	c->max_context_tokens = 300;
	for (g = 0; g < SPMLA_V4_GROUPS; g++)
		c->groups[g].pool_pages = 2;
	c->bucket_count = 1;
	c->buckets[0].tokens = c->buckets[0].requests = 3;
	c->buckets[0].next_n = 1;
	c->max_graph_nodes = 40;
	c->queue_entries = 6;
}

static void
read_structs(input *in, uint32_t *config, uint32_t *device)
{
	const uint32_t base = in_below(in, 4);
	spmla_device facts = SPMLA_DEVICE_INIT;
	spmla_config c;

	world_config(&c);
	if (base == 3)
		v4_base(&c);
	if (base == 1) {
		REQUIRE(spmla_config_preset(&c, SPMLA_MODEL_V32) == SPMLA_OK);
		c.max_rows = 64;
		c.max_context_tokens = 131072;
		c.groups[0].pool_pages = 4096;
		c.bucket_count = 2;
		c.buckets[0].tokens = c.buckets[0].requests = 64;
		c.buckets[1].tokens = 65536;
		c.buckets[0].next_n = c.buckets[1].next_n = 1;
		c.buckets[1].requests = 1;
	}
	REQUIRE(spmla_backend_query(&spmla_cpu, NULL, &facts, NULL) ==
		SPMLA_OK);
	memcpy(config, &c, sizeof c);
	memcpy(device, &facts, sizeof facts);
	if (base == 2)
		in_fill_edges(in, config + 1, CONFIG_WORDS - 1);
	while (in_left(in) > 0) {
		const uint32_t at = in_u8(in) % (CONFIG_WORDS + DEVICE_WORDS);

		if (at < CONFIG_WORDS)
			config[at] = in_edge(in);
		else
			device[at - CONFIG_WORDS] = in_edge(in);
	}
}

/* A copy of a struct that is as long as its first word says, at most `most`
 * and at least that word. */
static void *
at_its_length(const uint32_t *words, size_t most)
{
	const size_t bytes = words[0] < 4      ? 4
			     : words[0] < most ? words[0]
					       : most;
	void *copy = malloc(bytes);

	REQUIRE(copy);
	memcpy(copy, words, bytes);
	return copy;
}

static int
is_phase(const spmla_plan *p, const spmla_extent *e)
{
	return !(p->config.flags & SPMLA_CONFIG_APART) && !e->branch &&
	       (e->life == SPMLA_LIFE_INDEX || e->life == SPMLA_LIFE_ATTEND ||
		e->life == SPMLA_LIFE_OUTPUT);
}

/* Buffers of different phases may share bytes, no others. */
static void
check_pair(const spmla_plan *p, const spmla_extent *a, const spmla_extent *b)
{
	const uint64_t zone = p->config.flags & SPMLA_CONFIG_APART ? 256 : 0;

	REQUIRE(a->buf != b->buf);
	if (a->memory != b->memory ||
	    (is_phase(p, a) && is_phase(p, b) && a->life != b->life))
		return;
	REQUIRE(a->offset_bytes + a->bytes + zone <= b->offset_bytes ||
		b->offset_bytes + b->bytes + zone <= a->offset_bytes);
}

static void
check_rows(const spmla_plan *p)
{
	uint64_t end[SPMLA_MEMORY_COUNT] = {0};
	spmla_row row = SPMLA_ROW_INIT;
	uint32_t i, j;

	REQUIRE(p->row_count > 0 && p->row_count <= SPMLA_MAX_PLAN_ROWS);
	for (i = 0; i < p->row_count; i++) {
		const spmla_extent *e = &p->extents[i];

		REQUIRE(spmla_plan_row(p, i, &row) == SPMLA_OK);
		REQUIRE(row.buf == e->buf && row.memory == e->memory);
		REQUIRE(row.offset_bytes == e->offset_bytes);
		REQUIRE(row.count * row.elem_bytes == row.bytes);
		REQUIRE(row.bytes == e->bytes && row.bytes > 0);
		REQUIRE(strlen(row.name) && strlen(row.shape) &&
			strlen(row.writer));
		REQUIRE(e->memory < SPMLA_MEMORY_COUNT);
		REQUIRE(e->life < SPMLA_LIFE_COUNT);
		REQUIRE(e->offset_bytes % ALIGN == 0);
		REQUIRE(e->offset_bytes % row.align_bytes == 0);
		REQUIRE(e->bytes <= UINT64_MAX - e->offset_bytes);
		if (e->offset_bytes + e->bytes > end[e->memory])
			end[e->memory] = e->offset_bytes + e->bytes;
		for (j = 0; j < i; j++)
			check_pair(p, e, &p->extents[j]);
	}
	REQUIRE(spmla_plan_row(p, i, &row) == SPMLA_E_RANGE);
	for (i = 0; i < SPMLA_MEMORY_COUNT; i++) {
		REQUIRE(p->region_bytes[i] == end[i]);
		REQUIRE(p->region_align[i] % ALIGN == 0);
	}
}

/* Exactly the memory that was planned is enough, and no less. */
static void
check_init(const spmla_plan *p, uint32_t native_flags)
{
	spmla_region regions[SPMLA_MEMORY_COUNT];
	spmla_native native = SPMLA_NATIVE_INIT;
	uint64_t total = 0;
	uint32_t m, n = 0;
	spmla_ctx *ctx;

	for (m = 0; m < SPMLA_MEMORY_COUNT; m++) {
		if (p->region_bytes[m] > INIT_BYTES)
			return;
		total += p->region_bytes[m];
	}
	if (total > INIT_BYTES)
		return;
	native.flags = native_flags;
	for (m = 0; m < SPMLA_MEMORY_COUNT; m++) {
		spmla_region *r = &regions[n];

		if (p->region_bytes[m] == 0)
			continue;
		r->struct_bytes = (uint32_t)sizeof *r;
		r->memory = m;
		r->bytes = p->region_bytes[m];
		REQUIRE(posix_memalign(&r->base, p->region_align[m],
				       r->bytes) == 0);
		n++;
	}
	if (p->device.kind != SPMLA_BACKEND_CPU) {
		/* A plan for another device: no memory makes it the CPU's. */
		REQUIRE(spmla_init(&ctx, p, &spmla_cpu, &native, regions, n,
				   NULL) == SPMLA_E_UNSUPPORTED);
		goto done;
	}
	for (m = 0; m < n; m++) {
		regions[m].bytes--;
		REQUIRE(spmla_init(&ctx, p, &spmla_cpu, &native, regions, n,
				   NULL) == SPMLA_E_REGION);
		regions[m].bytes++;
	}
	REQUIRE(spmla_init(&ctx, p, &spmla_cpu, &native, regions, n, NULL) ==
		SPMLA_OK);
	REQUIRE(memcmp(spmla_ctx_plan(ctx), p, sizeof *p) == 0);
	REQUIRE(spmla_fini(ctx) == SPMLA_OK);
done:
	for (m = 0; m < n; m++)
		free(regions[m].base);
}

static void
check_refusal(spmla_status s, const spmla_diag *diag)
{
	char text[32];

	REQUIRE(diag->status == (uint32_t)s && diag->field);
	REQUIRE(spmla_diag_text(diag, text, sizeof text) > 0);
	REQUIRE(strlen(text) < sizeof text);
	REQUIRE(strcmp(spmla_status_name(s), "unknown") != 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static spmla_plan plan, again;
	uint32_t config_words[CONFIG_WORDS], device_words[DEVICE_WORDS];
	input in = {data, data + size};
	spmla_diag diag = SPMLA_DIAG_INIT;
	spmla_config *config;
	spmla_device *device;
	spmla_status s;
	uint32_t flags;

	flags = in_below(&in, 2);
	read_structs(&in, config_words, device_words);
	config = at_its_length(config_words, sizeof *config);
	device = at_its_length(device_words, sizeof *device);
	memset(&plan, 0x11, sizeof plan);
	memset(&again, 0xee, sizeof again);
	s = spmla_plan_make(&plan, config, device, &diag);
	REQUIRE(spmla_plan_make(&again, config, device, NULL) == s);
	if (s == SPMLA_OK) {
		REQUIRE(memcmp(&plan, &again, sizeof plan) == 0);
		check_rows(&plan);
		check_init(&plan, flags);
		/* What it made of the config gives the same plan, in place. */
		REQUIRE(spmla_plan_make(&again, &again.config, &again.device,
					NULL) == SPMLA_OK);
		REQUIRE(memcmp(&plan, &again, sizeof plan) == 0);
	} else {
		check_refusal(s, &diag);
		if (s != SPMLA_E_OVERFLOW)
			REQUIRE(*(uint8_t *)&plan == 0x11);
	}
	free(config);
	free(device);
	return 0;
}
