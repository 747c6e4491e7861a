#!/usr/bin/env bash
# run.sh [--bundle DIR] [--golden DIR].. [--driver FILE] [WORD..]: runs the suites,
# and the golden cases, on this machine's CUDA device: those whose name contains
# a WORD, if any is given; with FILE in place of libcuda.so.1. Prints a line a suite, then the end of what the failed ones
# said. //tests:gpu_bundle makes a folder of all that it needs; DIR is that one
# or where gpu_suites and golden_runner lie. Exit: 1 if one failed; 0, with
# SKIPPED, where there is no device.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bundle=$here words=() golden=()
while [ $# -gt 0 ]; do
	case $1 in
	--bundle) bundle=$2 && shift ;;
	--golden) golden+=("$2") && shift ;;
	--driver)
		LD_LIBRARY_PATH=$(cd "$(dirname "$2")" && pwd)
		export LD_LIBRARY_PATH
		shift
		;;
	*) words+=("$1") ;;
	esac
	shift
done
[ ${#golden[@]} -gt 0 ] || golden=("$here/golden")
unset BUILD_WORKING_DIRECTORY
export SPMLA_TEST_CUDA=1 CK_FORK=no
limit=${SPMLA_TEST_SECONDS:-120}

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
passed=0 failed=() skipped=0

# The case of the first failure, or how the program ended.
reason() { # LOG STATUS
	if [ "$2" -eq 124 ]; then
		echo "more than $limit s"
	elif grep -q '^SKIPPED' "$1"; then
		grep '^SKIPPED' "$1" | tail -n 1
	elif grep -qE '^[0-9]+%: Checks' "$1"; then
		grep -E '^[0-9]+%: Checks' "$1" | tail -n 1
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
	(timeout "$limit" "$@" >"$log" 2>&1 </dev/null; exit $?) 2>/dev/null ||
		status=$?
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
for name in $names; do
	run "$name" "$bundle/gpu_suites" "$name"
done
cases=()
for dir in "${golden[@]}"; do
	cases+=("--cases=$dir")
done
run golden "$bundle/golden_runner" --backend=cuda "${cases[@]}"

for name in ${failed[@]+"${failed[@]}"}; do
	echo
	echo "---- $name"
	tail -n 15 "$logs/${name//\//_}" | cut -c 1-400
done
echo
echo "$passed passed, ${#failed[@]} failed, $skipped skipped"
[ $((passed + ${#failed[@]})) -gt 0 ] || echo "SKIPPED"
[ ${#failed[@]} -eq 0 ]
