#!/usr/bin/env bash
# The frame of every function of the library, as gcc -O2 makes it, stays below
# 1 KiB and is known at compile time: no VLA, no alloca.
set -euo pipefail

tmp=$TEST_TMPDIR
mkdir -p "$tmp/include/spmla/platform"
cp -RL lib/. "$tmp/include/spmla"
cp -RL platform/cpu platform/cuda platform/gpu "$tmp/include/spmla/platform"
cp -L platform/*/spmla_*.h "$tmp/include/spmla"
for src in $(find -L lib platform -name '*.c' ! -name all_kernels.c); do
	gcc -std=c11 -O2 -fstack-usage -I"$tmp/include" -c "$src" \
		-o "$tmp/x.o"
	cat "$tmp/x.su"
done >"$tmp/usage"
[ "$(wc -l <"$tmp/usage")" -gt 50 ]
if awk -F'\t' '$2 >= 1024 || $3 == "dynamic"' "$tmp/usage" | grep .; then
	echo 'at least 1024 bytes of stack, or no bound'
	exit 1
fi
