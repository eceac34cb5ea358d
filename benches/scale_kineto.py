#!/usr/bin/env python3
"""Repeats a Kineto trace N times along the time axis, to make a large trace with the shape of a real one.

    scale_kineto.py IN.json[.gz] OUT.json[.gz] N [FACTOR]

Every copy is shifted by the extent of the trace plus 1 ms, and its correlation, external and flow ids by a stride that
no id of the trace reaches, so that links stay within a copy. With FACTOR all times take so many times as long. Metadata is written once, and events one per line, field
after field, as the profiler writes them.
"""

import gzip
import json
import sys
from decimal import Decimal

IDS = ("correlation", "External id", "external id", "Ev Idx", "Python id", "Python parent id", "Record function id")


def open_any(path, mode):
    return gzip.open(path, mode + "t") if path.endswith(".gz") else open(path, mode)


def main(source, target, copies, factor):
    with open_any(source, "r") as file:
        # Decimal keeps every digit of absolute timestamps.
        trace = json.load(file, parse_float=Decimal, strict=False)
    if isinstance(trace, list):
        trace = {"traceEvents": trace}
    events = trace.pop("traceEvents")
    if factor != 1:
        began = min(e["ts"] for e in events if e.get("ph") == "X")
        for event in events:
            if "ts" in event:
                event["ts"] = stretched(event["ts"] - began, factor) + began
            if "dur" in event:
                event["dur"] = stretched(event["dur"], factor)
    times = [e["ts"] for e in events if e.get("ph") in ("X", "i") and "ts" in e]
    ends = [e["ts"] + e.get("dur", 0) for e in events if e.get("ph") == "X"]
    stride_time = max(ends) - min(times) + 1000
    ids = [e["id"] for e in events if isinstance(e.get("id"), int)]
    ids += [a[k] for e in events for a in [e.get("args", {})] for k in IDS if isinstance(a.get(k), int)]
    stride_id = max(ids, default=0) + 1

    with open_any(target, "w") as out:
        out.write("{\n")
        for key, value in trace.items():
            out.write(f"  {json.dumps(key)}: {json.dumps(value, default=float)},\n")
        out.write('  "traceEvents": [\n')
        first = True
        for copy in range(copies):
            for event in events:
                if event.get("ph") == "M" and copy:
                    continue
                shifted = dict(event)
                if "ts" in shifted:
                    shifted["ts"] += copy * stride_time
                if isinstance(shifted.get("id"), int):
                    shifted["id"] += copy * stride_id
                if shifted.get("args"):
                    args = dict(shifted["args"])
                    for key in IDS:
                        if isinstance(args.get(key), int):
                            args[key] += copy * stride_id
                    shifted["args"] = args
                out.write("" if first else ",\n")
                out.write(encode(shifted))
                first = False
        out.write("\n  ]\n}\n")


def stretched(time, factor):
    """So many times the time, in µs, to the nanosecond."""
    return (Decimal(time) * factor).quantize(Decimal("0.001"))


def encode(event):
    """One event as JSON text; decimals are written digit by digit."""
    fields = []
    for key, value in event.items():
        text = str(value) if isinstance(value, Decimal) else json.dumps(value, default=float)
        fields.append(f"{json.dumps(key)}: {text}")
    return "  {" + ", ".join(fields) + "}"


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), Decimal(sys.argv[4] if len(sys.argv) == 5 else 1))
