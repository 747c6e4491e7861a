/* SPDX-License-Identifier: Apache-2.0
 *
 * The context: takes regions, gives addresses. Sizes come only from the plan.
 */
#include "spmla/arena/arena_table.h"
#include "spmla/internal/backend.h"
#include "spmla/internal/config.h"

#include <string.h>

static spmla_status
check_overlap(const spmla_region *regions, uint32_t count, spmla_diag *diag)
{
	uint32_t i, j;

	for (i = 0; i < count; i++) {
		const uint64_t a = SPMLA_I_PTR(regions[i].base);

		for (j = i + 1; j < count; j++) {
			const uint64_t b = SPMLA_I_PTR(regions[j].base);

			if (a < b + regions[j].bytes &&
			    b < a + regions[i].bytes)
				return spmla_i_fail_at(diag, SPMLA_E_OVERLAP,
						       "regions.base", j, b,
						       SPMLA_WANT_AT_LEAST,
						       a + regions[i].bytes);
		}
	}
	return SPMLA_OK;
}

static spmla_status
check_region(const spmla_region *r, uint32_t index,
	     const uint64_t need[SPMLA_MEMORY_COUNT], spmla_diag *diag)
{
	uint32_t bytes;

	/* The struct may be too short: read nothing else before the check. */
	memcpy(&bytes, r, sizeof bytes);
	if (bytes != sizeof *r)
		return spmla_i_fail_at(diag, SPMLA_E_STRUCT_SIZE,
				       "regions.struct_bytes", index, bytes,
				       SPMLA_WANT_EQUAL, sizeof *r);
	const uint64_t base = SPMLA_I_PTR(r->base);
	const struct {
		const char *field;
		uint64_t got;
		spmla_want rule;
		uint64_t want;
		spmla_status status;
	} checks[] = {
		{"regions.memory", r->memory,
		 SPMLA_I_FROM_TO(SPMLA_MEMORY_HOST, SPMLA_MEMORY_CACHE),
		 SPMLA_E_RANGE},
		{"regions.base", base, SPMLA_WANT_NOT_NULL, 0, SPMLA_E_NULL},
		{"regions.base", base, SPMLA_WANT_MULTIPLE_OF,
		 SPMLA_I_BUF_ALIGN, SPMLA_E_REGION},
		{"regions.bytes", r->bytes, SPMLA_WANT_AT_LEAST,
		 need[r->memory % SPMLA_MEMORY_COUNT], SPMLA_E_REGION},
		{"regions.bytes", r->bytes, SPMLA_WANT_AT_MOST,
		 UINT64_MAX - base, SPMLA_E_OVERFLOW},
	};
	uint32_t i;

	for (i = 0; i < SPMLA_I_COUNT(checks); i++)
		if (!spmla_i_keeps(checks[i].got, checks[i].rule,
				   checks[i].want))
			return spmla_i_fail_at(
				diag, checks[i].status, checks[i].field, index,
				checks[i].got, checks[i].rule, checks[i].want);
	return SPMLA_OK;
}

/* Fills base[] by kind of memory. */
static spmla_status
take_regions(void *base[SPMLA_MEMORY_COUNT], const spmla_plan *plan,
	     const spmla_region *regions, uint32_t count, spmla_diag *diag)
{
	static const char *const missing[] = {
		"regions: HOST", "regions: PINNED", "regions: DEVICE",
		"regions: CACHE"};
	uint64_t need[SPMLA_MEMORY_COUNT];
	spmla_status s;
	uint32_t i;

	/* The plan may be damaged. The context must fit in any case. */
	memcpy(need, plan->region_bytes, sizeof need);
	if (need[SPMLA_MEMORY_HOST] < sizeof(spmla_ctx))
		need[SPMLA_MEMORY_HOST] = sizeof(spmla_ctx);

	if (count > SPMLA_MEMORY_COUNT)
		return spmla_i_fail(diag, SPMLA_E_RANGE, "region_count", count,
				    SPMLA_WANT_AT_MOST, SPMLA_MEMORY_COUNT);
	for (i = 0; i < count; i++) {
		s = check_region(&regions[i], i, need, diag);
		if (s != SPMLA_OK)
			return s;
		if (base[regions[i].memory])
			return spmla_i_fail_at(
				diag, SPMLA_E_REGION, "regions.memory", i,
				regions[i].memory, SPMLA_WANT_UNIQUE, 0);
		base[regions[i].memory] = regions[i].base;
	}
	for (i = 0; i < SPMLA_MEMORY_COUNT; i++)
		if (need[i] && !base[i])
			return spmla_i_fail(diag, SPMLA_E_REGION, missing[i], 0,
					    SPMLA_WANT_AT_LEAST, need[i]);
	return check_overlap(regions, count, diag);
}

