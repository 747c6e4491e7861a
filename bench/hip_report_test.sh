#!/usr/bin/env bash
# hip_report_test.sh REPORT: hip_report.sh on a small report, and on the report of
# this build: every kernel by matrix instructions is there, with a bound, on every
# target but gfx950. SKIPPED where there is no clang.
set -euo pipefail

cat >"$TEST_TMPDIR/small" <<'END'
code gfx942 5000 bytes
kernel gfx942 spmla_k_topk vgprs 60 agprs 0 sgprs 50 scratch 8 lds 9000 spills 3 matrix 0
kernel gfx942 spmla_k_mqa_logits_tile vgprs 77 agprs 4 sgprs 98 scratch 0 lds 20480 spills 12 matrix 8
code gfx1100 4000 bytes
kernel gfx942 spmla_k_sparse_decode_tile_64 vgprs 256 agprs 0 sgprs 106 scratch 0 lds 61728 spills 131 matrix 136
kernel gfx1100 spmla_k_sparse_decode_tile vgprs 230 agprs 0 sgprs 107 scratch 0 lds 48224 spills 74 matrix 17
END

# 4 SIMDs, 16 cycles: 128 * 16 / 4. An operand is 512 bytes, 128 a cycle. 64 keys
# of 132 bytes, at 5325 / 304 / 2.1 = 8.341 a cycle. 64 * 128 codes, 5 / 64 cycles
# each.
# 2 SIMDs, 32 cycles: 136 * 32 / 2. An operand is 1024 bytes: 136 of Q K^T and P V,
# 2 of P in each of 8 waves; 32 rows of 1152; four shares of 16 x 32 scores of 4
# bytes, written and read; weights of 2. 32 * 656, at 864 / 96 / 2.495 = 3.607. 32 *
# 512 codes, 8 / 64 cycles each.
# 64 heads: 544 * 16 / 4. 4 * 72 operands of Q K^T, 64 of P V, 4 * 2 of P in each of
# 8 waves; two shares of 64 x 32 scores; weights of 2.
table() { sed -n '/^| kernel | target | '"$1"'/,/^$/p'; }
diff - <(bench/hip_report.sh "$TEST_TMPDIR/small" | table VGPRs) <<END
| kernel | target | VGPRs | AGPRs | SGPRs | LDS | scratch | spills | matrix |
|---|---|---|---|---|---|---|---|---|
| spmla_k_topk | gfx942 | 60 | 0 | 50 | 9000 | 8 | 3 | 0 |
| spmla_k_mqa_logits_tile | gfx942 | 77 | 4 | 98 | 20480 | 0 | 12 | 8 |
| spmla_k_sparse_decode_tile_64 | gfx942 | 256 | 0 | 106 | 61728 | 0 | 131 | 136 |
| spmla_k_sparse_decode_tile | gfx1100 | 230 | 0 | 107 | 48224 | 0 | 74 | 17 |

END
diff - <(bench/hip_report.sh "$TEST_TMPDIR/small" | table piece) <<END
| kernel | target | piece | matrix instructions | cycles | bytes of LDS | cycles | bytes of memory | cycles | cycles of codes | bound | for 64 heads |
|---|---|---|---|---|---|---|---|---|---|---|---|
| spmla_k_mqa_logits_tile | gfx942 | 64 keys, 64 heads | 128 | 512 | 65536 | 512 | 8448 | 1012 | 640 | memory | 1012 |
| spmla_k_sparse_decode_tile_64 | gfx942 | 32 rows of 656 bytes, 64 heads | 544 | 2176 | 286720 | 2240 | 20992 | 2516 | 2048 | memory | 2516 |
| spmla_k_sparse_decode_tile | gfx1100 | 32 rows of 656 bytes, 16 heads | 136 | 2176 | 209920 | 1640 | 20992 | 5819 | 2048 | memory | 23277 |
END
[ "$(bench/hip_report.sh --target gfx1100 "$TEST_TMPDIR/small" | grep -c spmla_)" = 2 ]
if bench/hip_report.sh /dev/null 2>/dev/null; then
	echo "FAIL: an empty report is no error"
	exit 1
fi

if [ ! -s "$1" ]; then
	echo "SKIPPED: no clang, so no report of this build"
	exit
fi
bench/hip_report.sh "$1" >"$TEST_TMPDIR/all"
awk '$1 == "kernel" && $3 ~ /_tile(_32|_64)?$/ && $2 != "gfx950" { print $3, $2 }' "$1" \
	>"$TEST_TMPDIR/wanted"
[ -s "$TEST_TMPDIR/wanted" ]
while read -r kernel target; do
	grep -qE "^\| $kernel \| $target .*(matrix|LDS|memory|codes) \| [0-9]+ \|$" \
		"$TEST_TMPDIR/all" || {
		echo "FAIL: no bound of $kernel on $target"
		exit 1
	}
done <"$TEST_TMPDIR/wanted"
