#!/usr/bin/env bash
# sanitized_kernels.sh RUN BUNDLE DRIVER KERNELS: whether the suites that RUN
# (run.sh) gives to a sanitizer run every kernel, racecheck's all but those with
# wgmma. It runs them on the substitute DRIVER, from the folder BUNDLE, with a
# sanitizer that looks for nothing, and compares the names that the emulator
# tells with those in KERNELS (kernels.inc).
set -uo pipefail

run=$1 bundle=$2 driver=$3 kernels=$4
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0

cat >"$tmp/compute-sanitizer" <<'EOF'
#!/bin/sh
shift 4 # --tool TOOL --error-exitcode 9
exec "$@"
EOF
chmod +x "$tmp/compute-sanitizer"
export PATH=$tmp:$PATH SPMLA_TEST_KERNELS=$tmp/ran

# Runs the tool's suites, of every test RUNS at most. A sanitizer runs them whole,
# so it sees every kernel that is seen here.
runs() { # RUNS TOOL [WORD..]
	local runs=$1 tool=$2
	shift 2
	SPMLA_TEST_RUNS=$runs SPMLA_TEST_STEPS=${steps:-1} "$run" \
		--bundle "$bundle" --driver "$driver" --sanitizer "$tool" \
		--jobs 2 "$@" | tee "$tmp/out" || bad=1
	if [ "$(tail -n 1 "$tmp/out")" = SKIPPED ]; then
		exit $bad # built without kernels for CUDA
	fi
}

# Whether every kernel of the list has run.
saw_all() { # TOOL LIST
	local tool=$1 list=$2 name
	for name in $list; do
		grep -qx "spmla_k_$name" "$tmp/ran" && continue
		echo "FAILED: $tool never sees $name"
		bad=1
	done
}

names() { # KIND OF LINE
	sed -nE "s/^SPMLA_KERNEL_$1\\(([a-z0-9_]+),.*/\\2/p" "$kernels"
}

# The list, without suites that run long and whose kernels others have, too.
mapfile -t most < <(sed -n '/^sanitized=(/,/^)/s/^\t//p' "$run" |
	grep -vxE -e 'ops/compress/test_kv_compress_(split|ways)' \
		-e 'ops/select/test_(mqa_logits_mxfp4@80|topk|topk_by|topk_map)')
runs 1 racecheck "${most[@]}"
# What the first runs of tests leave out, these have.
runs 5 racecheck ops/project/test_o_group_proj ops/project/test_q_absorb \
	ops/project/test_v_up ops/select/test_topk_map
steps=6 runs 1000 racecheck every_op/test_inputs \
	ops/attend/test_sparse_decode@80 ops/compress/test_kv_compress_ways
saw_all racecheck "$(names '(LINE|MMA)')"
# The others have what racecheck leaves out, and of that the short suites do.
# Those whose blocks wait for each other need more SMs than the substitute has.
runs 1 synccheck 'mqa_logits_gathered$' \
	sparse_decode_heads 'sparse_prefill$' 'v4_parts_heads$'
runs 5 synccheck 'test_o_group_proj$'
steps=6 runs 1000 synccheck 'every_op/test_inputs$'
saw_all synccheck "$(names '(WGMMA|PAIR)')"
exit $bad
