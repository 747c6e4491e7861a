/* SPDX-License-Identifier: Apache-2.0
 *
 * See fixture.h.
 */
#include "tests/harness/fixture.h"
#include "spmla/internal/step_layout.h"
#include "tests/emulator/emulator.h"
#include "tests/harness/cuda_world.h"
#include "tests/harness/red_zone.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void
fixture_config(spmla_config *config)
{
	static const spmla_shape buckets[3] = {
		{4, 4, 1, 0}, {8, 4, 2, 0}, {16, 8, 4, 0}};

	ck_assert_int_eq(spmla_config_preset(config, SPMLA_MODEL_V32),
			 SPMLA_OK);
	config->heads = 4;
	config->index_heads = 4;
	config->topk = 8;
	config->max_rows = 8;
	config->max_context_tokens = 512;
	config->groups[SPMLA_GROUP_MAIN].page_tokens = 16;
	config->groups[SPMLA_GROUP_MAIN].pool_pages = 64;
	config->bucket_count = 3;
	memcpy(config->buckets, buckets, sizeof buckets);
}

void *
test_alloc(uint64_t bytes, uint8_t byte)
{
	size_t size = (size_t)((bytes + 255) / 256 * 256), room;
	void *p = &cuda_guard_alloc ? cuda_guard_alloc(bytes, 16) : NULL;

	if (p) {
		/* Later arguments are not ours. */
		memset(p, byte, (size_t)bytes);
		return p;
	}
	room = (size + 4095) / 4096 * 4096;
	p = aligned_alloc(4096, room);
	ck_assert_ptr_nonnull(p);
	memset(p, byte, size);
	red_zone_lay((uint8_t *)p + bytes, room - (size_t)bytes);
	return p;
}

void
test_close_gaps(spmla_cache *cache)
{
	const size_t bytes = (size_t)cache->entries_per_page *
			     spmla_layout_entry_bytes(cache->layout);
	uint8_t *base = cache->base;
	uint32_t p;

	for (p = 0; p < cache->pages; p++)
		memmove(base + p * bytes, base + p * cache->page_stride_bytes,
			bytes);
	cache->page_stride_bytes = bytes;
}

void *
test_map(uint64_t bytes)
{
	void *p = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		ck_abort_msg("no address space for %" PRIu64
			     " MiB (ulimit -v, vm.overcommit_memory)",
			     bytes >> 20);
	return p;
}

/* SPMLA_TEST_NATIVE=scalar|avx2|avx512 selects a variant of the CPU. */
static uint32_t
wanted_flags(const char *variant)
{
	if (variant && strcmp(variant, "scalar") == 0)
		return SPMLA_NATIVE_SCALAR;
	if (variant && strcmp(variant, "avx2") == 0)
		return SPMLA_NATIVE_AVX2;
	return 0;
}

/* If the machine lacks the selected variant, there is nothing to test. */
static void
skip_without(const fixture *f, const char *variant)
{
	if (!variant || f->backend != &spmla_cpu ||
	    strcmp(spmla_cpu_variant(f->ctx), variant) == 0)
		return;
	printf("SKIPPED: no %s on this machine\n", variant);
	fflush(stdout);
	_Exit(CUDA_WORLD_SKIPPED);
}

static uint32_t lent_workers;
static lent *lent_loop;
static uint32_t multiprocessors;

void
fixture_lend(uint32_t workers, lent *loop)
{
	lent_workers = workers;
	lent_loop = loop;
}

/* Puts the lent workers into config and native. */
static void
lend(spmla_config *config, spmla_native *native)
{
	static lent by_name = {.way = LENT_THREADS};
	const char *text = getenv("SPMLA_TEST_WORKERS");
	uint32_t workers = lent_workers;
	lent *loop = lent_loop;

	if (!loop && workers == 0 && text) {
		workers = (uint32_t)strtoul(text, NULL, 10);
		loop = &by_name;
	}
	if (config->cpu_workers == 0)
		config->cpu_workers = workers;
	native->parallel_for = loop ? lent_for : NULL;
	native->parallel_user = loop;
}

static const spmla_backend *
chosen_backend(void)
{
	if (&cuda_sync && getenv("SPMLA_TEST_CUDA"))
		return &cuda_sync;
	if (&hip_sync && getenv("SPMLA_TEST_HIP"))
		return &hip_sync;
	if (&level_zero_sync && getenv("SPMLA_TEST_LEVEL_ZERO"))
		return &level_zero_sync;
	return getenv("SPMLA_TEST_EMULATOR") ? &spmla_emulator : &spmla_cpu;
}

