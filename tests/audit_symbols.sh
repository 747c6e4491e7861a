#!/usr/bin/env bash
# audit_symbols.sh ARCHIVE: what the linker and the loader see of libspmla.a.
# It asks of the C library arithmetic and moving bytes only, exports spmla_*
# only, and has no state, no constructors and no executable stack.
set -euo pipefail

shopt -s lastpipe # so that none, at the end of a pipe, sets bad here

archive=$1
bad=0

# Says what is wrong, with the lines on stdin that show it, if there are any.
none() {
	local lines
	lines=$(sort -u)
	if [ -n "$lines" ]; then
		printf '%s:\n%s\n' "$1" "$lines"
		bad=1
	fi
}

allowed='mem(cpy|set|move|cmp)|exp2f|log2f|sqrtf?|_GLOBAL_OFFSET_TABLE_'
# What the compiler makes of them where it hardens by default.
allowed+='|__mem(cpy|set|move)_chk|__stack_chk_fail'

nm -P "$archive" >"$TEST_TMPDIR/nm"
grep -q ' T ' "$TEST_TMPDIR/nm" || echo "$archive" | none 'no code in'

# An archive member may use what another one defines.
awk 'NF >= 3 && $2 ~ /^[A-TV-Z]$/ { print $1 }' "$TEST_TMPDIR/nm" |
	sort -u >"$TEST_TMPDIR/defined"
awk '$2 ~ /^[Uwv]$/ { print $1 }' "$TEST_TMPDIR/nm" | sort -u |
	comm -23 - "$TEST_TMPDIR/defined" | { grep -vxE "$allowed" || true; } |
	none 'undefined, and not on the list of what may be'
{ grep -v '^spmla_' "$TEST_TMPDIR/defined" || true; } |
	none 'exported, and not spmla_*'
awk '$2 ~ /^[CuiI]$/ { print $1 }' "$TEST_TMPDIR/nm" |
	none 'common, unique or indirect symbols'

# One line a section: member, name, size, flags; a section without flags has one
# field less.
readelf -SW "$archive" | sed 's/\[ */[/' | awk '
	$1 == "File:" { member = $2 "#" ++members }
	$1 ~ /^\[[0-9]+\]$/ && $2 ~ /^\./ {
		print member, $2, $6, (NF == 11 ? $8 : "-")
	}' >"$TEST_TMPDIR/sections"

awk '$2 ~ /^\.(init|fini|preinit)(_array)?(\.|$)|^\.[cd]tors/ {
	print $1, $2
}' "$TEST_TMPDIR/sections" | none 'constructors or destructors'
awk '$4 ~ /W/ && $2 !~ /^\.data\.rel\.ro/ && $3 !~ /^0+$/ {
	print $1, $2, $3
}' "$TEST_TMPDIR/sections" | none 'writable data'
awk '{ seen[$1] }
	$2 == ".note.GNU-stack" { ok[$1] = $4 !~ /X/ }
	END { for (m in seen) if (!ok[m]) print m }' "$TEST_TMPDIR/sections" |
	none 'executable stack'

exit "$bad"
