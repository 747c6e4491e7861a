#!/usr/bin/env bash
# includes.sh ARCHIVE: what may include what, and no circles. lib/ knows no
# platform and nobody a vendor's header; a platform knows itself, platform/gpu
# and lib/; a file of platform/gpu is device code or host code, as its name says,
# and device code includes nothing else. Files of kernels and of launches begin
# with an operation's name. A family includes those below it, and of their device
# code only what is shared. No two objects of the archive need each other, by
# whatever way round. And a kernel's name stands where it is defined.
set -euo pipefail

archive=$1
bad=0

fail() { # stdin: what is wrong, a line each
	local lines
	lines=$(sort -u)
	[ -z "$lines" ] || {
		printf '%s\n' "$lines"
		bad=1
	}
}
shopt -s lastpipe # so that fail, at the end of a pipe, sets bad here

# ---- Names ------------------------------------------------------------------

families='step|cache|select|attend|compress|project'
kinds="dialect/[a-z0-9_]+\.h|(all|tile)_kernels\.[ch]|(kernels|ops)\.inc|launch\.[ch]"
kinds+="|ops_launch\.c|driver/[a-z0-9_]+_gpu\.[ch]|($families)/[a-z0-9_]+_device\.h"
ops=$(sed -n 's/^SPMLA_OP(\(.*\))$/\1/p' lib/ops/ops.inc | paste -sd '|')
[ -n "$ops" ]
kinds+="|($families)/($ops)(_[a-z0-9_]+)?_(kernel\.h|launch\.c)"
find -L platform/gpu -type f | sed 's,^platform/gpu/,,' |
	{ grep -vxE "$kinds" || true; } |
	sed 's,^,FAIL: by its name no code of an operation: platform/gpu/,' |
	fail

# ---- Includes ---------------------------------------------------------------

# FILE INCLUDED, both as paths of this tree; a system's header in <>.
find -L lib platform '(' -name '*.[ch]' -o -name '*.inc' ')' \
	-exec grep -Ho '^ *# *include *[<"][^>"]*[>"]' {} + |
	sed -E 's,: *# *include *, ,; s,",,g
		s, spmla/platform/, platform/,
		s, spmla/(spmla_(cpu|cuda|hip|level_zero)\.h), platform/\2/\1,
		s, spmla/, lib/,' >"$TEST_TMPDIR/includes"
[ "$(wc -l <"$TEST_TMPDIR/includes")" -gt 500 ]

awk -v families="step cache select attend,compress,project" '
	BEGIN {
		n = split(families, level, " ")
		for (i = 1; i <= n; i++) {
			m = split(level[i], name, ",")
			for (j = 1; j <= m; j++)
				rank[name[j]] = i
		}
		split("float limits math stddef stdint string", plain, " ")
		for (i in plain)
			may["<" plain[i] ".h>"]
	}
	function wrong(why) { print "FAIL: " $1 " includes " $2 ": " why }
	function is_device(f) {
		return f ~ /^platform\/gpu\/(dialect\/|(all|tile)_kernels\.)/ ||
			f ~ /^platform\/gpu\/.*_(kernel|device)\.h$/
	}
	{ split($1, from, "/"); split($2, to, "/") }
	$2 ~ /^</ {
		if ($2 in may) {
			if (is_device($1) && $1 !~ /\/dialect\/dialect\.h$/)
				wrong("device code has no C library")
		} else if (!($1 ~ /^platform\/cpu\/core\// &&
			     $2 ~ /^<(cpuid|immintrin)\.h>$/) &&
			   !($1 == "platform/gpu/driver/library_gpu.c" &&
			     $2 == "<dlfcn.h>")) {
			wrong("no header of the library is that")
		}
		next
	}
	from[1] == "lib" && to[1] != "lib" { wrong("a platform") }
	from[1] == "platform" && to[1] == "platform" && from[2] != to[2] &&
		to[2] != "gpu" { wrong("another platform") }
	from[2] == "gpu" && is_device($1) && !is_device($2) &&
		$2 != "lib/spmla_layout.h" &&
		$2 != "platform/gpu/kernels.inc" { wrong("host code") }
	from[2] == "gpu" && $1 ~ /_launch\.c$/ && to[1] == "platform" &&
		$2 !~ /^platform\/gpu\/(launch\.h|ops\.inc)$/ {
		wrong("the launches have launch.h")
	}
	# From here on, the two platforms that have families.
	from[1] != "platform" || to[1] != "platform" ||
		$1 ~ /\/((all|tile)_kernels|launch)\.[ch]$/ || $1 ~ /_launch\.c$/ ||
		from[2] ~ /^(cuda|hip|level_zero)$/ || from[3] == "driver" { next }
	from[3] !~ /\./ && to[3] !~ /\./ && from[3] != to[3] {
		if (rank[to[3]] >= rank[from[3]])
			wrong("not a lower family")
		else if (rank[to[3]] && to[2] == "gpu" &&
			 $2 !~ /_device\.h$/)
			wrong("a kernel of another family")
	}' "$TEST_TMPDIR/includes" | fail

# ---- Objects ----------------------------------------------------------------

# Each object before those that it needs; tsort names the members of a circle.
nm -A -P "$archive" | sed -E 's,^[^[]*\[([^]]*)\]: ,\1 ,' |
	awk '$3 ~ /^[TDRBV]$/ { in_object[$2] = $1 }
		$3 == "U" { needs[$1, $2] }
		END {
			for (pair in needs) {
				split(pair, p, SUBSEP)
				if (p[2] in in_object)
					print p[1], in_object[p[2]]
			}
		}' >"$TEST_TMPDIR/needs"
[ "$(wc -l <"$TEST_TMPDIR/needs")" -gt 200 ]
{ tsort "$TEST_TMPDIR/needs" 2>&1 >"$TEST_TMPDIR/order" || true; } |
	sed 's,^tsort: ,FAIL: a circle of objects: ,' | fail

# ---- Kernels ----------------------------------------------------------------

# A definition is three lines, SPMLA_KERNEL(x), void, spmla_k_x(..., or four
# where x is long.
find -L platform/gpu -name '*_kernel.h' -exec awk '
	/^SPMLA_KERNEL(_BLOCKS|_CLUSTER)?\(/ { split($0, w, /[(,)]/); stem = w[2] }
	/^spmla_k_/ {
		if (/\($/ && (getline more) > 0) {
			sub(/^[ \t]+/, "", more)
			$0 = $0 more
		}
		split($0, w, /[(,)]/)
		print (w[1] == "spmla_k_" stem && w[2] == "SPMLA_KERNEL_ARGS" &&
		       w[3] == stem) ? stem : "FAIL: " FILENAME ": " $0
		stem = ""
	}' {} + | sort >"$TEST_TMPDIR/defined"
{ grep '^FAIL' "$TEST_TMPDIR/defined" || true; } | fail
sed -n 's/^SPMLA_KERNEL_[A-Z]*(\([a-z0-9_]*\),.*/\1/p' \
	platform/gpu/kernels.inc | sort >"$TEST_TMPDIR/listed"
[ -s "$TEST_TMPDIR/listed" ]
{ grep -v '^FAIL' "$TEST_TMPDIR/defined" || true; } |
	{ diff - "$TEST_TMPDIR/listed" || true; } |
	sed -n 's/^[<>] /FAIL: one definition and one line in kernels.inc: /p' |
	fail

echo "$(wc -l <"$TEST_TMPDIR/includes") includes," \
	"$(wc -l <"$TEST_TMPDIR/order") objects," \
	"$(wc -l <"$TEST_TMPDIR/listed") kernels"
exit "$bad"
