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

# Runs the tool's suites, of every test RUNS at most.
runs() { # RUNS TOOL [WORD..]
	local runs=$1 tool=$2
	shift 2
	SPMLA_TEST_RUNS=$runs "$run" --bundle "$bundle" --driver "$driver" \
		--sanitizer "$tool" --jobs 2 "$@" | tee "$tmp/out" || bad=1
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

# What the first runs of tests leave out, two suites have.
runs 5 racecheck
runs 1000 racecheck every_op/test_inputs ops/attend/test_sparse_decode@80
saw_all racecheck "$(names '(LINE|MMA)')"
# The others have what racecheck leaves out, and of that the short suites do.
# Those whose blocks wait for each other need more SMs than the substitute has.
runs 5 synccheck mqa_logits_gathered \
	sparse_decode_heads sparse_prefill v4_parts_heads
saw_all synccheck "$(names '(WGMMA|PAIR)')"
exit $bad
