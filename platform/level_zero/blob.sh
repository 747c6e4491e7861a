#!/bin/sh
# blob.sh CC TOOLS SOURCE OBJECT FLAGS...: compiles the kernels for Level Zero
# into an object file for the library. TOOLS are a clang and the llvm-spirv of
# its version. The object has two SPIR-V modules as read-only data, each aligned
# to 64 bytes: one of SOURCE, and one of tile_kernels.c beside it, which not
# every device can build. If TOOLS is "", they have no bytes. The symbols are
# spmla_i_level_zero_blob, _blob_bytes, _tiles and _tiles_bytes; see
# driver_level_zero.h.
#
# Beside OBJECT, x.o, are x.spv with both modules, and x.report: a line "kernel
# NAME items N subgroup N contracts 0|1" for each entry point; "needs MODULE
# FUNCTION" for each function that only a device's compiler has; for each module
# "atomics N narrow N" (see below) and its bytes.
set -eu

cc=$1 tools=$2 source=$3 object=$4
shift 4
blob=${object%.o}.spv
report=${object%.o}.report
bitcode=$object.bc
tiles_at=0

# The device's compiler does what clang's passes would do. Without them clang
# emits no LLVM instruction that SPIR-V lacks. llvm-spirv, too, is told that no
# kernel may contract, even one in which clang sees nothing to contract.
compile() { # CLANG LLVM_SPIRV SOURCE TO FLAGS...
	clang=$1 spirv=$2 from=$3 to=$4
	shift 4
	"$clang" -x cl -DSPMLA_GPU_KERNELS -cl-std=CL2.0 \
		-target spir64-unknown-unknown \
		-Xclang -finclude-default-header \
		-Xclang -cl-ext=+cl_khr_subgroup_shuffle,+cl_khr_subgroup_ballot \
		-Xclang -disable-llvm-passes -O2 -ffp-contract=off \
		-Wall -Wextra "$@" -emit-llvm -c "$from" -o "$bitcode"
	"$spirv" --spirv-fp-contract=off "$bitcode" -o "$to"
	"$spirv" --spirv-fp-contract=off -to-text "$to" -o "$bitcode"
	# EntryPoint 6 ID NAME; ExecutionMode ID 17 X Y Z (the block), 35 N (the
	# subgroup), 31 (no contraction). An atomic on global memory (storage
	# class 5) is narrow if its scope is not the device (1).
	name=${from##*/}
	awk -v module="${name%_kernels.c}" '$2 == "EntryPoint" { gsub(/"/, "", $5); name[$4] = $5 }
		$2 == "ExecutionMode" && $4 == 17 { items[$3] = $5 * $6 * $7 }
		$2 == "ExecutionMode" && $4 == 35 { width[$3] = $5 }
		$2 == "ExecutionMode" && $4 == 31 { off[$3] = 1 }
		$2 == "TypePointer" { class[$3] = $4 }
		$2 == "Constant" { value[$4] = $5 }
		$2 == "Decorate" && $4 == "LinkageAttributes" && \
			$NF == "Import" && $5 !~ /__spirv_BuiltIn/ {
			gsub(/"/, "", $5)
			print "needs", module, $5
		}
		{ type[$4] = $3 }
		$2 ~ /^Atomic/ { at[++n] = $5; scope[n] = $6 }
		END {
			for (i = 1; i <= n; i++)
				narrow += class[type[at[i]]] == 5 && \
					value[scope[i]] != 1
			print "atomics", n + 0, "narrow", narrow + 0
			for (id in name)
				print "kernel", name[id], "items", \
					items[id] + 0, "subgroup", \
					width[id] + 0, "contracts", !off[id]
		}' "$bitcode" | sort >>"$report"
	rm -f "$bitcode"
	echo "code spirv $(wc -c <"$to") bytes" >>"$report"
}

both() { # CLANG LLVM_SPIRV FLAGS...
	clang=$1 spirv=$2
	shift 2
	compile "$clang" "$spirv" "$source" "$blob" "$@"
	compile "$clang" "$spirv" "${source%/*}/tile_kernels.c" "$object.spv" "$@"
	tiles_at=$((($(wc -c <"$blob") + 63) / 64 * 64))
	bytes=$(wc -c <"$blob")
	dd if=/dev/null of="$blob" bs=1 seek="$tiles_at" 2>/dev/null
	cat "$object.spv" >>"$blob"
	rm -f "$object.spv"
}

bytes=0
: >"$blob"
: >"$report"
if [ -n "$tools" ]; then
	# shellcheck disable=SC2086 # a word each
	both $tools "$@"
else
	echo 'left out: kernels for Level Zero, without llvm-spirv' >&2
fi

cat >"$object.S" <<END
		.section .rodata
		.balign 64
		.globl spmla_i_level_zero_blob, spmla_i_level_zero_tiles
		.type spmla_i_level_zero_blob, @object
		.type spmla_i_level_zero_tiles, @object
		spmla_i_level_zero_blob:
		.incbin "$blob"
		.Lend:
		.size spmla_i_level_zero_blob, .Lend - spmla_i_level_zero_blob
		.set spmla_i_level_zero_tiles, spmla_i_level_zero_blob + $tiles_at
		.size spmla_i_level_zero_tiles, .Lend - spmla_i_level_zero_tiles
		.balign 8
		.globl spmla_i_level_zero_blob_bytes, spmla_i_level_zero_tiles_bytes
		.type spmla_i_level_zero_blob_bytes, @object
		.size spmla_i_level_zero_blob_bytes, 8
		spmla_i_level_zero_blob_bytes:
		.quad $bytes
		.type spmla_i_level_zero_tiles_bytes, @object
		.size spmla_i_level_zero_tiles_bytes, 8
		spmla_i_level_zero_tiles_bytes:
		.quad .Lend - spmla_i_level_zero_tiles
		.section .note.GNU-stack,"",@progbits
END
"$cc" -c "$object.S" -o "$object"
rm -f "$object.S"
