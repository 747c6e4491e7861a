#!/bin/sh
# spirv_object.sh CC TOOLS SPIRV SOURCE OBJECT: modules of SPIR-V as an object
# file for the CPU, for libze_spmla.c. The second begins behind the first where
# its magic number is, at a multiple of 64 bytes. TOOLS are the clang and the
# llvm-spirv that made it; with "" the object has no kernels. SOURCE, a C file,
# has the table of the kernels, as the modules tell their names, blocks,
# subgroups and arguments.
#
# llvm-spirv turns it back to LLVM's bitcode, and clang compiles that.
# libze_spmla.c has OpenCL's built-in functions. Shared memory, which would be
# .bss, becomes a section that can be found.
set -eu

cc=$1 tools=$2 spirv=$3 source=$4 object=$5

translate() { # CLANG LLVM_SPIRV MODULE OBJECT; rows of the table
	"$2" -r "$3" -o "$object.bc"
	"$1" -x ir --target=x86_64-linux-gnu -O2 -fPIC -Wno-everything \
		-c "$object.bc" -o "$4"
	objcopy --rename-section .bss=spirv_local,alloc "$4"
	"$2" -to-text "$3" -o "$object.bc"
	# EntryPoint 6 ID NAME, ExecutionMode ID 17 X Y Z and 35 N, Function TYPE
	# ID .., FunctionCall TYPE ID CALLED ..; a kernel's FunctionParameters; and
	# whether it, or what it calls, makes a pointer of a number.
	awk '$2 == "EntryPoint" { gsub(/"/, "", $5); name[$4] = $5 }
		$2 == "ExecutionMode" && $4 == 17 { items[$3] = $5 }
		$2 == "ExecutionMode" && $4 == 35 { width[$3] = $5 }
		$2 == "Function" { here = $4 }
		$2 == "FunctionParameter" { args[here]++ }
		$2 == "FunctionCall" { calls[here] = calls[here] " " $5 }
		$2 == "ConvertUToPtr" { numbers[here] = 1 }
		function makes(id, n, i, called) {
			if (!(id in numbers)) {
				numbers[id] = 0
				n = split(calls[id], called, " ")
				for (i = 1; i <= n; i++)
					if (makes(called[i]))
						numbers[id] = 1
			}
			return numbers[id]
		}
		END {
			for (id in name)
				print "ROW(" name[id] ", " items[id] ", " \
					args[id] ", " width[id] ", " \
					makes(id) ")"
		}' "$object.bc"
	rm -f "$object.bc"
}

both() { # CLANG LLVM_SPIRV
	at=$(LC_ALL=C grep -abo "$(printf '\003\002\043\007')" "$spirv" |
		awk -F: '$1 > 0 && $1 % 64 == 0 { print $1 }')
	head -c "$at" "$spirv" >"$object.1.spv"
	tail -c +$((at + 1)) "$spirv" >"$object.2.spv"
	translate "$1" "$2" "$object.1.spv" "$object.1"
	translate "$1" "$2" "$object.2.spv" "$object.2"
	ld -r "$object.1" "$object.2" -o "$object"
	rm -f "$object".[12] "$object".[12].spv
}

rows=
if [ -n "$tools" ]; then
	# shellcheck disable=SC2086 # a word each
	rows=$(both $tools)
else
	"$cc" -x c -c /dev/null -o "$object"
fi
cat >"$source" <<END
#include "tests/substitutes/ze_fake.h"
#define KERNELS $(echo $rows)
#define ROW(name, items, args, width, numbers) extern void name(void);
KERNELS
#undef ROW
#define ROW(name, items, args, width, numbers) \\
	{#name, items, args, width, numbers, name},
const ze_fake_kernel spirv_kernels[] = {KERNELS {0}};
END
