#!/usr/bin/env bash
# kernel_report.sh [--target SM] [REPORT]
# kernel_report.sh [--target SM] OLD NEW
# Registers, bytes of static shared memory, of stack and spills, and of code of
# every kernel for CUDA, by target, as nvcc made them. platform/cuda/blob.sh writes
# REPORT. Without one this tree is built, and the table has the bytes of dynamic
# shared memory, too. With two: what differs, and the sums by target.
# From the same sources nvcc may make code for sm_90a that differs by a few
# instructions, 16 bytes each; code is padded to 128 bytes.
set -euo pipefail

# shellcheck source=bench/report.sh
. "$(dirname "${BASH_SOURCE[0]}")/report.sh"
report_options cuda nvcc 2 "$@"
set -- "${reports[@]}"

# KERNEL TARGET REGISTERS SHARED STACK CODE, from ptxas's lines: Compiling entry
# function 'KERNEL' for 'TARGET'; B bytes stack frame, B bytes spill stores, B
# bytes spill loads; Used N registers, .., B bytes smem; and ours.
rows() { # REPORT
	awk -v q="'" -v target="$target" '
		/ Compiling entry function / {
			split($0, word, q)
			at = word[2] " " word[4]
			shared[at] = stack[at] = code[at] = 0
		}
		/ bytes stack frame, / { stack[at] = $1 + $5 + $9 }
		match($0, /Used [0-9]+ registers/) {
			registers[at] = substr($0, RSTART + 5, RLENGTH - 15)
		}
		match($0, /[0-9]+ bytes smem/) {
			shared[at] = substr($0, RSTART, RLENGTH - 11)
		}
		$1 == "code" { code[$3 " " $2] = $4 }
		END {
			for (at in registers) {
				split(at, word, " ")
				if (target == "" || word[2] == target)
					print at, registers[at], shared[at],
						stack[at], code[at]
			}
		}' "$1" | LC_ALL=C sort
}

if [ -n "$built" ]; then
	./bazelw build //bench:kernel_sizes >&2
	echo "| kernel | target | registers | shared | stack | code | dynamic |"
	echo "|---|---|---|---|---|---|---|"
	LC_ALL=C join <(rows "$1") \
		<(bazel-bin/bench/kernel_sizes | LC_ALL=C sort) |
		sed 's/ / | /g; s/.*/| & |/'
	exit
fi
if [ $# -eq 1 ]; then
	echo "| kernel | target | registers | shared | stack | code |"
	echo "|---|---|---|---|---|---|"
	rows "$1" | sed 's/ / | /g; s/.*/| & |/'
	exit
fi

echo "| kernel | target | registers | shared | stack | code |"
echo "|---|---|---|---|---|---|"
LC_ALL=C join -a 1 -a 2 -e - -o 0,1.2,1.3,1.4,1.5,2.2,2.3,2.4,2.5 \
	<(rows "$1" | sed 's/ /,/') <(rows "$2" | sed 's/ /,/') | awk '
	function change(a, b) { return a == b ? a : a " -> " b }
	{
		split($1, at, ",")
		for (i = 2; i <= 5; i++) {
			old[at[2], i] += $i
			new[at[2], i] += $(i + 4)
		}
		targets[at[2]]
		if ($2 " " $3 " " $4 " " $5 == $6 " " $7 " " $8 " " $9) {
			same++
			next
		}
		print "| " at[1] " | " at[2] " | " change($2, $6) " | " \
			change($3, $7) " | " change($4, $8) " | " \
			change($5, $9) " |"
	}
	END {
		for (t in targets)
			print "| all | " t " | " change(old[t, 2], new[t, 2]) \
				" | " change(old[t, 3], new[t, 3]) " | " \
				change(old[t, 4], new[t, 4]) " | " \
				change(old[t, 5], new[t, 5]) " |" | "sort"
		close("sort")
		print "\n" same + 0 " are the same."
	}'
