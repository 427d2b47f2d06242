#!/usr/bin/env python3
"""The wheel `tma_kernels` against PyTorch's own operators, both called from Python: the host's time a call, and the
GPU's time in rounds.

    ./torch_wheel.py
    ./torch_wheel.py --only host
    ./torch_wheel.py --only attention --rounds 15

The host's time is that of a call while the GPU is busy with earlier work, so nothing waits for it. Prints JSON lines,
and a table to standard error at last.
"""

import argparse
import ctypes
import json
import statistics
import sys
import time
from functools import partial

import rounds

try:
    import torch
    import torch.nn.functional as F
except ModuleNotFoundError as error:
    rounds.missing(f"there is no {error.name}", "install PyTorch for CUDA: `pip install torch`")
try:
    import tma_kernels
except ModuleNotFoundError:
    how = "pack it with `cargo tma wheel --package tma-kernels-python`, and install it"
    rounds.missing("there is no tma_kernels", how)

# Names of the contestants.
OURS, THEIRS, DRIVER = "tma_kernels", "torch", "driver"
# M, N and K of the GEMMs whose GPU time is measured, and queries of the attention of 16 heads.
GEMMS = [(4096, 4096, 4096), (8192, 4096, 4096)]
SCALED = [(4096, 4096, 4096)]
HEADS, DEPTH, LENGTHS = 16, 128, (4096, 8192)
# M, N and K, and heads and queries, that the GPU computes in a few microseconds.
SMALL, SMALL_ATTENTION = (256, 256, 256), (4, 256)
# cuBLASLt reads the scales of B in groups of four along K.
SMALL_SCALED = (256, 256, 512)
# Elements of A and B for which there is one scale.
BLOCK = 128
# In which modes of PyTorch the host's time is measured.
MODES = {"inference": torch.inference_mode, "no_grad": torch.no_grad, "grad": torch.enable_grad}
# A kernel that does nothing.
EMPTY = b".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry empty()\n{\nret;\n}\n"
# Calls of a round of the host's measurement, and of a graph; cycles of the GPU in which it queues them.
CALLS, IN_GRAPH, BUSY_CYCLES = 100, 20, 20_000_000


def normal(*shape, scale=1.0):
    return (torch.randn(shape, device="cuda") * scale).bfloat16()


def gemm_case(m, n, k):
    a, weight, bias = normal(m, k), normal(n, k, scale=0.02), normal(n)
    return {
        OURS: lambda: tma_kernels.gemm(a, weight.t(), bias=bias),
        THEIRS: lambda: torch.addmm(bias, a, weight.t()),
    }


def matmul_case(m, n, k):
    a, b = normal(m, k), normal(k, n, scale=0.02)
    return {OURS: lambda: tma_kernels.gemm(a, b), THEIRS: lambda: torch.matmul(a, b)}


def attention_case(heads, length):
    q, k, v = (normal(1, heads, length, DEPTH) for _ in "qkv")
    return {
        OURS: lambda: tma_kernels.attention(q, k, v, causal=True),
        THEIRS: lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True),
    }


def e4m3_case(m, n, k):
    """Without scales: those of PyTorch are 1."""
    a, b = (normal(*shape).to(torch.float8_e4m3fn) for shape in ((m, k), (n, k)))
    one = torch.ones((), device="cuda")
    product = partial(torch._scaled_mm, a, b.t(), one, one, out_dtype=torch.bfloat16, use_fast_accum=True)
    return {OURS: lambda: tma_kernels.gemm(a, b.t()), THEIRS: lambda: product()}


