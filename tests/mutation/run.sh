#!/usr/bin/env bash
# run.sh [WORD]: proves that the suites can fail. Each fault of faults.txt (those
# that contain WORD, if given) is put into a copy of the tree, alone; the suite
# that the line names must then fail. A fault that survives, does not apply or
# does not compile ends this with 1. Not part of `bazel test`: it runs Bazel
# once a fault; .ci/run calls it.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."

word=${1:-}
tmp=$(mktemp -d)
tree=$tmp/tree
caught=0 survived=0
export CK_FORK=no

bazel() {
	(cd "$tree" && command bazel --output_user_root="$tmp/bazel" "$@")
}

cleanup() {
	bazel shutdown >/dev/null 2>&1 || true
	chmod -R u+w "$tmp" && rm -rf "$tmp"
}
trap cleanup EXIT

mkdir "$tree"
tar -c --exclude='./bazel-*' --exclude=./.git . | tar -x -C "$tree"

# Replaces OLD, which must stand in FILE exactly once, by NEW.
plant() {
	FILE=$1 OLD=$2 NEW=$3 perl -0777 -pi -e '
		my $n = () = /\Q$ENV{OLD}\E/g;
		die "$ENV{FILE}: found $n times: $ENV{OLD}\n" if $n != 1;
		s/\Q$ENV{OLD}\E/$ENV{NEW}/' "$tree/$1"
}

# A fault is four lines (file, suite, old, new) and an empty one.
while read -r file && read -r suite && IFS= read -r old && IFS= read -r new; do
	IFS= read -r _ || true
	case "$file $suite $old" in
	*"$word"*) ;;
	*) continue ;;
	esac
	cp "$tree/$file" "$tmp/saved"
	rc=0
	plant "$file" "$old" "$new" 2>"$tmp/log" || rc=255
	[ "$rc" -ne 0 ] ||
		bazel test "//tests:$suite" >"$tmp/log" 2>&1 || rc=$?
	cp "$tmp/saved" "$tree/$file"
	case $rc in
	3)
		caught=$((caught + 1))
		echo "caught    $suite: $file: $new"
		;;
	0)
		survived=$((survived + 1))
		echo "SURVIVED  $suite: $file: $new"
		;;
	*)
		survived=$((survived + 1))
		echo "BROKEN    $suite: $file: $new"
		tail -n 20 "$tmp/log"
		;;
	esac
done < <(grep -v '^#' tests/mutation/faults.txt)

echo "mutation: $caught caught, $survived not caught"
[ "$survived" -eq 0 ] && [ "$caught" -gt 0 ]
