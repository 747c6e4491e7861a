#!/bin/sh
# A clang that knows SPIR-V and all AMD GPUs but gfx950. Its code is a text.
[ "$1" != --version ] || exit 0
arch=
while [ $# -gt 0 ]; do
	case $1 in
	--offload-arch=*) arch=${1#*=} ;;
	-o) to=$2 ;;
	esac
	shift
done
[ "$arch" != gfx950 ] || exit 1
echo "code object for $arch" >"$to"
