#!/usr/bin/env bash
# kernels_compile.sh CUDA_REPORT HIP_REPORT SPIRV_REPORT: the kernels that are
# written once compile for every platform that this machine has a compiler for.
# - SPIR-V: every kernel says how many items a block and a subgroup have, and that
#   it does not contract. Only the module of tile.h's kernels needs a function of
#   the device's compiler: dpas.
# - AMD GPUs: every architecture has every kernel, in no more shared memory than a
#   block may have. Only the kernels of tile.h have matrix instructions. A kernel
#   says how many items a block has. A barrier is a release fence, s_barrier and an
#   acquire fence. Subnormals are kept, quotients and roots are exact.
# - CUDA: no target's binary, which a device loads whole, is larger than it may be.
#   Kernels with matrix instructions are there, and more than a shell, wherever a
#   device would run them.
# On AMD GPUs and on CUDA no kernel has a stack: the driver would take memory for it.
set -euo pipefail

report=$1 hip_report=$2 spirv_report=$3
out=$TEST_TMPDIR
bad=0

listed() { # KIND
	sed -nE "s/^SPMLA_KERNEL_$1\(([a-z0-9_]*),.*/spmla_k_\2/p" \
		platform/gpu/kernels.inc
}
kernels=$(listed '(LINE)') mma=$(listed '(MMA)')
wgmma=$(listed '(WGMMA|CLUSTERS|LIVE)') tile=$(listed '(TILE)')
mfma=$(listed '(MFMA)')
[ -n "$mfma" ] && [ -n "$tile" ] && [ -n "$kernels" ] && [ -n "$mma" ] && [ -n "$wgmma" ]
# The kernels of mma with more local memory than the smaller devices have.
large="spmla_k_sparse_decode_mma spmla_k_sparse_decode_mma_v4"
few=$mma
for k in $large; do
	[[ $'\n'$mma$'\n' == *$'\n'$k$'\n'* ]]
	few=$(grep -vx "$k" <<<"$few")
done

if [ -s "$hip_report" ]; then
	# "code ARCH N bytes", then "kernel ARCH NAME vgprs N agprs N sgprs N
	# scratch N lds N spills N matrix N"
	awk -v names="$(paste -sd ' ' <<<"$kernels"$'\n'"$tile")" \
		-v mfma="$(paste -sd ' ' <<<"$mfma")" \
		-v tile="$(paste -sd ' ' <<<"$tile"$'\n'"$mfma")" '
		BEGIN {
			n = split(tile, name, " ")
			for (i = 1; i <= n; i++)
				is_tile[name[i]]
		}
		$1 == "code" { archs[$2] = $3; print $2 ": " $3 " bytes" }
		$1 == "left" { print "SKIPPED: " $0 }
		/warning:/ { print "FAIL: " $0; bad = 1 }
		$1 == "kernel" {
			seen[$2, $3]
			if ($11 > 0 || $13 > 65536 ||
			    ($3 in is_tile) != ($17 > 0)) {
				print "FAIL: " $0
				bad = 1
			}
		}
		END {
			for (arch in archs) {
				all = arch ~ /^gfx9/ ? names " " mfma : names
				n = split(all, name, " ")
				for (i = 1; i <= n; i++)
					if (!((arch, name[i]) in seen)) {
						print "FAIL: " arch " has no " \
							name[i]
						bad = 1
					}
			}
			exit bad || n < 2 || !(length(archs))
		}' "$hip_report" || bad=1
else
	echo "SKIPPED: no clang, so no look at kernels for HIP"
fi

if command -v clang-19 >/dev/null; then
	mkdir -p "$out/include/spmla"
	ln -sfn "$PWD/platform" "$out/include/spmla/platform"
	ln -sf "$PWD"/lib/*.h "$out/include/spmla"
	amd() { # ARCH FLAGS..: of the source in standard input
		local arch=$1
		shift
		clang-19 -x hip --offload-arch="$arch" --offload-device-only \
			--no-gpu-bundle-output -nogpuinc -nogpulib -ffp-contract=off \
			-S -I"$out/include" "$@" -
	}
	for arch in gfx90a gfx942 gfx1100 gfx1201; do
		amd "$arch" -O1 -emit-llvm -o "$out/barrier" <<-END
			#define SPMLA_GPU_KERNELS
			#include "spmla/platform/gpu/dialect/dialect.h"
			KERNEL(192) void k(uint32_t *x)
			{
				LOCAL_ARRAY(uint32_t, y, 192);
				y[g_item()] = x[0];
				BARRIER();
				x[1] = y[191 - g_item()];
			}
		END
		grep -oE 'fence syncscope\("workgroup"\) [a-z]*|call .*s\.barrier|flat-work-group-size"="[0-9,]*' \
			"$out/barrier" | sed 's/.*[ .=]"*//' | paste -sd ' ' >"$out/calls"
		[ "$(cat "$out/calls")" = 'release barrier acquire 192,192' ] || {
			echo "FAIL: $arch has a barrier of $(cat "$out/calls")"
			bad=1
		}
		# The instruction for roots is not exact: two products correct
		# it, or, with a clang that does not do so, integers replace it.
		for clang in 19 17; do
			amd "$arch" -O3 -o "$out/root" -Wno-macro-redefined \
				-D__clang_major__=$clang <<-END
				#define SPMLA_GPU_KERNELS
				#include "spmla/platform/gpu/dialect/dialect.h"
				KERNEL(64) void k(float *x)
				{
					x[g_item()] = g_sqrt_rn(x[g_item()]);
				}
				KERNEL(64) void d(float *x)
				{
					x[g_item()] = g_div_rn(x[g_item()], x[64]);
				}
			END
			awk '/^k:/ { of = "root" }
				/^d:/ { of = "quotient" }
				$1 ~ /^v_/ { sub(/_e(32|64)$/, "", $1); n[of, $1]++ }
				$1 ~ /denorm_mode_32$/ { kept += $2 == 3 }
				END {
					print n["root", "v_sqrt_f32"] + 0, \
						n["root", "v_fma_f32"] + \
						n["root", "v_fmac_f32"], \
						n["quotient", "v_div_fixup_f32"], kept
				}' "$out/root" >"$out/counts"
			want='1 2 1 2'
			[ $clang -ge 18 ] || want='0 0 1 2'
			[ "$(cat "$out/counts")" = "$want" ] || {
				echo "FAIL: $arch, clang $clang: roots," \
					"their products, quotients, kernels" \
					"with subnormals $(cat "$out/counts")," \
					"want $want"
				bad=1
			}
		done
	done
