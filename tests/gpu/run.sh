#!/usr/bin/env bash
# run.sh [--backend cuda|hip|level_zero] [--bundle DIR] [--golden DIR]..
#        [--loop PROGRAM] [--traces DIR] [--driver FILE] [--guard]
#        [--sanitizer TOOL] [--jobs N] [WORD..]
# Runs on this machine's CUDA device: the suites, the golden cases, cudart_engine
# and the examples (decode_loop and, beside it, hello_cuda). Given WORDs, it runs
# only what contains one of them in its name; $ is a name's end. Prints a line for
# each suite, then the last lines of the ones that failed.
# --bundle: where programs, cases and traces lie; //tests:gpu_bundle makes such a
# folder.
# --golden: a folder of cases, which may be missing; the bundle's otherwise.
# --backend hip: the HIP backend, without cudart_engine and hello_cuda. Without an
# AMD GPU, the bundle's hip/libamdhip64.so.7 runs HIP on the CUDA driver.
# --backend level_zero: the same on the driver FILE behind Level Zero's loader.
# The suites' memory is the host's, which no GPU reads.
# --driver: take FILE in place of libcuda.so.1 (HIP: the libraries of its folder).
# Suites have fewer steps then, because such a driver is slow.
# --guard: buffers end where mapped memory ends (tests/harness/cuda_guard.c).
# decode_loop is left out: it has memory of its own.
# --sanitizer: a few suites, in few steps, under compute-sanitizer's TOOL
# (memcheck, synccheck, racecheck, initcheck). initcheck sees only the device's
# own memory, so it gets two suites: one whose steps and regions are there,
# unfilled, and one in which it must find a fault.
# A bundle of --config=kernel_debug has kernels that check themselves.
# --jobs: N suites at a time; a line is printed when its suite has ended.
# SPMLA_TEST_SECONDS: the most that a suite may take. SPMLA_TEST_CUDA_ARCH: the
# architecture whose kernels run, if it is older than the device's.
# Exit: 1 if one failed; 0, with SKIPPED, where there is no device, or no
# compute-sanitizer.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bundle=$here words=() golden=() loop= traces=$here/trace tool= driver= guard=
jobs=1 backend=cuda
while [ $# -gt 0 ]; do
	case $1 in
	--backend) backend=$2 && shift ;;
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
	--jobs) jobs=$2 && shift ;;
	-h | --help)
		sed -n '/^# run/,/^set/s/^# //p' "$0"
		exit
		;;
	-*)
		echo "run.sh: $1: unknown option; --help lists all" >&2
		exit 2
		;;
	*) words+=("$1") ;;
	esac
	shift
done
[ ${#golden[@]} -gt 0 ] || golden=("$here/golden")
loop=${loop:-$bundle/decode_loop}
unset BUILD_WORKING_DIRECTORY
export CK_FORK=no
case $backend in
cuda) export SPMLA_TEST_CUDA=1 ;;
hip)
	export SPMLA_TEST_HIP=1
	if [ -z "$driver" ] && [ ! -e /dev/kfd ] &&
		[ -e "$bundle/hip/libamdhip64.so.7" ]; then
		echo "HIP: SUBSTITUTE (on the CUDA driver)"
		LD_LIBRARY_PATH=$(cd "$bundle/hip" && pwd):${LD_LIBRARY_PATH:-}
		export LD_LIBRARY_PATH
	fi
	;;
