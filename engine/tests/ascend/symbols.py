#!/usr/bin/env python3
"""Checks that the calls which the Ascend backend looks up exist: as names in the libraries of the public wheel of torch-npu,
which calls CANN through them. Where a name is not in there, it must stand in DOCUMENTED with the page that has it.

    pip download --no-deps torch-npu -d DIRECTORY
    python3 engine/tests/ascend/symbols.py DIRECTORY/torch_npu-*.whl

Names are read from `engine/src/ascend/calls.rs`; `symbols.txt` is written beside this file. Ends with 1 when a name is
nowhere. Nothing of the wheel but the names is kept.
"""

import pathlib
import re
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
CALLS = HERE.parents[1] / "src" / "ascend" / "calls.rs"
# torch_npu has ways of its own for what these do.
DOCUMENTED = {
    "aclSetAclOpExecutorRepeatable": "CANN documentation, aclnn API, aclSetAclOpExecutorRepeatable",
    "aclnnTransMatmulWeight": "ops-nn, docs of aclnnMatmulWeightNz, example",
    "aclnnTransMatmulWeightGetWorkspaceSize": "ops-nn, docs of aclnnMatmulWeightNz, example",
    "aclnnCalculateMatmulWeightSizeV2": "ops-nn, docs of aclnnQuantMatmulWeightNz, example",
}


def wanted(source: str) -> list[str]:
    """The names that the tables of calls look up."""
    tables = source[source.index("calls! {\n") :]
    return re.findall(r"\b((?:acl|Hccl)\w+)(?=\s+(?:as|and)\b)", tables)


def offered(wheel: pathlib.Path) -> set[str]:
    """Every name of such a call in the libraries of a wheel: imported ones, and those that are looked up at run time."""
    names = set()
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.namelist():
            if ".so" in pathlib.PurePath(entry).name:
                found = re.findall(rb"(?<![A-Za-z0-9_])((?:acl|Hccl)[A-Za-z0-9_]{3,80})(?=\x00)", archive.read(entry))
                names.update(name.decode() for name in found)
    return names


def main() -> int:
    wheel = pathlib.Path(sys.argv[1])
    own, there = wanted(CALLS.read_text(encoding="utf-8")), offered(wheel)
    package = "-".join(wheel.name.split("-")[:2])
    lines, lost = [], []
    for name in own:
        source = package if name in there else DOCUMENTED.get(name)
        lines.append(f"{name}\t{source}\n") if source else lost.append(name)
    in_wheel = sum(name in there for name in own)
    print(f"{len(own)} calls: {in_wheel} in {package}, {len(lines) - in_wheel} documented, {len(lost)} nowhere {lost}")
    head = "# Calls that the Ascend backend looks up, and where each was found; written by symbols.py.\n"
    (HERE / "symbols.txt").write_text(head + "".join(sorted(lines)), encoding="utf-8")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
