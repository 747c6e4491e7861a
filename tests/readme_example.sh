#!/usr/bin/env bash
# readme_example.sh ARCHIVE: the example of README.md is a whole program of at
# most 40 lines that compiles without a warning, runs, and prints what the text
# behind it says.
set -euo pipefail

archive=$1
include=$TEST_TMPDIR/include
mkdir -p "$include/spmla/ops"
cp lib/*.h platform/*/spmla_*.h "$include/spmla"
cp lib/ops/*.h "$include/spmla/ops"
cd "$TEST_TMPDIR"

readme=$OLDPWD/README.md
awk '/^```/ { if (inside) exit; inside = $0 == "```c"; next } inside' \
	"$readme" >example.c
lines=$(wc -l <example.c)
if [ "$lines" -lt 1 ] || [ "$lines" -gt 40 ]; then
	echo "FAIL: the example has $lines lines, want 1 to 40"
	exit 1
fi

gcc -std=c11 -O1 -Wall -Wextra -Wpedantic -Werror -I include example.c \
	"$OLDPWD/$archive" -lm -o example
./example | tee printed

want=$(sed -n 's/^It prints `\([^`]*\)`.*/\1/p' "$readme" | head -n 1)
if [ -z "$want" ] || [ "$(cat printed)" != "$want" ]; then
	echo "FAIL: README.md says that it prints: ${want:-(nothing)}"
	exit 1
fi
