#!/usr/bin/env bash
# run.sh [--some N] [WORD]: proves that the suites can fail. Each fault of
# faults.txt (those that contain WORD, if given) is put into the library, alone;
# the suite that the line names must then fail. A fault that survives, does not
# apply or does not compile ends this with 1. --some takes N faults: first all of
# the files that the last commit changed, then others, drawn anew for each commit.
# --check only looks whether every fault applies, as //tests:mutation_faults does.
# Compiles by itself, so that a fault costs what it touches and no more.
set -euo pipefail

# Under Bazel the working directory is the root.
if [ -z "${TEST_SRCDIR:-}" ]; then
	cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
fi
mode=run some=all word=
while [ $# -gt 0 ]; do
	case $1 in
	--check) mode=check ;;
	--some)
		some=$2
		shift
		;;
	-h | --help)
		sed -n '/^# run.sh/,/^set/s/^# //p' tests/mutation/run.sh
		exit
		;;
	*) word=$1 ;;
	esac
	shift
done

tmp=$(mktemp -d)
trap 'chmod -R u+w "$tmp" && rm -rf "$tmp"' EXIT
export tmp CK_FORK=no
export TEST_FLAGS="-std=gnu11 -D_GNU_SOURCE -O1 -ffp-contract=off"

# A folder a fault, with its four lines (file, suite, old, new) in files, and
# `planted`: the file with OLD, which must stand in it exactly once, replaced by
# NEW. Prints how many there are.
plant() { # WORD
	perl -e '
		my ($tmp, $word, $count, %text) = ($ENV{tmp}, shift, 0);
		sub put { # FILE TEXT
			open my $to, ">", $_[0] or die "$_[0]: $!\n";
			print $to $_[1];
			close $to or die "$_[0]: $!\n";
		}
		my @lines = grep { !/^#/ } <STDIN>;
		chomp @lines;
		while (@lines) {
			my ($file, $suite, $old, $new, $blank) = splice @lines, 0, 5;
			defined $new or last;
			die "run.sh: no empty line before $blank\n" if length $blank;
			next if index("$file $suite $old", $word) < 0;
			$text{$file} //= do {
				open my $from, "<", $file or die "$file: $!\n";
				local $/;
				<$from>
			};
			my $n = () = $text{$file} =~ /\Q$old\E/g;
			die "$file: found $n times: $old\n" if $n != 1;
			my $dir = sprintf "%s/%04d", $tmp, ++$count;
			mkdir $dir or die "$dir: $!\n";
			put("$dir/file", "$file\n");
			put("$dir/suite", "$suite\n");
			put("$dir/new", "$new\n");
			put("$dir/planted", $text{$file} =~ s/\Q$old\E/$new/r);
		}
		print "$count\n"' "$1" <tests/mutation/faults.txt
}

count=$(plant "$word")
if [ "$count" -eq 0 ]; then
	echo "run.sh: no fault with '$word' in it" >&2
	exit 1
fi
if [ "$mode" = check ]; then
	echo "mutation: $count faults apply"
	exit 0
fi

# The faults in the order in which --some takes them.
drawn() {
	local commit changed dir place
	commit=$(git rev-parse HEAD 2>/dev/null) || commit=none
	changed=$(git diff --name-only HEAD^ HEAD 2>/dev/null) || changed=
	for dir in "$tmp"/[0-9]*; do
		place=$(cksum <<<"$commit ${dir##*/}")
		! grep -qxF "$(cat "$dir/file")" <<<"$changed" || place=0
		echo "${place%% *} $dir"
	done | sort -n
}
if [ "$some" != all ]; then
	drawn | tail -n +$((some + 1)) | cut -d' ' -f2 | xargs -r rm -r
	all=$count
	count=$(find "$tmp" -maxdepth 1 -name '[0-9]*' | wc -l)
	echo "mutation: $count of $all faults"
fi

