/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of the CUDA bench: inputs and results that are there twice, pools of
 * random but valid pages, and contexts of both backends.
 */
#include "bench/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spmla/spmla_cpu.h"
#include "spmla/spmla_cuda.h"

enum { PORTABLE_AND_MAPPED = 3, PAGE_BYTES = 4096 };

void *
host_room(uint64_t bytes)
{
	void *p = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);

	if (!p) {
		fprintf(stderr, "bench_cuda: no %llu bytes\n",
			(unsigned long long)bytes);
		exit(1);
	}
	return p;
}

void
device_room(gpu *g, cu_ptr *to, uint64_t bytes)
{
	CU(g, alloc, (to, (size_t)bytes));
}

twin *
twin_make(gpu *g, uint64_t bytes)
{
	twin *t = &g->twins[g->twin_count++];
	cu_ptr at;

	if (g->twin_count > TWINS)
		cu_must(-1, "twin_make");
	device_room(g, &at, bytes);
	t->at[ON_HOST] = host_room(bytes);
	t->at[ON_DEVICE] = (void *)(uintptr_t)at;
	t->bytes = bytes;
	return t;
}

void
twin_push(gpu *g, const twin *t)
{
	CU(g, push,
	   ((uintptr_t)t->at[ON_DEVICE], t->at[ON_HOST], (size_t)t->bytes));
	CU(g, sync_all, ());
}

void
twins_free(gpu *g)
{
	CU(g, sync_all, ());
	while (g->twin_count > 0) {
		twin *t = &g->twins[--g->twin_count];

		CU(g, release, ((uintptr_t)t->at[ON_DEVICE]));
		free(t->at[ON_HOST]);
	}
}

/* ---- Values ------------------------------------------------------------- */

