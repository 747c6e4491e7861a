# shellcheck shell=bash
# Options of the scripts that print what a compiler reported of the kernels. Their
# help is the comment that they begin with, up to `set`.

# Sets `target` and `reports`: the files that were named, MOST at most. If none was,
# builds this tree's report and takes it, and sets `built`.
report_options() { # PLATFORM COMPILER MOST OPTIONS...
	local platform=$1 compiler=$2 most=$3 name=${0##*/} report
	shift 3
	if [ "${1:-}" = -h ] || [ "${1:-}" = --help ]; then
		sed -n "/^# $name/,/^set/s/^# //p" "$0"
		exit
	fi
	target= built=
	if [ "${1:-}" = --target ]; then
		target=$2
		shift 2
	fi
	if [ $# -gt "$most" ]; then
		sed -n "s/^# \\($name .*\\)/usage: \\1/p" "$0" >&2
		exit 2
	fi
	if [ $# -eq 0 ]; then
		cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
		./bazelw build "//:${platform}_blob_report" >&2
		set -- "bazel-bin/spmla_${platform}_blob.report"
		# shellcheck disable=SC2034 # a script reads it
		built=1
	fi
	for report; do
		[ -s "$report" ] || {
			echo "$name: $report is empty: no $compiler" >&2
			exit 1
		}
	done
	# shellcheck disable=SC2034 # the scripts read it
	reports=("$@")
}
