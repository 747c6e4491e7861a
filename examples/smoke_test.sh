#!/usr/bin/env bash
# Short runs of the examples: what they print and how they end.
# usage: smoke_test.sh DECODE_LOOP ARENA_MAP
set -uo pipefail

loop=$1
map=$2
chat=testdata/trace/synthetic_chat.csv
short=testdata/trace/short.csv
tmp=${TEST_TMPDIR:-$(mktemp -d)}
bad=0

fail() {
	printf 'FAILED: %s\n' "$*"
	sed 's/^/    /' "$tmp/out" | tail -n 40
	bad=1
}

# runs NAME STATUS TEXT... -- COMMAND...: the status, and every text in what it
# prints; one that begins with ! is not there.
runs() {
	local name=$1 want=$2 texts=() text got=0 was=$bad
	bad=0
	shift 2
	while [ "$1" != -- ]; do
		texts+=("$1")
		shift
	done
	shift
	"$@" >"$tmp/out" 2>&1 || got=$?
	[ "$got" -eq "$want" ] || fail "$name: exit status $got, want $want"
	for text in "${texts[@]}"; do
		case $text in
		!*) ! grep -qE -- "${text#!}" "$tmp/out" ;;
		*) grep -qE -- "$text" "$tmp/out" ;;
		esac || fail "$name: not so: \"$text\""
	done
	if [ $bad -eq 0 ]; then
		echo "ok: $name"
		bad=$was
	fi
}

small=(--layers 2 --heads 4 --index-heads 4 --topk 64 --max-context 512
	--max-requests 4)
good=('^allocations in spmla_init: 0$' '^allocations after init: 0$'
	'^frees after init: 0$' '^reference check: [1-9][0-9]* tokens, 0 mism'
	'^replay = eager: [1-9][0-9]* steps, 0 mism'
	'^requests done +[1-9]'
	'^OK: [0-9]+ steps, [1-9][0-9]* tokens, 0 mismatches, 0 allocations$')

runs "drafts of three tokens" 0 "${good[@]}" -- \
	"$loop" "${small[@]}" --steps 24 --next-n 3 --check-every 2
runs "one token a step" 0 "${good[@]}" -- \
	"$loop" "${small[@]}" --steps 24 --next-n 1 --check-every 2
runs "steps that are taken back" 0 "${good[@]}" \
	'^  taken back and sent again +[1-9]' -- \
	"$loop" "${small[@]}" --steps 24 --next-n 2 --check-every 4 \
	--undo-every 2
runs "small pages, so that rows grow and are reused" 0 "${good[@]}" \
	'^table rows grown +[1-9]' '^pages used again +[1-9]' \
	'^  through the staging table +[1-9]' '!^prompts run' -- \
	"$loop" "${small[@]}" --steps 60 --next-n 4 --check-every 6 \
	--page-tokens 8 --prefill 0
runs "prompts in several chunks, their ends beside decodes" 0 "${good[@]}" \
	'^  steps of prompts +[1-9][0-9]' \
	'^  of prompts and answers +[1-9]' '!^  through the staging table' -- \
	"$loop" "${small[@]}" --steps 24 --next-n 2 --check-every 2 \
	--prefill 48
runs "chunks that a bucket takes" 0 "${good[@]}" \
	'^  of them replayed +[1-9]' '^  of prompts and answers +[1-9]' -- \
	"$loop" "${small[@]}" --steps 40 --check-every 8 --prefill 12 \
	--page-tokens 8
runs "no checks" 0 '^reference check: 0 tokens' \
	'^OK: 4 steps, [1-9][0-9]* tokens, nothing compared, 0 alloc' -- \
	"$loop" "${small[@]}" --steps 4 --check-every 0

printf 'TIMESTAMP,ContextTokens,GeneratedTokens\nnow,40,3\nnow,9,2\n' \
	>"$tmp/two.csv"
runs "a trace that ends" 0 '^requests done +2$' '^steps +3$' \
	'!^prompts run' -- \
	"$loop" "${small[@]}" --trace "$tmp/two.csv" --check-every 1
