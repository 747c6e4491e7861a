/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads a golden case. The one idea: everything that a manifest says is checked
 * here against the sizes of its files, so that adapters and comparison may
 * index without looking.
 */
#include "tests/golden/golden.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_MANIFEST = 1 << 20, MAX_FILE = 1 << 28, MAX_PATH = 4096 };

static golden_verdict
say(golden_case *c, golden_verdict verdict, const char *format, va_list args)
{
	if (!c->reason[0])
		(void)vsnprintf(c->reason, sizeof c->reason, format, args);
	return verdict;
}

golden_verdict
golden_fail(golden_case *c, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)say(c, GOLDEN_FAILED, format, args);
	va_end(args);
	return GOLDEN_FAILED;
}

golden_verdict
golden_skip(golden_case *c, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)say(c, GOLDEN_SKIPPED, format, args);
	va_end(args);
	return GOLDEN_SKIPPED;
}

/* A whole file, 64-byte aligned; NULL with a reason. */
static uint8_t *
read_file(golden_case *c, const char *dir, const char *file, size_t limit,
	  size_t *bytes)
{
	char path[MAX_PATH];
	uint8_t *data = NULL;
	FILE *f = NULL;
	long size;

	if (!file || !*file || strchr(file, '/') || file[0] == '.' ||
	    snprintf(path, sizeof path, "%s/%s", dir, file) >= MAX_PATH) {
		(void)golden_fail(c, "bad file name");
		return NULL;
	}
	f = fopen(path, "rb");
	if (!f || fseek(f, 0, SEEK_END) != 0 || (size = ftell(f)) < 0 ||
	    (size_t)size > limit || fseek(f, 0, SEEK_SET) != 0)
		goto bad;
	*bytes = (size_t)size;
	data = aligned_alloc(64, (*bytes + 64) / 64 * 64);
	if (!data || fread(data, 1, *bytes, f) != *bytes)
		goto bad;
	(void)fclose(f);
	return data;
bad:
	(void)golden_fail(c, "cannot read %s", path);
	free(data);
	if (f)
		(void)fclose(f);
	return NULL;
}

static int
read_dtype(golden_tensor *t, const char *text)
{
	static const struct {
		const char *name;
		uint32_t bytes;
	} types[] = {{"int32", 4},    {"int64", 8},         {"float32", 4},
		     {"bfloat16", 2}, {"float8_e4m3fn", 1}, {"uint8", 1},
		     {"bool", 1}};
	uint32_t i;

	for (i = 0; text && i < sizeof types / sizeof *types; i++)
		if (strcmp(text, types[i].name) == 0) {
			t->dtype = (golden_dtype)i;
			t->elem_bytes = types[i].bytes;
			return 1;
		}
	return 0;
}

static int
read_role(golden_tensor *t, const char *text)
{
	static const char *const roles[] = {"input", "output", "inout"};
	uint32_t i;

	for (i = 0; text && i < 3; i++)
		if (strcmp(text, roles[i]) == 0) {
			t->role = (golden_role)i;
			return 1;
		}
	return 0;
}

/* "exact", "quantized: ..", or {kind: float, rtol, atol} */
static int
read_rule(golden_tensor *t, const json_node *compare)
{
	const char *text = json_text(compare);
	const json_node *rtol = json_get(compare, "rtol");
	const json_node *atol = json_get(compare, "atol");

	if (t->role == GOLDEN_INPUT)
		return 1;
	if (text && strcmp(text, "exact") == 0) {
		t->rule = GOLDEN_EXACT;
		return 1;
	}
	if (text && strncmp(text, "quantized", 9) == 0) {
		t->rule = GOLDEN_QUANTIZED;
		return 1;
	}
	text = json_text(json_get(compare, "kind"));
	if (!text || strcmp(text, "float") != 0 || !rtol || !atol ||
	    rtol->type != JSON_NUMBER || atol->type != JSON_NUMBER)
		return 0;
	t->rule = GOLDEN_FLOAT;
	t->rtol = rtol->number;
	t->atol = atol->number;
	return 1;
}

/* Shape, strides and offset, and that the last element is inside. */
static int
read_shape(golden_tensor *t, const json_node *node)
{
	const json_node *shape = json_get(node, "shape");
	const json_node *strides = json_get(node, "strides");
	const json_node *n, *s;
	int64_t elems, last, max;

	if (!json_int(json_get(node, "file_elems"), 0, MAX_FILE, &elems) ||
	    !json_int(json_get(node, "storage_offset"), 0, elems, &t->offset) ||
	    !shape || !strides || shape->type != JSON_ARRAY ||
	    strides->type != JSON_ARRAY || shape->count != strides->count ||
	    shape->count == 0 || shape->count > GOLDEN_MAX_RANK)
		return 0;
	t->elems = (uint64_t)elems;
	t->count = 1;
	last = t->offset;
	for (n = shape->first, s = strides->first; n;
	     n = n->next, s = s->next) {
		int64_t *size = &t->shape[t->rank];
		int64_t *stride = &t->strides[t->rank];

		if (!json_int(n, 0, MAX_FILE, size) ||
		    !json_int(s, 0, MAX_FILE, stride))
			return 0;
		/* count <= MAX_FILE^2, and back under MAX_FILE each time */
		t->count *= (uint64_t)*size;
		if (t->count > MAX_FILE)
			return 0;
		last += *size > 0 ? (*size - 1) * *stride : 0;
		max = (int64_t)MAX_FILE;
		if (last > max)
			return 0;
		t->rank++;
	}
	return t->count == 0 || last < elems;
}

