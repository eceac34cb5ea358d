#!/usr/bin/env bash
# Comparison of two captures of about a million slices each after import, beside the diagnosis of the same captures.
#
#   benches/diff_million.sh TRACE.json.gz [COPIES]
#
# TRACE is a real Kineto capture of some 50 000 slices whose launches are whole, that is repeated in time; the second side has
# one copy more and takes 3 % longer, so that the two are no readings of one launch and there is a difference to explain. Fields
# that no trace states are declared. Needs python3.
set -euo pipefail
cd "$(dirname "$0")/.."
trace=${1:?a real Kineto capture}
copies=${2:-20}
python=${PYTHON:-python3}
target=${CARGO_TARGET_DIR:-target}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cargo build --release --quiet
strato=$target/release/strato
for side in a b; do
  [ "$side" = a ] && more=0 factor=1 || more=1 factor=1.03
  "$python" benches/scale_kineto.py "$trace" "$dir/$side.json" $((copies + more)) "$factor"
  "$strato" import "$dir/$side.json" -o "$dir/$side.strato" > /dev/null
  rm "$dir/$side.json"
done
"$strato" sql "$dir/a.strato" 'select count(*) as slices from slice' --csv
# What the trace shows of itself needs no declaration, and may not have another.
"$strato" manifest show "$dir/a.strato" --format json | "$python" -c '
import json, sys
fields = json.load(sys.stdin)["captures"][0]["fields"]
print("[both]")
for field in fields:
    if field["class"] == "hard" and field["provenance"] == "unknown":
        print(field["field"], "= \"the same\"")
' > "$dir/same.toml"
# Wall time of five runs, in turn; the middle one.
median() { sort -n | sed -n 3p; }
timed() { local from=$EPOCHREALTIME; "$@" > /dev/null; awk -v from="$from" -v to="$EPOCHREALTIME" "BEGIN { print to - from }"; }
for run in 1 2 3 4 5; do
  timed "$strato" diff "$dir/a.strato" "$dir/b.strato" --declare "$dir/same.toml" --format json -o "$dir/diff.json" >> "$dir/diff"
  timed "$strato" diagnose "$dir/a.strato" "$dir/b.strato" -o "$dir/report.md" >> "$dir/diagnose"
done
"$python" -c '
import json, sys
report = json.load(open(sys.argv[1]))
print("verdict", report["contract"]["verdict"], "with", len((report["waterfall"] or {}).get("terms", [])), "terms")
' "$dir/diff.json"
echo "strato diff: $(median < "$dir/diff") s"
echo "strato diagnose of both: $(median < "$dir/diagnose") s"
