#!/usr/bin/env bash
# readme_example.sh ARCHIVE: the lines of code in README.md are lines of
# examples/hello_v32.c, in order; that program compiles without a warning, runs,
# and prints what README.md says.
set -euo pipefail

archive=$PWD/$1
include=$TEST_TMPDIR/include
mkdir -p "$include/spmla/ops"
cp lib/*.h platform/*/spmla_*.h "$include/spmla"
cp lib/ops/*.h "$include/spmla/ops"
readme=$PWD/README.md
program=$PWD/examples/hello_v32.c
cd "$TEST_TMPDIR"

# README's first block in C, without its comments: statements, spaces removed.
statements() {
	sed -e 's,/\*.*\*/,,' | tr -d ' \t\n' | sed -e 's/;/;\n/g'
}
awk '/^```/ { if (inside) exit; inside = $0 == "```c"; next } inside' \
	"$readme" >shown.c
lines=$(wc -l <shown.c)
if [ "$lines" -lt 1 ] || [ "$lines" -gt 15 ]; then
	echo "FAIL: README.md shows $lines lines, want 1 to 15"
	exit 1
fi
statements <"$program" >has
statements <shown.c >shown
at=0
while read -r statement; do
	line=$(tail -n "+$((at + 1))" has | grep -nF -- "$statement" |
		head -n 1 | cut -d: -f1 || true)
	if [ -z "$line" ]; then
		echo "FAIL: not in examples/hello_v32.c, or out of order: $statement"
		exit 1
	fi
	at=$((at + line))
done <shown

gcc -std=c11 -O1 -Wall -Wextra -Wpedantic -Werror -I include "$program" \
	"$archive" -lm -o example
./example | tee printed

want=$(sed -n 's/^It prints `\([^`]*\)`.*/\1/p' "$readme" | head -n 1)
if [ -z "$want" ] || [ "$(cat printed)" != "$want" ]; then
	echo "FAIL: README.md says that it prints: ${want:-(nothing)}"
	exit 1
fi