/* splitmix64 */
uint64_t
next_random(gpu *g)
{
	uint64_t z = g->rng += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

void
fill_e4m3(gpu *g, void *to, uint64_t n)
{
	uint8_t *at = to;

	while (n > 0) {
		const uint64_t codes =
			next_random(g) & UINT64_C(0xb7b7b7b7b7b7b7b7);
		const uint64_t some = n < sizeof codes ? n : sizeof codes;

		memcpy(at, &codes, (size_t)some);
		at += some;
		n -= some;
	}
}

static float
uniform(gpu *g)
{
	return (float)(next_random(g) >> 40) * 0x1p-24f;
}

void
fill_f32(gpu *g, void *to, uint64_t n, float least, float most)
{
	float *at = to;
	uint64_t i;

	for (i = 0; i < n; i++)
		at[i] = least + uniform(g) * (most - least);
}

void
fill_bf16(gpu *g, void *to, uint64_t n, float most)
{
	uint16_t *at = to;
	uint64_t i;

	for (i = 0; i < n; i++) {
		const float x = (2 * uniform(g) - 1) * most;
		uint32_t bits;

		memcpy(&bits, &x, sizeof bits);
		at[i] = (uint16_t)(bits >> 16);
	}
}

void
fill_order(gpu *g, int32_t *to, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		to[i] = (int32_t)i;
	for (i = n; i > 1; i--) {
		const uint32_t j = (uint32_t)(next_random(g) % i);
		const int32_t x = to[i - 1];

		to[i - 1] = to[j];
		to[j] = x;
	}
}

/* 64 values from 1/4 to 1/2, of either sign. */
static void
fill_rope(gpu *g, uint8_t *to)
{
	uint32_t i;

	for (i = 0; i < 16; i++, to += 8) {
		const uint64_t x =
			(next_random(g) & UINT64_C(0x80ff80ff80ff80ff)) |
			UINT64_C(0x3e803e803e803e80);

		memcpy(to, &x, sizeof x);
	}
}

static void
fill_page(gpu *g, uint8_t *page, uint32_t layout, uint32_t entries)
{
	static const float scales[SPMLA_MLA_SCALES] = {0.5f, 0.25f, 0.125f, 1};
	uint32_t i, j;

	if (layout == SPMLA_LAYOUT_INDEX_FP8) {
		fill_e4m3(g, page, (uint64_t)entries * SPMLA_INDEX_DIM);
		fill_f32(g, page + (size_t)entries * SPMLA_INDEX_DIM, entries,
			 0.005f, 0.02f);
		return;
	}
	for (i = 0; i < entries; i++) {
		uint8_t *e = page;

		if (layout == SPMLA_LAYOUT_FP8_DS_MLA) {
			e += (size_t)i * SPMLA_FP8_DS_MLA_BYTES;
			fill_e4m3(g, e, SPMLA_MLA_LATENT);
			memcpy(e + SPMLA_FP8_DS_MLA_SCALE_BYTE, scales,
			       sizeof scales);
			fill_rope(g, e + SPMLA_FP8_DS_MLA_ROPE_BYTE);
			continue;
		}
		e += (size_t)i * SPMLA_V4_VALUE_BYTES;
		fill_e4m3(g, e, SPMLA_V4_NOPE);
		fill_rope(g, e + SPMLA_V4_NOPE);
		e = page + (size_t)entries * SPMLA_V4_VALUE_BYTES +
		    (size_t)i * SPMLA_V4_SCALE_BYTES;
		for (j = 0; j < SPMLA_V4_SCALES; j++)
			e[j] = (uint8_t)(124 + next_random(g) % 4);
		e[j] = 0;
	}
}

void
fill_pool(gpu *g, const twin *t, uint32_t layout, uint32_t entries)
{
	const uint64_t stride = spmla_layout_page_bytes(layout, entries);
	uint8_t *pages = t->at[ON_HOST];
	uint64_t at;

	for (at = 0; at + stride <= t->bytes; at += stride)
		fill_page(g, pages + at, layout, entries);
	twin_push(g, t);
}

twin *
make_pool(gpu *g, uint32_t layout, uint32_t entries, uint32_t pages)
{
	const uint64_t stride = spmla_layout_page_bytes(layout, entries);
	twin *t = twin_make(g, stride * pages);

	fill_pool(g, t, layout, entries);
	return t;
}

spmla_cache
pool_cache(const twin *pool, side on, uint32_t layout, uint32_t entries)
{
	spmla_cache c = SPMLA_CACHE_INIT;

	c.layout = layout;
	c.entries_per_page = entries;
	c.page_stride_bytes = spmla_layout_page_bytes(layout, entries);
	c.pages = (uint32_t)(pool->bytes / c.page_stride_bytes);
	c.base = pool->at[on];
	return c;
}

/* ---- Contexts ----------------------------------------------------------- */

static void *
region_room(gpu *g, world *w, uint32_t memory, uint64_t bytes)
{
	void *p;
	cu_ptr at;

	if (w->on == ON_HOST || memory == SPMLA_MEMORY_HOST)
		return memset(host_room(bytes), 0, (size_t)bytes);
	if (memory == SPMLA_MEMORY_PINNED) {
		CU(g, host_alloc,
		   (&p, (size_t)bytes + PAGE_BYTES, PORTABLE_AND_MAPPED));
		w->pinned = p; /* what is small comes from inside a page */
		return (void *)(((uintptr_t)p + PAGE_BYTES - 1) / PAGE_BYTES *
				PAGE_BYTES);
	}
	device_room(g, &at, bytes);
	return (void *)(uintptr_t)at;
}

void
world_open(gpu *g, world *w, const spmla_config *config, side on)
{
	const spmla_backend *backend = on == ON_HOST ? &spmla_cpu : &spmla_cuda;
	spmla_device device = SPMLA_DEVICE_INIT;
	spmla_region regions[SPMLA_MEMORY_COUNT];
	spmla_diag diag = SPMLA_DIAG_INIT;
	uint32_t m, n = 0;
	char text[256];

	memset(w, 0, sizeof *w);
	w->on = on;
	w->plan.struct_bytes = (uint32_t)sizeof w->plan;
	if (spmla_backend_query(backend, NULL, &device, &diag))
		goto fail;
	if (g->arch && on == ON_DEVICE)
		device.arch = g->arch;
	if (spmla_plan_make(&w->plan, config, &device, &diag))
		goto fail;
	for (m = 0; m < SPMLA_MEMORY_COUNT; m++) {
		const uint64_t bytes = w->plan.region_bytes[m];

		if (bytes == 0)
			continue;
		w->memory[m] = region_room(g, w, m, bytes);
		regions[n++] = (spmla_region){(uint32_t)sizeof *regions, m,
					      w->memory[m], bytes};
	}
	if (spmla_init(&w->ctx, &w->plan, backend, NULL, regions, n, &diag))
		goto fail;
	return;
fail:
	spmla_diag_text(&diag, text, sizeof text);
	fflush(stdout);
	fprintf(stderr, "bench_cuda: %s\n", text);
	exit(1);
}

void
world_close(gpu *g, world *w)
{
	uint32_t m;

	CU(g, sync_all, ());
	lib_must(w->ctx, spmla_fini(w->ctx), "spmla_fini");
	for (m = 0; m < SPMLA_MEMORY_COUNT; m++)
		if (!w->memory[m])
			continue;
		else if (w->on == ON_HOST || m == SPMLA_MEMORY_HOST)
			free(w->memory[m]);
		else if (m == SPMLA_MEMORY_PINNED)
			CU(g, host_release, (w->pinned));
		else
			CU(g, release, ((uintptr_t)w->memory[m]));
}
