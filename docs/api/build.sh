#!/bin/sh
# build.sh DIR: the headers and the pages of docs/ as HTML and man pages, in DIR,
# by Doxygen. Prints what Doxygen complains of; a symbol without a comment is
# such a thing, a field is not, as its name and unit may say enough. Exit status
# 1 if there is any.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
in=$out/in
version=$(sed -n 's/^#define SPMLA_VERSION_[A-Z]* //p' "$root/lib/spmla.h" |
	head -n 3 | paste -sd .)

# As programs include them.
rm -rf "$in"
mkdir -p "$in/spmla/ops" "$in/docs"
cp "$root"/lib/*.h "$root"/platform/*/spmla_*.h "$in/spmla"
cp "$root"/lib/ops/*.h "$in/spmla/ops"
cp "$root"/README.md "$in"
cp "$root"/docs/*.md "$in/docs"
cp "$root/docs/api/filter.awk" "$in"

cd "$in"
{
	cat "$root/docs/api/Doxyfile"
	echo "PROJECT_NUMBER = $version"
	echo "INPUT = $in/README.md $in/docs $in/spmla"
	echo "STRIP_FROM_PATH = $in"
	echo "OUTPUT_DIRECTORY = $out"
} | doxygen - >/dev/null 2>"$out/warnings"
rm -rf "$in"
# Pages of headers and of what begins with spmla, but not of each field.
find "$out/man/man3" -type f ! -iname 'spmla*' ! -name '*.h.3' -delete
! sed -E -e "s,^$in/,," -e '/ Member .* of struct [a-z0-9_]+ is not doc/d' \
	-e '/^[[:space:]]*$/d' "$out/warnings" | grep .
