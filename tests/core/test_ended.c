/* SPDX-License-Identifier: Apache-2.0
 *
 * Every call refuses a context that has ended, though its memory is still there
 * as spmla_fini left it. The calls are made on the living context first, with
 * what they refuse for another reason, so that the answer is the context's. So
 * here all calls fail once, and each must say why in the context's diag.
 */
#include <check.h>
#include <string.h>

#include "spmla/internal/backend.h"
#include "spmla/v32.h"
#include "spmla/v4.h"

#include "tests/harness/fixture.h"
#include "tests/harness/registry.h"
#include "tests/harness/themes.h"

/* Args of no known size, of any call. */
static union {
	spmla_i_args ops;
	spmla_v32_layer v32;
	spmla_v4_layer v4;
} none;

static const spmla_shape shape = {1, 1, 1, 0};

static spmla_status
op(spmla_ctx *ctx, uint32_t i)
{
	switch (i) {
	case SPMLA_OP_step_prologue:
		return spmla_step_prologue(ctx, &shape, (spmla_source)9, NULL);
	case SPMLA_OP_table_write:
		return spmla_table_write(ctx, 99, 0, 0, 0, NULL);
	default:
		return op_entries[i]->call(ctx, &none.ops);
	}
}

static spmla_status
layer_call(spmla_ctx *ctx, uint32_t i)
{
	switch (i) {
	case 0:
		return spmla_v32_insert(ctx, &none.v32, &shape, NULL);
	case 1:
		return spmla_v32_index(ctx, &none.v32, &shape, NULL);
	case 2:
		return spmla_v32_attend(ctx, &none.v32, &shape, NULL);
	case 3:
		return spmla_v32_attn(ctx, &none.v32, &shape, NULL);
	case 4:
		return spmla_v32_prefill(ctx, &none.v32, &shape, NULL);
	case 5:
		return spmla_v4_insert(ctx, &none.v4, &shape, NULL);
	case 6:
		return spmla_v4_compress(ctx, &none.v4, &shape, NULL);
	case 7:
		return spmla_v4_index(ctx, &none.v4, &shape, NULL);
	case 8:
		return spmla_v4_attend(ctx, &none.v4, &shape, NULL);
	case 9:
		return spmla_v4_output(ctx, &none.v4, &shape, NULL);
	default:
		return spmla_v4_attn(ctx, &none.v4, &shape, NULL, NULL);
	}
}

/* Any thread may make it, so it leaves the diag alone. */
enum { STATUS_READ = 9 };

static spmla_status
protocol_call(spmla_ctx *ctx, uint32_t i)
{
	static const _Alignas(16) uint8_t record[256]; /* of no magic */
	static const int32_t table[1] = {0};
	spmla_device_status status = SPMLA_DEVICE_STATUS_INIT;
	spmla_step step = SPMLA_STEP_INIT;
	spmla_graph graph = 0;
	spmla_cache cache;
	spmla_cpu_list list = 0;
	uint64_t ticket;

	switch (i) {
	case 0:
		return spmla_step_push(ctx, record, &ticket);
	case 1:
		step.struct_bytes = 1;
		return spmla_step_write(ctx, &step, &ticket, NULL);
	case 2:
		return spmla_step_undo(ctx, 9);
	case 3:
		return spmla_step_launched(ctx, 9);
	case 4:
		return spmla_table_bind(ctx, 0, table, 1);
	case 5:
		return spmla_graph_end(ctx, &graph);
	case 6:
		return spmla_graph_abort(ctx);
	case 7:
		return spmla_graph_replay(ctx, 9, 1, NULL);
	case 8:
		return spmla_cache_view(ctx, SPMLA_BUF_CONTEXT, 0, &cache);
	case STATUS_READ:
		status.struct_bytes = 1;
		return spmla_status_read(ctx, &status);
	case 10:
		return spmla_cpu_capture_end(ctx, &list);
	case 11:
		return spmla_cpu_capture_abort(ctx);
	default:
		return spmla_cpu_launch(ctx, list);
	}
}

static fixture f;

static void
setup(void)
{
	spmla_config config;

	fixture_config(&config);
	fixture_open(&f, &config, 0);
}

static void
teardown(void)
{
	fixture_close(&f);
}

