/* SPDX-License-Identifier: Apache-2.0
 *
 * The last part of V4's prologue, a token at a time. The hard idea is a token
 * that has no page for one of its keys, or no room for its index logits. It has
 * a context, so its other keys and its states are written. But its length is 0
 * for every layer, so all its results are empty.
 */
#include "spmla/platform/cpu/step/step_prologue_windows_cpu.h"
#include "spmla/internal/config.h"
#include "spmla/platform/cpu/core/parallel_cpu.h"
#include "spmla/platform/cpu/step/slot_row_cpu.h"

static spmla_i_cpu_slots
slots_of(const spmla_ctx *ctx, uint32_t group)
{
	const spmla_i_table_view v = spmla_i_table_of(ctx, group);
	const uint32_t entries =
		v.page_tokens / spmla_i_group_ratio(&ctx->plan.config, group);
	const spmla_i_cpu_slots slots = {
		{v.table, v.cols, ctx->plan.config.max_rows, v.columns,
		 v.stride_elems,
		 spmla_i_slot_pages(v.pool_pages, entries, entries)},
		entries,
		entries,
		v.ring};

	return slots;
}

/* The slot of the compressed key that ends with position pos, -1 if none does.
 * Sets *seen to 0 if the key has no page. If no key ends there, sets it to 0 if
 * a column up to the last key is not written. */
static int64_t
compressed_slot(spmla_ctx *ctx, uint32_t group, uint32_t row, uint32_t pos,
		uint32_t *seen)
{
	const uint32_t ratio = spmla_i_group_ratio(&ctx->plan.config, group);
	const spmla_i_cpu_slots s = slots_of(ctx, group);
	const uint32_t key = pos / ratio;
	int32_t page;

	if ((pos + 1) % ratio != 0) {
		if (key > 0 && s.table.cols &&
		    (int64_t)((key - 1) / s.page_tokens) >= s.table.cols[row]) {
			spmla_i_cpu_fault(ctx, row, SPMLA_FAULT_PAGE);
			*seen = 0;
		}
		return -1;
	}
	page = spmla_i_cpu_page(&s.table, row, key / s.page_tokens);
	if (page < 0) {
		spmla_i_cpu_fault(ctx, row, SPMLA_FAULT_PAGE);
		*seen = 0;
		return -1;
	}
	return (int64_t)page * s.page_tokens + key % s.page_tokens;
}

/* The compressed slots of token t, and the keys that it sees: its context, or 0
 * if one of its keys has no page. */
static uint32_t
place_keys(spmla_ctx *ctx, uint32_t t, uint32_t row, uint32_t pos,
	   uint32_t context)
{
	static const struct {
		uint32_t group;
		spmla_buf buf;
	} maps[] = {
		{SPMLA_GROUP_C4A, SPMLA_BUF_COMPRESSED_SLOT_MAPPING_C4A},
		{SPMLA_GROUP_INDEX, SPMLA_BUF_COMPRESSED_SLOT_MAPPING_INDEX},
		{SPMLA_GROUP_C128A, SPMLA_BUF_COMPRESSED_SLOT_MAPPING_C128A},
	};
	uint32_t seen = context, i;

	for (i = 0; i < SPMLA_I_COUNT(maps); i++) {
		int64_t *slots = ctx->buf[maps[i].buf];

		if (slots) /* else it has the table of C4A */
			slots[t] = context > 0
					   ? compressed_slot(ctx, maps[i].group,
							     row, pos, &seen)
					   : -1;
	}
	return seen;
}

/* Reports the missing pages of a range of entries, and returns their number. */
static uint32_t
missing_pages(spmla_ctx *ctx, const spmla_i_cpu_slots *s, uint32_t row,
	      uint32_t start, uint32_t len)
{
	const uint32_t first = start / s->page_tokens;
	const uint32_t end =
		len ? (start + len - 1) / s->page_tokens + 1 : first;
	uint32_t missing = 0, p;

	for (p = first; p < end; p++) {
		const uint32_t col = s->ring ? p % s->table.columns : p;

		if (spmla_i_cpu_page(&s->table, row, col) < 0) {
			spmla_i_cpu_fault(ctx, row, SPMLA_FAULT_PAGE);
			missing++;
		}
	}
	return missing;
}

static void
one_token(spmla_ctx *ctx, const void *args, uint32_t worker, uint32_t t)
{
	const uint32_t *tokens = args;
	const spmla_config *c = &ctx->plan.config;
	const int32_t *context_lens = ctx->buf[SPMLA_BUF_CONTEXT_LENS];
	int32_t *compressed_lens = ctx->buf[SPMLA_BUF_COMPRESSED_LENS];
	int32_t *window = ctx->buf[SPMLA_BUF_SWA_INDICES];
	int32_t *all = ctx->buf[SPMLA_BUF_C128A_INDICES];
	const uint32_t row =
		(uint32_t)((const int32_t *)ctx->buf[SPMLA_BUF_TOKEN_ROW])[t];
	const uint32_t pos =
		(uint32_t)((const int32_t *)ctx->buf[SPMLA_BUF_POSITIONS])[t];
	const spmla_i_cpu_slots swa = slots_of(ctx, SPMLA_GROUP_SWA);
	const spmla_i_cpu_slots c128a = slots_of(ctx, SPMLA_GROUP_C128A);
	uint32_t n, start, keys;

	(void)worker;
	n = place_keys(ctx, t, row, pos, (uint32_t)context_lens[t]);
	/* Its index logits had no room. */
	if (n / SPMLA_COMPRESS_OVERLAP > 0 && compressed_lens[t] == 0)
		n = 0;
	start = n > c->window_tokens ? n - c->window_tokens : 0;
	keys = n / SPMLA_COMPRESS_MOST;
	if (missing_pages(ctx, &swa, row, start, n - start) +
	    missing_pages(ctx, &c128a, row, 0, keys))
		n = start = keys = 0;
	compressed_lens[t] = (int32_t)(n / SPMLA_COMPRESS_OVERLAP);
	((int32_t *)ctx->buf[SPMLA_BUF_SWA_LENS])[t] = (int32_t)(n - start);
	((int32_t *)ctx->buf[SPMLA_BUF_C128A_LENS])[t] = (int32_t)keys;
	spmla_i_cpu_slot_row(ctx, &swa, row, start, n - start,
			     window + (uint64_t)t * c->window_tokens, 0);
	if (*tokens <= spmla_i_piece_tokens(c)) /* else the layers do */
		spmla_i_cpu_slot_row(ctx, &c128a, row, 0, keys,
				     all + (uint64_t)t * spmla_i_c128a_width(c),
				     0);
}

void
spmla_i_cpu_step_prologue_windows(spmla_ctx *ctx, uint32_t tokens)
{
	spmla_i_cpu_for(ctx, &tokens, tokens, one_token);
}
