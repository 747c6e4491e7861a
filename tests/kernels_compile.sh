#!/usr/bin/env bash
# kernels_compile.sh: the kernels that are written once compile for AMD GPUs (two
# generations, subgroups of 64 and of 32) and to SPIR-V, with every kernel in
# what comes out; and with nvcc, where it is there, none of them has a stack,
# which would be memory that the driver takes by itself.
set -euo pipefail

out=$TEST_TMPDIR
include=$out/include
source=platform/gpu/kernels_gpu.c
mkdir -p "$include/spmla"
cp -RL lib/. "$include/spmla"
cp -RL platform "$include/spmla"
flags=(-DSPMLA_GPU_KERNELS "-I$include")
bad=0

for tool in clang-19 clang-15 llvm-spirv-15; do
	if ! command -v "$tool" >/dev/null; then
		echo "FAIL: $tool is not there; bazelw says what to install"
		exit 1
	fi
done

kernels=$(sed -n 's/^SPMLA_KERNEL_LINE(\([a-z0-9_]*\),.*/spmla_k_\1/p' \
	platform/gpu/kernels.inc)
[ -n "$kernels" ]

holds_all() { # FILE
	local k
	for k in $kernels; do
		grep -qaF "$k" "$1" || {
			echo "FAIL: ${1##*/} has no $k"
			bad=1
		}
	done
	echo "${1##*/}: $(wc -c <"$1") bytes"
}

for arch in gfx90a gfx1100; do
	clang-19 -x hip "${flags[@]}" --offload-arch=$arch \
		--offload-device-only --no-gpu-bundle-output -nogpuinc \
		-nogpulib -O3 -ffp-contract=off -Wall -Wextra -Werror "$source" \
		-o "$out/$arch.hsaco"
	holds_all "$out/$arch.hsaco"
done

extensions=+cl_khr_subgroup_shuffle,+cl_khr_subgroup_ballot
clang-15 -x cl "${flags[@]}" -cl-std=CL2.0 -target spir64-unknown-unknown \
	-Xclang -finclude-default-header -Xclang -cl-ext=$extensions \
	-Xclang -disable-llvm-passes -O2 -Wall -Wextra -Werror -emit-llvm \
	-c "$source" -o "$out/kernels.bc"
llvm-spirv-15 "$out/kernels.bc" -o "$out/kernels.spv"
holds_all "$out/kernels.spv"

nvcc=${NVCC:-/usr/local/cuda/bin/nvcc}
if [ -x "$nvcc" ]; then
	for arch in 80 90a; do
		"$nvcc" -x cu "${flags[@]}" -O3 -fmad=false --cubin \
			-gencode=arch=compute_$arch,code=sm_$arch \
			-Xptxas -v "$source" -o "$out/sm_$arch.cubin" \
			2>"$out/ptxas"
		grep -q 'bytes stack frame' "$out/ptxas"
		if awk '/Function properties/ { name = $NF }
			/bytes stack frame/ && !/ 0 bytes stack frame, 0 bytes spill stores/ {
				print name ":" $0
			}' "$out/ptxas" | grep .; then
			echo "FAIL: a stack, for sm_$arch"
			bad=1
		fi
		holds_all "$out/sm_$arch.cubin"
	done
else
	echo "SKIPPED: no nvcc, so no look at stacks"
fi
exit "$bad"
