#!/usr/bin/env bash
# kernel_report.sh on two small reports.
set -euo pipefail

cat >"$TEST_TMPDIR/old" <<'END'
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'spmla_k_b' for 'sm_80'
ptxas info    : Function properties for spmla_k_b
    8 bytes stack frame, 4 bytes spill stores, 2 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 512 bytes smem
ptxas info    : Compiling entry function 'spmla_k_a' for 'sm_80'
ptxas info    : Function properties for spmla_k_a
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 18 registers, used 0 barriers
ptxas info    : Compiling entry function 'spmla_k_a' for 'sm_90a'
ptxas info    : Function properties for spmla_k_a
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 20 registers, used 0 barriers
cubin sm_80 5000 bytes
code sm_80 spmla_k_a 256 bytes
code sm_80 spmla_k_b 1024 bytes
code sm_90a spmla_k_a 384 bytes
END
sed 's/Used 40/Used 38/; s/b 1024/b 896/' "$TEST_TMPDIR/old" >"$TEST_TMPDIR/new"

head="| kernel | target | registers | shared | stack | code |
|---|---|---|---|---|---|"
diff - <(bench/kernel_report.sh --target sm_80 "$TEST_TMPDIR/old") <<END
$head
| spmla_k_a | sm_80 | 18 | 0 | 0 | 256 |
| spmla_k_b | sm_80 | 40 | 512 | 14 | 1024 |
END
diff - <(bench/kernel_report.sh "$TEST_TMPDIR/old" "$TEST_TMPDIR/new") <<END
$head
| spmla_k_b | sm_80 | 40 -> 38 | 512 | 14 | 1024 -> 896 |
| all | sm_80 | 58 -> 56 | 512 | 14 | 1280 -> 1152 |
| all | sm_90a | 20 | 0 | 0 | 384 |

2 are the same.
END
! bench/kernel_report.sh /dev/null 2>/dev/null
