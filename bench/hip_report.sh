#!/usr/bin/env bash
# hip_report.sh [--target GFX] [REPORT]
# What clang made of the kernels for HIP, by target: vector registers (VGPRs, and
# AGPRs beside them), scalar registers, bytes of LDS and of scratch, spilled
# registers (scalar ones go to vector registers), matrix instructions. Then a
# model of the kernels that have them, of which no GPU ran one: the least cycles
# that a compute unit takes for a piece of work, by its matrix instructions, by
# the bytes of LDS, by the bytes of memory, by the instructions that make bf16 of
# codes, which is the most, and how much that is for 64 heads. The model leaves out
# all else: caches (blocks that share rows may find them there), the softmax,
# waits. platform/hip/blob.sh writes REPORT; without one this tree is built.
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
	# A piece: rows, the bytes of one in memory, its codes, vector instructions
	# of a lane for one (as compiled for gfx942), heads, instructions (16 x 16 x
	# 16).
	function piece(kernel, text, n, row, codes, each, h, matrix) {
		what[kernel] = n " " text ", " h " heads"
		loaded[kernel] = n * row
		vector[kernel] = n * codes * each
		heads[kernel] = h
		products[kernel] = matrix
	}
	# 32 rows: 576 / 16 steps for 2 tiles of keys, 512 / 16 columns twice.
	function attention(kernel, text, row, each, h) {
		piece(kernel, text, 32, row, 512, each, h, 136 * h / 16)
		tiles[kernel] = h / 16
	}
	# 64 keys: 128 / 16 steps for 4 tiles of keys and of heads.
	function logits(kernel, row, each) {
		piece(kernel, "keys", 64, row, 128, each, 64, 128)
	}
	# LDS: an operand of each product; the other stays in registers.
	function lds(arch, name,	operand, t, waves, shares) {
		operand = lanes[arch] * words[arch] * 4
		if (!(name in tiles))
			return products[name] * operand
		# Keys are read for each tile of heads, values for all of them,
		# weights by each wave. Scores of 16 x 32 are written and read
		# once a share, weights written; and the rows.
		t = tiles[name]
		waves = (t == 1 ? 256 : 512) / lanes[arch]
		shares = waves / t > 4 ? waves / t / 2 : waves / t
		return (72 * t + 64 + waves * t * 2) * operand + \
			shares * t * 16 * 32 * 4 * 2 + t * 16 * 32 * 2 + \
			32 * 1152
	}
	function most(a, b) { return a > b ? a : b }
	function model(arch, kernel, name,	m, bytes, l, g, v, all) {
		m = products[name] * matrix[arch] / simds[arch]
		bytes = lds(arch, name)
		l = bytes / 128
		g = loaded[name] / memory[arch]
		v = vector[name] / 64
		all = most(most(m, l), most(g, v))
		printf "| %s | %s | %s | %d | %d | %d | %d | %d | %d | %d | %s " \
			"| %d |\n", \
			kernel, arch, what[name], products[name], m, bytes, l, \
			loaded[name], g, v, \
			(m == all ? "matrix" : l == all ? "LDS" : \
			 g == all ? "memory" : "codes"), \
			all * 64 / heads[name]
	}
	BEGIN {
		unit("gfx90a", 4, 64, 2, 32, 1638, 104, 1.7) # MI210
		unit("gfx942", 4, 64, 2, 16, 5325, 304, 2.1) # MI300X
		unit("gfx1100", 2, 32, 8, 32, 864, 96, 2.495) # W7900
		unit("gfx1201", 2, 32, 4, 16, 645, 64, 2.97) # RX 9070 XT
		attention("sparse_decode_tile", "rows of 656 bytes", 656, 8, 16)
		attention("sparse_decode_tile_32", "rows of 656 bytes", 656, 8, \
			32)
		attention("sparse_decode_tile_64", "rows of 656 bytes", 656, 8, \
			64)
		attention("sparse_prefill_tile", "rows of bf16", 1152, 0, 16)
		attention("sparse_prefill_tile_32", "rows of bf16", 1152, 0, 32)
		attention("sparse_prefill_tile_64", "rows of bf16", 1152, 0, 64)
		logits("mqa_logits_tile", 132, 5)
		logits("mqa_logits_gathered_tile", 132, 5)
		logits("mqa_logits_mxfp4_tile", 68, 5)
		logits("mqa_logits_gathered_mxfp4_tile", 68, 5)
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
			"| cycles of codes | bound | for 64 heads |"
		print "|---|---|---|---|---|---|---|---|---|---|---|---|"
		for (i = 1; i <= n; i++)
			model(at[i], kernel[i], of[i])
	}' "$1"
