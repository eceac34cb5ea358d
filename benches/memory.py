"""What the program takes of memory for captures of 0.1, 1 and 10 million slices, and how much of it the meter knows.

    python3 benches/memory.py STRATO [OTHER]

Own captures are generated: launches, each with an operator around it and a kernel. For import, diagnosis and view, the peak that the
system counts is printed in MB with the seconds of processor, with ratios to OTHER where a program to compare with is given. The tests
in `tests/it/memory.rs` compare the meter with the same peak for the two smaller sizes. The view runs in a terminal of its own until
it rests for three seconds.
"""

import os
import pty
import select
import sys
import tempfile
import time


def write(path, launches):
    with open(path, "w", buffering=1 << 22) as out:
        out.write('{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "H100"}], "traceEvents": [')
        for i in range(launches):
            at, name = 10 * i, i % 37
            ids = f'"External id": {i}'
            out.write(
                f'{{"ph": "X", "cat": "cpu_op", "name": "aten::op{name}", "pid": 7, "tid": 7, "ts": {at}, "dur": 8, "args": {{{ids}}}}},\n'
                f'{{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 7, "ts": {at}.5, "dur": 5, '
                f'"args": {{{ids}, "correlation": {i}}}}},\n'
                f'{{"ph": "X", "cat": "kernel", "name": "kernel_{name}", "pid": 0, "tid": 7, "ts": {at}.9, "dur": 6, '
                f'"args": {{{ids}, "correlation": {i}, "device": 0, "stream": 7, "grid": [{name}, 1, 1], "block": [128, 1, 1]}}}}'
            )
            out.write(",\n" if i + 1 < launches else "]}\n")


def peak(arguments):
    """Peak in MB and seconds of processor of a run."""
    child = os.fork()
    if child == 0:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        os.execv(arguments[0], arguments)
    _, status, used = os.wait4(child, 0)
    assert status == 0, (arguments, status)
    return used.ru_maxrss * 1024 / 1e6, used.ru_utime + used.ru_stime


def peak_of_view(program, trace):
    """The same of the view, whose process is looked at until it rests."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ["TERM"] = "xterm-256color"
        os.execv(program, [program, "view", trace])
    most, busy, last, begin = 0, 0, time.time(), time.time()
    while time.time() - last < 3 or time.time() - begin < 4:
        if select.select([terminal], [], [], 0.1)[0]:
            os.read(terminal, 1 << 16)
        with open(f"/proc/{child}/status") as status:
            most = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
        with open(f"/proc/{child}/stat") as stat:
            ticks = sum(int(word) for word in stat.read().rsplit(")", 1)[1].split()[11:13])
        if ticks - busy > 3:
            busy, last = ticks, time.time()
    os.kill(child, 9)
    os.waitpid(child, 0)
    return most * 1024 / 1e6, busy / os.sysconf("SC_CLK_TCK")


def main(programs):
    with tempfile.TemporaryDirectory() as here:
        trace, out = os.path.join(here, "a.json"), os.path.join(here, "a.strato")
        for slices in [100_000, 1_000_000, 10_000_000]:
            write(trace, slices // 3)
            for work in ["import", "diagnose", "view"]:
                taken = []
                for program in programs:
                    if os.path.exists(out):
                        os.remove(out)
                    if work == "view":
                        taken.append(peak_of_view(program, trace))
                    else:
                        taken.append(peak([program, work, "-q", trace] + (["-o", out] if work == "import" else [])))
                told = " / ".join(f"{mb:.0f} MB {s:.1f} s" for mb, s in taken)
                if len(taken) > 1:
                    told += ", ratios " + " and ".join(f"{ours / other:.2f}" for ours, other in zip(*taken))
                print(f"{slices} slices, {work}: {told}", flush=True)


main(sys.argv[1:3])