runs "its prompts run" 0 '^requests done +2$' '^prompts run +1$' \
	'^reference check: [1-9][0-9]* tokens, 0 mism' -- \
	"$loop" "${small[@]}" --trace "$tmp/two.csv" --check-every 1 \
	--prefill 16
# V4: all kinds of layers; prompts are short, so that many requests come and go.
v4=(--layers 4 --heads 2 --index-heads 2 --topk 24 --max-context 400
	--max-requests 4 --next-n 4 --steps 40 --trace "$short")
good_v4=("${good[@]}" '^  rejected +[1-9]' '^  of prompts and answers +[1-9]'
	'^  with another one.s tokens +[1-9]' '^pages used again +[1-9]')

runs "V4: windows and states that wrap around" 0 "${good_v4[@]}" \
	'^table rows wrap around +[1-9]' '^pages copied +[1-9]' -- \
	"$loop" --model v4-flash "${v4[@]}" --check-every 2
runs "V4: tables of all groups, steps that are taken back" 0 \
	"${good_v4[@]}" '^  taken back and sent again +[1-9]' -- \
	"$loop" --model v4-pro "${v4[@]}" --tables own --index mxfp4 \
	--page-tokens 128 --undo-every 3 --check-every 4
runs "V4: pages that requests share" 0 "${good_v4[@]}" \
	'!^table rows wrap around' '^pages shared by requests +[1-9]' -- \
	"$loop" --model v4-flash "${v4[@]}" --tables linear --check-every 4
runs "V4: the engine's own tables" 0 "${good_v4[@]}" \
	'!^table rows grown' -- \
	"$loop" --model v4-flash "${v4[@]}" --tables device --check-every 4
runs "V4: prompts in steps of prefill" 0 "${good_v4[@]}" \
	'^  steps of prompts +[1-9]' -- \
	"$loop" --model v4-flash "${v4[@]}" --prompts eager --prefill 90 \
	--check-every 4
runs "V4: no bucket for prompts" 0 "${good[@]}" '^  of prompts and answers +[1-9]' -- \
	"$loop" --model v4-flash "${v4[@]}" --prefill 0 --check-every 4
# From the start of a group of 128, so that its key is one that the run makes. The
# first and the last of its steps are compared.
printf 'TIMESTAMP,ContextTokens,GeneratedTokens\nnow,120,8\n' \
	>"$tmp/million.csv"
# Under sanitizers, whose runs are bounded in steps, to the end of fewer.
end=1048576 steps=11
[ -z "${SPMLA_TEST_STEPS:-}" ] || end=65536 steps=10
runs "V4: to the end of a million tokens" 0 "${good[@]}" \
	"^longest sequence, tokens +$end\$" '^requests done +1$' \
	'^  through the staging table +1$' "^steps +$steps\$" -- \
	"$loop" --model v4-flash --layers 4 --heads 1 --index-heads 1 \
	--topk 600 --max-context $end --start $((end - 128)) --max-requests 1 \
	--next-n 2 --prefill 24 --trace "$tmp/million.csv" \
	--check-every $steps
runs "tables of another kind" 2 '^decode_loop: --tables: "some" is unk' -- \
	"$loop" --model v4-flash --tables some

printf 'TIMESTAMP,ContextTokens,GeneratedTokens\nnow,40,many\n' \
	>"$tmp/bad.csv"
runs "a bad row" 2 '^decode_loop: --trace: .*bad.csv:2: Generated' -- \
	"$loop" --trace "$tmp/bad.csv"
printf 'a,b\n' >"$tmp/bad.csv"
runs "other columns" 2 '^decode_loop: --trace: .*bad.csv:1: want' -- \
	"$loop" --trace "$tmp/bad.csv"
runs "no trace" 2 '^decode_loop: --trace: cannot open' -- \
	"$loop" --trace "$tmp/none.csv"
runs "a path from where bazel run was called" 0 '^requests done +2$' -- \
	env BUILD_WORKING_DIRECTORY="$tmp" "$loop" "${small[@]}" \
	--trace two.csv
runs "an unknown option" 2 \
	'^decode_loop: --stepz: unknown option; the nearest is --steps;' -- \
	"$loop" --stepz 3
