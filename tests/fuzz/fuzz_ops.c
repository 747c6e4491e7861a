/* SPDX-License-Identifier: Apache-2.0
 *
 * Every op: its host checks with any args, and the op itself with any data. The
 * hard idea is that args are made twice from one set: sound ones, whose arrays
 * are exactly as long as the header says, run; the same with words of them
 * replaced by the input are only recorded into a capture that is dropped, which
 * does all the checks and reads no array.
 *
 * A new op needs a CALL and a make_ here, or this does not compile.
 */
#include "tests/fuzz/ops_compress.h"
#include "tests/fuzz/ops_index.h"
#include "tests/fuzz/ops_layer.h"
#include "tests/fuzz/ops_metadata.h"
#include "tests/fuzz/ops_prefill.h"
#include "tests/fuzz/ops_v4_front.h"
#include "tests/fuzz/ops_v4_output.h"

/* ---- All of them ------------------------------------------------------- */

static const struct {
	uint32_t args_bytes;
	uint32_t plain; /* no struct_bytes in front */
	void (*make)(input *in, void *args);
	spmla_status (*call)(spmla_ctx *ctx, const void *args);
} ops[] = {
#define SPMLA_OP(stem)                          \
	{(uint32_t)sizeof(spmla_##stem##_args), \
	 SPMLA_OP_##stem <= SPMLA_OP_table_write, make_##stem, call_##stem},
#include "spmla/ops/ops.inc"
#undef SPMLA_OP
};

static void
check_status(const world *w, input *in, spmla_status s)
{
	if (s == SPMLA_OK)
		return;
	REQUIRE(spmla_ctx_diag(w->ctx)->status == (uint32_t)s);
	world_diag(w, in);
}

/* Words of the args become the input's; recorded only, if at all. A pointer is
 * also moved off its alignment so. */
static void
call_wild(const world *w, input *in, uint32_t op, spmla_i_args *args)
{
	uint32_t *words = (uint32_t *)(void *)args;
	spmla_graph graph = 0;
	spmla_status s;
	uint32_t n;

	for (n = in_below(in, 5); n > 0; n--) {
		const uint32_t at = in_u8(in) % (ops[op].args_bytes / 4);

		if (in_below(in, 4) == 0)
			words[at] += in_below(in, 17);
		else
			words[at] = in_edge(in);
	}
	REQUIRE(spmla_graph_begin(w->ctx, NULL) == SPMLA_OK);
	s = ops[op].call(w->ctx, args);
	check_status(w, in, s);
	REQUIRE((spmla_graph_end(w->ctx, &graph) == SPMLA_OK) ==
		(s == SPMLA_OK));
	if (s != SPMLA_OK)
		REQUIRE(spmla_graph_abort(w->ctx) == SPMLA_OK);
}

static void
one_op(const world *w, input *in)
{
	/* Most bytes mean the same op when there are more of them. */
	const uint32_t op = in_below(in, 64) % (sizeof ops / sizeof *ops);
	spmla_i_args args;

	memset(&args, 0, sizeof args);
	ops[op].make(in, &args);
	if (!ops[op].plain)
		memcpy(&args, &ops[op].args_bytes, sizeof(uint32_t));
	check_status(w, in, ops[op].call(w->ctx, &args));
	call_wild(w, in, op, &args);
	free_arrays();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static world w;
	input in = {data, data + size};
	spmla_config config;
	uint32_t n;

	world_config(&config);
	config.max_graphs = MOST_OPS;
	world_open(&w, &config, 0);
	for (n = 0; n < MOST_OPS && (n == 0 || in_left(&in) > 0); n++)
		one_op(&w, &in);
	world_close(&w);
	return 0;
}
