#!/usr/bin/env bash
# Each link of a page of this checkout leads to a file of it, and one with a
# #heading to such a heading; each page of docs/ is linked from README.md.
set -euo pipefail

root=$(dirname "$(readlink -f README.md)")
cd "$root"
bad=0

fail() {
	echo "FAIL: $*"
	bad=1
}

# The anchors of a page's headings, as forges make them.
anchors() {
	sed -n 's/^#\{1,6\} //p' "$1" | tr '[:upper:]' '[:lower:]' |
		sed -e 's/[^a-z0-9 _-]//g' -e 's/ /-/g'
}

links=0
while read -r page; do
	# A link's text may end on another line than it begins.
	while read -r link; do
		links=$((links + 1))
		path=${link%%#*}
		file=${path:+$(dirname "$page")/$path}
		file=${file:-$page}
		[ -e "$file" ] || {
			fail "$page: $link: no such file"
			continue
		}
		case $link in
		*'#'*) anchors "$file" | grep -qxF "${link#*#}" ||
			fail "$page: $link: no such heading" ;;
		esac
	done < <(awk '/^```/ { code = !code; next } !code' "$page" |
		grep -oE '\]\([^)]+\)' | sed -e 's/^](//' -e 's/)$//' |
		grep -vE '^(https?|mailto):' || true)
done < <(find . -path './bazel-*' -prune -o -path ./out -prune -o \
	-name '*.md' -print)

for page in docs/*.md; do
	grep -qF "($page)" README.md || fail "README.md does not link $page"
done

echo "$links links"
[ "$links" -ge 20 ] && [ "$bad" -eq 0 ]
