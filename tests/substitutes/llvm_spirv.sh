#!/bin/sh
# An llvm-spirv, for clang.sh: its SPIR-V is a text, and has one kernel.
[ "$1" != --version ] || exit 0
text='SPIR-V for a device'
while [ $# -gt 0 ]; do
	case $1 in
	-to-text) text='3 EntryPoint 6 7 "spmla_k_one"' ;;
	-o) echo "$text" >"$2" ;;
	esac
	shift
done
