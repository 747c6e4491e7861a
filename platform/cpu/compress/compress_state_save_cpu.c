/* SPDX-License-Identifier: Apache-2.0
 *
 * compress_state_save on the CPU: a token at a time.
 */
#include "spmla/platform/cpu/compress/compress_cpu.h"
#include "spmla/platform/cpu/core/input_cpu.h"

static int32_t
position_of(const spmla_compress_state_save_args *a, uint64_t t)
{
	return spmla_i_cpu_position(a->positions, a->positions_dtype, t);
}

/* Whether a later token of the call takes the place of t in the ring. */
static uint32_t
overtaken(const spmla_compress_state_save_args *a, uint32_t t)
{
	const uint64_t capacity =
		(uint64_t)a->columns * a->state.entries_per_page;
	const uint64_t later = t + capacity;

	return later < a->tokens && a->context_lens[later] > 0 &&
	       a->token_row[later] == a->token_row[t] &&
	       position_of(a, later) ==
		       (int64_t)position_of(a, t) + (int64_t)capacity;
}

/* The slot of token t, or -1 if there is nothing to save; *fault if that is
 * because of bad data. */
static int64_t
slot_of(const spmla_compress_state_save_args *a, uint32_t t, spmla_fault *fault)
{
	const spmla_i_cpu_states states = {
		{a->block_table, a->table_cols, a->rows, a->columns,
		 a->table_stride_elems, a->state.pages},
		a->state.entries_per_page,
		1};
	const uint64_t slots =
		(uint64_t)a->state.pages * a->state.entries_per_page;

	*fault = SPMLA_FAULT_POSITION;
	if (a->form == SPMLA_STATE_PAGED) {
		if (a->slot_mapping[t] >= 0 &&
		    (uint64_t)a->slot_mapping[t] >= slots) {
			*fault = SPMLA_FAULT_SLOT;
			return -1;
		}
		if (a->slot_mapping[t] >= 0 && position_of(a, t) < 0)
			return -1;
		*fault = SPMLA_FAULT_NONE;
		return a->slot_mapping[t] < 0 ? -1 : a->slot_mapping[t];
	}
	if (a->context_lens[t] > 0 && position_of(a, t) < 0)
		return -1;
	*fault = SPMLA_FAULT_NONE;
	if (a->context_lens[t] <= 0 || overtaken(a, t))
		return -1;
	return spmla_i_cpu_state_slot(&states, (uint32_t)a->token_row[t],
				      (uint32_t)position_of(a, t), fault);
}

static void
save(const spmla_compress_state_save_args *a, uint32_t t, uint64_t slot)
{
	const uint32_t width = spmla_i_state_width(a->state.layout);
	const uint64_t kv = t * (uint64_t)a->kv_stride_elems;
	const uint64_t score = t * (uint64_t)a->score_stride_elems;
	const float *ape =
		a->ape +
		(uint64_t)((uint32_t)position_of(a, t) % a->ratio) * width;
	float *to = spmla_i_cpu_state_at(&a->state, slot);
	uint32_t d;

	for (d = 0; d < width; d++) {
		to[d] = spmla_i_cpu_real(a->kv, a->kv_dtype, kv + d);
		to[width + d] =
			spmla_i_cpu_real(a->score, a->kv_dtype, score + d) +
			ape[d];
	}
}

/* Who a token's report names: its row of the table, if that is known. */
static uint32_t
row_of(const spmla_compress_state_save_args *a, uint32_t t)
{
	const uint32_t row =
		a->form == SPMLA_STATE_RING ? (uint32_t)a->token_row[t] : 0;

	return a->form == SPMLA_STATE_RING && row < a->rows ? row : t;
}

/* Saves the tokens whose slots belong to the item. The first item also has the
 * tokens without a slot. */
static void
save_tokens(spmla_ctx *ctx, const void *args, uint32_t worker, uint32_t item)
{
	const spmla_compress_state_save_args *a = args;
	const uint32_t items = spmla_i_cpu_slot_items(ctx, a->tokens);
	uint32_t t;

	(void)worker;
	for (t = 0; t < a->tokens; t++) {
		spmla_fault fault;
		const int64_t slot = slot_of(a, t, &fault);

		if (slot >= 0 && (uint64_t)slot % items == item)
			save(a, t, (uint64_t)slot);
		else if (slot < 0 && fault != SPMLA_FAULT_NONE && item == 0)
			spmla_i_cpu_fault(ctx, row_of(a, t), fault);
	}
}

void
spmla_i_cpu_compress_state_save(spmla_ctx *ctx, const void *args)
{
	const spmla_compress_state_save_args *a = args;

	spmla_i_cpu_for(ctx, a, spmla_i_cpu_slot_items(ctx, a->tokens),
			save_tokens);
}