static int
read_storage(golden_case *c, golden_tensor *t, const json_node *node,
	     const char *dir, const char *key, uint8_t **data)
{
	size_t bytes = 0;

	*data = read_file(c, dir, json_text(json_get(node, key)), MAX_FILE,
			  &bytes);
	if (*data && bytes != t->elems * t->elem_bytes) {
		(void)golden_fail(c, "%s: the file has %zu bytes, not %llu",
				  t->name, bytes,
				  (unsigned long long)t->elems * t->elem_bytes);
		return 0;
	}
	return *data != NULL;
}

static int
read_tensor(golden_case *c, golden_tensor *t, const json_node *node,
	    const char *dir)
{
	t->name = json_text(json_get(node, "name"));
	if (!t->name || !read_dtype(t, json_text(json_get(node, "dtype"))) ||
	    !read_role(t, json_text(json_get(node, "role"))) ||
	    !read_rule(t, json_get(node, "compare")) || !read_shape(t, node)) {
		(void)golden_fail(c, "manifest: tensor %s is malformed",
				  t->name ? t->name : "without a name");
		return 0;
	}
	if (t->role == GOLDEN_INPUT)
		return read_storage(c, t, node, dir, "file", &t->data);
	if (t->role == GOLDEN_INOUT &&
	    !(read_storage(c, t, node, dir, "file_before", &t->before) &&
	      read_storage(c, t, node, dir, "file_after", &t->want)))
		return 0;
	if (t->role == GOLDEN_OUTPUT &&
	    !read_storage(c, t, node, dir, "file", &t->want))
		return 0;
	t->data = aligned_alloc(64, (t->elems * t->elem_bytes + 64) / 64 * 64);
	if (!t->data)
		(void)golden_fail(c, "no memory");
	return t->data != NULL;
}

int
golden_case_load(golden_case *c, const char *dir)
{
	const json_node *tensors, *n;
	char *text;
	size_t bytes = 0;
	int ok;

	text = (char *)read_file(c, dir, "manifest.json", MAX_MANIFEST, &bytes);
	if (!text)
		return 0;
	ok = json_parse(&c->doc, text, bytes);
	free(text);
	if (!ok) {
		(void)golden_fail(c, "manifest.json, byte %zu: %s",
				  c->doc.error_at, c->doc.error);
		return 0;
	}
	c->op = json_text(json_get(c->doc.nodes, "op"));
	c->name = json_text(json_get(c->doc.nodes, "case"));
	tensors = json_get(c->doc.nodes, "tensors");
	if (!c->op || !c->name || !tensors || tensors->type != JSON_ARRAY ||
	    tensors->count > GOLDEN_MAX_TENSORS) {
		(void)golden_fail(c, "manifest: no op, case or tensors");
		return 0;
	}
	for (n = tensors->first; n; n = n->next)
		if (!read_tensor(c, &c->tensors[c->tensor_count++], n, dir))
			return 0;
	return 1;
}

static void
free_scratch(golden_case *c)
{
	while (c->scratch_count)
		free(c->scratch[--c->scratch_count]);
}

void
golden_case_free(golden_case *c)
{
	uint32_t i;

	for (i = 0; i < c->tensor_count; i++) {
		free(c->tensors[i].data);
		free(c->tensors[i].before);
		free(c->tensors[i].want);
		free(c->tensors[i].first);
	}
	free_scratch(c);
	json_free(&c->doc);
}

void
golden_case_reset(golden_case *c)
{
	uint32_t i;

	free_scratch(c);
	c->reason[0] = 0;
	for (i = 0; i < c->tensor_count; i++) {
		golden_tensor *t = &c->tensors[i];
		const size_t bytes = (size_t)t->elems * t->elem_bytes;

		t->slack = NULL;
		if (t->role == GOLDEN_OUTPUT)
			memset(t->data, GOLDEN_SENTINEL, bytes);
		else if (t->role == GOLDEN_INOUT)
			memcpy(t->data, t->before, bytes);
	}
}

int
golden_case_keep(golden_case *c)
{
	uint32_t i;

	for (i = 0; i < c->tensor_count; i++) {
		golden_tensor *t = &c->tensors[i];
		const size_t bytes = (size_t)t->elems * t->elem_bytes;

		if (t->role == GOLDEN_INPUT)
			continue;
		t->first = malloc(bytes + 1);
		if (!t->first) {
			(void)golden_fail(c, "no memory");
			return 0;
		}
		memcpy(t->first, t->data, bytes);
	}
	return 1;
}

golden_verdict
golden_case_read(golden_case *c)
{
	uint32_t i;

	for (i = 0; i < c->tensor_count; i++)
		if (c->tensors[i].role == GOLDEN_INPUT && !c->tensors[i].read)
			return golden_fail(c, "the op does not take %s",
					   c->tensors[i].name);
	return GOLDEN_RAN;
}
