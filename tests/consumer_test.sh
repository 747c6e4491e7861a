#!/usr/bin/env bash
# Builds and runs examples/consumer as another project would: with SpMLA as a
# local_repository, and copied to third_party/spmla by a project that compiles
# everything with -ffast-math; as a local_repository also by one that does so
# and wants the kernels for CUDA, if the machine has a toolkit.
set -euo pipefail

root=$(dirname "$(readlink -f BUILD.bazel)")
tmp=$TEST_TMPDIR/consumer
external=$tmp/external/examples/consumer
vendored=$tmp/vendored
export HOME=$TEST_TMPDIR

bazel() {
	command bazel --nohome_rc --output_user_root="$TEST_TMPDIR/bazel" "$@"
}

# Each of the two workspaces has a Bazel server of its own.
cleanup() {
	for dir in "$external" "$vendored"; do
		(cd "$dir" && bazel shutdown) || true
	done
	chmod -R u+w "$TEST_TMPDIR" && rm -rf "$tmp" "$TEST_TMPDIR/bazel"
}

# build and run, with these options
runs() {
	local out
	out=$(bazel run --nosandbox_debug "$@" //:consumer)
	echo "$out"
	[[ $out == 'spmla '* ]]
}

mkdir -p "$external" "$vendored/third_party/spmla"
trap cleanup EXIT
cd "$root"
cp -R BUILD.bazel WORKSPACE lib platform "$tmp/external"
cp -R BUILD.bazel lib platform "$vendored/third_party/spmla"

cd examples/consumer
cp BUILD.bazel WORKSPACE main.c "$external"
cp main.c "$vendored"
sed 's|@spmla//:spmla|//third_party/spmla|' BUILD.bazel >"$vendored/BUILD.bazel"
# Without the repository spmla, and with the stubs of the copy.
sed -e '/^local_repository(/{N;/"spmla"/{N;N;d}}' \
	-e 's|\.\./\.\./|third_party/spmla/|' \
	-e 's|"@spmla//:|"//third_party/spmla:|' WORKSPACE >"$vendored/WORKSPACE"

# The bytes of kernels in the project's libspmla.a.
kernel_bytes() { # PACKAGE
	wc -c <"$(find -L "bazel-bin/$1" -name spmla_cuda_blob.fatbin)"
}

cd "$vendored"
runs --copt=-ffast-math
[ "$(kernel_bytes third_party/spmla)" -eq 0 ]
cd "$external"
runs
[ "$(kernel_bytes external/spmla)" -eq 0 ]
# The kernels take a while: in one of the two.
runs --copt=-ffast-math --@spmla//:cuda_toolkit=@spmla_cuda_toolkit//:nvcc
[ ! -x "${NVCC:-/usr/local/cuda/bin/nvcc}" ] ||
	[ "$(kernel_bytes external/spmla)" -gt 1000 ]
