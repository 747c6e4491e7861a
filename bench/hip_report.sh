#!/usr/bin/env bash
# hip_report.sh [--target GFX] [REPORT]
# What clang made of the kernels for HIP, by target: vector registers (VGPRs, and
# AGPRs beside them), scalar registers, bytes of LDS and of scratch, spilled
# registers (scalar ones go to vector registers), matrix instructions. Then a
# model of the kernels that have them, of which no GPU ran one: the least cycles
# that a compute unit takes for a piece of work, by its matrix instructions, by
# the bytes of LDS, by the bytes of memory, and which is the most. The model
# leaves out all else: caches (blocks that share rows may find them there), e4m3
# to bf16, the softmax, waits. platform/hip/blob.sh writes REPORT; without one
# this tree is built.
set -euo pipefail

# shellcheck source=bench/report.sh
. "$(dirname "${BASH_SOURCE[0]}")/report.sh"
report_options hip clang 1 "$@"
set -- "${reports[@]}"

# kernel ARCH NAME vgprs N agprs N sgprs N scratch N lds N spills N matrix N
awk -v target="$target" '
	# A compute unit: SIMDs; lanes of a wave; 32-bit words of a lane for A or
	# B; cycles of an instruction on 16 x 16 x 16 of bf16, by the ISA guides
	# and the peaks of the data sheets; bytes of memory a cycle, of a GPU
	# with that bandwidth, compute units and clock.
	function unit(arch, s, l, w, cycles, gb, units, ghz) {
		simds[arch] = s
		lanes[arch] = l
		words[arch] = w
		matrix[arch] = cycles
		memory[arch] = gb / units / ghz
	}
	# A piece: instructions (16 x 16 x 16), rows, the bytes of one in LDS and in
	# memory, whether scores go through LDS.
	function piece(kernel, text, n, rows, lds, row, scores) {
		what[kernel] = rows " " text
		products[kernel] = n
		written[kernel] = rows * lds
		loaded[kernel] = rows * row
		scored[kernel] = scores
	}
	function most(a, b) { return a > b ? a : b }
	function model(arch, kernel, name,	m, l, g, bytes, waves) {
		waves = 256 / lanes[arch]
		m = products[name] * matrix[arch] / simds[arch]
		# An operand of each product; the other stays in registers.
		bytes = products[name] * lanes[arch] * words[arch] * 4 + \
			written[name]
		if (scored[name]) # 16 x 32, once a share; then weights
			bytes += waves / 2 * 16 * 32 * 4 * 2 + 16 * 32 * 2 + \
				waves * 2 * lanes[arch] * words[arch] * 4
		l = bytes / 128
		g = loaded[name] / memory[arch]
		printf "| %s | %s | %s | %d | %d | %d | %d | %d | %d | %s |\n", \
			kernel, arch, what[name], products[name], m, bytes, l, \
			loaded[name], g, \
			(m >= most(l, g) ? "matrix" : l >= g ? "LDS" : "memory")
	}
	BEGIN {
		unit("gfx90a", 4, 64, 2, 32, 1638, 104, 1.7) # MI210
		unit("gfx942", 4, 64, 2, 16, 5325, 304, 2.1) # MI300X
		unit("gfx1100", 2, 32, 8, 32, 864, 96, 2.495) # W7900
		unit("gfx1201", 2, 32, 4, 16, 645, 64, 2.97) # RX 9070 XT
		# 576 / 16 steps for 2 tiles of keys, 512 / 16 columns twice.
		piece("sparse_decode_tile", "rows of 656 bytes, 16 heads", \
			136, 32, 1152, 656, 1)
		piece("sparse_prefill_tile", "rows of bf16, 16 heads", \
			136, 32, 1152, 1152, 1)
		# 128 / 16 steps for 4 tiles of keys and of heads.
		piece("mqa_logits_tile", "keys, 64 heads", 128, 64, 0, 132, 0)
		piece("mqa_logits_gathered_tile", "keys, 64 heads", 128, 64, 0, \
			132, 0)
		piece("mqa_logits_mxfp4_tile", "keys, 64 heads", 128, 64, 0, \
			68, 0)
		piece("mqa_logits_gathered_mxfp4_tile", "keys, 64 heads", 128, \
			64, 0, 68, 0)
		print "| kernel | target | VGPRs | AGPRs | SGPRs | LDS | " \
			"scratch | spills | matrix |"
		print "|---|---|---|---|---|---|---|---|---|"
	}
	$1 == "kernel" && (target == "" || $2 == target) {
		printf "| %s | %s | %d | %d | %d | %d | %d | %d | %d |\n", \
			$3, $2, $5, $7, $9, $13, $11, $15, $17
		name = $3
		sub(/^spmla_k_/, "", name)
		if (name in what && $2 in simds) {
			at[++n] = $2
			kernel[n] = $3
			of[n] = name
		}
	}
	END {
		print ""
		print "| kernel | target | piece | matrix instructions | cycles " \
			"| bytes of LDS | cycles | bytes of memory | cycles " \
			"| bound |"
		print "|---|---|---|---|---|---|---|---|---|---|"
		for (i = 1; i <= n; i++)
			model(at[i], kernel[i], of[i])
	}' "$1"
