#!/usr/bin/env bash
# audit_symbols.sh ARCHIVE: what the linker and the loader see of libspmla.a.
# It asks of the C library arithmetic and moving bytes only, and where a GPU's
# driver is opened the loader; it exports spmla_* only, and has no state, no
# constructors and no executable stack. A program that names the CPU backend
# alone has none of the others in it.
set -euo pipefail

shopt -s lastpipe # so that none, at the end of a pipe, sets bad here

archive=$1
bad=0

# Says what is wrong, with the lines on stdin that show it, if there are any.
none() {
	local lines
	lines=$(sort -u)
	if [ -n "$lines" ]; then
		printf '%s:\n%s\n' "$1" "$lines"
		bad=1
	fi
}

allowed='mem(cpy|set|move|cmp)|strcmp|exp2f|log2f|sqrtf?|_GLOBAL_OFFSET_TABLE_'
# rope.c calls these, and gcc makes sincos of the first two.
allowed+='|cos|sin|sincos|log|pow'
# What the compiler makes of them where it hardens by default.
allowed+='|__mem(cpy|set|move)_chk|__stack_chk_fail'
loader='dlopen|dlsym|dlclose'

nm -P "$archive" >"$TEST_TMPDIR/nm"
grep -q ' T ' "$TEST_TMPDIR/nm" || echo "$archive" | none 'no code in'

# An archive member may use what another one defines.
awk 'NF >= 3 && $2 ~ /^[A-TV-Z]$/ { print $1 }' "$TEST_TMPDIR/nm" |
	sort -u >"$TEST_TMPDIR/defined"
awk '$2 ~ /^[Uwv]$/ { print $1 }' "$TEST_TMPDIR/nm" | sort -u |
	comm -23 - "$TEST_TMPDIR/defined" |
	{ grep -vxE "$allowed|$loader" || true; } |
	none 'undefined, and not on the list of what may be'
# nm heads each member's symbols with ARCHIVE[MEMBER]:
awk -v loader="^($loader)\$" '
	NF == 1 { member = $1; sub(/.*\[/, "", member); sub(/\].*/, "", member) }
	$2 ~ /^[Uwv]$/ && $1 ~ loader && member != "library_gpu.o" {
		print member, $1
	}' "$TEST_TMPDIR/nm" | none 'calls the loader'
{ grep -v '^spmla_' "$TEST_TMPDIR/defined" || true; } |
	none 'exported, and not spmla_*'
awk '$2 ~ /^[CuiI]$/ { print $1 }' "$TEST_TMPDIR/nm" |
	none 'common, unique or indirect symbols'

# One line a section: member, name, size, flags; a section without flags has one
# field less.
readelf -SW "$archive" | sed 's/\[ */[/' | awk '
	$1 == "File:" { member = $2 "#" ++members }
	$1 ~ /^\[[0-9]+\]$/ && $2 ~ /^\./ {
		print member, $2, $6, (NF == 11 ? $8 : "-")
	}' >"$TEST_TMPDIR/sections"

awk '$2 ~ /^\.(init|fini|preinit)(_array)?(\.|$)|^\.[cd]tors/ {
	print $1, $2
}' "$TEST_TMPDIR/sections" | none 'constructors or destructors'
awk '$4 ~ /W/ && $2 !~ /^\.data\.rel\.ro/ && $3 !~ /^0+$/ {
	print $1, $2, $3
}' "$TEST_TMPDIR/sections" | none 'writable data'
awk '{ seen[$1] }
	$2 == ".note.GNU-stack" { ok[$1] = $4 !~ /X/ }
	END { for (m in seen) if (!ok[m]) print m }' "$TEST_TMPDIR/sections" |
	none 'executable stack'

# The blobs of kernels are read-only data inside the archive.
for blob in spmla_i_cuda_blob spmla_i_hip_blob spmla_i_level_zero_blob \
	spmla_i_level_zero_tiles; do
	grep -qE "^$blob R " "$TEST_TMPDIR/nm" ||
		echo $blob | none 'not read-only data of the archive'
done

# What a program that names only the CPU backend links of the library.
cat >"$TEST_TMPDIR/cpu.c" <<'END'
extern const struct spmla_backend spmla_cpu;
extern int spmla_init(), spmla_v32_attn(), spmla_graph_replay();
const void *const used[] = {&spmla_cpu, spmla_init, spmla_v32_attn,
			    spmla_graph_replay};
int main(void) { return used[0] == 0; }
END
gcc "$TEST_TMPDIR/cpu.c" "$archive" -lm -o "$TEST_TMPDIR/cpu"
nm -P "$TEST_TMPDIR/cpu" >"$TEST_TMPDIR/linked"
grep -qE '^spmla_cpu ' "$TEST_TMPDIR/linked"
awk '$1 ~ /cuda|_hip|level_zero|_gpu_|^(dlopen|dlsym|dlclose)(@|$)/ { print $1 }' \
	"$TEST_TMPDIR/linked" | none 'in a program for the CPU'

exit "$bad"
