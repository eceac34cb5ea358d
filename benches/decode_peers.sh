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
# The second of two rounds: the first also maps its memory.
ours() { # TYPE PROMPT
    cargo bench --quiet --package stratoscope-engine --bench decode -- \
        "$1" prompt="$2" steps=64 rounds=2 threads=2 level=fused 2>/dev/null |
        sed -n 's/.*prefill \([0-9.]*\) tokens\/s, decode \([0-9.]*\) .*/\1 \2/p' | tail -n 1
}
llama() { # TYPE OPTIONS...
    "$bench" -m "$models/m-$1.gguf" -t 2 -r 1 "${@:2}" -o jsonl 2>/dev/null |
        sed -n 's/.*"avg_ts": *\([0-9.]*\).*/\1/p' | tail -n 1
}
# Both decode from the same context: an empty one, which is what llama-bench does if nothing else is asked, and 512 tokens.
for round in $(seq "$rounds"); do
    for type in bf16 f32 q8; do
        ours "$type" 1 | while read -r _ decode; do echo "ours $type decode-from-0 $decode"; done
        echo "llama.cpp $type decode-from-0 $(llama "$type" -p 0 -n 64)"
        ours "$type" 512 | while read -r prefill decode; do
            echo "ours $type prefill-512 $prefill"
            echo "ours $type decode-from-512 $decode"
        done
        echo "llama.cpp $type prefill-512 $(llama "$type" -p 512 -n 0)"
        echo "llama.cpp $type decode-from-512 $(llama "$type" -p 0 -n 64 -d 512)"
        if [ -n "$python" ] && [ "$type" != q8 ]; then
            "$python" benches/decode_torch.py "$type" 512 64 2 2>/dev/null | while read -r who type prefill decode; do
                echo "$who $type prefill-512 $prefill"
                echo "$who $type decode-from-512 $decode"
            done
        fi
    done
done | tee "$out"
python3 - "$out" <<'PY'
import statistics, sys
rows = [line.split() for line in open(sys.argv[1])]
for kind in ("bf16", "f32", "q8"):
    for what in ("decode-from-0", "decode-from-512", "prefill-512"):
        def of(who):
            return [float(row[3]) for row in rows if row[:3] == [who, kind, what] and len(row) == 4]
        ours = of("ours")
        for name in ("llama.cpp", "torch"):
            peer = of(name)
            if ours and peer:
                median, other = statistics.median(ours), statistics.median(peer)
                each = ", ".join(f"{a / b:.2f}" for a, b in zip(ours, peer))
                print(f"{kind} {what}: ours {median:.1f}, {name} {other:.1f} tokens/s, ratio {median / other:.2f} (by round {each})")
PY
