/* SPDX-License-Identifier: Apache-2.0
 *
 * From the first call to the last, the library asks the system for no memory.
 * This program is linked with --wrap for every function that could, so that
 * calls out of libspmla.a come here and are counted.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/harness/themes.h"
#include "tests/harness/v32_rig.h"

static volatile uint32_t calls; /* the compiler thinks malloc leaves it alone */

#define WRAP(type, name, parameters, arguments) \
	type __real_##name parameters;          \
	type __wrap_##name parameters;          \
	type __wrap_##name parameters           \
	{                                       \
		calls++;                        \
		return __real_##name arguments; \
	}

WRAP(void *, malloc, (size_t n), (n))
WRAP(void *, calloc, (size_t n, size_t m), (n, m))
WRAP(void *, realloc, (void *p, size_t n), (p, n))
WRAP(void *, aligned_alloc, (size_t a, size_t n), (a, n))
WRAP(int, posix_memalign, (void **p, size_t a, size_t n), (p, a, n))

void __real_free(void *p);
void __wrap_free(void *p);

void
__wrap_free(void *p)
{
	calls++;
	__real_free(p);
}

/* One whole life, all inputs and outputs made before. Check's own assertions
 * allocate, so there are none in here unless something fails. */
static void
live(fixture *f, v32_rig *rig, uint32_t deferred)
{
	spmla_native native = SPMLA_NATIVE_INIT;
	spmla_diag diag = SPMLA_DIAG_INIT;
	spmla_device_status status = SPMLA_DEVICE_STATUS_INIT;
	spmla_config preset;
	char text[200];
	spmla_cache cache;
	uint32_t n;

	native.flags = deferred;
	(void)spmla_config_preset(&preset, SPMLA_MODEL_V32);
	(void)spmla_plan_make(&f->plan, &preset, &f->device, &diag);
	(void)spmla_diag_text(&diag, text, sizeof text);
	(void)spmla_plan_make(&f->plan, &f->config, &f->device, &diag);
	(void)spmla_init(&f->ctx, &f->plan, &spmla_cpu, &native, f->regions,
			 f->region_count, &diag);
	(void)spmla_cache_view(f->ctx, SPMLA_BUF_KV_CACHE, 0, &cache);
	v32_rig_capture(rig, f->ctx);
	(void)spmla_graph_begin(f->ctx, NULL);
	(void)spmla_graph_abort(f->ctx);
	for (n = 0; n < 20; n++)
		v32_rig_step(rig, f->ctx, n);
	(void)spmla_step_undo(f->ctx, 1);
	(void)spmla_step_resync(f->ctx);
	(void)spmla_status_read(f->ctx, &status);
	(void)spmla_status_clear(f->ctx);
	(void)spmla_fini(f->ctx);
}

START_TEST(nothing_is_allocated_from_plan_to_fini)
{
	static const uint32_t modes[2] = {0, SPMLA_NATIVE_DEFERRED};
	spmla_config config;
	v32_rig rig;
	fixture f;
	uint32_t i, before, seen;

	for (i = 0; i < 2; i++) {
		fixture_config(&config);
		fixture_open(&f, &config, 0);
		v32_rig_open(&rig, f.ctx, 0, 3);
		ck_assert_int_eq(spmla_fini(f.ctx), SPMLA_OK);
		before = calls;
		live(&f, &rig, modes[i]);
		seen = calls - before;
		ck_assert_uint_eq(seen, 0);
		ck_assert_uint_ne(rig.hash, 0);
		ck_assert_int_eq(spmla_init(&f.ctx, &f.plan, &spmla_cpu, NULL,
					    f.regions, f.region_count, NULL),
				 SPMLA_OK);
		v32_rig_close(&rig);
		fixture_close(&f);
	}
}
END_TEST

START_TEST(an_allocation_would_be_seen)
{
	const uint32_t before = calls;
	void *volatile p = malloc(1);
	uint32_t seen;

	free(p);
	p = aligned_alloc(256, 256);
	free(p);
	p = realloc(calloc(1, 1), 2);
	free(p);
	seen = calls - before;
	ck_assert_uint_eq(seen, 7);
}
END_TEST

SUITE
{
	const theme_test memory[] = {
		{nothing_is_allocated_from_plan_to_fini, 1},
		{an_allocation_would_be_seen, 1},
	};
	const theme themes[] = {THEME("memory", NULL, NULL, memory)};

	return RUN_THEMES(themes);
}
