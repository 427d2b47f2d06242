"""Makes `results.txt` of what `run.py` found: a case a line, and what the GPU did with it.

`python3 results.py CASES RESULTS > results.txt`. Each case is followed by `=` and one of: `refused` (by the driver),
`fault NUMBER` (of the CUDA error), `ok` (encoding alone), or the FNV-1a hash of the bytes and how many of them were written.
"""

import lzma
import pickle
import struct
import sys

import cases
import kernels


def fnv(data):
    value = 0xcbf29ce484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return value


def outcome(case, result):
    if result["encode"]:
        return "refused"
    if case["kind"] == "encode":
        return "ok"
    if "fault" in result:
        return f"fault {result['fault']}"
    unchanged = 0xee if case["kind"] == "load" else 0
    late = " late" if result.get("late") else ""
    return f"{fnv(result['data']):016x} {sum(byte != unchanged for byte in result['data'])}{late}"


def fits(case):
    """Whether the tile is within the kernel's shared memory: of interleaved layouts, `cases.py` does not know how large it is."""
    if case["kind"] != "store" or not case["interleave"] or case["mode"] != "tiled":
        return True
    size, slices = 1, len(case["box"]) - 2
    for dimension, (box, step) in enumerate(zip(case["box"], case["steps"])):
        size *= 1 if dimension == slices else -(-box // step)
    return size * case["interleave"] <= kernels.DUMP


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        lines = [line for line in file.read().splitlines() if line]
    with lzma.open(sys.argv[2]) as file:
        found = pickle.load(file)
    for index, line in enumerate(lines):
        case = cases.parse(line)
        if fits(case):
            print(line, "=", outcome(case, found[index]))
