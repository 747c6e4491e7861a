#!/usr/bin/env bash
# Keeps tests/COVERAGE.md true: every test that it names exists, and every
# operation has a row.
set -euo pipefail
bad=0

for name in $(grep -oE '`[a-z0-9_]+`' tests/COVERAGE.md | tr -d '`' | sort -u); do
	if ! grep -qRE "START_TEST\($name\)" tests; then
		echo "COVERAGE.md names $name, which no suite has"
		bad=1
	fi
done
for op in $(sed -n 's/^SPMLA_OP(\(.*\))$/\1/p' lib/ops/ops.inc); do
	if ! grep -q "^| $op |" tests/COVERAGE.md; then
		echo "COVERAGE.md has no row for $op"
		bad=1
	fi
done
exit "$bad"
