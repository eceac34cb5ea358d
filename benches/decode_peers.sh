#!/usr/bin/env bash
# Decode and prefill of the reference engine beside llama.cpp on the same shape, in turn, two threads each.
#
#   benches/decode_peers.sh LLAMA_BENCH MODELS [ROUNDS]
#
# LLAMA_BENCH is the program of that name, MODELS a directory with m-bf16.gguf, m-f32.gguf and m-q8.gguf of Qwen2.5-0.5B's
# shape. Prints tokens per second, one line per program, type and round, then medians and their ratio.
set -euo pipefail
bench=$1 models=$2 rounds=${3:-5}
cd "$(dirname "$0")/.."
cargo bench --quiet --package stratoscope-engine --bench decode --no-run
out=$(mktemp)
trap 'rm -f "$out"' EXIT
for round in $(seq "$rounds"); do
    for type in bf16 f32 q8; do
        cargo bench --quiet --package stratoscope-engine --bench decode -- \
            "$type" prompt=512 steps=64 rounds=1 threads=2 2>/dev/null |
            sed -n 's/.*prefill \([0-9.]*\) tokens\/s, decode \([0-9.]*\) .*/\1 \2/p' |
            while read -r prefill decode; do echo "ours $type $prefill $decode"; done | tee -a "$out"
        "$bench" -m "$models/m-$type.gguf" -t 2 -p 512 -n 64 -r 1 -o jsonl 2>/dev/null |
            sed -n 's/.*"n_prompt": *\([0-9]*\).*"avg_ts": *\([0-9.]*\).*/\1 \2/p' |
            awk -v type="$type" '$1 > 0 { prefill = $2 } $1 == 0 { decode = $2 }
                END { print "llama.cpp", type, prefill, decode }' | tee -a "$out"
    done
done
python3 - "$out" <<'PY'
import statistics, sys
rows = [line.split() for line in open(sys.argv[1])]
for kind in ("bf16", "f32", "q8"):
    of = lambda who, column: statistics.median(float(r[column]) for r in rows if r[0] == who and r[1] == kind)
    for column, what in ((3, "decode"), (2, "prefill 512")):
        ours, peer = of("ours", column), of("llama.cpp", column)
        print(f"{kind} {what}: ours {ours:.1f}, llama.cpp {peer:.1f} tokens/s, ratio {ours / peer:.2f}")
PY
