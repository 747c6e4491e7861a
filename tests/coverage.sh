#!/usr/bin/env bash
# Keeps tests/COVERAGE.md true: every test that it names exists, and one named
# suite/test is in that suite; every suite is named, and every named one exists;
# every operation has a row and, if it has a suite in tests/ops, a test among the
# edges.
set -euo pipefail
bad=0
list=tests/COVERAGE.md
ops=$(sed -n 's/^SPMLA_OP(\(.*\))$/\1/p' lib/ops/ops.inc)

fail() {
	echo "COVERAGE.md $1"
	bad=1
}

# The sources of a suite, without the sources of an operation whose name begins
# alike.
suite() { # name
	local op skip=()
	for op in $ops; do
		[[ $op != "$1"_* ]] || skip+=(! -name "test_$op*")
	done
	find -L tests -name "test_$1*.c" "${skip[@]}"
}

# The suites that the page names, by their paths in tests: "core/test_plan,
# _layout, test_views" are core/test_plan, core/test_plan_layout and
# core/test_views.
named=$(sed 's/`[^`]*`//g' "$list" |
	grep -oE '([a-z0-9_]+/)*test_[a-z0-9_]+|(^| )_[a-z0-9_]+' |
	awk '
		/^ *_/ { sub(/^ /, ""); print folder suite $0; next }
		/\// { folder = $0; sub(/[^\/]*$/, "", folder) }
		{ suite = $0; sub(/.*\//, "", suite); print folder suite }' |
	sort -u)
suites=$(find -L tests -name 'test_*.c' | sed -E 's,^tests/(.*)\.c$,\1,' |
	sort -u)

for name in $(comm -13 <(echo "$named") <(echo "$suites")); do
	fail "does not name the suite tests/$name.c"
done
for name in $(comm -23 <(echo "$named") <(echo "$suites")); do
	fail "names the suite $name, which is not there"
done
for name in $(grep -oE '`[a-z0-9_]+`' "$list" | tr -d '`' | sort -u); do
	grep -qRE "START_TEST\($name\)" tests ||
		fail "names $name, which no suite has"
done
for name in $(grep -oE '`[a-z0-9_]+/[a-z0-9_]+`' "$list" | tr -d '`' |
	sort -u); do
	sources=$(suite "${name%/*}")
	# shellcheck disable=SC2086 # a list
	if [ -z "$sources" ] || ! grep -qE "START_TEST\(${name#*/}\)" $sources; then
		fail "names $name, which that suite has not"
	fi
done
edges=$(sed -n '/^## Edges$/,/^## Vectors/p' "$list")
for op in $ops; do
	grep -q "^| $op |" "$list" || fail "has no row for $op"
	! compgen -G "tests/ops/*/test_$op.c" >/dev/null ||
		[[ $edges == *"\`$op/"* ]] ||
		fail "has no edge of $op"
done
exit "$bad"