/* The call fails and fills the diag. */
static void
says_why(spmla_status (*call)(spmla_ctx *ctx, uint32_t i), uint32_t i)
{
	const spmla_diag *diag = spmla_ctx_diag(f.ctx);
	spmla_status s;

	memset(&f.ctx->diag, 0, sizeof f.ctx->diag);
	s = call(f.ctx, i);
	ck_assert_msg(s != SPMLA_OK && s != SPMLA_E_NULL, "call %u: %s", i,
		      spmla_status_name(s));
	if (call == protocol_call && i == STATUS_READ)
		return;
	ck_assert_msg(diag->field != NULL, "call %u names no field", i);
	ck_assert_uint_eq(diag->status, s);
	ck_assert_uint_eq(diag->struct_bytes, sizeof *diag);
}

/* The calls of one kind, which the living context refuses otherwise. */
static void
refused(spmla_status (*call)(spmla_ctx *ctx, uint32_t i), uint32_t count)
{
	spmla_ctx *living = f.ctx;
	uint32_t i;

	for (i = 0; i < count; i++)
		says_why(call, i);
	ck_assert_int_eq(spmla_fini(living), SPMLA_OK);
	for (i = 0; i < count; i++)
		ck_assert_msg(call(living, i) == SPMLA_E_NULL, "call %u", i);
	ck_assert_int_eq(spmla_init(&f.ctx, &f.plan, f.backend, NULL, f.regions,
				    f.region_count, NULL),
			 SPMLA_OK);
}

START_TEST(every_operation_refuses_it)
{
	refused(op, SPMLA_OP_COUNT);
}
END_TEST

START_TEST(every_call_of_a_layer_refuses_it)
{
	refused(layer_call, 11);
}
END_TEST

START_TEST(the_protocol_and_the_queue_refuse_it)
{
	refused(protocol_call, 13);
}
END_TEST

START_TEST(what_only_ever_works_refuses_it)
{
	spmla_ctx *ended = f.ctx;
	uint64_t bytes = 1;
	spmla_graph graph;

	ck_assert_int_eq(spmla_graph_begin(ended, NULL), SPMLA_OK);
	ck_assert_int_eq(spmla_graph_abort(ended), SPMLA_OK);
	ck_assert_int_eq(spmla_step_resync(ended), SPMLA_OK);
	ck_assert_int_eq(spmla_status_clear(ended), SPMLA_OK);
	ck_assert_int_eq(spmla_fini(ended), SPMLA_OK);
	ck_assert_int_eq(spmla_fini(ended), SPMLA_E_NULL);
	ck_assert_int_eq(spmla_graph_begin(ended, NULL), SPMLA_E_NULL);
	ck_assert_int_eq(spmla_graph_end(ended, &graph), SPMLA_E_NULL);
	ck_assert_int_eq(spmla_step_resync(ended), SPMLA_E_NULL);
	ck_assert_int_eq(spmla_wake(ended), SPMLA_E_NULL);
	ck_assert_int_eq(spmla_status_clear(ended), SPMLA_E_NULL);
	ck_assert_int_eq(spmla_cpu_capture_begin(ended), SPMLA_E_NULL);
	ck_assert_ptr_null(spmla_view(ended, SPMLA_BUF_CONTEXT, &bytes));
	ck_assert_uint_eq(bytes, 0);
	ck_assert_ptr_null(spmla_ctx_diag(ended));
	ck_assert_ptr_null(spmla_ctx_plan(ended));
	ck_assert_str_eq(spmla_cpu_variant(ended), "");
	ck_assert_uint_eq(spmla_cpu_queue_run(ended, 1), 0);
	ck_assert_uint_eq(spmla_cpu_queue_pending(ended), 0);
	ck_assert_int_eq(spmla_init(&f.ctx, &f.plan, f.backend, NULL, f.regions,
				    f.region_count, NULL),
			 SPMLA_OK);
}
END_TEST

SUITE
{
	const theme_test calls[] = {
		{every_operation_refuses_it, 1},
		{every_call_of_a_layer_refuses_it, 1},
		{the_protocol_and_the_queue_refuse_it, 1},
		{what_only_ever_works_refuses_it, 1},
	};
	const theme themes[] = {
		THEME("calls", setup, teardown, calls),
	};

	return RUN_THEMES(themes);
}
