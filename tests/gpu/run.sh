#!/usr/bin/env bash
# run.sh [--bundle DIR] [--golden DIR].. [--loop PROGRAM] [--traces DIR]
#        [--driver FILE] [--guard] [--sanitizer TOOL] [WORD..]
# Runs the suites, the golden cases, cudart_engine and decode_loop, the example,
# on this machine's CUDA device: those whose name contains a WORD, if any is
# given; with FILE in place of libcuda.so.1, in fewer steps, as such a driver is
# slow. Prints a line a suite, then the end of what the failed ones said.
# //tests:gpu_bundle makes a folder of all that it needs; DIR is that one or where
# its programs, cases and traces lie.
# --guard: buffers end where mapped memory ends (tests/support/cuda_guard.c);
# without decode_loop, which has memory of its own.
# --sanitizer: a few suites, in few steps, under compute-sanitizer's TOOL
# (memcheck, synccheck, racecheck, initcheck). initcheck follows the device's own
# memory and none of the host: it gets the suite that has its steps there, in
# regions that nobody filled, and one that it has to find fault with.
# SPMLA_TEST_SECONDS is the most that a suite may take, SPMLA_TEST_CUDA_ARCH the
# architecture whose kernels run, where it is older than the device's. Exit: 1 if
# one failed; 0, with SKIPPED, where there is no device, or no compute-sanitizer.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bundle=$here words=() golden=() loop= traces=$here/trace tool= driver= guard=
while [ $# -gt 0 ]; do
	case $1 in
	--bundle) bundle=$2 && shift ;;
	--golden) golden+=("$2") && shift ;;
	--loop) loop=$2 && shift ;;
	--traces) traces=$2 && shift ;;
	--driver)
		driver=$2
		LD_LIBRARY_PATH=$(cd "$(dirname "$2")" && pwd)
		export LD_LIBRARY_PATH SPMLA_TEST_STEPS=${SPMLA_TEST_STEPS:-6}
		shift
		;;
	--guard) guard=1 && export SPMLA_TEST_GUARD=1 ;;
	--sanitizer) tool=$2 && shift ;;
	*) words+=("$1") ;;
	esac
	shift
done
[ ${#golden[@]} -gt 0 ] || golden=("$here/golden")
loop=${loop:-$bundle/decode_loop}
unset BUILD_WORKING_DIRECTORY
export SPMLA_TEST_CUDA=1 CK_FORK=no
limit=${SPMLA_TEST_SECONDS:-120} under=()

# What every kernel is in, and is short. racecheck does not follow what matrix
# instructions read by themselves (wgmma), and would tell of races that are none:
# without the suites whose kernels have it.
sanitized=(
	ops/test_c128a_index
	ops/test_combine_index
	ops/test_combine_index_image
	ops/test_compress_state_save
	ops/test_filter_prefill_indices
	ops/test_index_map
	ops/test_index_map_mixed
	ops/test_indexer_k_gather
	ops/test_indexer_k_insert
	ops/test_indexer_q_prep
	ops/test_indexer_schedule
	ops/test_kv_compress_hand
	ops/test_kv_compress_split
	ops/test_inv_rope_quant
	ops/test_kv_gather
	ops/test_kv_gather_v4
	ops/test_kv_insert
	ops/test_kv_insert_v4
	ops/test_lse2_to_lse
	ops/test_o_group_proj
	ops/test_prefill_rows
	ops/test_q_absorb
	ops/test_qnorm_rope_kv_insert
	ops/test_rms_norms
	ops/test_ragged_index
	ops/test_slot_map
	ops/test_split_combine
	ops/test_swa_index
	ops/test_swa_index_image
	ops/test_tile_sched
	ops/test_tile_sched_random
	ops/test_token_map
	ops/test_topk
	ops/test_v_up
	protocol/test_prologue
	protocol/test_prologue_v4
	protocol/test_tables
)
with_wgmma=(
	ops/test_mqa_logits
	ops/test_mqa_logits_gathered
	ops/test_mqa_logits_mxfp4
	ops/test_sparse_decode
	ops/test_sparse_decode_parts
	ops/test_sparse_decode_v4
	ops/test_sparse_prefill
	protocol/test_replay_batch
	protocol/test_replay_many
	protocol/test_replay_room
	protocol/test_v4_parts
	protocol/test_v4_parts_heads
	protocol/test_v4_replay
	protocol/test_v4_replay_batch
)

use_sanitizer() {
	local program

	program=$(PATH=$PATH:/usr/local/cuda/bin command -v compute-sanitizer) || {
		echo "SKIPPED: no compute-sanitizer"
		exit 0
	}
	case $tool in
	memcheck)
		# It knows blocks of the driver, not those of malloc in them.
		export SPMLA_TEST_GUARD=1
		;;
	initcheck)
		export SPMLA_TEST_INITCHECK=1
		sanitized=(core/test_unwritten protocol/test_replay_room)
		;;
	synccheck | racecheck) ;;
	*)
		echo "run.sh: no tool $tool" >&2
		exit 2
		;;
	esac
	case $tool in
	memcheck | synccheck) sanitized+=("${with_wgmma[@]}") ;;
	esac
	under=("$program" --tool "$tool" --error-exitcode 9)
	limit=${SPMLA_TEST_SECONDS:-300}
	export SPMLA_TEST_STEPS=${SPMLA_TEST_STEPS:-6}
}
[ -z "$tool" ] || use_sanitizer

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
passed=0 failed=() skipped=0

