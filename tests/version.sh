#!/usr/bin/env bash
# Files that repeat the version have the version of lib/spmla.h.
set -euo pipefail

bad=0

part() {
	sed -n "s/^#define SPMLA_VERSION_$1 \([0-9]*\)\$/\1/p" lib/spmla.h
}
version=$(part MAJOR).$(part MINOR).$(part PATCH)
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]]

# says FILE WHAT: the first line that a sed script finds there.
says() {
	local found
	found=$(sed -n "$2" "$1" | head -n 1)
	if [ "$found" != "$version" ]; then
		echo "FAIL: $1 says $found, lib/spmla.h $version"
		bad=1
	fi
}

says MODULE.bazel 's/^ *version = "\(.*\)",$/\1/p'
says CHANGELOG.md 's/^## //p'
says docs/building.md \
	's/^bazel_dep(name = "spmla", version = "\(.*\)")$/\1/p'

# The first two numbers: the shared object's name, and what is asked of CMake.
version=${version%.*}
says python/spmla/_native.py 's/.*"libspmla\.so\.\([0-9.]*\)".*/\1/p'
says examples/consumer/CMakeLists.txt \
	's/^find_package(SpMLA \([0-9.]*\) .*/\1/p'
exit "$bad"
