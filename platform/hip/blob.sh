#!/bin/sh
# blob.sh CC CLANG SOURCE OBJECT FLAGS...: compiles the kernels for HIP into an
# object file for the library. CLANG lists compilers, one per word. Each
# architecture uses the first one that makes a code object for it; a compiler
# needs its lld for that. The object has the code objects as read-only data,
# each aligned to 4096 bytes, or no bytes if CLANG is "". Its symbols are
# spmla_i_hip_blob, _hip_parts and _hip_part_count; see driver_hip.h.
#
# Beside OBJECT, x.o, are x.hsaco with all code objects, and x.report: the bytes
# of each code object, and what the compiler says of each kernel in it.
set -eu

archs='90a 942 950 1100 1201'

cc=$1 clangs=$2 source=$3 object=$4
shift 4
blob=${object%.o}.hsaco
report=${object%.o}.report
dir=$object.d
parts=

compile() { # CLANG ARCH SOURCE TO FLAGS...
	clang=$1 arch=$2 from=$3 to=$4
	shift 4
	# The oldest code object version, which every runtime loads.
	"$clang" -x hip --offload-arch="gfx$arch" --offload-device-only \
		--no-gpu-bundle-output -nogpuinc -nogpulib -O3 \
		-ffp-contract=off -mcode-object-version=4 "$@" "$from" -o "$to"
}

# The first compiler that can build for an architecture, or nothing.
compiler_of() { # ARCH
	for clang in $clangs; do
		if compile "$clang" "$1" "$dir/try.c" "$dir/try" \
			>"$dir/try.log" 2>&1; then
			echo "$clang"
			return
		fi
	done
}

# Prints a line for each kernel: "kernel ARCH NAME vgprs N agprs N sgprs N
# scratch N lds N spills N matrix N". "matrix" counts matrix instructions in the
# assembly; the rest is from the compiler's log (standard input), if it says.
resources() { # ARCH ASSEMBLY
	awk -v arch="$1" '
		function end() {
			if (name)
				print "kernel", arch, name, "vgprs", v + 0, \
					"agprs", a + 0, "sgprs", s + 0, \
					"scratch", scratch + 0, "lds", lds + 0, \
					"spills", spills + 0, \
					"matrix", matrix[name] + 0
			spills = 0
		}
		FNR == NR {
			if (/^spmla_k_[a-z0-9_]*:/)
				here = substr($1, 1, length($1) - 1)
			if ($1 ~ /^v_(mfma|wmma)_/)
				matrix[here]++
			next
		}
		!/remark: / || !/kernel-resource-usage/ { next }
		{
			sub(/.*remark: */, "")
			sub(/^[^ ]*:[0-9]+:[0-9]+: */, "")
			sub(/ \[-R.*/, "")
			n = $NF
		}
		/^Function Name:/ { end(); name = n }
		/^ *(Total)?SGPRs:/ { s = n }
		/^ *VGPRs:/ { v = n }
		/^ *AGPRs:/ { a = n }
		/^ *ScratchSize/ { scratch = n }
		/^ *[SV]GPRs Spill:/ { spills += n }
		/^ *LDS Size/ { lds = n }
		END { end() }' "$2" -
}

rm -rf "$dir"
mkdir -p "$dir"
: >"$report"
: >"$blob"
# What a compiler must be able to build: builtins that the dialect needs, and
# that clang 15 lacks.
cat >"$dir/try.c" <<END
__attribute__((global)) void k(float *x)
{
	*x = __builtin_amdgcn_exp2f(*x) + __builtin_amdgcn_logf(*x) +
		__builtin_amdgcn_wavefrontsize();
}
END
at=0
[ -n "$clangs" ] || echo 'left out: kernels for HIP, without clang' >&2
for arch in $archs; do
	[ -n "$clangs" ] || break
	clang=$(compiler_of "$arch")
	if [ -z "$clang" ]; then
		echo "left out: gfx$arch, which no compiler knows" | tee -a "$report" >&2
		continue
	fi
	compile "$clang" "$arch" "$source" "$dir/$arch" -DSPMLA_GPU_KERNELS \
		-Wall -Wextra -Rpass-analysis=kernel-resource-usage -save-temps=obj \
		"$@" 2>"$dir/log" || {
		cat "$dir/log" >&2
		exit 1
	}
	grep 'warning:' "$dir/log" | tee -a "$report" >&2 || true
	bytes=$(wc -c <"$dir/$arch")
	echo "code gfx$arch $bytes bytes" >>"$report"
	# If there is no assembly, the count of matrix instructions is 0.
	[ -e "$(echo "$dir"/*-gfx"$arch".s)" ] || echo ';' >"$dir/none-gfx$arch.s"
	resources "gfx$arch" "$dir"/*-gfx"$arch".s <"$dir/log" >>"$report"
	cat "$dir/$arch" >>"$blob"
	parts="$parts
		.quad 0x$arch, $at, $bytes"
	at=$(((at + bytes + 4095) / 4096 * 4096))
	dd if=/dev/null of="$blob" bs=1 seek="$at" 2>/dev/null
done
rm -rf "$dir"

cat >"$object.S" <<END
		.section .rodata
		.balign 4096
		.globl spmla_i_hip_blob
		.type spmla_i_hip_blob, @object
		spmla_i_hip_blob:
		.incbin "$blob"
		.Lend:
		.size spmla_i_hip_blob, .Lend - spmla_i_hip_blob
		.balign 8
		.globl spmla_i_hip_parts
		.type spmla_i_hip_parts, @object
		spmla_i_hip_parts:$parts
		.Lparts:
		.size spmla_i_hip_parts, .Lparts - spmla_i_hip_parts
		.globl spmla_i_hip_part_count
		.type spmla_i_hip_part_count, @object
		.size spmla_i_hip_part_count, 8
		spmla_i_hip_part_count:
		.quad (.Lparts - spmla_i_hip_parts) / 24
		.section .note.GNU-stack,"",@progbits
END
"$cc" -c "$object.S" -o "$object"
rm -f "$object.S"
