/* SPDX-License-Identifier: Apache-2.0
 *
 * The operations as tests know them, each once: how sound and bad arguments are
 * made, how it is called, and what it says of a field that is wrong. The
 * suites of tests/every_op, the fuzzer and whatever else is about any operation
 * walk this list. An operation's entry is tests/ops/<family>/<op>_entry.c; one
 * without does not link.
 */
#ifndef TESTS_HARNESS_REGISTRY_H
#define TESTS_HARNESS_REGISTRY_H

#include "spmla/internal/backend.h"
#include "tests/harness/draw.h"

#include <stddef.h>

typedef struct arg_value {
	uint32_t offset; /* of the field */
	uint32_t bytes;
	uint64_t value; /* its low `bytes` */
} arg_value;

/* Fields of a call set to values, and what the call then says. Behind the last
 * one are some of no bytes. */
typedef struct arg_error {
	arg_value set[3];
	uint32_t status;
	const char *text;
} arg_error;

typedef struct arg_errors {
	const arg_error *list;
	uint32_t count;
} arg_errors;

/* An input that a call may have in another type: int64 for int32, bf16 for f32.
 * Inputs of one dtype field stand together. */
typedef struct op_input {
	uint32_t pointer; /* offsets of fields */
	uint32_t dtype;   /* 1: the other type */
	uint32_t is_int;
} op_input;

enum { OP_VARIANTS = 5, OP_INPUTS = 8 };

typedef struct op_entry {
	const char *name;
	uint32_t args_bytes;
	uint32_t is_protocol; /* args have no struct_bytes, and are the
			       * protocol's: protocol/ tests it */
	void (*make)(draw *d, void *args);
	spmla_status (*call)(spmla_ctx *ctx, const void *args);
	arg_errors errors[OP_VARIANTS]; /* of an EXAMPLE of each variant */
	op_input inputs[OP_INPUTS];
	arg_value none[2];  /* counts that make a call no work */
	uint32_t is_spread; /* over the CPU's workers */
} op_entry;

/* Some of a draw's inputs in their other type. */
void op_retype_some(const op_entry *op, draw *d, void *args);

/* All of them. */
void op_retype(const op_entry *op, draw *d, void *args);

extern const op_entry *const op_entries[SPMLA_OP_COUNT];

/* The names of fixed sizes that tests ask of a make: what the entries' literal
 * texts are of. */
enum { OP_MOST_HEADS = 4, OP_MOST_INDEX_HEADS = 4 };

/* ---- Entries ------------------------------------------------------------- */

#define OP_ENTRY(stem, ...)                                          \
	static spmla_status call(spmla_ctx *ctx, const void *args)   \
	{                                                            \
		return spmla_##stem(ctx, args, NULL);                \
	}                                                            \
	const op_entry op_##stem = {                                 \
		.name = #stem,                                       \
		.args_bytes = (uint32_t)sizeof(spmla_##stem##_args), \
		.make = make,                                        \
		.call = call,                                        \
		__VA_ARGS__}

#define SPMLA_OP(stem) extern const op_entry op_##stem;
#include "spmla/ops/ops.inc"
#undef SPMLA_OP

