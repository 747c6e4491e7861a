#!/usr/bin/env bash
# consumer_test.sh ARCHIVE: the recipes of docs/building.md for other Bazel projects,
# run as they stand there: a project made of its blocks, which are the files of
# examples/consumer, with SpMLA beside it and kernels for its platforms; then the
# same project with SpMLA copied in, compiled with -ffast-math and without kernels.
# All of the library has the same flags, so they compile the sources in lib/ itself
# and some others. The other objects are taken from ARCHIVE, which is this build's.
set -euo pipefail

archive=$PWD/$1
root=$PWD
tmp=$TEST_TMPDIR/consumer
export HOME=$TEST_TMPDIR

bazel() {
	# It runs for seconds, in which the JVM's second compiler brings nothing.
	command bazel --nohome_rc --output_user_root="$TEST_TMPDIR/bazel" \
		--host_jvm_args=-XX:TieredStopAtLevel=1 "$@"
}

cleanup() {
	(cd "$tmp/project" && bazel shutdown) || true
	chmod -R u+w "$TEST_TMPDIR" && rm -rf "$tmp" "$TEST_TMPDIR/bazel"
}

fail() {
	echo "FAIL: $*"
	exit 1
}

# Builds and runs it, with these options. It does not optimise, which is faster;
# the library's own flags are looked up in the actions.
runs() {
	local out
	# A sandbox for each file takes longer than compiling it.
	out=$(bazel run --spawn_strategy=local --per_file_copt=.*@-O0 "$@" \
		//:consumer)
	echo "$out"
	[[ $out == 'spmla '*', one step, '* ]] || fail "the consumer's output"
}

# The bytes of kernels in the project's libspmla.a.
kernel_bytes() { # PACKAGE FILE
	wc -c <"$(find -L "bazel-bin/$1" -name "$2")"
}

# The text of the page's section, and its block that begins with "# NAME".
section() {
	awk '/^## / { inside = $0 == "## In a Bazel project" } inside' \
		"$root/docs/building.md"
}

block() { # NAME
	section | awk -v name="# $1" '
		/^```/ { fenced = !fenced; wanted = 0; first = fenced; next }
		first { wanted = $0 == name; first = 0; next }
		wanted'
}

mkdir -p "$tmp/project" "$tmp/spmla"
trap cleanup EXIT
cp -R WORKSPACE BUILD.bazel Makefile lib platform "$tmp/spmla"
cd "$tmp/project"
for file in WORKSPACE .bazelrc BUILD.bazel; do
	block "$file" >"$file"
	sed -e 's,"../..","../spmla",' -e '/^# For SpMLA/,$d' \
		"$root/examples/consumer/$file" |
		diff -B - "$file" || fail "examples/consumer/$file says otherwise"
done
cp "$root/examples/consumer/main.c" .

# The compiler of both projects; Bazel's last words are "-c SOURCE -o OBJECT".
mkdir ../objects
(cd ../objects && ar x "$archive")
cat >../cc <<END
#!/bin/bash
source=\${*: -3:1} object=\${*: -1}
case \$source in
*/platform_*.c | */ops/topk.c | */topk_launch.c | */topk_cpu.c) exec gcc "\$@" ;;
*/spmla/lib/*/*.c | */spmla/platform/*.c)
	cp "$tmp/objects/\${object##*/}" "\$object"
	echo "\$object:" >"\${object%.o}.d"
	;;
*) exec gcc "\$@" ;;
esac
END
chmod +x ../cc
export CC=$tmp/cc

blobs='spmla_cuda_blob.fatbin spmla_hip_blob.hsaco spmla_level_zero_blob.spv'
NVCC=$root/tests/substitutes/nvcc.sh \
	HIP_CLANG=$root/tests/substitutes/clang.sh \
	LEVEL_ZERO_TOOLS="$root/tests/substitutes/clang.sh \
$root/tests/substitutes/llvm_spirv.sh" runs
for file in $blobs; do
	[ "$(kernel_bytes external/spmla $file)" -gt 0 ] || fail "empty: $file"
done
bazel aquery 'mnemonic("CppCompile", @spmla//:spmla)' >../actions
[ "$(grep -oE '^ +-O[0-9a-z]+' ../actions | sort -u)" = '    -O2' ] ||
	fail "not compiled with -O2 alone"

block 'Copied in' >../copy.sh
grep -q third_party ../copy.sh
bash -eu ../copy.sh
NVCC=$tmp/none HIP_CLANG=$tmp/none LEVEL_ZERO_TOOLS="$tmp/none $tmp/none" \
	runs --copt=-ffast-math
for file in $blobs; do
	[ "$(kernel_bytes third_party/spmla $file)" -eq 0 ] ||
		fail "not empty without a compiler: $file"
done
