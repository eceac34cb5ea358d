#!/usr/bin/env bash
# Import of an nsys SQLite file of about 240 MB.
#
#   benches/import_nsys.sh CAPTURE.sqlite [MEGABYTES]
#
# CAPTURE is a real export; it is repeated in time until the file is large enough. Needs python3 and GNU time. The file is
# also copied with sqlite3's own engine through python (one full scan of the same tables), as the limit that reading the
# rows at all sets on this machine.
set -euo pipefail
cd "$(dirname "$0")/.."
capture=${1:?a real nsys SQLite export}
megabytes=${2:-240}
python=${PYTHON:-python3}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cargo build --release --quiet
"$python" benches/scale_nsys.py "$capture" "$dir/big.sqlite" "$megabytes"
echo "file: $(($(stat -c %s "$dir/big.sqlite") / 1000000)) MB, $(nproc) cores"
cat "$dir/big.sqlite" > /dev/null
for run in 1 2 3; do
  rm -f "$dir/big.strato"
  /usr/bin/time -f "strato import (run $run): %e s, %M KB peak" \
    target/release/strato import "$dir/big.sqlite" -o "$dir/big.strato" > /dev/null
done
/usr/bin/time -f "scan by sqlite3 in python: %e s, %M KB peak" "$python" - "$dir/big.sqlite" <<'P'
import sqlite3, sys
db = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
rows = 0
for (name,) in db.execute("select name from sqlite_master where type='table'").fetchall():
    for _ in db.execute(f'select * from "{name}"'):
        rows += 1
print(f"{rows} rows")
P