#define ARG(op, field, value)                                    \
	{                                                        \
		offsetof(spmla_##op##_args, field),              \
			sizeof(((spmla_##op##_args *)0)->field), \
			(uint64_t)(value)                        \
	}

#define INPUT(op, field, dtype, is_int)                            \
	{                                                          \
		offsetof(spmla_##op##_args, field),                \
			offsetof(spmla_##op##_args, dtype), is_int \
	}
#define INPUT_INT(op, field, dtype)  INPUT(op, field, dtype, 1)
#define INPUT_REAL(op, field, dtype) INPUT(op, field, dtype, 0)

#define ERRORS(list)                                               \
	{                                                          \
		list, (uint32_t)(sizeof(list) / sizeof((list)[0])) \
	}

/* A line of a list of errors: the field, what it is set to, what is said. The
 * texts are literals. */
#define BAD_ARG(op, field, value, status, text)                  \
	{                                                        \
		{ARG(op, field, value), {0, 0, 0}}, status, text \
	}
#define BAD_ARGS(op, field, value, field2, value2, status, text)               \
	{                                                                      \
		{ARG(op, field, value), ARG(op, field2, value2)}, status, text \
	}
#define BAD_RANGE(op, field, value, text)        \
	BAD_ARG(op, field, value, SPMLA_E_RANGE, \
		"SPMLA_E_RANGE: " #op "." #field ": " text)
#define BAD_NULL(op, field)                 \
	BAD_ARG(op, field, 0, SPMLA_E_NULL, \
		"SPMLA_E_NULL: " #op "." #field ": got NULL, want a pointer")
#define BAD_LEAST(op, field, got, want) \
	BAD_RANGE(op, field, got, "got " #got ", want at least " #want)
#define BAD_MOST(op, field, got, want) \
	BAD_RANGE(op, field, got, "got " #got ", want at most " #want)
#define BAD_MULTIPLE(op, field, got, want) \
	BAD_RANGE(op, field, got, "got " #got ", want a multiple of " #want)
/* `values` is what is wanted, as "0, 1 or 2". */
#define BAD_ENUM(op, field, got, values) \
	BAD_RANGE(op, field, got, "got " #got ", want " values)
#define BAD_EQUAL(op, field, got, want) \
	BAD_RANGE(op, field, got, "got " #got ", want " #want)
/* One too small, and one below zero, which counts as none. */
#define BAD_STRIDE(op, field, got, want)            \
	BAD_LEAST(op, field, got, want),            \
		BAD_RANGE(op, field, INT64_MIN + 1, \
			  "got 0, want at least " #want)
/* Zero, NaN, infinity, below zero, and what is above 2^126. */
#define BAD_FLOAT(op, field)                                       \
	BAD_BITS(op, field, 0x0), BAD_BITS(op, field, 0x7fc00000), \
		BAD_BITS(op, field, 0x7f800000),                   \
		BAD_BITS(op, field, 0xbf800000),                   \
		BAD_BITS(op, field, 0x7e800001)
#define BAD_BITS(op, field, bits)  \
	BAD_RANGE(op, field, bits, \
		  "got bits " #bits ", want a finite value above 0")
/* A cache whose pages have `least` bytes and begin at multiples of `align`;
 * `less` is one of these that is too small. */
#define BAD_PAGES(op, cache, less, least, align)                           \
	BAD_ARG(op, cache.struct_bytes, 32, SPMLA_E_STRUCT_SIZE,           \
		"SPMLA_E_STRUCT_SIZE: " #op "." #cache                     \
		".struct_bytes: got 32, want 40"),                         \
		BAD_LEAST(op, cache.entries_per_page, 0, 1),               \
		BAD_LEAST(op, cache.pages, 0, 1),                          \
		BAD_LEAST(op, cache.page_stride_bytes, less, least),       \
		BAD_MULTIPLE(op, cache.page_stride_bytes, 1000002, align), \
		BAD_NULL(op, cache.base),                                  \
		BAD_MULTIPLE(op, cache.base, 24, 16), BAD_FAR(op, cache)
/* Two pages of 2^63 bytes: a multiple of any, and no 64 bits hold their sum. */
#define BAD_FAR(op, cache)                                              \
	{                                                               \
		{ARG(op, cache.base, 16), ARG(op, cache.pages, 2),      \
		 ARG(op, cache.page_stride_bytes, UINT64_C(1) << 63)},  \
			SPMLA_E_RANGE,                                  \
			"SPMLA_E_RANGE: " #op "." #cache                \
			".page_stride_bytes: got 9223372036854775808, " \
			"want at most 9223372036854775799"              \
	}
/* The same, and layouts that there are not; `layouts` is what is wanted, as
 * "1, 2 or 4". */
#define BAD_CACHE(op, cache, layouts, less, least, align) \
	BAD_ENUM(op, cache.layout, 0, layouts),           \
		BAD_ENUM(op, cache.layout, 33, layouts),  \
		BAD_ENUM(op, cache.layout, 64, layouts),  \
		BAD_PAGES(op, cache, less, least, align)

#endif
