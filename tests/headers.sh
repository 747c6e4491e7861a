#!/usr/bin/env bash
# headers.sh: each public header compiles alone, twice included, as C11 and as
# C++17, without a warning; and the C++ consumer knows all of them.
set -euo pipefail

include=$TEST_TMPDIR/include
mkdir -p "$include/spmla/ops"
cp lib/*.h platform/*/spmla_*.h "$include/spmla"
cp lib/ops/*.h "$include/spmla/ops"
bad=0

# compiles HEADER LANGUAGE STANDARD COMPILER
compiles() {
	if ! command -v "$4" >/dev/null; then
		echo "FAIL: $4 is not there; bazelw says what to install"
		exit 1
	fi
	printf '#include "%s"\n#include "%s"\nextern int some;\n' "$1" "$1" |
		"$4" -x "$2" -std="$3" -fsyntax-only -Wall -Wextra -Wpedantic \
			-Wshadow -Werror -I "$include" - || {
		echo "FAIL: $1 alone, $4 -std=$3"
		bad=1
	}
}

count=0
while read -r header; do
	compiles "$header" c c11 gcc
	compiles "$header" c c11 clang-19
	compiles "$header" c++ c++17 g++
	compiles "$header" c++ c++17 clang++-19
	grep -qxF "#include \"$header\"" tests/cxx/consumer.cc || {
		echo "FAIL: tests/cxx/consumer.cc does not include $header"
		bad=1
	}
	count=$((count + 1))
done < <(cd "$include" && find spmla -name '*.h' | LC_ALL=C sort)

for op in "$include"/spmla/ops/*.h; do
	op=spmla/ops/$(basename "$op")
	[ "$op" = spmla/ops/ops.h ] ||
		grep -qxF "#include \"$op\"" "$include/spmla/ops/ops.h" || {
		echo "FAIL: spmla/ops/ops.h does not include $op"
		bad=1
	}
done

echo "$count headers"
[ "$count" -ge 16 ] && [ "$bad" -eq 0 ]
