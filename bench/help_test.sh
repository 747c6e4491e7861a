#!/usr/bin/env bash
# help_test.sh PROGRAM..: each lists its options and tells its version; a wrong
# option is an error, which names the nearest one.
set -uo pipefail

bad=0

# says STATUS TEXT PROGRAM OPTION..
says() {
	local want=$1 text=$2 out rc
	shift 2
	out=$("$@" 2>&1)
	rc=$?
	if [ "$rc" -ne "$want" ] || ! grep -qE -- "$text" <<<"$out"; then
		echo "FAIL: $*: exit status $rc, no \"$text\": $out"
		bad=1
	fi
}

for program in "$@"; do
	name=$(basename "$program")
	for option in --help -h; do
		says 0 "^usage: $name " "$program" $option
		says 0 '^  --svg +file to draw' "$program" $option
	done
	says 0 "^$name of SpMLA [0-9]+\.[0-9]+\.[0-9]+$" "$program" --version
	says 2 "^$name: --secnods: .* nearest is --seconds;" \
		"$program" --secnods 3
	says 2 "^$name: --seconds: \"no\" is not" "$program" --seconds no
done
exit $bad
