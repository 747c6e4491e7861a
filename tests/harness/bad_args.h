/* SPDX-License-Identifier: Apache-2.0
 *
 * Structs that are right but for a field or two, and what a call then says: of
 * operations' arguments, of layers and of a config. A struct is known by its
 * stem: X is the type spmla_X_args, and what is said names X.field.
 */
#ifndef TESTS_HARNESS_BAD_ARGS_H
#define TESTS_HARNESS_BAD_ARGS_H

#include "spmla/spmla.h"

#include <stddef.h>
#include <string.h>

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
	const char *text; /* NULL: nothing is wrong */
} arg_error;

/* Sets the fields of `args`. Little endian: the low bytes of a value come first.
 */
static inline void
arg_set_all(void *args, const arg_error *e)
{
	uint32_t i;

	for (i = 0; i < 3; i++)
		memcpy((uint8_t *)args + e->set[i].offset, &e->set[i].value,
		       e->set[i].bytes);
}

#define ARG(op, field, value)                                    \
	{                                                        \
		offsetof(spmla_##op##_args, field),              \
			sizeof(((spmla_##op##_args *)0)->field), \
			(uint64_t)(value)                        \
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
/* The same of a field that may have the value. */
#define GOOD_ARG(op, field, value) BAD_ARG(op, field, value, SPMLA_OK, NULL)
#define BAD_RANGE(op, field, value, text)        \
	BAD_ARG(op, field, value, SPMLA_E_RANGE, \
		"SPMLA_E_RANGE: " #op "." #field ": " text)
#define NULL_TEXT(name) "SPMLA_E_NULL: " name ": got NULL, want a pointer"
#define BAD_NULL(op, field) \
	BAD_ARG(op, field, 0, SPMLA_E_NULL, NULL_TEXT(#op "." #field))
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
