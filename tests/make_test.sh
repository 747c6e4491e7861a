#!/usr/bin/env bash
# make_test.sh ARCHIVE: what the Makefile builds and installs. It has the
# sources and the flags of Bazel's ARCHIVE; programs find it by pkg-config, CMake
# and cargo; kernels for CUDA, HIP and Level Zero are in it where there are compilers.
# make compiles the sources in lib/ itself and some others. It finds the other objects
# in place: they are ARCHIVE's, which the same compiler made. clang reads all sources
# with make's flags.
set -euo pipefail

archive=$PWD/$1
root=$PWD
tmp=$TEST_TMPDIR
usr=$tmp/usr
HOME=$(getent passwd "$(id -u)" | cut -d: -f6) # cargo keeps its compiler there
export HOME
PATH=$PATH:$HOME/.cargo/bin
unset MAKEFLAGS CFLAGS NVCC HIP_CLANG LEVEL_ZERO_TOOLS

fail() {
	echo "FAIL: $*"
	exit 1
}

have() {
	command -v "$1" >/dev/null || {
		echo "SKIPPED: $1 is not there"
		return 1
	}
}

have_module() {
	python3 -c "import $1" 2>/dev/null || {
		echo "SKIPPED: python3 has no $1"
		return 1
	}
}

make=(make -s -j2 BUILD="$tmp/build" CFLAGS='-O2 -Werror')
cd "$tmp"
"${make[@]}" -f "$root/Makefile" "$tmp/build/flags" # older than the objects
mkdir objects
(cd objects && ar x "$archive")
(cd "$root" && find -L lib/*/ platform -name '*.c' ! -name '*_kernels.c' \
	! -name 'platform_*.c' ! -name 'topk*.c') |
	while read -r source; do
		mkdir -p "build/${source%/*}"
		mv "objects/$(basename "$source" .c).o" "build/${source%.c}.o"
	done
"${make[@]}" -f "$root/Makefile" CUDA=0 HIP=0 LEVEL_ZERO=0 PREFIX="$usr" \
	check install
lib=$usr/lib

# The same sources, the same flags.
diff <(ar t "$archive" | sort) <(ar t "$lib/libspmla.a" | sort) ||
	fail "BUILD.bazel and Makefile have other sources"
copts=$(sed -n '/^    copts = \[/,/\]/s/^ *"\(.*\)",/\1/p' "$root/BUILD.bazel")
[ "$(wc -w <<<"$copts")" -ge 8 ]
for flag in $copts; do
	grep -q -e " $flag " build/flags ||
		fail "$flag of BUILD.bazel is not in the Makefile"
done

# Another compiler has no warning either.
if have clang-19; then
	read -ra flags < <(cut -d' ' -f2- build/flags)
	find -L "$root/lib" "$root/platform" -name '*.c' \
		! -name "*_kernels.c" -print0 |
		xargs -0 -P2 -n16 clang-19 "${flags[@]}" -fsyntax-only
fi

# What is public of the archive is exported, and nothing else.
diff <(nm -P -g --defined-only "$lib/libspmla.a" | awk 'NF > 2 { print $1 }' |
	grep -v '^spmla_i_' | sort) \
	<(nm -P -D --defined-only "$lib/libspmla.so" | cut -d' ' -f1 | sort) ||
	fail "libspmla.so exports something else"
readelf -lW "$lib/libspmla.so" >segments
grep -qE 'GNU_STACK.* RW ' segments || fail "an executable stack"
version=$(sed -n 's/^Version: //p' "$lib/pkgconfig/spmla.pc")
readelf -d "$lib/libspmla.so.$version" |
	grep -q "soname: \[libspmla.so.${version%.*}\]" || fail "another soname"

# A staged installation has the same files, with paths below the prefix.
"${make[@]}" -f "$root/Makefile" CUDA=0 HIP=0 LEVEL_ZERO=0 PREFIX=/opt/spmla \
	DESTDIR="$tmp/stage" install
diff <(cd "$usr" && find . | sort) <(cd stage/opt/spmla && find . | sort)
grep -qx 'prefix=/opt/spmla' stage/opt/spmla/lib/pkgconfig/spmla.pc
if grep -rIlF "$tmp" stage; then
	fail "these name the folder that they were built in"
fi

# prints WANT COMMAND...
prints() {
	local want=$1 out
	shift
	out=$("$@")
	[[ $out == $want ]] || fail "$* printed: $out"
}

step="spmla $version, one step, lse 0.0"
export PKG_CONFIG_PATH=$lib/pkgconfig
main=$root/examples/consumer/main.c
if have pkg-config; then
	read -ra cflags <<<"$(pkg-config --cflags spmla)"
	read -ra libs <<<"$(pkg-config --libs spmla)"
	read -ra all <<<"$(pkg-config --libs --static spmla)"
	gcc -std=c11 -Wall -Wextra -Werror "${cflags[@]}" "$main" \
		"${libs[@]}" -lm -o shared
	prints "$step" env LD_LIBRARY_PATH="$lib" ./shared
	gcc -std=c11 "${cflags[@]}" "$main" -static "${all[@]}" -o static
	prints "$step" ./static
	g++ -std=c++17 -Wall -Wextra -Werror "${cflags[@]}" \
		"$root/tests/cxx/consumer.cc" "${libs[@]}" -o cxx
	prints '*' env LD_LIBRARY_PATH="$lib" ./cxx
	# README's line, as it stands.
	mkdir -p examples out
	cp "$root/examples/hello_v32.c" examples
	eval "$(grep '^gcc examples' "$root/README.md")"
	want=$(sed -n 's,^out/hello *# ,,p' "$root/README.md")
	prints "${want//[[]/[[]}" env LD_LIBRARY_PATH="$lib" out/hello
fi

# CMake finds it where it was moved.
if have cmake; then
	cmake -S "$root/examples/consumer" -B cmake \
		-DCMAKE_PREFIX_PATH="$tmp/stage/opt/spmla" >/dev/null
	cmake --build cmake >/dev/null
	prints "$step" cmake/consumer
	prints "$step" cmake/consumer_static
fi

if have cargo && have pkg-config; then
	cp -RL "$root/examples/consumer" cargo
	cd cargo
	cargo build -q --offline
	prints "spmla $version, [1-9]* operations" \
		env LD_LIBRARY_PATH="$lib" target/debug/consumer
	STATIC=1 cargo build -q --offline
	prints "spmla $version, [1-9]* operations" target/debug/consumer
	cd ..
fi

# The wheel has the library in it.
if have python3 && have_module numpy; then
	export SPMLA_MAKE="CUDA=0 HIP=0 LEVEL_ZERO=0 BUILD=$tmp/build"
	SPMLA_MAKE+=" CFLAGS='-O2 -Werror'"
	export PYTHONDONTWRITEBYTECODE=1
	if have_module pip; then
		python3 -m pip install -q --no-index --no-deps \
			--root-user-action=ignore --target site "$root"
	else
		PYTHONPATH=$root/python/build python3 -c \
			'import backend; backend.build_wheel(".")'
		python3 -m zipfile -e spmla-*.whl site
	fi
	prints "$version 2" env PYTHONPATH="$PWD/site" python3 -c '
import numpy, spmla
out = numpy.zeros((1, 1), "i4")
spmla.top_k_per_row_decode(numpy.array([[1, 3, 5, 4]], "f4"), 1,
                           numpy.array([4], "i4"), out, 1, 4, 1, 1)
print(spmla.__version__, out[0, 0])'
fi

# Kernels for each platform, or none.
kernels() {
	"${make[@]}" -f "$root/Makefile" "$@" 2>log
}
has() { # TEXT
	grep -q "$1" build/libspmla.so && grep -q "$1" build/libspmla.a
}
kernels NVCC="$root/tests/substitutes/nvcc.sh" \
	HIP_CLANG="$tmp/none $root/tests/substitutes/clang.sh" \
	LEVEL_ZERO_TOOLS="$root/tests/substitutes/clang.sh \
		$root/tests/substitutes/llvm_spirv.sh"
grep -q 'code=sm_90a$' log
has 'kernels for a device'
grep -q 'left out: gfx950' log
has 'code object for gfx90a' && has 'code object for gfx1201'
has 'SPIR-V for a device'
kernels CUDA=0 HIP=0 LEVEL_ZERO=0
! has 'kernels for a device' || fail "old kernels"
! has 'code object for gfx' || fail "old code objects"
! has 'SPIR-V for a device' || fail "old SPIR-V"
for platform in CUDA HIP 'Level Zero'; do
	grep -q "left out: kernels for $platform" log ||
		fail "does not say that there is nothing for $platform"
done
! kernels CUDA=1 HIP=0 LEVEL_ZERO=0 NVCC= || fail "CUDA=1 without nvcc"
grep -q 'no nvcc' log
! kernels CUDA=1 HIP=0 LEVEL_ZERO=0 NVCC="$tmp/none" || fail "an nvcc that is not there"
! kernels CUDA=0 HIP=1 LEVEL_ZERO=0 HIP_CLANG= || fail "HIP=1 without clang"
grep -q 'no clang: name it by HIP_CLANG' log
! kernels CUDA=0 HIP=0 LEVEL_ZERO=1 LEVEL_ZERO_TOOLS= ||
	fail "LEVEL_ZERO=1 without llvm-spirv"
grep -q 'no clang with its llvm-spirv' log
echo "spmla $version"
