/* SPDX-License-Identifier: Apache-2.0
 *
 * How an adapter reads a case and says what became of it.
 */
#include "tests/golden/golden.h"

#include <stdlib.h>
#include <string.h>

golden_tensor *
golden_find(golden_case *c, const char *name)
{
	uint32_t i;

	for (i = 0; i < c->tensor_count; i++)
		if (strcmp(c->tensors[i].name, name) == 0) {
			c->tensors[i].read = 1;
			return &c->tensors[i];
		}
	return NULL;
}

void
golden_leave_out(golden_case *c, const char *name)
{
	golden_tensor *t = golden_find(c, name);

	if (t)
		t->left_out = 1;
}

golden_tensor *
golden_need(golden_case *c, const char *name, golden_dtype dtype, uint32_t rank)
{
	golden_tensor *t = golden_find(c, name);

	if (t && t->dtype == dtype && t->rank == rank)
		return t;
	(void)golden_fail(c,
			  "the case has no tensor %s of the type and rank "
			  "that the op needs",
			  name);
	return NULL;
}

int
golden_has(golden_case *c, const golden_tensor *t, const int64_t *shape)
{
	uint32_t d;

	if (!t)
		return 0;
	for (d = 0; d < t->rank; d++)
		if (shape[d] >= 0 && t->shape[d] != shape[d])
			break;
	if (d == t->rank && (t->shape[d - 1] <= 1 || t->strides[d - 1] == 1))
		return 1;
	(void)golden_fail(c, "%s has a shape that the op does not have",
			  t->name);
	return 0;
}

int
golden_cache(golden_case *c, const char *name, spmla_layout layout,
	     spmla_cache *cache)
{
	const int64_t bytes = spmla_layout_entry_bytes((uint32_t)layout);
	const golden_tensor *t = golden_need(c, name, GOLDEN_U8, 4);

	if (!golden_has(c, t, (const int64_t[]){-1, -1, 1, bytes}))
		return 0;
	if (t->shape[1] > 1 && t->strides[1] != bytes) {
		(void)golden_fail(c, "%s has gaps between entries", name);
		return 0;
	}
	*cache = (spmla_cache)SPMLA_CACHE_INIT;
	cache->layout = (uint32_t)layout;
	cache->entries_per_page = (uint32_t)t->shape[1];
	cache->pages = (uint32_t)t->shape[0];
	cache->page_stride_bytes = (uint64_t)t->strides[0];
	cache->base = golden_first(t);
	return 1;
}

void *
golden_first(const golden_tensor *t)
{
	return t->data + (uint64_t)t->offset * t->elem_bytes;
}

int
golden_dense(const golden_tensor *t)
{
	int64_t stride = 1;
	uint32_t d;

	for (d = t->rank; d-- > 0; stride *= t->shape[d])
		if (t->shape[d] != 1 && t->strides[d] != stride)
			return 0;
	return 1;
}

int32_t
golden_i32(const golden_tensor *t, int64_t i, int64_t j)
{
	const int64_t at =
		i * t->strides[0] + (t->rank > 1 ? j * t->strides[1] : 0);
	int32_t value;

	memcpy(&value, (uint8_t *)golden_first(t) + at * 4, sizeof value);
	return value;
}

const void *
golden_positions(golden_case *c, const char *name, int64_t n, uint32_t *dtype)
{
	const golden_tensor *t = golden_find(c, name);
	const int wide = t && t->dtype == GOLDEN_I64;

	t = golden_need(c, name, wide ? GOLDEN_I64 : GOLDEN_I32, 1);
	if (!golden_has(c, t, (const int64_t[]){-1}))
		return NULL;
	if (t->shape[0] < n) {
		(void)golden_fail(c, "%s is too short", name);
		return NULL;
	}
	*dtype = wide ? SPMLA_INT64 : SPMLA_INT32;
	return golden_first(t);
}

int
golden_take_floats(golden_case *c, const char *name, uint32_t rank,
		   const int64_t *shape, golden_floats *out)
{
	const golden_tensor *t = golden_find(c, name);
	const int narrow = t && t->dtype == GOLDEN_BF16;

	t = golden_need(c, name, narrow ? GOLDEN_BF16 : GOLDEN_F32, rank);
	if (!golden_has(c, t, shape))
		return 0;
	memcpy(out->shape, t->shape, sizeof out->shape);
	out->stride = t->strides[0];
	out->first = golden_first(t);
	out->dtype = narrow ? SPMLA_REAL_BF16 : SPMLA_REAL_F32;
	return 1;
}

int
golden_widen(golden_case *c, const char *name, golden_floats *out)
{
	const golden_tensor *t = golden_find(c, name);
	float *wide = golden_scratch(c, t->count * sizeof *wide);
	int64_t index[GOLDEN_MAX_RANK] = {0};
	uint64_t i;

	for (i = 0; wide && i < t->count; i++, golden_step(t, index))
		wide[i] = (float)golden_value(t->dtype,
					      t->data + golden_place(t, index) *
								t->elem_bytes);
	out->first = wide;
	out->dtype = SPMLA_REAL_F32;
	out->stride = 1;
	for (i = 1; i < t->rank; i++)
		out->stride *= t->shape[i];
	return wide != NULL;
}

int
golden_take_table(golden_case *c, const char *name, int64_t width,
		  golden_floats *out)
{
	if (!golden_take_floats(c, name, 2, (const int64_t[]){-1, width}, out))
		return 0;
	if (out->stride == width || out->shape[0] <= 1)
		return 1;
	(void)golden_fail(c, "%s has gaps", name);
	return 0;
}

int
golden_param(const golden_case *c, const char *name, double *value)
{
	const json_node *n = json_get(json_get(c->doc.nodes, "params"), name);

	if (!n || n->type != JSON_NUMBER)
		return 0;
	*value = n->number;
	return 1;
}

int
golden_need_param(golden_case *c, const char *name, double *value)
{
	if (golden_param(c, name, value))
		return 1;
	(void)golden_fail(c, "the case has no number %s in its params", name);
	return 0;
}

uint32_t
golden_page_stride(const golden_case *c)
{
	double rows;

	if (!golden_param(c, "BLOCK_STRIDE_ROWS", &rows) &&
	    !golden_param(c, "block_stride_rows", &rows))
		return 0;
	return rows >= 0 && rows <= INT32_MAX ? (uint32_t)rows : UINT32_MAX;
}

void *
golden_scratch(golden_case *c, uint64_t bytes)
{
	void *p = NULL;

	if (c->scratch_count < GOLDEN_MAX_SCRATCH)
		p = calloc(1, (size_t)bytes + 1);
	if (!p) {
		(void)golden_fail(c, "no memory");
		return NULL;
	}
	c->scratch[c->scratch_count++] = p;
	return p;
}

golden_verdict
golden_called(golden_case *c, spmla_status status)
{
	spmla_device_status device = SPMLA_DEVICE_STATUS_INIT;

	golden_make_fault(c);
	if (status != SPMLA_OK) {
		spmla_diag_text(spmla_ctx_diag(c->ctx), c->reason,
				(uint32_t)sizeof c->reason);
		return GOLDEN_FAILED;
	}
	/* A golden case is good data: whatever is reported is a mistake. */
	if (spmla_status_read(c->ctx, &device) != SPMLA_OK ||
	    device.count != 0) {
		(void)spmla_status_clear(c->ctx);
		return golden_fail(c, "the device reported %s, row %u",
				   spmla_fault_name(device.fault), device.row);
	}
	return GOLDEN_RAN;
}