level_zero)
	export SPMLA_TEST_LEVEL_ZERO=1
	if [ -n "$driver" ]; then
		ZE_ENABLE_ALT_DRIVERS=$LD_LIBRARY_PATH/${driver##*/}
		# With the loader's own checks of every call.
		export ZE_ENABLE_ALT_DRIVERS ZE_ENABLE_VALIDATION_LAYER=1 \
			ZE_ENABLE_HANDLE_LIFETIME=1 \
			ZE_ENABLE_PARAMETER_VALIDATION=1
		echo "Level Zero: SUBSTITUTE (SPIR-V on CPU)"
		# The loader goes on without the layer and says nothing.
		[ -z "$(LD_PRELOAD=libze_validation_layer.so.1 \
			env true 2>&1)" ] ||
			echo "SKIPPED: no validation layer"
		# Debian 13's validation layer (1.20) counts an immediate list as
		# closed and refuses every append. A short suite shows it.
		if grep -q 'AppendMemoryFill: got 2013265924' <<<"$(
			"$bundle/gpu_suites" core/test_v32_prefill_call 2>&1
		)"; then
			echo "SKIPPED: the loader's check of handles, which" \
				"refuses immediate lists"
			unset ZE_ENABLE_HANDLE_LIFETIME
		fi
	fi
	;;
*)
	echo "run.sh: no backend $backend" >&2
	exit 2
	;;
esac
limit=${SPMLA_TEST_SECONDS:-120} under=()

# What a sanitizer runs: every kernel is in, as sanitized_kernels.sh sees, and
# each suite is short. NAME@ARCH is the suite with that architecture's kernels.
sanitized=(
	every_op/test_inputs@80
	ops/select/test_c128a_index
	ops/select/test_combine_index
	ops/select/test_combine_index_image
	ops/compress/test_compress_state_save
	ops/select/test_filter_prefill_indices
	ops/select/test_index_map
	ops/select/test_index_map_mixed
	ops/cache/test_indexer_k_gather
	ops/cache/test_indexer_k_insert
	ops/select/test_indexer_q_prep
	ops/select/test_indexer_q_prep_v4
	ops/step/test_indexer_schedule
	ops/compress/test_kv_compress_hand
	ops/compress/test_kv_compress_split
	ops/compress/test_kv_compress_ways
	ops/project/test_inv_rope_quant
	ops/cache/test_kv_gather
	ops/cache/test_kv_gather_v4
	ops/cache/test_kv_insert
	ops/cache/test_kv_insert_index
	ops/cache/test_kv_insert_v4
	ops/step/test_logits_rows
	ops/attend/test_lse2_to_lse
	ops/select/test_mqa_logits@80
	ops/select/test_mqa_logits_gathered@80
	ops/select/test_mqa_logits_gathered_mxfp4
	ops/select/test_mqa_logits_mxfp4@80
	ops/project/test_o_group_proj@80
	ops/step/test_prefill_rows
	ops/project/test_q_absorb
	ops/project/test_q_absorb_many
	ops/project/test_q_absorb@80
	ops/cache/test_qnorm_rope_kv_insert
	ops/cache/test_rms_norms
	ops/select/test_ragged_index
	ops/step/test_slot_map
	ops/attend/test_sparse_decode@75
	ops/attend/test_sparse_decode@80
	ops/attend/test_sparse_decode_v4@80
	ops/attend/test_sparse_prefill@80
	ops/attend/test_split_combine
	ops/select/test_swa_index
	ops/select/test_swa_index_image
	ops/step/test_tile_sched
	ops/step/test_tile_sched_random
	ops/step/test_token_map
	ops/select/test_topk
	ops/select/test_topk_by
	ops/select/test_topk_map
	ops/select/test_topk_ties
	ops/select/test_topk_ties@80
	ops/project/test_v_up
	protocol/test_prologue
	protocol/test_prologue_v4
	protocol/test_prologue_wide
	protocol/test_tables
	protocol/test_v4_parts_heads@80
)
# Not for racecheck, which does not follow mbarriers, nor what matrix instructions
# read by themselves (wgmma), and would tell of races that are none.
with_wgmma=(
	every_op/test_inputs
	ops/select/test_mqa_logits
	ops/select/test_mqa_logits_gathered
	ops/project/test_o_group_proj
	ops/attend/test_sparse_decode
	ops/attend/test_sparse_decode_combine
	ops/attend/test_sparse_decode_combine_far
	ops/attend/test_sparse_decode_few
	ops/attend/test_sparse_decode_few_v4
	ops/attend/test_sparse_decode_few_values
	ops/attend/test_sparse_decode_heads
	ops/attend/test_sparse_decode_parts
	ops/attend/test_sparse_decode_v4
	ops/attend/test_sparse_prefill
	protocol/test_replay_batch
	protocol/test_replay_room
	protocol/test_v4_parts
	protocol/test_v4_parts_heads
	protocol/test_v4_replay
	protocol/test_v4_replay_advance
	protocol/test_v4_replay_batch
)

