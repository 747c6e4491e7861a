#!/bin/sh
# blob.sh CC NVCC SOURCE OBJECT FLAGS...: compiles the kernels for CUDA into an
# object file for the library. The object has the fatbin as read-only data,
# aligned to 64 bytes, or no bytes if NVCC is "". Its symbols are
# spmla_i_cuda_blob, _blob_bytes and _blob_driver (the driver version that it
# needs); see driver_cuda.h.
#
# Beside OBJECT, x.o, are x.fatbin and x.report: what ptxas says of each kernel
# for each target, the bytes of each binary before compression, and the bytes of
# each kernel's code in it (bench/kernel_report.sh prints them).
set -eu

# One binary for each architecture; every device of 8.6 runs 80, every one of 9.0
# runs 90a. The oldest one also has PTX, for devices that are newer than the
# toolkit.
archs='80 89 90a 100 120'

cc=$1 nvcc=$2 source=$3 object=$4
shift 4
blob=${object%.o}.fatbin
report=${object%.o}.report
driver=0

compile() { # FLAGS...
	targets=
	for arch in $archs; do
		virtual=compute_$arch code=sm_$arch
		case $arch in
		80) code="[sm_80,compute_80]" ;;
		esac
		# Only if this toolkit knows it. The list need not have
		# the "a".
		if "$nvcc" --list-gpu-code | grep -qx "sm_${arch%a}"; then
			targets="$targets -gencode=arch=$virtual,code=$code"
		fi
	done
	# Makes the fatbin four times smaller. Older toolkits compress without
	# being asked.
	if "$nvcc" --help | grep -q -e --compress-mode; then
		targets="$targets --compress-mode=size"
	fi
	# nvcc names temporary files after its process ID, which is the same in
	# every sandbox.
	export TMPDIR="$blob.keep"
	rm -rf "$TMPDIR"
	mkdir "$TMPDIR"
	# shellcheck disable=SC2086 # a word each
	"$nvcc" -x cu -DSPMLA_GPU_KERNELS -O3 -fmad=false -t 0 --fatbin \
		$targets -Xptxas -v --keep --keep-dir "$TMPDIR" "$@" \
		-o "$blob" "$source" 2>"$report" || {
		cat "$report" >&2
		exit 1
	}
	grep -vE '^(ptxas info|  )' "$report" >&2 || true # warnings
	for cubin in "$TMPDIR"/*.cubin; do
		arch=${cubin##*_}
		arch=sm_${arch%.cubin}
		echo "cubin $arch $(wc -c <"$cubin") bytes" >>"$report"
		# readelf: [Nr] name type address offset size ..
		readelf -SW "$cubin" 2>/dev/null | sed 's/\[ */[/' |
			while read -r _ name type _ _ bytes _; do
				case $name:$type in
				.text.*:PROGBITS)
					echo "code $arch ${name#.text.}" \
						"$((0x$bytes)) bytes"
					;;
				esac
			done >>"$report"
	done
	rm -rf "$TMPDIR"
	sed -i '/Compile time/d' "$report" # else no two builds are the same
	# Any driver of the toolkit's major version runs its binaries.
	driver=$("$nvcc" --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
}

embed() {
	cat >"$object.S" <<-END
		.section .rodata
		.balign 64
		.globl spmla_i_cuda_blob
		.type spmla_i_cuda_blob, @object
		spmla_i_cuda_blob:
		.incbin "$blob"
		.Lend:
		.size spmla_i_cuda_blob, .Lend - spmla_i_cuda_blob
		.balign 8
		.globl spmla_i_cuda_blob_bytes
		.type spmla_i_cuda_blob_bytes, @object
		.size spmla_i_cuda_blob_bytes, 8
		spmla_i_cuda_blob_bytes:
		.quad .Lend - spmla_i_cuda_blob
		.globl spmla_i_cuda_blob_driver
		.type spmla_i_cuda_blob_driver, @object
		.size spmla_i_cuda_blob_driver, 4
		spmla_i_cuda_blob_driver:
		.long $driver * 1000
		.section .note.GNU-stack,"",@progbits
	END
	"$cc" -c "$object.S" -o "$object"
	rm -f "$object.S"
}

if [ -n "$nvcc" ]; then
	compile "$@"
else
	echo 'left out: kernels for CUDA, without nvcc' >&2
	: >"$blob"
	: >"$report"
fi
embed
