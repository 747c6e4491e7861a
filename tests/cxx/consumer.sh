#!/usr/bin/env bash
# consumer.sh ARCHIVE: the C++ consumer, compiled by both compilers as another
# project would compile it, linked with nothing but libspmla.a, and run.
set -euo pipefail

archive=$1
include=$TEST_TMPDIR/include
mkdir -p "$include/spmla/ops"
cp lib/*.h platform/*/spmla_*.h "$include/spmla"
cp lib/ops/*.h "$include/spmla/ops"

for compiler in g++ clang++-19; do
	if ! command -v "$compiler" >/dev/null; then
		echo "FAIL: $compiler is not there; bazelw says what to install"
		exit 1
	fi
	"$compiler" -std=c++17 -O1 -Wall -Wextra -Wpedantic -Werror \
		-I "$include" tests/cxx/consumer.cc "$archive" \
		-o "$TEST_TMPDIR/consumer"
	echo "$compiler:"
	"$TEST_TMPDIR/consumer"
done