/* Runs before anything is written, so that a refusal leaves the regions alone.
 */
static spmla_status
check_native(const spmla_native *native, spmla_diag *diag)
{
	const uint32_t known =
		SPMLA_NATIVE_DEFERRED | SPMLA_NATIVE_SCALAR | SPMLA_NATIVE_AVX2;
	spmla_status s;

	if (!native)
		return SPMLA_OK;
	if (native->struct_bytes != SPMLA_NATIVE_MIN_BYTES &&
	    native->struct_bytes != offsetof(spmla_native, graph_copies)) {
		s = spmla_i_check_size(diag, "native.struct_bytes",
				       native->struct_bytes, sizeof *native);
		if (s != SPMLA_OK)
			return s;
	}
	if (native->flags > known)
		return spmla_i_fail(diag, SPMLA_E_RANGE, "native.flags",
				    native->flags, SPMLA_WANT_AT_MOST, known);
	if (native->struct_bytes > offsetof(spmla_native, graph_copies) &&
	    native->reserved)
		return spmla_i_fail(diag, SPMLA_E_RANGE, "native.reserved",
				    native->reserved, SPMLA_WANT_EQUAL, 0);
	return SPMLA_OK;
}

static spmla_status
check_init(spmla_ctx **ctx, const spmla_plan *plan,
	   const spmla_backend *backend, const spmla_native *native,
	   const spmla_region *regions, spmla_diag *diag)
{
	const spmla_i_check pointers[] = {
		{"ctx", SPMLA_I_PTR(ctx), SPMLA_WANT_NOT_NULL, 0},
		{"plan", SPMLA_I_PTR(plan), SPMLA_WANT_NOT_NULL, 0},
		{"backend", SPMLA_I_PTR(backend), SPMLA_WANT_NOT_NULL, 0},
		{"regions", SPMLA_I_PTR(regions), SPMLA_WANT_NOT_NULL, 0},
	};
	spmla_status s;

	s = spmla_i_check_all(diag, pointers, SPMLA_I_COUNT(pointers));
	if (s != SPMLA_OK)
		return s;
	s = spmla_i_check_size(diag, "plan.struct_bytes", plan->struct_bytes,
			       sizeof *plan);
	if (s != SPMLA_OK)
		return s;
	s = check_native(native, diag);
	if (s != SPMLA_OK)
		return s;
	if (plan->version != SPMLA_VERSION)
		return spmla_i_fail(diag, SPMLA_E_UNSUPPORTED, "plan.version",
				    plan->version, SPMLA_WANT_EQUAL,
				    SPMLA_VERSION);
	if (plan->device.kind != backend->kind)
		return spmla_i_fail(diag, SPMLA_E_UNSUPPORTED,
				    "plan.device.kind", plan->device.kind,
				    SPMLA_WANT_EQUAL, backend->kind);
	return SPMLA_OK;
}

/* Makes the plan again, in the context that keeps it: a plan may have been
 * stored and read back, and every byte of it is trusted from here on. */
static spmla_status
take_plan(spmla_ctx *ctx, const spmla_plan *plan, spmla_diag *diag)
{
	const uint8_t *got = (const uint8_t *)plan;
	const uint8_t *want = (const uint8_t *)&ctx->plan;
	spmla_status s;
	uint32_t i;

	memset(ctx, 0, sizeof *ctx);
	s = spmla_plan_make(&ctx->plan, &plan->config, &plan->device, diag);
	if (s != SPMLA_OK)
		return s;
	for (i = 0; i < sizeof *plan; i++)
		if (got[i] != want[i])
			return spmla_i_fail_at(diag, SPMLA_E_RANGE, "plan byte",
					       i, got[i], SPMLA_WANT_EQUAL,
					       want[i]);
	return SPMLA_OK;
}

static void
zero_pinned(spmla_ctx *ctx)
{
	uint32_t i;

	for (i = 0; i < ctx->plan.row_count; i++) {
		const spmla_extent *e = &ctx->plan.extents[i];

		if (e->memory == SPMLA_MEMORY_PINNED)
			memset(ctx->buf[e->buf], 0, (size_t)e->bytes);
	}
}

