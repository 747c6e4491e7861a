#!/usr/bin/env bash
# fields.sh PROGRAM.cu..: the fields that these programs want in a diag are
# fields of the library. They run on a device only, where CI has none.
set -uo pipefail

bad=0 count=0
for field in $(sed -nE 's/.*(SPMLA_GIVES|BROKEN)\(([A-Z_0-9]+, *)?"([^"]+)".*/\3/p' \
	"$@" | sort -u); do
	count=$((count + 1))
	grep -RqE "\"$field( \(.*)?\"" lib platform && continue
	echo "FAIL: no field of the library is \"$field\""
	bad=1
done
echo "$count fields"
[ "$count" -ge 4 ] || bad=1
exit $bad