runs "an unknown option with its value" 2 \
	'^decode_loop: --indexhead=8: .* nearest is --index-heads;' -- \
	"$loop" --indexhead=8
runs "another unknown option" 2 \
	'^arena_map: -svg: unknown option; the nearest is --svg;' -- \
	"$map" -svg x
runs "an option that has begun well" 2 \
	'^decode_loop: -v: unknown option; the nearest is --version;' -- \
	"$loop" -v
runs "a word that is no option" 2 '^decode_loop: steps: not an option;' -- \
	"$loop" steps
runs "a switch with a value" 2 '^decode_loop: --plan: it takes no value' -- \
	"$loop" --plan=1
runs "a bad number" 2 '^decode_loop: --steps: "3x" is not' -- \
	"$loop" --steps 3x
runs "a number out of range" 2 '^decode_loop: --heads: "0" is not' -- \
	"$loop" --heads=0
runs "an option without its value" 2 '^decode_loop: --steps: a value' -- \
	"$loop" --steps
runs "another backend" 2 '^decode_loop: --backend: "metal" is unknown' -- \
	"$loop" --backend metal
# With a device it is a run like any other.
if [ ! -e /dev/nvidiactl ]; then
	runs "no device" 2 '^decode_loop: --backend: there is no CUDA' -- \
		"$loop" --backend cuda
else
	runs "a CUDA device" 0 "${good[@]}" -- \
		"$loop" --backend cuda "${small[@]}" --steps 24
fi
if [ ! -e /dev/kfd ]; then
	runs "no AMD GPU" 2 '^decode_loop: --backend: there is no HIP' -- \
		"$loop" --backend hip
else
	runs "an AMD GPU" 0 "${good[@]}" -- \
		"$loop" --backend hip "${small[@]}" --steps 24
fi
if [ ! -e /dev/dri ]; then
	runs "no Intel GPU" 2 \
		'^decode_loop: --backend: there is no Level Zero device$' -- \
		"$loop" --backend level_zero
fi
for program in "$loop" "$map"; do
	name=$(basename "$program")
	runs "$name --help" 0 "^usage: $name " \
		'^  --model +v32, v4-flash or v4-pro .default v32.$' \
		'^  --svg +file to draw' '^  --help, -h' '^  --version' \
		'!.{81}' '!default none' -- "$program" --help
	runs "$name -h" 0 "^usage: $name " -- "$program" --topk 9 -h
	runs "$name --version" 0 "^$name of SpMLA [0-9]+\\.[0-9]+\\.[0-9]+$" -- \
		"$program" --version
done

# What it says of itself: the head, nothing on stderr, the plan on demand, the
# picture, the verdict at the end.
brief=("${small[@]}" --steps 4 --trace "$tmp/two.csv")
runs "the head, and no plan" 0 \
	'^DeepSeek V3.2, 2 layers, 4 heads, .* on cpu .(scalar|avx2|avx512)., ' \
	'two.csv: 2 requests, at most 4 at a time' '!^DEVICE' -- \
	"$loop" "${brief[@]}"
[[ $(head -n 1 "$tmp/out") == DeepSeek* ]] || fail "the first line"
[[ $(tail -n 1 "$tmp/out") == OK:* ]] || fail "the last line"
runs "the plan" 0 '^DEVICE +INDEX .* LOGITS ' -- "$loop" "${brief[@]}" --plan
runs "no progress where nobody looks" 0 '!tokens/s' -- "$loop" "${brief[@]}"
runs "progress where it is asked for" 0 \
	'^step [0-9]+ of 4, [0-9]+ requests?, [0-9]+ tokens/s, .* left$' -- \
	"$loop" "${brief[@]}" --progress
# On a terminal the line is drawn anew in its place, which 80 columns must hold.
if script -qec true /dev/null </dev/null >"$tmp/out" 2>&1; then
	SHELL=/bin/sh script -qec "$(printf '%q ' "$loop" "${brief[@]}")" \
		/dev/null </dev/null >"$tmp/out"
	tr '\r' '\n' <"$tmp/out" | grep '^\[' >"$tmp/bar"
	grep -qE '^\[#*\.*\] step [0-9]+ of 4, 1 request, ' "$tmp/bar" ||
		fail "no bar on a terminal"
	! grep -qE '.{80}' "$tmp/bar" || fail "a bar that wraps"
