#!/usr/bin/env bash
# Decode and prefill of the reference engine beside llama.cpp and PyTorch on the same shape, in turn, two threads each.
#
#   benches/decode_peers.sh LLAMA_BENCH MODELS [ROUNDS [PYTHON]]
#
# LLAMA_BENCH is the program of that name, MODELS a directory with m-bf16.gguf, m-f32.gguf and m-q8.gguf of Qwen2.5-0.5B's
# shape, PYTHON an interpreter with torch and transformers. Prints tokens per second, one line per program, type and round,
# then medians and their ratio.
set -euo pipefail
bench=$1 models=$2 rounds=${3:-5} python=${4:-}
cd "$(dirname "$0")/.."
cargo bench --quiet --package stratoscope-engine --bench decode --no-run
out=$(mktemp)
trap 'rm -f "$out"' EXIT
for round in $(seq "$rounds"); do
    for type in bf16 f32 q8; do
        # The second of two: the first also maps its memory.
        cargo bench --quiet --package stratoscope-engine --bench decode -- \
            "$type" prompt=512 steps=64 rounds=2 threads=2 level=fused 2>/dev/null |
            sed -n 's/.*prefill \([0-9.]*\) tokens\/s, decode \([0-9.]*\) .*/\1 \2/p' | tail -n 1 |
            while read -r prefill decode; do echo "ours $type $prefill $decode"; done | tee -a "$out"
        "$bench" -m "$models/m-$type.gguf" -t 2 -p 512 -n 64 -r 1 -o jsonl 2>/dev/null |
            sed -n 's/.*"n_prompt": *\([0-9]*\).*"avg_ts": *\([0-9.]*\).*/\1 \2/p' |
            awk -v type="$type" '$1 > 0 { prefill = $2 } $1 == 0 { decode = $2 }
                END { print "llama.cpp", type, prefill, decode }' | tee -a "$out"
        if [ -n "$python" ] && [ "$type" != q8 ]; then
            "$python" benches/decode_torch.py "$type" 512 64 2 2>/dev/null | tee -a "$out"
        fi
    done
done
python3 - "$out" <<'PY'
import statistics, sys
rows = [line.split() for line in open(sys.argv[1])]
for kind in ("bf16", "f32", "q8"):
    def of(who, column):
        values = [float(r[column]) for r in rows if r[0] == who and r[1] == kind]
        return statistics.median(values) if values else None
    for column, what in ((3, "decode"), (2, "prefill 512")):
        ours = of("ours", column)
        for name in ("llama.cpp", "torch"):
            peer = of(name, column)
            if peer:
                print(f"{kind} {what}: ours {ours:.1f}, {name} {peer:.1f} tokens/s, ratio {ours / peer:.2f}")
PY