spmla_status
spmla_init(spmla_ctx **out, const spmla_plan *plan,
	   const spmla_backend *backend, const spmla_native *native,
	   const spmla_region *regions, uint32_t region_count, spmla_diag *diag)
{
	void *base[SPMLA_MEMORY_COUNT] = {0};
	spmla_ctx *ctx;
	spmla_status s;
	uint32_t i;

	s = check_init(out, plan, backend, native, regions, diag);
	if (s == SPMLA_OK)
		s = take_regions(base, plan, regions, region_count, diag);
	if (s != SPMLA_OK)
		return s;
	ctx = base[SPMLA_MEMORY_HOST]; /* CONTEXT is the first row, offset 0 */
	s = take_plan(ctx, plan, diag);
	if (s != SPMLA_OK)
		return s;
	ctx->backend = backend;
	for (i = 0; i < plan->row_count; i++) {
		const spmla_extent *e = &plan->extents[i];

		ctx->buf[e->buf] = (uint8_t *)base[e->memory] + e->offset_bytes;
		ctx->buf_bytes[e->buf] = e->bytes;
	}
	zero_pinned(ctx);
	s = backend->init(ctx, native, diag);
	if (s != SPMLA_OK)
		return s;
	ctx->magic = SPMLA_I_CTX_MAGIC;
	*out = ctx;
	return SPMLA_OK;
}

/* Whether nothing of the context is in use; fills the diag if it is. */
static spmla_status
check_idle(spmla_ctx *ctx)
{
	uint64_t consumed;

	if (ctx->capture_open || ctx->backend->capturing(ctx, NULL))
		return spmla_i_fail(&ctx->diag, SPMLA_E_STATE, "capture", 1,
				    SPMLA_WANT_EQUAL, 0);
	consumed = spmla_i_consumed(ctx);
	/* A lost device consumes nothing more. */
	if (ctx->launched > consumed &&
	    !(ctx->backend->lost && ctx->backend->lost(ctx)))
		return spmla_i_fail(&ctx->diag, SPMLA_E_BUSY, "steps in flight",
				    ctx->launched - consumed, SPMLA_WANT_EQUAL,
				    0);
	if (ctx->backend->pending(ctx))
		return spmla_i_fail(&ctx->diag, SPMLA_E_BUSY, "queue",
				    ctx->backend->pending(ctx),
				    SPMLA_WANT_EQUAL, 0);
	return SPMLA_OK;
}

spmla_status
spmla_fini(spmla_ctx *ctx)
{
	spmla_status s;

	if (!spmla_i_lives(ctx))
		return SPMLA_E_NULL;
	s = check_idle(ctx);
	if (s != SPMLA_OK)
		return s;
	ctx->backend->fini(ctx);
	ctx->magic = 0;
	return SPMLA_OK;
}

spmla_status
spmla_wake(spmla_ctx *ctx)
{
	spmla_status s;

	if (!spmla_i_lives(ctx))
		return SPMLA_E_NULL;
	s = check_idle(ctx);
	if (s == SPMLA_OK)
		s = ctx->backend->zero(ctx, &ctx->diag);
	if (s != SPMLA_OK)
		return s;
	/* The device counts from 0 again, so the host does. */
	zero_pinned(ctx);
	ctx->written = ctx->launched = 0;
	memset(&ctx->prologue, 0, sizeof ctx->prologue);
	memset(&ctx->recorded, 0, sizeof ctx->recorded);
	return SPMLA_OK;
}

void *
spmla_view(const spmla_ctx *ctx, spmla_buf buf, uint64_t *bytes)
{
	const uint32_t i = (uint32_t)buf;
	const uint32_t known = spmla_i_lives(ctx) && i < SPMLA_I_BUF_LIMIT;

	if (bytes)
		*bytes = known ? ctx->buf_bytes[i] : 0;
	return known ? ctx->buf[i] : NULL;
}

const spmla_diag *
spmla_ctx_diag(const spmla_ctx *ctx)
{
	return spmla_i_lives(ctx) ? &ctx->diag : NULL;
}

const spmla_plan *
spmla_ctx_plan(const spmla_ctx *ctx)
{
	return spmla_i_lives(ctx) ? &ctx->plan : NULL;
}

spmla_status
spmla_backend_query(const spmla_backend *backend, const spmla_native *native,
		    spmla_device *device, spmla_diag *diag)
{
	const spmla_i_check pointers[] = {
		{"backend", SPMLA_I_PTR(backend), SPMLA_WANT_NOT_NULL, 0},
		{"device", SPMLA_I_PTR(device), SPMLA_WANT_NOT_NULL, 0},
	};
	spmla_status s;

	s = spmla_i_check_all(diag, pointers, SPMLA_I_COUNT(pointers));
	if (s != SPMLA_OK)
		return s;
	s = spmla_i_check_size(diag, "device.struct_bytes",
			       device->struct_bytes, sizeof *device);
	if (s != SPMLA_OK)
		return s;
	s = check_native(native, diag);
	return s == SPMLA_OK ? backend->query(native, device, diag) : s;
}
