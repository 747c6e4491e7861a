#!/usr/bin/env bash
# python_test.sh ARCHIVE DRIVER: python/tests with the library as a shared
# object, on the CPU and, with DRIVER as libcuda.so.1, on the emulator; and the
# example, which draws.
set -euo pipefail

archive=$1 driver=$2
tmp=$TEST_TMPDIR

if ! python3 -c 'import numpy, pytest' 2>"$tmp/why"; then
	echo "SKIPPED: $(tail -n 1 "$tmp/why")"
	echo SKIPPED
	exit 0
fi

# The driver looks into no kernels, but some have to be there.
sh platform/cuda/blob.sh gcc tests/substitutes/nvcc.sh \
	platform/gpu/all_kernels.c "$tmp/spmla_cuda_blob.o" 2>"$tmp/log"
cp "$archive" "$tmp/libspmla.a"
chmod u+w "$tmp/libspmla.a"
ar d "$tmp/libspmla.a" spmla_cuda_blob.o
gcc -shared -Wl,--version-script=platform/make/exports.map \
	-Wl,--whole-archive "$tmp/libspmla.a" -Wl,--no-whole-archive \
	"$tmp/spmla_cuda_blob.o" -ldl -lm -o "$tmp/libspmla.so"
mkdir "$tmp/driver"
ln -s "$PWD/$driver" "$tmp/driver/libcuda.so.1"

export SPMLA_LIBRARY=$tmp/libspmla.so PYTHONPATH=$PWD/python
export PYTHONDONTWRITEBYTECODE=1
SPMLA_TEST_CUDA=1 LD_LIBRARY_PATH=$tmp/driver \
	python3 -m pytest -q -rs -p no:cacheprovider python/tests

for steps in 1 100; do
	python3 examples/python/decode.py --steps $steps --svg "$tmp/decode.svg" |
		tee "$tmp/printed"
	grep -q '^OK: ' "$tmp/printed"
	python3 -c 'import sys, xml.dom.minidom as dom
dom.parse(sys.argv[1])' "$tmp/decode.svg"
done

python3 examples/python/decode.py --help >"$tmp/printed"
grep -q -- '--rows N .*(default: 6)' "$tmp/printed"
python3 examples/python/decode.py --version |
	grep -qE '^decode.py of SpMLA [0-9.]+$'
python3 examples/python/decode.py --setps 3 2>"$tmp/printed" && exit 1
grep -q 'setps: unknown option; the nearest is --steps' "$tmp/printed"
python3 examples/python/decode.py --svg "$tmp/none/x.svg" 2>"$tmp/printed" &&
	exit 1
grep -q 'error: --svg: cannot write ' "$tmp/printed"
SPMLA_LIBRARY=$tmp/none.so python3 -c 'import spmla' 2>"$tmp/printed" && exit 1
grep -q '^ImportError: .*none.so.*SPMLA_LIBRARY names another' "$tmp/printed"

if python3 -c 'import mypy' 2>/dev/null; then
	python3 -m mypy --strict --cache-dir "$tmp/mypy" python/spmla
else
	echo "SKIPPED: mypy is not there"
fi