fi
runs "a picture of the run" 0 '^  [1-9] x bucket of ' -- \
	"$loop" "${brief[@]}" --svg "$tmp/run.svg"
steps=$(sed -n 's/^steps  *//p' "$tmp/out")
[ "$(grep -c '<circle.*r="2.5"' "$tmp/run.svg")" = "$steps" ] ||
	fail "a dot a step"
grep -q 'bucket of .* steps, p50 .*, p99 ' "$tmp/run.svg" || fail "no legend"
tail -n 1 "$tmp/run.svg" | grep -q '</svg>' || fail "the picture's end"
runs "a picture of the run that cannot be written" 2 \
	'^decode_loop: --svg: cannot write' '!^DeepSeek' -- \
	"$loop" "${brief[@]}" --svg "$tmp/none/run.svg"
runs "V4 as it comes: prompts and plain decode" 0 '^requests done +[1-9]' \
	'^  [1-9][0-9]* x bucket of 8 tokens' '^OK: 40 steps, ' \
	'^  [1-9][0-9]* x bucket of 56 tokens' 'short.csv: 24 requests' -- \
	"$loop" --model v4-flash --check-every 0
runs "another model" 2 '^decode_loop: --model: "v5" is unknown' -- \
	"$loop" --model v5
runs "too small a pool" 2 '^decode_loop: --pool-pages: 1 do not' -- \
	"$loop" --pool-pages 1

runs "the plan of V3.2" 0 '^DEVICE +INDEX .* LOGITS ' '^peak +ATTEND' -- \
	"$map" --svg "$tmp/arena.svg"
grep -q '</svg>' "$tmp/arena.svg" || fail "the picture is not complete"
cmp -s "$tmp/arena.svg" examples/arena_v32.svg ||
	fail "examples/arena_v32.svg is old: arena_map --svg draws it"
runs "the plan of V4-Pro, a million tokens of each of 64 requests" 0 \
	'^DEVICE +OUTPUT .* OUTPUT_O ' '^DEVICE +INDEX +[0-9]+ +67108864 ' \
	'^peak +OUTPUT' -- "$map" --model v4-pro --svg "$tmp/v4.svg"
grep -q '</svg>' "$tmp/v4.svg" || fail "the picture of V4 is not complete"
# docs/arena.md has all of its buffers and their bytes.
"$map" --model v4-pro | sed -nE \
	's/^(HOST|PINNED|DEVICE|CACHE) +[A-Z]+ +[0-9]+ +([0-9]+) +([A-Z0-9_]+) .*/\3 \2/p' |
	sort >"$tmp/buffers"
grep -E '^\| (HOST|PINNED|DEVICE|CACHE) \|' docs/arena.md |
	grep -oE '[A-Z0-9_]+ [0-9]+' | sort >"$tmp/told"
[ -s "$tmp/told" ] && cmp -s "$tmp/buffers" "$tmp/told" ||
	fail "docs/arena.md has another arena of V4-Pro"
runs "a picture that cannot be written" 2 '^arena_map: --svg: cannot' -- \
	"$map" --svg "$tmp/none/arena.svg"
runs "a bad option of arena_map" 2 '^arena_map: --topk: "-1" is not' -- \
	"$map" --topk -1

if command -v awk >/dev/null; then
	awk -f testdata/trace/synthetic_chat.awk >"$tmp/chat.csv"
	cmp -s "$tmp/chat.csv" "$chat" || fail "$chat is not what its script writes"
fi

seen=0
for trace in ../beside/trace/*.csv; do
	[ -e "$trace" ] || continue
	seen=$((seen + 1))
	runs "the trace $(basename "$trace")" 0 "${good[@]:0:5}" -- \
		"$loop" "${small[@]}" --trace "$trace" --steps 24 --next-n 2 \
		--check-every 4
done
echo "$seen traces beside the checkout"
exit $bad
