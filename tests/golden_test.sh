#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# golden_test.sh RUNNER: runs the golden cases of this repository and, where
# more of them lie beside the checkout, those too. Each must fail with its outputs
# spoilt. A case whose manifest has an input of another name, a number less or an
# input more must fail with that name.
set -u
unset BUILD_WORKING_DIRECTORY
runner=$1
beside=../beside/golden
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

refused() { # CASE NAME OLD NEW: the manifest with NEW for OLD fails by NAME
	rm -rf "$tmp/case"
	mkdir "$tmp/case"
	cp -L "testdata/golden/$1"/* "$tmp/case"
	chmod u+w "$tmp/case"/*
	printf x >"$tmp/case/one.bin"
	sed -i "s/$3/$4/" "$tmp/case/manifest.json"
	said=$("$runner" --backend=cpu --cases="$tmp/case")
	case $said in
	"FAIL $1: "*" $2"*) return ;;
	esac
	echo "golden_test.sh: $1 does not fail by $2: $said"
	exit 1
}

other() { # CASE NAME: a tensor or a param has another name
	refused "$1" "$2" "\"$2\"\(:\|,\)" '"x"\1'
}

more() { # CASE: an input that the operation does not have
	refused "$1" alibi '"tensors": \[' "\"tensors\": [$alibi,"
}

alibi='{"name": "alibi", "role": "input", "dtype": "uint8", "file": "one.bin",'
alibi="$alibi"' "file_elems": 1, "storage_offset": 0, "shape": [1], "strides": [1]}'

other swa_metadata/b_mtp_bs16 query_start_loc
other swa_metadata/b_mtp_bs16 window
other c128a_topk_metadata/a slot_mapping
other c128a_topk_metadata/a maxc
other global_topk_indices_and_lens/a_bs64 is_valid_token
other global_topk_ragged/b_gaps topk_lens
other rocm_sparse_prefill/a_dense_sink kv
other fused_indexer_q_fp8/b_strided_bf16w head_scale
more swa_metadata/ref_no_prefill
more fused_inv_rope_fp8_quant/ref_bf16_table
if [ -n "$(find -L "$beside" -name manifest.json 2>/dev/null | head -n 1)" ]; then
	set -- --cases="$beside"
else
	set --
fi
"$runner" --backend=cpu --faults --cases=testdata/golden "$@"
