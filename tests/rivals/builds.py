#!/usr/bin/env python3
"""Two builds of this repository in the same rounds: what a change costs.

    ./builds.py --before OLD/tma-gpu-bench --after NEW/tma-gpu-bench
    ./builds.py --before OLD/tma-gpu-bench --after NEW/tma-gpu-bench --only attention --rounds 9

Each build is a process of its own, which computes what a request names: see `tests/src/gpu/bench/serve.rs`. Prints a
JSON line for each case, with the ratio of speeds of the build after to the one before, and at last the geometric mean
and the least of all ratios.
"""

import argparse
import json
import math
import sys

import rounds

ATTENTION = [
    (f"attention/{mask}/tma_kernels", (16 * max(16384 // length, 1), length, depth))
    for depth in (64, 128, 256)
    for mask in ("full", "causal")
    for length in (512, 2048, 8192)
]
PRODUCTS = [
    (f"products/{precision}/tma_kernels::gemm", shape)
    for precision in ("bf16", "e4m3")
    for shape in ((4096, 4096, 4096), (8192, 8192, 8192), (2048, 2048, 2048), (64, 14336, 4096))
]
# Few tiles with long sums: several units of work share a tile, and the last adds the parts up.
SPLIT = [
    ("products/bf16/tma_kernels::gemm", shape)
    for shape in ((256, 256, 16384), (64, 2048, 32768), (512, 1024, 16384), (128, 4096, 8192))
]
EXPERTS = [
    ("scaled/e4m3/tma_kernels", (4096, 7168, 2048)),
    ("scaled/e4m3/tma_kernels", (8192, 7168, 7168)),
    ("grouped/bf16/tma_kernels", (8, 4096, 7168)),
]


def ratios(before, after, count):
    """The ratios of both within so many rounds, which begin with one and the other in turn."""
    found = []
    for number in range(count + 1):
        pair = [before, after] if number % 2 == 0 else [after, before]
        speeds = {each.name: each.slice()["tflops"] for each in pair}
        found.append(speeds["after"] / speeds["before"])
    return found[1:]  # the first round warms the chip up


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", required=True, help="the tma-gpu-bench of one build")
    parser.add_argument("--after", required=True, help="that of the other one")
    parser.add_argument("--only", default="", help="what names of cases have in them")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--slice-ms", type=float, default=100)
    args = parser.parse_args()
    middles = []
    for name, shape in ATTENTION + PRODUCTS + SPLIT + EXPERTS:
        if args.only not in f"{name} {shape}":
            continue
        builds = [rounds.Ours(program, name, shape, args.slice_ms) for program in (args.before, args.after)]
        for build, title in zip(builds, ("before", "after")):
            build.name = title
        found = ratios(*builds, args.rounds)
        middle, width = rounds.spread(found)
        middles.append(middle)
        line = {"benchmark": name, "shape": list(shape), "ratio": round(middle, 4), "spread": round(width, 4)}
        print(json.dumps(line), flush=True)
        for build in builds:
            build.close()
    if not middles:
        print(f"no case has `{args.only}` in its name", file=sys.stderr)
        sys.exit(2)
    mean = math.exp(sum(map(math.log, middles)) / len(middles))
    print(json.dumps({"mean": round(mean, 4), "least": round(min(middles), 4), "cases": len(middles)}))


if __name__ == "__main__":
    main()
