"""Damages capture files at random and asks the program about each: it refuses, or says what it said of the whole file.

    python3 benches/damaged_captures.py target/release/strato 5000 sample-traces/*.gz sample-traces/*.sqlite

Every trace is imported once; damages go round them. A damage is one of: a block of 4 KiB of zeros or of random bytes, two
blocks swapped, one to eight bits flipped, 64 random bytes, a cut. What counts as silent is another answer with exit code 0 to 2.
Ends with 1 where there is one, and keeps that file.
"""

import collections
import concurrent.futures
import os
import pathlib
import random
import subprocess
import sys
import tempfile

BLOCK = 4096
# What is asked: the report, and the rows in several ways.
QUESTIONS = {
    "diagnose": ["diagnose", "--format", "json", "--lang", "en", "FILE"],
    "sum": ["sql", "FILE", "select count(*),sum(dur_ns) from kernels"],
    "names": ["sql", "FILE", "select name,count(*),min(start_ns),max(launch_ns) from kernels group by 1 order by 1", "--csv"],
    "tables": ["sql", "FILE", "select (select count(*) from slice),(select sum(start_ns) from slice),(select count(*) from detail),"
               "(select count(*) from flow),(select group_concat(value) from manifest),(select count(*) from import_ledger)", "--json"],
}


def damage(whole, rng):
    bytes_ = bytearray(whole)
    blocks = len(whole) // BLOCK
    at = rng.randrange(blocks) * BLOCK
    kind = rng.choice(["zeros", "random", "swapped", "bits", "bytes", "cut"])
    if kind == "zeros":
        bytes_[at:at + BLOCK] = bytes(BLOCK)
    elif kind == "random":
        bytes_[at:at + BLOCK] = rng.randbytes(BLOCK)
    elif kind == "swapped":
        other = rng.randrange(blocks) * BLOCK
        bytes_[at:at + BLOCK], bytes_[other:other + BLOCK] = whole[other:other + BLOCK], whole[at:at + BLOCK]
    elif kind == "bits":
        for _ in range(rng.choice([1, 1, 2, 8])):
            bytes_[rng.randrange(len(bytes_))] ^= 1 << rng.randrange(8)
    elif kind == "bytes":
        start = rng.randrange(len(bytes_) - 64)
        bytes_[start:start + 64] = rng.randbytes(64)
    else:
        del bytes_[rng.randrange(len(bytes_)):]
    return kind, bytes(bytes_)


def ask(program, question, file):
    arguments = [os.path.basename(file) if a == "FILE" else a for a in QUESTIONS[question]]
    done = subprocess.run([program, *arguments], capture_output=True, cwd=os.path.dirname(file), timeout=600)
    return done.returncode, done.stdout


def one(program, whole, expected, seed, directory):
    kind, damaged = damage(whole, random.Random(seed))
    if damaged == whole:
        return seed, kind, {}, None
    file = os.path.join(directory, f"{seed}", "a.strato")
    os.makedirs(os.path.dirname(file))
    pathlib.Path(file).write_bytes(damaged)
    told = {}
    for question in QUESTIONS:
        code, out = ask(program, question, file)
        told[question] = "refused" if code == 3 else "same" if (code, out) == expected[question] else "SILENT"
    verified = subprocess.run([program, "verify", file], capture_output=True).returncode
    told["verify"] = "refused" if verified == 3 else "SILENT"
    beside = os.listdir(os.path.dirname(file))
    if beside != ["a.strato"]:
        told["left beside"] = "SILENT"
    if "SILENT" in told.values():
        print(f"seed {seed}, {kind}: {told}; kept as {file}", flush=True)
    else:
        os.remove(file)
        os.rmdir(os.path.dirname(file))
    return seed, kind, told, damaged


def main():
    program, count, traces = os.path.abspath(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    first = int(os.environ.get("FIRST_SEED", "0"))
    directory = tempfile.mkdtemp()
    captures = []
    for i, trace in enumerate(traces):
        os.makedirs(os.path.join(directory, f"whole{i}"))
        # The name of a capture stands in its report.
        file = os.path.join(directory, f"whole{i}", "a.strato")
        subprocess.run([program, "import", trace, "-o", file], check=True, capture_output=True)
        expected = {question: ask(program, question, file) for question in QUESTIONS}
        assert all(code == 0 for code, _ in expected.values()), expected
        captures.append((pathlib.Path(file).read_bytes(), expected))
        print(f"{trace}: {len(captures[-1][0])} bytes", flush=True)
    table = collections.defaultdict(collections.Counter)
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", "2"))) as pool:
        jobs = [pool.submit(one, program, *captures[seed % len(captures)], seed, directory)
                for seed in range(first, first + count)]
        for n, job in enumerate(concurrent.futures.as_completed(jobs), 1):
            _, kind, told, _ = job.result()
            for question, outcome in told.items():
                table[question][outcome] += 1
                table[kind][outcome] += 1
            if n % 250 == 0:
                print(f"{n} damages", {question: dict(table[question]) for question in QUESTIONS}, flush=True)
    for name, counts in table.items():
        print(f"{name:10}", *(f"{outcome} {n}" for outcome, n in sorted(counts.items())))
    sys.exit(any(counts["SILENT"] for counts in table.values()))


main()
