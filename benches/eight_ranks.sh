#!/usr/bin/env bash
# Diagnosis of a simulated job of eight ranks with about a million slices each: time and peak memory, from the trace files
# and from a capture file.
#
#   benches/eight_ranks.sh [RANKS [STEPS]]
#
# Needs GNU time and some 4 GB of room in TMPDIR.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cargo build --release --quiet --workspace
target/release/make-job "$dir/job" "${1:-8}" "${2:-1000}"
du -sh "$dir/job"
/usr/bin/time -f "strato import: %e s, %M KB peak" target/release/strato import "$dir/job" -o "$dir/job.strato" --quiet
target/release/strato sql "$dir/job.strato" 'select count(*) as slices from slice' --csv
for run in 1 2 3; do
  /usr/bin/time -f "strato diagnose (run $run): %e s, %M KB peak" \
    target/release/strato diagnose "$dir/job.strato" -o "$dir/report.md"
done