static uint32_t room;

void
fixture_room(uint32_t on)
{
	room = on;
}

static uint32_t
is_in_room(uint32_t memory)
{
	return memory == SPMLA_MEMORY_DEVICE || memory == SPMLA_MEMORY_CACHE;
}

/* Memory for that region of the plan, whose extents may move in it; `moved` is
 * the plan then. */
static void *
region(fixture *f, spmla_plan *moved, uint32_t memory)
{
	void *p = NULL;

	f->in_room = room;
	if (room && is_in_room(memory))
		return cuda_room_region(moved, memory);
	if (&cuda_guard_region)
		p = cuda_guard_region(moved, memory);
	f->guarded |= p != NULL;
	if (p)
		return p;
	p = test_alloc(f->plan.region_bytes[memory], 0xAB);
	red_zone_lay_between(&f->plan, memory, p);
	return p;
}

uint32_t
fixture_on_cpu(void)
{
	return chosen_backend() == &spmla_cpu;
}

uint32_t
fixture_on_gpu(void)
{
	return (&cuda_sync && chosen_backend() == &cuda_sync) ||
	       (&hip_sync && chosen_backend() == &hip_sync) ||
	       (&level_zero_sync && chosen_backend() == &level_zero_sync);
}

uint32_t
fixture_cuts(const fixture *f)
{
	const char *width = getenv("SPMLA_TEST_EMULATOR");

	return f->device.kind == SPMLA_BACKEND_CUDA && f->device.arch == 90 &&
	       !(f->config.flags & SPMLA_CONFIG_ALLOW_UNPROVEN) &&
	       (f->backend != &spmla_emulator || strtoul(width, NULL, 0) == 32);
}

uint32_t
fixture_tiles(const fixture *f)
{
	return f->config.flags & SPMLA_CONFIG_ALLOW_UNPROVEN &&
	       (f->backend == &spmla_emulator ||
		f->device.kind == SPMLA_BACKEND_HIP ||
		f->device.kind == SPMLA_BACKEND_LEVEL_ZERO);
}

uint32_t
fixture_rounds(uint32_t most, uint32_t few)
{
	const char *text = getenv("SPMLA_TEST_STEPS");
	const uint32_t rounds =
		chosen_backend() == &spmla_emulator ? few : most;
	const uint32_t limit =
		text ? (uint32_t)strtoul(text, NULL, 10) : UINT32_MAX;

	return rounds < limit ? rounds : limit;
}

void
fixture_multiprocessors(uint32_t count)
{
	multiprocessors = count;
}

uint32_t
fixture_kernel_debug(void)
{
#ifdef SPMLA_KERNEL_DEBUG
	if (chosen_backend() == &cuda_sync)
		return 1;
#endif
	return chosen_backend() == &spmla_emulator && emulator_is_debug();
}

void
fixture_disturb(fixture *f, uint32_t seed, uint32_t lost)
{
	spmla_i_step_state *state =
		spmla_view(f->ctx, SPMLA_BUF_STEP_STATE, NULL);

	state->serial = (uint64_t)lost << 32 | seed;
	if (f->backend == &spmla_emulator)
		emulator_seed(test_seed() + seed);
}

/* Plans for what the backend says that it is, and inits in memory of that
 * size. */