tree=$tmp/tree
mkdir -p "$tree/spmla/platform"
cp -RL lib/. "$tree/spmla"
cp -RL platform/cpu platform/gpu "$tree/spmla/platform"
for platform in cuda hip level_zero; do
	mkdir "$tree/spmla/platform/$platform"
	cp -L platform/$platform/*.[ch] "$tree/spmla/platform/$platform"
done
rm "$tree"/spmla/platform/gpu/*_kernels.c # no host code
cp -L platform/*/spmla_*.h "$tree/spmla"

# Where the copy of a tree that compiles has FILE.
place() { # FILE
	case $1 in
	lib/*) echo "spmla/${1#lib/}" ;;
	platform/*) echo "spmla/$1" ;;
	*) echo "$1" ;;
	esac
}

# A source to an object and the list of what it includes. The folder named first
# has the file that differs, if any; all else comes from the unchanged tree.
compile() { # DIR SOURCE [OBJECT]
	local source=$2 object=${3:-$1/${2//\//_}.o} flags=
	case $source in tests/emulator/*) flags='-mavx2 -mf16c -mfma' ;; esac
	[ ! -e "$1/tree/$2" ] || source=$1/tree/$2
	[ -e "$source" ] || source=$tmp/tree/$2
	# shellcheck disable=SC2086
	gcc $TEST_FLAGS $flags -I"$1/tree" -I"$tmp/tree" -I. -MMD -MF "$object.d" \
		-c "$source" -o "$object"
}

# What host code sees of a header of platform/gpu: not its kernels, which are
# there for those alone who define SPMLA_GPU_KERNELS.
host_text() { # FILE [DIR]
	gcc -std=gnu11 -E -P -dD ${2:+-I"$2/tree"} -I"$tmp/tree" \
		-include "$1" -x c /dev/null
}

# Whether FILE of DIR differs from the unchanged in its kernels alone.
kernels_only() { # DIR FILE
	case $2 in spmla/platform/gpu/*.h) ;; *) return 1 ;; esac
	cmp -s <(host_text "$2" "$1") <(host_text "$2")
}

# The program of SUITE: it, what FILE changed, compiled into DIR, and what else
# they need of the unchanged. ops/test_x_scalar is ops/test_x, and so are
# ops/test_x_emulator64, ops/test_x_emulator_mma and ops/test_x_tile64.
build() { # DIR SUITE [FILE]
	local dir=$1 changed=${3:-/} suite=$tmp/suites/${2//\//_}.o object
	local objects=("$suite") host=1
	! kernels_only "$dir" "$changed" || host=0
	while read -r object; do
		object=${object%.d}
		[ $host -eq 1 ] || [ -e "$object.kernels" ] || continue
		compile "$dir" "$(cat "$object.source")" || return
		[ "$object" != "$suite" ] || objects=()
	done < <(grep -lF "/$changed" "$tmp"/base/*.o.d "$suite.d")
	shopt -s nullglob
	gcc -o "$dir/test" "${objects[@]}" "$dir"/*.o "$tmp/first.o" \
		"$tmp/base.a" -Wl,--wrap=_ck_assert_failed,--wrap=_mark_point \
		-lcheck -lsubunit -lrt -ldl -lm -pthread
}

run() { # DIR SUITE SECONDS
	local variant=()
	case $2 in
	*_emulator_mma)
		variant=(SPMLA_TEST_EMULATOR=32 SPMLA_TEST_EMULATOR_ARCH=100)
		;;
	*_emulator_debug)
		variant=(SPMLA_TEST_EMULATOR=32 SPMLA_TEST_KERNEL_DEBUG=1)
		;;
	*_tile[0-9]*)
		variant=("SPMLA_TEST_EMULATOR=${2##*_tile}"
			SPMLA_TEST_UNPROVEN=1)
		;;
	*_emulator*) variant=("SPMLA_TEST_EMULATOR=${2##*_emulator}") ;;
	*) [ -e "tests/$2.c" ] || variant=("SPMLA_TEST_NATIVE=${2##*_}") ;;
	esac
	env "${variant[@]}" timeout "$3" "$1/test" >"$1/log" 2>&1
}

# Notes what an object was compiled from, and whether it has kernels.
mark() { # SOURCE OBJECT
	echo "$1" >"$2.source"
	if grep -qs 'define SPMLA_GPU_KERNELS' "$1" ||
		grep -q 'emulated\.h' "$2.d"; then
		touch "$2.kernels"
	fi
}

# Without a fault it must pass. With one it gets four times as long, and ten
# seconds: what takes longer hangs.
suite() { # SUITE
	local dir=$tmp/suites/${1//\//_} source=tests/$1.c
	[ -e "$source" ] || source=tests/${1%_emulator_*}.c
	[ -e "$source" ] || source=tests/${1%_*}.c
	mkdir "$dir"
	compile "$tmp/suites" "$source" "$dir.o"
	mark "$source" "$dir.o"
	build "$dir" "$1"
	local begin=$SECONDS
	run "$dir" "$1" 180 || {
		tail -n 20 "$dir/log"
		echo "BROKEN    $1: fails without a fault" | tee "$dir.out"
		exit 1
	}
	echo $((10 + 4 * (SECONDS - begin))) >"$dir.seconds"
	rm -rf "$dir"
}

fault() { # DIR
	local dir=$1 file suite new placed seconds out=SURVIVED
	file=$(cat "$dir/file") suite=$(cat "$dir/suite") new=$(cat "$dir/new")
	seconds=$(cat "$tmp/suites/${suite//\//_}.seconds")
	placed=$(place "$file")
	mkdir -p "$dir/tree/${placed%/*}"
	cp "$dir/planted" "$dir/tree/$placed"
	if ! build "$dir" "$suite" "$placed" >"$dir/log" 2>&1; then
		out=BROKEN
	elif ! run "$dir" "$suite" "$seconds"; then
		out=caught
	fi
	printf '%-9s %s: %s: %s\n' "$out" "$suite" "$file" "$new" |
		tee "$dir/out"
	[ "$out" != BROKEN ] || tail -n 20 "$dir/log"
	rm -rf "$dir/tree" "$dir"/*.o "$dir/test"
}

base() { # SOURCE
	local object=$tmp/base/${1//\//_}.o
	compile "$tmp/base" "$1" "$object"
	mark "$1" "$object"
}
export -f compile host_text kernels_only place build run mark suite fault base

in_parallel() { # FUNCTION; arguments from standard input
	xargs -P "$(nproc)" -n 1 bash -euo pipefail -c "$1"' "$1"' "$1"
}
mkdir "$tmp/base" "$tmp/suites"

# A suite ends at its first failure.
gcc -x c -c - -o "$tmp/first.o" <<'END'
#include <stdio.h>
#include <unistd.h>

void
__wrap__ck_assert_failed(const char *file, int line)
{
	dprintf(2, "%s:%d\n", file, line);
	_exit(1);
}

/* No kernels for devices. */
const unsigned char spmla_i_cuda_blob[1], spmla_i_hip_blob[1],
	spmla_i_level_zero_blob[1], spmla_i_level_zero_tiles[1];
const unsigned spmla_i_cuda_blob_driver;
const unsigned long spmla_i_cuda_blob_bytes, spmla_i_hip_parts[3],
	spmla_i_hip_part_count, spmla_i_level_zero_blob_bytes,
	spmla_i_level_zero_tiles_bytes;
END
{
	(cd "$tree" && find spmla -name '*.c')
	find tests -name '*.c' ! -name 'test_*' ! -name 'lib*.c' \
		! -path 'tests/harness/cuda_[ghmrw]*' \
		! -path 'tests/harness/level_zero_*' \
		! -path 'tests/fuzz/*' ! -path 'tests/g*'
} | in_parallel base
ar rc "$tmp/base.a" "$tmp"/base/*.o
sort -u "$tmp"/[0-9]*/suite | in_parallel suite || {
	cat "$tmp"/suites/*.out
	exit 1
}
find "$tmp" -maxdepth 1 -name '[0-9]*' | sort | in_parallel fault

# The end of a log is what is read: name again what was not caught.
cat "$tmp"/[0-9]*/out | grep -v '^caught ' || true
caught=$(cat "$tmp"/[0-9]*/out | grep -c '^caught ' || true)
echo "mutation: $caught caught, $((count - caught)) not caught"
[ "$caught" -eq "$count" ]