# The case of the first failure, or how the program ended.
reason() { # LOG STATUS
	if [ "$2" -eq 124 ]; then
		echo "more than $limit s"
	elif [ "$2" -eq 9 ] && grep -qE '^=+ [A-Z]' "$1"; then
		grep -E '^=+ [A-Z]' "$1" | grep -v '= COMPUTE' | head -n 1
	elif grep -q '^SKIPPED' "$1"; then
		grep '^SKIPPED' "$1" | tail -n 1
	elif grep -qE '^[0-9]+%: Checks' "$1"; then
		grep -E '^[0-9]+%: Checks' "$1" | tail -n 1
	elif grep -q '^reference check:' "$1"; then
		sed -nE 's/^(reference check|replay = eager): //p' "$1" |
			paste -sd ';' | sed 's/;/; /'
	elif grep -qE '^[0-9]+ passed' "$1"; then
		grep -E '^[0-9]+ passed' "$1" | tail -n 1
	else
		echo "exit status $2"
	fi
}

run() { # NAME COMMAND..
	local name=$1 log=$logs/${1//\//_} status=0 begin=$SECONDS word
	shift
	for word in ${words[@]+"${words[@]}"}; do
		case $name in *"$word"*) word= && break ;; esac
	done
	[ -z "${word:-}" ] || return 0
	# The shell would tell of a signal too.
	(timeout "$limit" ${under[@]+"${under[@]}"} "$@" >"$log" 2>&1 </dev/null
		exit $?) 2>/dev/null || status=$?
	if [ $status -eq 2 ] && grep -q 'there is no CUDA device$' "$log"; then
		echo "SKIPPED: no CUDA device" >>"$log"
		status=77
	fi
	# What initcheck finds there is what the suite is there for.
	if [ "$tool:$name" = initcheck:core/test_unwritten ]; then
		status=$((status == 9 ? 0 : status == 0 ? 1 : status))
	fi
	case $status in
	0)
		passed=$((passed + 1))
		word=PASS
		;;
	77)
		skipped=$((skipped + 1))
		word=SKIPPED
		;;
	*)
		failed+=("$name")
		word=FAIL
		;;
	esac
	printf '%-8s %-44s %3d s  %s\n' "$word" "$name" \
		$((SECONDS - begin)) "$(reason "$log" $status)"
}

names=$(env -u SPMLA_TEST_CUDA "$bundle/gpu_suites") || exit 2
[ -z "$tool" ] || names=${sanitized[*]}
for name in $names; do
	run "$name" "$bundle/gpu_suites" "$name"
done
cases=()
for dir in "${golden[@]}"; do
	cases+=("--cases=$dir")
done
[ -n "$tool" ] ||
	run golden "$bundle/golden_runner" --backend=cuda "${cases[@]}"
# The runtime asks a driver for more than a substitute has.
[ -n "$tool$driver" ] || run gpu/cudart_engine "$bundle/cudart_engine"

# The example, which checks itself. Requests of V4 are short, so that many come and
# go, and its top-k leaves keys out all the same.
run_loops() {
	local small=() v4=(--layers 6 --topk 24 --max-context 400 --next-n 4
		--steps 60 --trace "$traces/short.csv")
	local v32=(--trace "$traces/synthetic_chat.csv" --prefill 256)

	if [ -n "$driver" ]; then
		small=(--layers 4 --heads 2 --index-heads 2 --max-requests 2
			--prefill 8 --steps 6)
		v32+=(--topk 32 --max-context 96)
	fi
	run loop/v32 "$loop" --backend cuda "${v32[@]}" "${small[@]}"
	run loop/v4-flash "$loop" --backend cuda --model v4-flash "${v4[@]}" \
		"${small[@]}"
	run loop/v4-pro "$loop" --backend cuda --model v4-pro "${v4[@]}" \
		--layers 4 --heads 64 --index-heads 64 --check-every 8 \
		"${small[@]}"
	run loop/v4-mxfp4 "$loop" --backend cuda --model v4-flash "${v4[@]}" \
		--tables own --index mxfp4 --next-n 3 "${small[@]}"
}
[ -n "$tool$guard" ] || run_loops

for name in ${failed[@]+"${failed[@]}"}; do
	echo
	echo "---- $name"
	tail -n 15 "$logs/${name//\//_}" | cut -c 1-400
done
echo
echo "$passed passed, ${#failed[@]} failed, $skipped skipped"
[ $((passed + ${#failed[@]})) -gt 0 ] || echo "SKIPPED"
[ ${#failed[@]} -eq 0 ]
