#!/bin/sh
# An nvcc that knows sm_90. Its kernels are a text. Its warnings tell which
# targets it was asked for.
case $1 in
--list-gpu-code) echo sm_90 ;;
--version) echo 'release 13.0, V13.0.0' ;;
--help) ;;
*)
	while [ $# -gt 0 ]; do
		case $1 in
		-o) echo 'kernels for a device' >"$2" ;;
		--keep-dir) : >"$2/kernels.sm_90.cubin" ;;
		-gencode=*) echo "warning: $1" >&2 ;;
		esac
		shift
	done
	;;
esac