static void
open_on(fixture *f, const spmla_backend *backend, spmla_native *native)
{
	static spmla_plan moved;
	spmla_diag diag = SPMLA_DIAG_INIT;
	void *pinned = NULL;
	char text[256];
	spmla_status s;
	uint32_t m;

	f->backend = backend;
	if (red_zone_is_seen())
		f->config.flags |= SPMLA_CONFIG_APART;
	if (getenv("SPMLA_TEST_UNPROVEN"))
		f->config.flags |= SPMLA_CONFIG_ALLOW_UNPROVEN;
	f->device.struct_bytes = (uint32_t)sizeof f->device;
	s = spmla_backend_query(f->backend, native, &f->device, &diag);
	if (multiprocessors && f->backend == &spmla_emulator)
		f->device.sm_count = multiprocessors;
	if (s == SPMLA_OK)
		s = spmla_plan_make(&f->plan, &f->config, &f->device, &diag);
	moved = f->plan;
	for (m = 0; s == SPMLA_OK && m < SPMLA_MEMORY_COUNT; m++) {
		spmla_region *r = &f->regions[f->region_count];

		if (f->plan.region_bytes[m] == 0)
			continue;
		f->memory[m] = region(f, &moved, m);
		r->struct_bytes = (uint32_t)sizeof *r;
		r->memory = m;
		r->base = f->memory[m];
		r->bytes = f->plan.region_bytes[m];
		/* init writes it before the buffers move. */
		if (m == SPMLA_MEMORY_PINNED && f->guarded)
			r->base = pinned = cuda_guard_alloc(r->bytes, 256);
		f->region_count++;
	}
	if (memcmp(&moved, &f->plan, sizeof moved) != 0)
		cuda_world_move(&moved, f->memory);
	if (s == SPMLA_OK)
		s = spmla_init(&f->ctx, &f->plan, f->backend, native,
			       f->regions, f->region_count, &diag);
	f->plan = moved;
	free(pinned);
	if (s != SPMLA_OK) {
		spmla_diag_text(&diag, text, sizeof text);
		ck_abort_msg("fixture: %s", text);
	}
}

void
fixture_open(fixture *f, const spmla_config *config, uint32_t native_flags)
{
	const char *variant = getenv("SPMLA_TEST_NATIVE");
	spmla_native native = SPMLA_NATIVE_INIT;

	memset(f, 0, sizeof *f);
	f->config = *config;
	native.flags = native_flags | wanted_flags(variant);
	lend(&f->config, &native);
	open_on(f, chosen_backend(), &native);
	skip_without(f, variant);
}

void
fixture_open_plain(fixture *f, const spmla_config *config)
{
	spmla_native native = SPMLA_NATIVE_INIT;

	memset(f, 0, sizeof *f);
	f->config = *config;
	f->config.cpu_workers = 1;
	native.flags = SPMLA_NATIVE_SCALAR;
	open_on(f, &spmla_cpu, &native);
}

void
fixture_close(fixture *f)
{
	uint32_t m;

	ck_assert_int_eq(spmla_fini(f->ctx), SPMLA_OK);
	for (m = 0; m < SPMLA_MEMORY_COUNT; m++)
		if (f->in_room && is_in_room(m))
			cuda_room_free(f->memory[m]);
		else
			free(f->memory[m]);
	memset(f, 0, sizeof *f);
}

uint32_t
fixture_run(fixture *f, uint32_t count)
{
	if (f->backend == &spmla_cpu)
		return spmla_cpu_queue_run(f->ctx, count);
	if (f->backend == &spmla_emulator)
		return emulator_queue_run(f->ctx, count);
	return cuda_sync_run(f->ctx, count);
}

uint32_t
fixture_pending(const fixture *f)
{
	return f->ctx->backend->pending(f->ctx);
}

void
fixture_drain(fixture *f)
{
	(void)fixture_run(f, UINT32_MAX);
}

spmla_device_status
fixture_status(const fixture *f)
{
	spmla_device_status status = SPMLA_DEVICE_STATUS_INIT;

	ck_assert_int_eq(spmla_status_read(f->ctx, &status), SPMLA_OK);
	return status;
}

const char *
test_diag_text(const spmla_diag *diag)
{
	static char text[400];

	spmla_diag_text(diag, text, sizeof text);
	return text;
}

const char *
fixture_diag(const fixture *f)
{
	return test_diag_text(spmla_ctx_diag(f->ctx));
}

uint64_t
test_seed(void)
{
	static uint64_t seed;
	const char *text = getenv("SPMLA_TEST_SEED");

	if (seed == 0) {
		seed = text ? strtoull(text, NULL, 0) : 20260131u;
		printf("seed %" PRIu64 " (SPMLA_TEST_SEED sets it)\n", seed);
	}
	return seed;
}

uint16_t
test_bf16(float x)
{
	uint32_t u;

	memcpy(&u, &x, sizeof u);
	if ((u & 0x7fffffffu) > 0x7f800000u)
		return (uint16_t)(u >> 16 | 0x40u);
	return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

float
test_bf16_value(uint16_t h)
{
	const uint32_t u = (uint32_t)h << 16;
	float x;

	memcpy(&x, &u, sizeof x);
	return x;
}
