#!/usr/bin/env bash
# results/peers.svg is what chart.py draws of the newest table of the H100,
# and has a bar for each row with a peer; compare.py compares two tables.
set -euo pipefail

table=bench/results/2026-11-27-h100.md
python3 bench/chart.py "$table" >"$TEST_TMPDIR/peers.svg"
cmp "$TEST_TMPDIR/peers.svg" bench/results/peers.svg || {
	echo "FAIL: bench/chart.py $table >bench/results/peers.svg"
	exit 1
}

# Column 11 is the peer's: "-", or one or two times of which each has a bar. Of
# sparse_decode a bar is of the bold row.
want=$(awk -F'|' '/^\| [a-z]/ && NF == 15 && $12 ~ /[0-9]/ && $2 !~ /^ op $/ &&
	($2 !~ /sparse_decode/ || $4 ~ /\*/) {
		n += 1 + ($12 ~ /;/)
	}
	END { print n }' "$table")
bars=$(grep -cE '<rect x=.*fill="#(3f7d5c|c0703a)"' bench/results/peers.svg)
echo "$bars bars"
[ "$bars" -gt 0 ] && [ "$bars" -eq "$want" ]

# Without a table it says how it is used.
python3 bench/chart.py --help >"$TEST_TMPDIR/help"
grep -q '^Draws our times' "$TEST_TMPDIR/help"
rc=0
python3 bench/chart.py >/dev/null || rc=$?
[ "$rc" -eq 2 ]

# compare.py finds the row that a table is slower at.
cold=$(sed -n 's/^| empty kernel | the launch | \([0-9.]*\) .*/\1/p' "$table")
slow=$(awk "BEGIN { printf \"%g\", 1.5 * $cold }")
sed "0,/| empty kernel | the launch | $cold /s//| empty kernel | the launch | $slow /" \
	"$table" >"$TEST_TMPDIR/slower.md"
python3 bench/compare.py "$table" "$table" | grep -q ' rows, 0 slower; .* 1.000$'
python3 bench/compare.py "$table" "$TEST_TMPDIR/slower.md" >"$TEST_TMPDIR/out" &&
	exit 1
grep -qx "1.50  ${cold%.0} to $slow us  empty kernel, the launch" \
	"$TEST_TMPDIR/out"
grep -q ' rows, 1 slower; ' "$TEST_TMPDIR/out"

# median.py takes the row in between, and refuses tables of other rows.
python3 bench/median.py "$TEST_TMPDIR/slower.md" "$table" "$table" \
	>"$TEST_TMPDIR/out"
cmp "$table" "$TEST_TMPDIR/out"
python3 bench/median.py "$TEST_TMPDIR/slower.md" "$TEST_TMPDIR/slower.md" \
	"$table" >"$TEST_TMPDIR/out"
cmp "$TEST_TMPDIR/slower.md" "$TEST_TMPDIR/out"
grep -v '| empty kernel |' "$table" >"$TEST_TMPDIR/fewer.md"
python3 bench/median.py "$table" "$table" "$TEST_TMPDIR/fewer.md" && exit 1
true
