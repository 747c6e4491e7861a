#!/usr/bin/env bash
# api_docs.sh ARCHIVE: docs/api/build.sh makes the documentation without a
# complaint, so every symbol has a comment; each function of the archive has a
# man page; each link of the HTML pages leads somewhere.
set -euo pipefail

archive=$1
out=$TEST_TMPDIR/api
if ! command -v doxygen >/dev/null; then
	echo "SKIPPED: doxygen is not there"
	echo SKIPPED
	exit
fi

docs/api/build.sh "$out" || {
	echo "FAIL: Doxygen complains"
	exit 1
}

bad=0 count=0
while read -r function; do
	count=$((count + 1))
	[ -s "$out/man/man3/$function.3" ] || {
		echo "FAIL: no man page of $function"
		bad=1
	}
done < <(nm -P -g --defined-only "$archive" |
	awk '$2 == "T" && $1 !~ /^spmla_i_/ { print $1 }' | sort -u)
echo "$count functions"
[ "$count" -gt 80 ]

# Anchors are ids or names; what is checked is within the pages.
cd "$out/html"
awk '
	{
		line = $0
		while (match(line, /(id|name|href)="[^"]*"/)) {
			one = substr(line, RSTART, RLENGTH)
			line = substr(line, RSTART + RLENGTH)
			value = one
			sub(/^[a-z]*="/, "", value)
			sub(/"$/, "", value)
			if (one !~ /^href/)
				is[FILENAME "#" value]
			else if (value !~ /^[a-z]+:/)
				from[value ~ /^#/ ? FILENAME value : value] = FILENAME
		}
	}
	END {
		for (to in from) {
			links++
			file = to
			sub(/#.*/, "", file)
			if (to ~ /\.html#./)
				there = to in is
			else
				there = (getline line <file) >= 0
			close(file)
			if (!there) {
				print "FAIL: " from[to] ": no " to
				bad = 1
			}
		}
		print links " links"
		exit bad || links < 500
	}' *.html
exit "$bad"
