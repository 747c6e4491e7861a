/* SPDX-License-Identifier: Apache-2.0
 *
 * A call of any operation of the registry, and what comes of it: the bytes that
 * it writes and the reports.
 */
#ifndef TESTS_EVERY_OP_OP_CALL_H
#define TESTS_EVERY_OP_OP_CALL_H

#include "tests/harness/fixture.h"
#include "tests/harness/registry.h"

/* Tests run once for each operation that has a struct of arguments: _i is its
 * number after the protocol's. */
enum {
	OPS_OF_PROTOCOL = SPMLA_OP_table_write + 1,
	EVERY_OP = SPMLA_OP_COUNT - OPS_OF_PROTOCOL
};

typedef struct op_call {
	const op_entry *op;
	int i; /* its _i */
	uint64_t seed;
	draw d;
	spmla_i_args args;
} op_call;

typedef struct op_result {
	uint8_t *bytes;
	uint64_t count;
	spmla_device_status status;
} op_result;

/* What the entries' draws and texts are of: 4 heads, 4 index heads. */
void op_config(spmla_config *config);

/* More heads and keys, for loops over many workers: 54 heads, which are six
 * pieces and a tile that is not full. */
void op_large_config(spmla_config *config);
void op_large(op_call *c, uint32_t tokens);

/* Sets all but the sizes of the draw, which the caller may change, then
 * op_make makes the arguments. `i` is _i; seed numbers the shapes. */
void op_begin(op_call *c, int i, draw_kind kind, uint32_t variant,
	      uint64_t seed);
void op_make(op_call *c);
void op_free(op_call *c);

/* How many variants the operation has. */
uint32_t op_variants(int i);

/* Calls it on fresh `poison`, with the sticky status cleared, which has to give
 * OK, runs what is queued and takes the result, which the caller frees. */
op_result op_run(op_call *c, fixture *f, uint8_t poison);

/* The result of what is queued or was called otherwise. */
op_result op_take(const op_call *c, fixture *f);

/* Fail the test, with the operation's name, unless both are the same: the
 * reports too. Poison that either one left counts as the same. */
void op_same(const op_call *c, const op_result *got, const op_result *want);

/* The same within the bounds of the draw. */
void op_close(const op_call *c, const op_result *got, const op_result *want);

#endif
