#!/usr/bin/env bash
# ocloc.sh MODULES REPORT: Intel's compiler makes code of both modules of SPIR-V,
# for the Data Center GPU Max (pvc) and Battlemage (bmg), with the flags that
# devices get. Kernels by products of tiles have dpas, the others none: it takes
# a module with a function that it does not know, too, so only code tells.
# Of kernels by products of tiles it also prints what .ze_info, a section of the
# code, says: registers, and the bytes of a thread that lie in memory instead. They
# must have 256 registers, as their flags ask, and spill no more than SPILL_LIMIT.
# OCLOC: the compiler, if it is not in PATH. SKIPPED without ocloc (Debian:
# intel-ocloc or intel-opencl-icd), its disassembler libiga64.so (libigc2 or
# libigc-dev), a device that it knows, or a module. Version 22.43 knows no bmg,
# 26.27 does. What reads .ze_info was tried with 26.27 alone.
set -euo pipefail

# A thread's 256 registers are 16 KB. How many spill changes with any line of a
# kernel: 1344 were the most at 26.27.
SPILL_LIMIT=2048

modules=$1 report=$2 bad=0 seen=0
ocloc=${OCLOC:-$(command -v ocloc || true)}
skip() {
	printf 'SKIPPED: %s\nSKIPPED\n' "$1"
	exit
}
[ -s "$modules" ] || skip "no clang with its llvm-spirv, so no SPIR-V"
[ -n "$ocloc" ] || skip "no ocloc"

flags_of() { # MACRO
	sed -n "/#define $1/,/^\$/"'s/.*"\(.*\)".*/\1/p' \
		platform/level_zero/init_level_zero.c | tr -d '\n'
}
# A line a kernel, "NAME registers N spilled N private N". What .ze_info leaves out
# is 0: ocloc names no spills where there are none.
resources() { # ZE_INFO
	awk '
		function end() {
			if (name)
				print name, "registers", grf + 0, "spilled", \
					spilled + 0, "private", private + 0
			name = grf = spilled = private = 0
		}
		/^[a-z]/ { end(); kernels = $1 == "kernels:" }
		/^ *- name: / { end(); name = kernels ? $3 : 0 }
		$1 == "grf_count:" { grf = $2 }
		$1 == "spill_size:" { spilled = $2 }
		$1 == "private_size:" { private = $2 }
		END { end() }' "$1"
}
portable_flags=$(flags_of BUILD_FLAGS)
tiles_flags=$portable_flags$(flags_of TILE_FLAGS)
[ -n "$portable_flags" ] && [ "$tiles_flags" != "$portable_flags" ]
tiles=$(sed -n 's/^SPMLA_KERNEL_TILE(\([a-z0-9_]*\),.*/spmla_k_\1/p' \
	platform/gpu/kernels.inc)
# The second module begins at a multiple of 64.
bytes=$(sed -n 's/^code spirv \([0-9]*\) bytes/\1/p' "$report" | head -n 1)
head -c "$bytes" "$modules" >"$TEST_TMPDIR/portable.spv"
tail -c "+$(((bytes + 63) / 64 * 64 + 1))" "$modules" >"$TEST_TMPDIR/tiles.spv"

for device in pvc bmg; do
	for module in portable tiles; do
		out=$TEST_TMPDIR/$device.$module flags=${module}_flags
		mkdir "$out"
		if ! "$ocloc" compile -file "$TEST_TMPDIR/$module.spv" \
			-spirv_input -device $device -out_dir "$out" \
			-output k -options "${!flags}" >"$out/log" 2>&1; then
			if grep -q 'Cannot get HW Info' "$out/log"; then
				echo "SKIPPED: $ocloc does not know $device"
				break
			fi
			echo "FAIL: $device, $module:"
			tail -n 20 "$out/log"
			bad=1
			continue
		fi
		"$ocloc" disasm -file "$out"/k_*.bin -device $device \
			-dump "$out/code" >"$out/log" 2>&1
		if [ -z "$(find "$out/code" -name '*.asm')" ]; then
			skip "ocloc finds no libiga64.so, so no disassembly"
		fi
		echo "$device, $module: $(wc -c <"$(echo "$out"/k_*.bin)") bytes"
	done
	[ -d "$TEST_TMPDIR/$device.tiles" ] || continue
	while read -r kernel; do
		code=$(find "$TEST_TMPDIR/$device".*/code -regextype egrep \
			-regex ".*[/.]$kernel(_KernelHeap)?\.asm")
		dpas=$(grep -c ' dpas' "${code:-/dev/null}" || true)
		wants=0
		[[ $'\n'$tiles$'\n' != *$'\n'$kernel$'\n'* ]] || wants=1
		if [ -z "$code" ] || [ $((dpas > 0)) -ne $wants ]; then
			echo "FAIL: $device, $kernel: $dpas dpas in ${code:-no code}"
			bad=1
		fi
		seen=$((seen + 1))
	done < <(sed -n 's/^kernel \([a-z0-9_]*\) .*/\1/p' "$report")
	info=$TEST_TMPDIR/$device.tiles/code/.ze_info
	if [ ! -e "$info" ]; then # an older form of code
		echo "SKIPPED: $device: no .ze_info, so nothing of registers"
		continue
	fi
	for kernel in $tiles; do
		line=$(resources "$info" | grep "^$kernel " || echo "$kernel")
		read -r _ _ registers _ spilled _ private <<<"$line"
		echo "$device, $line"
		if [ "${registers:-0}" -ne 256 ] || [ "$private" -gt 0 ] ||
			[ "$spilled" -gt $SPILL_LIMIT ]; then
			echo "FAIL: $device, $kernel: wants 256 registers," \
				"at most $SPILL_LIMIT bytes spilled, none private"
			bad=1
		fi
	done
done
[ "$seen" -gt 0 ] || skip "ocloc knows none of the devices"
exit $bad
