#!/usr/bin/env python3
"""Checks that the calls which the Ascend backend and the collector of MSPTI look up exist: every one must be a name in the
libraries of the public wheel of torch-npu, which calls CANN through them.

    pip download --no-deps torch-npu -d DIRECTORY
    python3 engine/tests/ascend/symbols.py DIRECTORY/torch_npu-*.whl

Names are read from the tables of calls in both; `symbols.txt` is written beside this file. Ends with 1 when a name is
nowhere. Nothing of the wheel but the names is kept.
"""

import pathlib
import re
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
CALLS = HERE.parents[1] / "src" / "ascend" / "calls.rs"
RECORDS = HERE.parents[2] / "collectors" / "src" / "mspti" / "api.rs"


def wanted() -> list[str]:
    """The names that the tables of calls look up."""
    calls = CALLS.read_text(encoding="utf-8")
    own = re.findall(r"\b(\w*[a-z][A-Z]\w*|PTA\w+)(?=\s+(?:as|and)\b)", calls[calls.index("calls! {\n") :])
    return own + re.findall(r'\w+: "(mspti\w+)" \(', RECORDS.read_text(encoding="utf-8"))


def offered(wheel: pathlib.Path) -> set[str]:
    """Every name in the libraries of a wheel: imported ones, and those that are looked up at run time."""
    names = set()
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.namelist():
            if ".so" in pathlib.PurePath(entry).name:
                found = re.findall(rb"(?<![A-Za-z0-9_])([A-Za-z_][A-Za-z0-9_]{5,80})(?=\x00)", archive.read(entry))
                names.update(name.decode() for name in found)
    return names


def main() -> int:
    wheel = pathlib.Path(sys.argv[1])
    own, there = wanted(), offered(wheel)
    package = "-".join(wheel.name.split("-")[:2])
    lost = [name for name in own if name not in there]
    lines = [f"{name}\t{package}\n" for name in own if name in there]
    print(f"{len(own)} calls: {len(lines)} in {package}, {len(lost)} nowhere {lost}")
    head = "# Calls that the Ascend backend and the collector of MSPTI look up, and where each was found; written by symbols.py.\n"
    (HERE / "symbols.txt").write_text(head + "".join(sorted(lines)), encoding="utf-8")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
