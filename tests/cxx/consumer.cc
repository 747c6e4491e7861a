/* SPDX-License-Identifier: Apache-2.0
 *
 * SpMLA as a C++17 program uses it: every public header, every initialiser,
 * and one V3.2 layer planned, captured and replayed on the CPU. The queries
 * are zeros, so every selected key has the same weight and the results are
 * known: lse = ln(keys), and out, over bf16 rows, the mean of the keys.
 */
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "spmla/decode_parts.h"
#include "spmla/ops/c128a_index.h"
#include "spmla/ops/combine_index.h"
#include "spmla/ops/compress_state_save.h"
#include "spmla/ops/filter_prefill_indices.h"
#include "spmla/ops/index_map.h"
#include "spmla/ops/indexer_k_gather.h"
#include "spmla/ops/indexer_k_insert.h"
#include "spmla/ops/indexer_q_prep.h"
#include "spmla/ops/indexer_schedule.h"
#include "spmla/ops/inv_rope_quant.h"
#include "spmla/ops/kv_compress.h"
#include "spmla/ops/kv_gather.h"
#include "spmla/ops/kv_insert.h"
#include "spmla/ops/logits_rows.h"
#include "spmla/ops/lse2_to_lse.h"
#include "spmla/ops/mqa_logits.h"
#include "spmla/ops/mqa_logits_gathered.h"
#include "spmla/ops/o_group_proj.h"
#include "spmla/ops/ops.h"
#include "spmla/ops/prefill_rows.h"
#include "spmla/ops/q_absorb.h"
#include "spmla/ops/qnorm_rope_kv_insert.h"
#include "spmla/ops/ragged_index.h"
#include "spmla/ops/rms_norms.h"
#include "spmla/ops/slot_map.h"
#include "spmla/ops/sparse_decode.h"
#include "spmla/ops/sparse_prefill.h"
#include "spmla/ops/split_combine.h"
#include "spmla/ops/swa_index.h"
#include "spmla/ops/tile_sched.h"
#include "spmla/ops/token_map.h"
#include "spmla/ops/topk.h"
#include "spmla/ops/v_up.h"
#include "spmla/prefill_plan.h"
#include "spmla/rope.h"
#include "spmla/spmla.h"
#include "spmla/spmla_buffers.h"
#include "spmla/spmla_cpu.h"
#include "spmla/spmla_cuda.h"
#include "spmla/spmla_hip.h"
#include "spmla/spmla_layout.h"
#include "spmla/spmla_level_zero.h"
#include "spmla/spmla_native.h"
#include "spmla/spmla_plan.h"
#include "spmla/v32.h"
#include "spmla/v4.h"

