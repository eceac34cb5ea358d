#!/usr/bin/env python3
"""Repeats an Nsight Systems SQLite export in time until it reaches a size, to measure reading speed on large captures.

    scale_nsys.py SMALL.sqlite LARGE.sqlite [MEGABYTES]

Every row of a table with times is copied once per repeat, shifted by the capture's length; correlation ids are shifted
too, so that each copy stays linked within itself. Tables without times (names, processes, devices) are kept as they are.
"""

import os
import shutil
import sqlite3
import sys

TIMES = {"start", "end", "timestamp"}
IDS = {"correlationId"}
KEYS = {"SAMPLING_CALLCHAINS", "OSRT_CALLCHAINS"}


def main() -> None:
    source, target = sys.argv[1], sys.argv[2]
    goal = int(sys.argv[3]) * 1_000_000 if len(sys.argv) > 3 else 240_000_000
    shutil.copyfile(source, target)
    os.chmod(target, 0o644)
    db = sqlite3.connect(target)
    db.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-200000")
    tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='table'")]
    copied = []
    period, ids = 0, 0
    for table in tables:
        columns = [(row[1], row[5]) for row in db.execute(f'PRAGMA table_info("{table}")')]
        names = [name for name, _ in columns]
        if table in KEYS or not TIMES & set(names):
            continue
        copied.append((table, [name for name, key in columns if not key]))
        last = "end" if "end" in names else "start" if "start" in names else "timestamp"
        period = max(period, db.execute(f'SELECT coalesce(max("{last}"), 0) FROM "{table}"').fetchone()[0])
        if "correlationId" in names:
            ids = max(ids, db.execute(f'SELECT coalesce(max(correlationId), 0) FROM "{table}"').fetchone()[0])
    repeats = max(1, goal // os.path.getsize(source))
    for table, names in copied:
        rows = db.execute(f'SELECT max(rowid) FROM "{table}"').fetchone()[0] or 0
        for repeat in range(1, repeats):
            values = []
            for name in names:
                shift = period * repeat if name in TIMES else ids * repeat if name in IDS else 0
                values.append(f'"{name}" + {shift}' if shift else f'"{name}"')
            into = ", ".join(f'"{name}"' for name in names)
            db.execute(f'INSERT INTO "{table}" ({into}) SELECT {", ".join(values)} FROM "{table}" WHERE rowid <= {rows}')
    if "ANALYSIS_DETAILS" in tables:
        db.execute(f"UPDATE ANALYSIS_DETAILS SET duration = {period * repeats}")
    db.commit()
    total = sum(db.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0] for table, _ in copied)
    db.close()
    print(f"{target}: {os.path.getsize(target)} bytes, {repeats} repeats, {total} timed rows")


main()
