/* SPDX-License-Identifier: Apache-2.0
 *
 * Every op of the registry: its host checks with any args, and the op itself
 * with any data. The hard idea is that args are made twice from one set: those
 * that the entry draws, whose arrays are exactly as long as the header says,
 * run; the same with words of them replaced by the input are only recorded into
 * a capture that is dropped, which does all the checks and reads no array.
 */
#include "tests/fuzz/world.h"
#include "tests/harness/registry.h"

enum { MOST_OPS = 8 };

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
call_wild(const world *w, input *in, const op_entry *op, spmla_i_args *args)
{
	uint32_t *words = (uint32_t *)(void *)args;
	spmla_graph graph = 0;
	spmla_status s;
	uint32_t n;

	for (n = in_below(in, 5); n > 0; n--) {
		const uint32_t at = in_u8(in) % (op->args_bytes / 4);

		if (in_below(in, 4) == 0)
			words[at] += in_below(in, 17);
		else
			words[at] = in_edge(in);
	}
	REQUIRE(spmla_graph_begin(w->ctx, NULL) == SPMLA_OK);
	s = op->call(w->ctx, args);
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
	const op_entry *op = op_entries[in_below(in, 64) % SPMLA_OP_COUNT];
	spmla_i_args args;
	spmla_status s;
	draw d;

	memset(&args, 0, sizeof args);
	draw_bytes_of(&d, in);
	d.most_heads = w->plan.config.heads;
	d.most_index_heads = w->plan.config.index_heads;
	op->make(&d, &args);
	op_retype_some(op, &d, &args);
	if (!op->is_protocol)
		memcpy(&args, &op->args_bytes, sizeof(uint32_t));
	s = op->call(w->ctx, &args);
	check_status(w, in, s);
	if (s != SPMLA_OK && !op->is_protocol)
		(void)fprintf(stderr, "%s of %s\n",
			      spmla_ctx_diag(w->ctx)->field, op->name);
	REQUIRE(s == SPMLA_OK || op->is_protocol);
	call_wild(w, in, op, &args);
	draw_free(&d);
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