namespace
{

constexpr uint32_t kHeads = 4, kIndexHeads = 8, kTopk = 32, kSteps = 24;

SPMLA_STATIC_ASSERT(SPMLA_CONFIG_MIN_BYTES <= sizeof(spmla_config),
		    "the macros are constants in C++ too");

/* The tensors of one token. */
struct Tensors {
	std::vector<uint16_t> kv_c = std::vector<uint16_t>(512);
	std::vector<uint16_t> k_pe = std::vector<uint16_t>(64);
	std::vector<uint16_t> index_k = std::vector<uint16_t>(128);
	std::vector<uint16_t> index_q =
		std::vector<uint16_t>(kIndexHeads * 128);
	std::vector<float> index_weights = std::vector<float>(kIndexHeads);
	std::vector<uint16_t> q = std::vector<uint16_t>(kHeads * 576);
	std::vector<uint16_t> out = std::vector<uint16_t>(kHeads * 512);
	std::vector<float> lse = std::vector<float>(kHeads);
};

/* An engine's loop: here without threads, and backwards. */
void
parallel_for(void *calls, uint32_t count, spmla_parallel_body body, void *arg)
{
	++*static_cast<uint32_t *>(calls);
	while (count-- > 0)
		body(arg, count);
}

/* One line that says which call failed, and why. */
void
must(spmla_status status, const char *what, const spmla_diag *diag)
{
	char text[200] = "";

	if (status == SPMLA_OK)
		return;
	spmla_diag_text(diag, text, sizeof text);
	std::printf("%s: %s: %s\n", what, spmla_status_name(status), text);
	std::exit(1);
}

spmla_plan
make_plan()
{
	spmla_diag diag = SPMLA_DIAG_INIT;
	spmla_device device = SPMLA_DEVICE_INIT;
	spmla_native native = SPMLA_NATIVE_INIT;
	spmla_config config;
	spmla_plan plan;

	must(spmla_config_preset(&config, SPMLA_MODEL_V32), "preset", nullptr);
	config.heads = kHeads;
	config.index_heads = kIndexHeads;
	config.topk = kTopk;
	config.kv_layout = SPMLA_LAYOUT_MLA_BF16;
	config.max_rows = 2;
	config.max_context_tokens = 128;
	config.cache_layers = 1;
	config.groups[SPMLA_GROUP_MAIN].page_tokens = 16;
	config.groups[SPMLA_GROUP_MAIN].pool_pages = 8;
	config.bucket_count = 1;
	config.buckets[0] = {1, 1, 1, 0};
	config.cpu_workers = 2;
	must(spmla_backend_query(&spmla_cpu, &native, &device, &diag), "query",
	     &diag);
	must(spmla_plan_make(&plan, &config, &device, &diag), "plan", &diag);
	return plan;
}

void
fill_layer(spmla_v32_layer *layer, Tensors *t)
{
	*layer = spmla_v32_layer{};
	layer->struct_bytes = sizeof *layer;
	layer->rope_style = SPMLA_ROPE_NONE;
	layer->kv_c = t->kv_c.data();
	layer->kv_c_stride_elems = 512;
	layer->k_pe = t->k_pe.data();
	layer->k_pe_stride_elems = 64;
	layer->index_k = t->index_k.data();
	layer->index_k_stride_elems = 128;
	layer->index_q = t->index_q.data();
	layer->index_q_token_stride_elems = kIndexHeads * 128;
	layer->index_q_head_stride_elems = 128;
	layer->index_weights = t->index_weights.data();
	layer->index_weights_stride_elems = kIndexHeads;
	layer->index_weights_dtype = SPMLA_DTYPE_F32;
	layer->q = t->q.data();
	layer->q_token_stride_elems = kHeads * 576;
	layer->q_head_stride_elems = 576;
	layer->out = t->out.data();
	layer->out_token_stride_elems = kHeads * 512;
	layer->out_head_stride_elems = 512;
	layer->lse = t->lse.data();
	layer->lse_token_stride_elems = kHeads;
	layer->lse_head_stride_elems = 1;
}

/* Row 0 gets its n-th token; a page every 16 tokens. */
void
write_step(spmla_ctx *ctx, uint32_t n, uint64_t *ticket)
{
	spmla_step step = SPMLA_STEP_INIT;
	spmla_step_info info = SPMLA_STEP_INFO_INIT;
	const spmla_request request = {
		0, 1, n, n == 1 ? uint32_t(SPMLA_REQUEST_JOIN) : 0u};
	const int32_t page = int32_t(7 - n / 16);
	const spmla_table_store store = {SPMLA_GROUP_MAIN, 0, (n - 1) / 16, 1,
					 &page};

	step.requests = &request;
	step.request_count = 1;
	step.stores = &store;
	step.store_count = n % 16 == 1;
	must(spmla_step_write(ctx, &step, ticket, &info), "write",
	     spmla_ctx_diag(ctx));
	if (info.tokens != 1 || info.live_context != n)
		std::exit(1);
}

/* bf16 of a number that bf16 holds. */
uint16_t
bf16(uint32_t integer)
{
	const float x = float(integer);
	uint32_t bits;

	std::memcpy(&bits, &x, sizeof bits);
	return uint16_t(bits >> 16);
}

/* Token n puts 2 n into every value: the mean over 1 .. n is n + 1. */
bool
run(spmla_ctx *ctx, spmla_graph graph, Tensors *t)
{
	for (uint32_t n = 1; n <= kSteps; n++) {
		uint64_t ticket = 0;

		t->kv_c.assign(512, bf16(2 * n));
		write_step(ctx, n, &ticket);
		must(spmla_graph_replay(ctx, graph, ticket, nullptr), "replay",
		     spmla_ctx_diag(ctx));
		for (uint32_t h = 0; h < kHeads; h++) {
			const double off = double(t->lse[h]) - std::log(n);

			if (t->out[h * 512 + 511] != bf16(n + 1) ||
			    std::fabs(off) > 1e-5) {
				std::printf("step %u, head %u: 0x%04x, %g\n", n,
					    h, t->out[h * 512 + 511],
					    double(t->lse[h]));
				return false;
			}
		}
	}
	return true;
}

/* A plan of V3.2 has no layers of V4. */
bool
refuses_v4(spmla_ctx *ctx, const spmla_shape *shape)
{
	spmla_v4_branches branches = SPMLA_V4_BRANCHES_INIT;
	spmla_v4_layer layer{};

	layer.struct_bytes = sizeof layer;
	layer.ratio = 4;
	return spmla_v4_attn(ctx, &layer, shape, &branches, nullptr) ==
	       SPMLA_E_UNSUPPORTED;
}

} // namespace