else
	echo "SKIPPED: no clang-19, so no look at a barrier and a root for HIP"
fi

if [ -s "$spirv_report" ]; then
	# Each module has lines "kernel NAME items N subgroup N contracts 0|1",
	# "atomics N narrow N", "needs MODULE FUNCTION", then "code spirv N bytes"
	awk -v names="$(paste -sd ' ' <<<"$kernels"$'\n'"$tile")" '
		$1 == "code" { print "SPIR-V: " $3 " bytes" }
		$1 == "atomics" { seen_atomics = $2 }
		$1 == "atomics" && $4 != 0 {
			print "FAIL: atomics of a block: " $4
			bad = 1
		}
		$1 == "needs" { needs = needs " " $2 " " $3 }
		$1 == "kernel" { seen[$2] }
		$1 == "kernel" && !($4 >= 32 && $6 == 16 && $8 == 0) {
			print "FAIL: " $0
			bad = 1
		}
		END {
			n = split(names, name, " ")
			for (i = 1; i <= n; i++)
				if (!(name[i] in seen)) {
					print "FAIL: SPIR-V has no " name[i]
					bad = 1
				}
			if (needs != " tile _Z40intel_sub_group_bf16_bf16" \
				     "_matrix_mad_k16Dv8_sDv8_iDv8_f") {
				print "FAIL: functions of the device:" needs
				bad = 1
			}
			exit bad || n < 2 || !seen_atomics
		}' "$spirv_report" || bad=1
else
	echo "SKIPPED: no clang with its llvm-spirv, so no SPIR-V"
fi

# Bytes of a target's binary, by far the most of it code.
budget() { # TARGET
	case $1 in
	sm_90a) echo 6600000 ;; # has variants of its own
	*) echo 3300000 ;;
	esac
}

# Registers of a kernel in a target, nothing if it is not there.
registers() { # KERNEL TARGET
	awk -v q="'" -v kernel="$1" -v target="$2" '
		/ Compiling entry function / {
			split($0, word, q)
			here = word[2] == kernel && word[4] == target
		}
		here && match($0, /Used [0-9]+ registers/) {
			print substr($0, RSTART + 5, RLENGTH - 15)
			exit
		}' "$report"
}

# One whose instructions are compiled away has some 20; those that are run have
# 63 and more.
matrix_registers=48

# Whether the target has all of KERNELS: whole ones where a device would run
# them (spmla_i_gpu_runs), of any kind where not.
holds_matrix() { # TARGET WHOLE KERNELS
	local k n least=1
	[ "$2" = no ] || least=$matrix_registers
	for k in $3; do
		n=$(registers "$k" "$1")
		[ "${n:-0}" -ge "$least" ] || {
			echo "FAIL: $1 has $k with ${n:-no} registers," \
				"$least wanted"
			bad=1
		}
	done
}

if [ -s "$report" ]; then
	# ptxas: Compiling entry function 'NAME' for 'TARGET'
	awk -v q="'" '
		/ Compiling entry function / {
			split($0, word, q)
			target = word[4]
		}
		/ Function properties for / { name = $NF }
		/ bytes stack frame, / {
			seen++
			if ($1 + $5 + $9 > 0) {
				print "FAIL: " name ", " target ":" $0
				bad = 1
			}
		}
		END { exit bad || !seen }' "$report" || bad=1
	sed -n 's/^cubin //p' "$report" >"$out/cubins"
	[ -s "$out/cubins" ]
	while read -r target bytes _; do
		echo "$target: $bytes bytes"
		if [ "$bytes" -gt "$(budget "$target")" ]; then
			echo "FAIL: more than $(budget "$target")"
			bad=1
		fi
		for k in $kernels; do
			grep -qF "'$k' for '$target'" "$report" || {
				echo "FAIL: $target has no $k"
				bad=1
			}
		done
		case $target in
		sm_80 | sm_90a | sm_100)
			holds_matrix "$target" yes "$mma"
			;;
		*)
			holds_matrix "$target" yes "$few"
			holds_matrix "$target" no "$large"
			;;
		esac
		[ "$target" != sm_90a ] || holds_matrix sm_90a yes "$wgmma"
	done <"$out/cubins"
else
	echo "SKIPPED: no nvcc, so no look at stacks"
fi
exit "$bad"