def scaled_case(m, n, k):
    """With a scale for 128 elements of a row of A, and one for 128 × 128 of B."""
    a, b = (normal(*shape).to(torch.float8_e4m3fn) for shape in ((m, k), (n, k)))
    scale_a = torch.rand(m, k // BLOCK, device="cuda")
    scale_b = torch.rand(n // BLOCK, k // BLOCK, device="cuda")
    # As cuBLASLt takes them: along M for A, along K for B.
    theirs = scale_a.t().contiguous().t(), scale_b.t()
    product = partial(torch._scaled_mm, a, b.t(), *theirs, out_dtype=torch.bfloat16)
    return {OURS: lambda: tma_kernels.gemm_scaled(a, b, scale_a, scale_b), THEIRS: lambda: product()}


def checked(name, case):
    """The contestants that can be called. All have the same result, or the program ends."""
    found = {}
    for contestant, call in case.items():
        try:
            found[contestant] = call()
        except (RuntimeError, ValueError) as error:
            if contestant == OURS:
                raise
            print(f"without {contestant} at {name}: {str(error).splitlines()[0]}", file=sys.stderr)
    if len(found) == 2:
        ours, theirs = found[OURS].float(), found[THEIRS].float()
        # bf16 rounds by 2^-9, the tensor cores of e4m3 by some 2^-13 of the greatest product.
        if (ours - theirs).norm() > theirs.norm() / 100:
            raise RuntimeError(f"{name}: the results differ")
    return {contestant: case[contestant] for contestant in found}


def host_us(call, calls_within):
    """The median and the least of the host's microseconds for each of the calls within one."""
    times, calls = [], CALLS // calls_within
    for _ in range(9):
        torch.cuda.synchronize()
        torch.cuda._sleep(BUSY_CYCLES)
        start = time.perf_counter()
        for _ in range(calls):
            call()
        times.append((time.perf_counter() - start) / calls / calls_within * 1e6)
        torch.cuda.synchronize()
    return round(statistics.median(times), 2), round(min(times), 2)


def graph_of(call):
    """A graph of several calls, as a function that replays it."""
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(IN_GRAPH):
            call()
    return graph.replay


def empty_launch():
    """A launch of an empty kernel by the driver alone, as a function. Every operator's call has one."""
    torch.cuda.synchronize()
    cuda = ctypes.CDLL("libcuda.so.1")
    module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
    status = cuda.cuModuleLoadData(ctypes.byref(module), EMPTY)
    status = status or cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"empty")
    if status:
        raise RuntimeError(f"the driver refuses an empty kernel: error {status}")
    grid_and_block = map(ctypes.c_uint, (1, 1, 1, 32, 1, 1))
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    return partial(cuda.cuLaunchKernel, kernel, *grid_and_block, ctypes.c_uint(0), stream, None, None)


def host():
    yield host_line("empty launch", DRIVER, "-", empty_launch())
    cases = {
        "addmm": gemm_case(*SMALL),
        "matmul": matmul_case(*SMALL),
        "attention": attention_case(*SMALL_ATTENTION),
        "e4m3": e4m3_case(*SMALL),
        "scaled": scaled_case(*SMALL_SCALED),
    }
    for name, case in cases.items():
        contestants = checked(name, case)
        for mode, context in MODES.items():
            for contestant, call in contestants.items():
                with context():
                    yield host_line(name, contestant, mode, call)
        with torch.inference_mode():
            for contestant, call in contestants.items():
                torch._dynamo.reset()
                yield host_line(name, contestant, "compiled", torch.compile(call, fullgraph=True))
            for contestant, call in contestants.items():
                yield host_line(name, contestant, "graph", graph_of(call), IN_GRAPH)


def host_line(name, contestant, mode, call, calls_within=1):
    """A JSON line: the host's time of each of the calls within one."""
    for _ in range(10):
        call()
    median, least = host_us(call, calls_within)
    line = {"benchmark": f"wheel/host/{name}/{contestant}", "mode": mode, "us": median, "least_us": least}
    print(json.dumps(line), flush=True)
    return line


def gpu(args):
    """Rounds of both contestants at each large shape."""
    causal = lambda length: 4 * HEADS * DEPTH * (length * (length + 1) // 2)
    product = lambda m, n, k: 2 * m * n * k
    cases = [
        *(("addmm", shape, gemm_case, shape, product(*shape)) for shape in GEMMS),
        *(("attention", (HEADS, length, DEPTH), attention_case, (HEADS, length), causal(length)) for length in LENGTHS),
        *(("e4m3", shape, e4m3_case, shape, product(*shape)) for shape in SCALED),
        *(("scaled", shape, scaled_case, shape, product(*shape)) for shape in SCALED),
    ]
    for name, shape, case, arguments, operations in cases:
        if args.only not in ("", "gpu", name):
            continue
        with torch.inference_mode():
            contestants = checked(name, case(*arguments)).items()
            theirs = [rounds.Theirs(contestant, call, operations, args.slice_ms) for contestant, call in contestants]
            yield from rounds.race(f"wheel/{name}", shape, theirs, args.rounds)


def table(lines):
    """What the lines say, for people."""
    text = f"{'host':36} {'mode':10} {'µs a call':>10} {'least':>8}\n"
    for line in (line for line in lines if "us" in line):
        text += f"{line['benchmark']:36} {line['mode']:10} {line['us']:10.2f} {line['least_us']:8.2f}\n"
    text += f"\n{'GPU':32} {'shape':18} {'TFLOP/s':>8} {'ours/theirs':>12}\n"
    for line in (line for line in lines if "tflops" in line):
        shape, ratio = "×".join(map(str, line["shape"])), line["ratios"].get(THEIRS, {}).get("median", "")
        text += f"{line['benchmark']:32} {shape:18} {line['tflops']:8.1f} {ratio:>12}\n"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="host, gpu, or one of addmm, attention, e4m3 and scaled on the GPU")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--slice-ms", type=float, default=60)
    args = parser.parse_args()
    if not torch.cuda.is_available():
        rounds.missing("PyTorch finds no GPU", "run this on a machine with a Hopper GPU and PyTorch for CUDA")
    torch.manual_seed(1)
    device = torch.cuda.get_device_name()
    print(json.dumps({"device": device, "torch": torch.__version__, "python": sys.version.split()[0]}), flush=True)
    lines = list(host()) if args.only in ("", "host") else []
    lines += gpu(args)
    print(table(lines), file=sys.stderr)


if __name__ == "__main__":
    main()
