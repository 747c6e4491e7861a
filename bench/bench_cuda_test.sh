#!/usr/bin/env bash
# Runs bench_cuda's tiny rows on the substitute for libcuda.so.1: all of them
# are there, and none is wrong. Passes with SKIPPED where it was built without
# kernels for CUDA.
set -euo pipefail

out=$TEST_TMPDIR/table
LD_LIBRARY_PATH=$PWD/tests/gpu bench/bench_cuda --tiny --repeats 1 \
	--svg "$TEST_TMPDIR/picture.svg" >"$out" 2>&1 || {
	cat "$out"
	grep -q 'SPMLA_E_NO_BLOB' "$out" || exit 1
	echo "SKIPPED: built without kernels for CUDA"
	echo SKIPPED
	exit 0
}
cat "$out"
grep -q '[1-9][0-9]* rows, 0 of them wrong' "$out"
grep -q '</svg>' "$TEST_TMPDIR/picture.svg"
for op in step_prologue tile_sched indexer_schedule topk mqa_logits \
	mqa_logits_gathered sparse_decode sparse_prefill kv_insert \
	indexer_k_insert indexer_q_prep index_map kv_gather \
	indexer_k_gather v32_attn v4_attn token_map slot_map logits_rows \
	prefill_rows lse2_to_lse filter_prefill_indices table_write \
	split_combine q_absorb \
	v_up o_group_proj rms_norms qnorm_rope_kv_insert inv_rope_quant \
	compress_state_save kv_compress swa_index c128a_index combine_index \
	ragged_index; do
	grep -q "^| $op |.*|" "$out" || { echo "no row of $op"; exit 1; }
done
if grep -qE '\| (none|WRONG[^|]*) \|$' "$out"; then
	echo "a row without its check"
	exit 1
fi
