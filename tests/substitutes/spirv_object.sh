#!/bin/sh
# spirv_object.sh CC TOOLS SPIRV SOURCE OBJECT: a module of SPIR-V as an object file
# for the CPU, for libze_spmla.c. TOOLS are the clang and the llvm-spirv that made
# it; with "" the object has no kernels. SOURCE, a C file, has the table of the
# kernels, as the module tells their names, blocks, subgroups and arguments, and
# the module itself.
#
# llvm-spirv turns it back to LLVM's bitcode, and clang compiles that. What OpenCL
# has built in are functions of libze_spmla.c. Shared memory, which would be .bss,
# becomes a section that can be found.
set -eu

cc=$1 tools=$2 spirv=$3 source=$4 object=$5

translate() { # CLANG LLVM_SPIRV
	"$2" -r "$spirv" -o "$object.bc"
	"$1" -x ir --target=x86_64-linux-gnu -O2 -fPIC -Wno-everything \
		-c "$object.bc" -o "$object"
	objcopy --rename-section .bss=spirv_local,alloc "$object"
	"$2" -to-text "$spirv" -o "$object.bc"
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
			for (id in name) {
				print "extern void " name[id] "(void);"
				rows = rows "{\"" name[id] "\", " items[id] \
					", " args[id] ", " width[id] ", " \
					makes(id) ", " name[id] "},\n"
			}
			print "const ze_fake_kernel spirv_kernels[] = {"
			print rows "{0}};"
		}' "$object.bc"
	rm -f "$object.bc"
}

{
	echo '#include "tests/substitutes/ze_fake.h"'
	if [ -n "$tools" ]; then
		# shellcheck disable=SC2086 # a word each
		translate $tools
	else
		"$cc" -x c -c /dev/null -o "$object"
		echo 'const ze_fake_kernel spirv_kernels[] = {{0}};'
	fi
} >"$source"
