#!/usr/bin/env bash
# Diagnosis of a capture of about a million slices after import.
#
#   benches/diagnose_million.sh TRACE.json.gz [COPIES]
#
# TRACE is a real Kineto capture that is repeated in time. Needs python3 and GNU time.
set -euo pipefail
cd "$(dirname "$0")/.."
trace=${1:?a real Kineto capture}
copies=${2:-75}
python=${PYTHON:-python3}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cargo build --release --quiet
"$python" benches/scale_kineto.py "$trace" "$dir/big.json" "$copies"
target/release/strato import "$dir/big.json" -o "$dir/big.strato" > /dev/null
target/release/strato sql "$dir/big.strato" 'select count(*) as slices from slice' --csv
for run in 1 2 3 4 5; do
  /usr/bin/time -f "strato diagnose (run $run): %e s, %M KB peak" \
    target/release/strato diagnose "$dir/big.strato" -o "$dir/report.md" > /dev/null
done
