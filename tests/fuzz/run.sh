#!/usr/bin/env bash
# run.sh [--seconds N] [--keep] [TARGET...]: fuzzes the targets (fuzz_plan, ...;
# all by default) for N seconds each (60), two at a time, from the kept corpus.
# An input that breaks one is saved below out/fuzz, and its path is printed.
# --keep then minimises what was found into the kept corpus. --one FILE TARGET
# only runs one input; //tests:fuzz_corpus runs the kept ones.
set -euo pipefail

most_files=60 most_bytes=512
seconds=60 mode=fuzz keep=0 one='' targets=()
while [ $# -gt 0 ]; do
	case $1 in
	--seconds)
		seconds=$2
		shift
		;;
	--one)
		mode=one one=$(readlink -f "$2")
		shift
		;;
	-h | --help)
		sed -n '/^# run.sh/,/^set/s/^# //p' "$0"
		exit
		;;
	--keep) keep=1 ;;
	-*)
		echo "run.sh: $1 is not an option" >&2
		exit 2
		;;
	*) targets+=("$1") ;;
	esac
	shift
done

cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
if [ ${#targets[@]} -eq 0 ]; then
	for source in tests/fuzz/fuzz_*.c; do
		target=${source##*/}
		targets+=("${target%.c}")
	done
fi

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
found=$PWD/out/fuzz
mkdir -p "$found" "$tmp/include/spmla/platform" "$tmp/o"
cp -RL lib/. "$tmp/include/spmla"
cp -RL platform/cpu "$tmp/include/spmla/platform"
cp -L platform/cpu/spmla_cpu.h "$tmp/include/spmla"
export tmp found seconds mode keep one most_files most_bytes
# A small quarantine, as every run frees all it took.
export ASAN_OPTIONS=quarantine_size_mb=16
symbolizer=$(command -v llvm-symbolizer-19 llvm-symbolizer | head -n 1) || true
[ -z "$symbolizer" ] || export ASAN_SYMBOLIZER_PATH=$symbolizer
export sanitize=-fsanitize=address,undefined,float-cast-overflow

compile() { # a source to an object
	clang-19 -std=gnu11 -D_GNU_SOURCE -O1 -g -ffp-contract=off -Wall \
		-Wextra $sanitize -fno-sanitize-recover=all \
		-fsanitize=fuzzer-no-link -I"$tmp/include" -I. \
		-c "$1" -o "$tmp/o/${1//\//_}.o"
}

# The smallest set that still reaches everything, of small files, beside the
# bug_* that once broke the target, or break it where a fault is planted.
keep_corpus() { # target
	local kept=$PWD/tests/fuzz/corpus/$1
	mkdir -p "$kept" "$tmp/$1.min"
	"$tmp/$1" -set_cover_merge=1 -use_counters=0 -max_len="$most_bytes" \
		"$tmp/$1.min" "$tmp/$1.corpus" >"$tmp/$1.merge" 2>&1
	find "$kept" -type f ! -name 'bug_*' -delete
	local room=$((most_files - $(find "$kept" -type f | wc -l)))
	find "$tmp/$1.min" -type f -size -$((most_bytes + 1))c -printf '%s %p\n' |
		sort -rn | head -n "$room" | cut -d' ' -f2 |
		xargs -r cp -t "$kept"
	echo "$1: $(find "$tmp/$1.min" -type f | wc -l) inputs," \
		"$(find "$kept" -type f | wc -l) kept"
}

run() { # target
	local target=$1 rc=0 log=$tmp/$1.log
	local at=("$tmp/$target" -artifact_prefix="$found/$target-"
		-timeout=20 -rss_limit_mb=2048)
	mkdir -p "$tmp/$target.corpus"
	find -L "tests/fuzz/corpus/$target" -type f \
		-exec cp -Lt "$tmp/$target.corpus" {} + 2>/dev/null || true
	if [ "$mode" = one ]; then
		"${at[@]}" "$one"
		return
	fi
	"${at[@]}" -max_total_time="$seconds" -max_len="$most_bytes" \
		-len_control=20 -use_value_profile=1 "$tmp/$target.corpus" \
		>"$log" 2>&1 || rc=$?
	if [ "$rc" -ne 0 ]; then
		tail -n 60 "$log"
		echo "$target: FAILED: run.sh --one" \
			"$(sed -n 's/.*Test unit written to //p' "$log")" "$target"
		return 1
	fi
	echo "$target: $(grep -E '(DONE|INITED) ' "$log" | tail -n 1)"
	if [ "$keep" -eq 1 ]; then
		keep_corpus "$target"
	fi
}
export -f compile run keep_corpus
both() { # FUNCTION: a line an argument, two at a time
	nice xargs -P 2 -I{} bash -euo pipefail -c "$1 {}"
}

{
	find -L lib platform/cpu -name '*.c'
	printf 'tests/fuzz/%s.c\n' world "${targets[@]}"
	printf 'tests/harness/%s.c\n' draw draw_cache draw_results draw_types json \
		registry
	find -L tests/ops -name '*_entry.c'
} | both compile
rest=$(find "$tmp/o" -name '*.o' ! -name 'tests_fuzz_fuzz_*')
for target in "${targets[@]}"; do
	# shellcheck disable=SC2086 # a list
	clang-19 $sanitize -fsanitize=fuzzer $rest \
		"$tmp/o/tests_fuzz_$target.c.o" -lm -o "$tmp/$target"
done
printf '%s\n' "${targets[@]}" | both run