int
main()
{
	static const spmla_plan plan = make_plan();
	const spmla_shape shape = plan.config.buckets[0];
	spmla_device_status status = SPMLA_DEVICE_STATUS_INIT;
	spmla_native native = SPMLA_NATIVE_INIT;
	spmla_region regions[SPMLA_MEMORY_COUNT];
	spmla_cache none = SPMLA_CACHE_INIT;
	spmla_row row = SPMLA_ROW_INIT;
	spmla_diag diag = SPMLA_DIAG_INIT;
	spmla_v32_layer layer;
	spmla_ctx *ctx = nullptr;
	spmla_graph graph = 0;
	Tensors t;
	uint32_t loops = 0;
	bool good;

	for (uint32_t m = 0; m < SPMLA_MEMORY_COUNT; m++) {
		const uint64_t bytes = plan.region_bytes[m];

		regions[m] = {
			sizeof regions[m], m,
			std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096),
			bytes};
	}
	must(spmla_plan_row(&plan, 0, &row), "row", nullptr);
	native.parallel_for = parallel_for;
	native.parallel_user = &loops;
	must(spmla_init(&ctx, &plan, &spmla_cpu, &native, regions,
			SPMLA_MEMORY_COUNT, &diag),
	     "init", &diag);
	fill_layer(&layer, &t);
	layer.kv = layer.index = none;
	must(spmla_cache_view(ctx, SPMLA_BUF_KV_CACHE, 0, &layer.kv), "view",
	     nullptr);
	must(spmla_cache_view(ctx, SPMLA_BUF_INDEX_CACHE, 0, &layer.index),
	     "view", nullptr);
	must(spmla_graph_begin(ctx, nullptr), "begin", spmla_ctx_diag(ctx));
	must(spmla_step_prologue(ctx, &shape, SPMLA_FROM_RING, nullptr),
	     "prologue", spmla_ctx_diag(ctx));
	must(spmla_v32_attn(ctx, &layer, &shape, nullptr), "attn",
	     spmla_ctx_diag(ctx));
	must(spmla_graph_end(ctx, &graph), "end", spmla_ctx_diag(ctx));
	good = run(ctx, graph, &t) && refuses_v4(ctx, &shape);
	must(spmla_status_read(ctx, &status), "status", nullptr);
	must(spmla_fini(ctx), "fini", spmla_ctx_diag(ctx));
	for (const spmla_region &r : regions)
		std::free(r.base);
	std::printf("%u steps of %s, %u reports\n", kSteps, row.name,
		    status.count);
	return good && status.count == 0 && loops > 0 ? 0 : 1;
}
