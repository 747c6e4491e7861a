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
#include "tests/harness/bad_args.h"
#include "tests/harness/draw.h"

#include <stddef.h>

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

#endif