# What compares the device's free bytes, and so has the device for itself.
alone=(protocol/test_replay_many gpu/cudart_engine)

use_sanitizer() {
	local program

	program=$(PATH=$PATH:/usr/local/cuda/bin command -v compute-sanitizer) || {
		echo "SKIPPED: no compute-sanitizer"
		exit 0
	}
	case $tool in
	memcheck)
		# It knows the driver's blocks, not malloc's blocks in them.
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
results=$logs/results # a line a suite, "PASS ops/select/test_topk"
: >"$results"

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

is_among() { # NAME SUITE..
	local name=$1
	shift
	[[ " $* " == *" $name "* ]]
}

is_wanted() { # NAME
	local word
	for word in ${words[@]+"${words[@]}"}; do
		[[ $1\$ != *"$word"* ]] || return 0
	done
	[ ${#words[@]} -eq 0 ]
}

log_of() { # NAME
	echo "$logs/${1//\//_}.log"
}

run_one() { # NAME COMMAND..
	local name=$1 log status=0 begin=$SECONDS word
	log=$(log_of "$name")
	shift
	# The shell would tell of a signal too.
	(timeout "$limit" ${under[@]+"${under[@]}"} "$@" >"$log" 2>&1 </dev/null
		exit $?) 2>/dev/null || status=$?
	if [ $status -eq 2 ] && grep -qE 'there is no [A-Z][A-Za-z ]+ device$' "$log"; then
		echo "SKIPPED: no device" >>"$log"
		status=77
	elif [ $status -eq 1 ] && grep -q 'spmla_init: SPMLA_E_NO_BLOB' "$log"
	then
		echo "SKIPPED: built without kernels for the device" >>"$log"
		status=77
	fi
	# What initcheck finds there is what the suite is there for.
	if [ "$tool:$name" = initcheck:core/test_unwritten ]; then
		status=$((status == 9 ? 0 : status == 0 ? 1 : status))
	fi
	# Nobody shall take it for an Intel GPU.
	case $backend:$name:$status in
	level_zero:loop/*:0)
		[ -z "$driver" ] || head -n 1 "$log" |
			grep -qx 'device: SUBSTITUTE (SPIR-V on CPU)' || status=1
		;;
	esac
	case $status in
	0) word=PASS ;;
	77) word=SKIPPED ;;
	*) word=FAIL ;;
	esac
	echo "$word $name" >>"$results"
	printf '%-8s %-44s %3d s  %s\n' "$word" "$name" \
		$((SECONDS - begin)) "$(reason "$log" $status)"
}

# Begins it as soon as a job is free.
run() { # NAME COMMAND..
	is_wanted "$1" || return 0
	while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
		wait -n
	done
	run_one "$@" &
}

run_suite() { # NAME[@ARCH]
	local arch=()
	[ "${1%@*}" = "$1" ] || arch=("SPMLA_TEST_CUDA_ARCH=${1#*@}")
	run "$1" env ${arch[@]+"${arch[@]}"} "$bundle/gpu_suites" "${1%@*}"
}

names=$(env -u SPMLA_TEST_CUDA -u SPMLA_TEST_HIP \
	-u SPMLA_TEST_LEVEL_ZERO "$bundle/gpu_suites" --list) || exit 2
[ -z "$tool" ] || names=${sanitized[*]}
for name in $names; do
	is_among "$name" "${alone[@]}" || run_suite "$name"
done
cases=()
for dir in "${golden[@]}"; do # one may be there or not
	[ -z "$(find -L "$dir" -name manifest.json 2>/dev/null | head -n 1)" ] ||
		cases+=("--cases=$dir")
done
[ -n "$tool" ] ||
	run golden "$bundle/golden_runner" "--backend=$backend" \
		${cases[@]+"${cases[@]}"}
# The example, which checks itself. Requests of V4 are short, so that many come
# and go, and its top-k leaves keys out all the same.
run_loops() {
	local small=() forks=()
	local v4=(--layers 6 --topk 24 --max-context 400 --next-n 4
		--steps 60 --trace "$traces/short.csv")
	local v32=(--trace "$traces/synthetic_chat.csv" --prefill 256)

	if [ -n "$driver" ]; then
		small=(--layers 4 --heads 2 --index-heads 2 --max-requests 2
			--prefill 8 --steps 6)
		# One request forks another: pages are copied.
		forks=(--max-requests 4 --steps 3)
		v32+=(--topk 32 --max-context 96)
	fi
	[ -z "${SPMLA_TEST_UNPROVEN:-}" ] || small+=(--unproven)
	run loop/v32 "$loop" --backend $backend "${v32[@]}" "${small[@]}"
	run loop/v4-flash "$loop" --backend $backend --model v4-flash "${v4[@]}" \
		"${small[@]}"
	run loop/v4-pro "$loop" --backend $backend --model v4-pro "${v4[@]}" \
		--layers 4 --heads 64 --index-heads 64 --check-every 8 \
		"${small[@]}"
	run loop/v4-mxfp4 "$loop" --backend $backend --model v4-flash "${v4[@]}" \
		--tables own --index mxfp4 --next-n 3 "${small[@]}" \
		"${forks[@]}"
	run loop/v4-linear "$loop" --backend $backend --model v4-flash "${v4[@]}" \
		--layers 4 --tables linear --check-every 4 "${small[@]}"
	run loop/v4-device "$loop" --backend $backend --model v4-flash "${v4[@]}" \
		--layers 4 --tables device --check-every 4 "${small[@]}"
	run loop/v4-eager "$loop" --backend $backend --model v4-flash "${v4[@]}" \
		--layers 4 --prompts eager --prefill 90 --check-every 4 \
		"${small[@]}"
}
[ -n "$tool$guard" ] || run_loops

# To the end of a million tokens, in pools that are written at that end only.
run_million() {
	printf 'TIMESTAMP,ContextTokens,GeneratedTokens\nnow,120,8\n' \
		>"$logs/million.csv"
	run loop/v4-million "$loop" --backend $backend --model v4-flash --layers 4 \
		--max-context 1048576 --start 1048448 --max-requests 1 \
		--next-n 2 --prefill 24 --check-every 10 \
		--trace "$logs/million.csv"
}
[ -n "$tool$guard$driver" ] || run_million

wait
jobs=1
for name in $names; do
	! is_among "$name" "${alone[@]}" || run_suite "$name"
done
# The runtime asks a driver for more than a substitute has.
if [ -z "$tool$driver" ] && [ $backend = cuda ]; then
	run gpu/cudart_engine "$bundle/cudart_engine"
	run hello_cuda "$(dirname "$loop")/hello_cuda"
fi
wait

count() { # WORD
	grep -c "^$1 " "$results"
}

for name in $(sed -n 's/^FAIL //p' "$results"); do
	echo
	echo "---- $name"
	tail -n 40 "$(log_of "$name")" | cut -c 1-400
done
echo
echo "$(count PASS) passed, $(count FAIL) failed, $(count SKIPPED) skipped"
grep -qE '^(PASS|FAIL) ' "$results" || echo "SKIPPED"
! grep -q '^FAIL ' "$results"
