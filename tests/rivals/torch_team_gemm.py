#!/usr/bin/env python3
"""GEMMs over all GPUs by cuBLAS with NCCL, and by PyTorch's fused operators, as `tma-team-gemm-bench` measures ours.

    ./torch_team_gemm.py
    ./torch_team_gemm.py --only qkv,down --m 4096,8192

Layers of a Llama with 70 G parameters are divided among the ranks: the input of `qkv` and `gate_up` is gathered, the
output of `out` and `down` is scattered. Prints a JSON line per result, and a table of all of them at the end. `us` is
the time of a call, the median over rounds, of the slowest rank. Results are compared with cuBLAS and NCCL first.
Multicast of NVLink is off in all of them.
"""

import argparse
import json
import os
import socket
import statistics
import sys

# Before NCCL and PyTorch read them.
os.environ["NCCL_NVLS_ENABLE"] = "0"
os.environ["TORCH_SYMM_MEM_DISABLE_MULTICAST"] = "1"

try:
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp
except ModuleNotFoundError as error:
    sys.exit(f"there is no {error.name}; install PyTorch for CUDA: `pip install torch`")

# N and K, and whether N is divided among the ranks, or K.
LAYERS = {
    "qkv": (10240, 8192, True),
    "out": (8192, 8192, False),
    "gate_up": (57344, 8192, True),
    "down": (8192, 28672, False),
}
# Relative to the greatest number: partial sums are rounded to bf16.
TOLERANCE = 1 / 64


def port():
    with socket.socket() as free:
        free.bind(("localhost", 0))
        return free.getsockname()[1]


class Layer:
    """The matrices of a layer on a rank, and its calls."""

    def __init__(self, name, m, rank, ranks):
        n, k, self.gathers = LAYERS[name]
        n, k = (n // ranks, k) if self.gathers else (n, k // ranks)
        self.m, self.n, self.k = m, n, k
        random = torch.Generator(device="cuda").manual_seed(rank)

        def noise(*shape):
            return torch.randn(*shape, device="cuda", dtype=torch.bfloat16, generator=random)

        self.a = noise(m // ranks if self.gathers else m, k)
        self.weights = noise(n, k)
        self.whole_a = torch.empty(m, k, device="cuda", dtype=torch.bfloat16) if self.gathers else self.a
        self.whole_c = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
        self.part_of_c = torch.empty(m // ranks, n, device="cuda", dtype=torch.bfloat16)
        self.group = dist.group.WORLD.group_name
        if self.gathers:
            dist.all_gather_into_tensor(self.whole_a, self.a)

    def gemm(self):
        return torch.mm(self.whole_a, self.weights.t(), out=self.whole_c)

    def transfer(self):
        if self.gathers:
            dist.all_gather_into_tensor(self.whole_a, self.a)
        else:
            dist.reduce_scatter_tensor(self.part_of_c, self.whole_c)

    def nccl(self):
        if self.gathers:
            self.transfer()
            return self.gemm()
        self.gemm()
        self.transfer()
        return self.part_of_c

    def fused(self):
        if self.gathers:
            _, (c,) = torch.ops.symm_mem.fused_all_gather_matmul(self.a, [self.weights.t()], 0, self.group)
            return c
        return torch.ops.symm_mem.fused_matmul_reduce_scatter(self.a, self.weights.t(), "sum", 0, self.group)


def slowest(value):
    value = torch.tensor([value], dtype=torch.float64, device="cuda")
    dist.all_reduce(value, op=dist.ReduceOp.MAX)
    return value.item()


def elapsed(call, calls):
    """Returns the microseconds of a call. The device has work for as long as calls are queued."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(-(-calls // 4)):
        call()
    start.record()
    for _ in range(calls):
        call()
    end.record()
    torch.cuda.synchronize()
    return slowest(start.elapsed_time(end) * 1e3 / calls)


def time(call, args):
    call()
    call()
    torch.cuda.synchronize()
    calls = int(min(200, max(3, args.round_ms * 1e3 / elapsed(call, 3))))
    return statistics.median(elapsed(call, calls) for _ in range(args.rounds))


def compared(layer):
    """Returns the reason why the fused operator is left out, if there is one."""
    try:
        import torch.distributed._symmetric_memory as memory

        if hasattr(memory, "enable_symm_mem_for_group"):
            memory.enable_symm_mem_for_group(layer.group)
        wanted = layer.nccl().float()
        # Alike on all ranks, which leave it out together.
        off = slowest((layer.fused().float() - wanted).abs().max().item())
        greatest = slowest(wanted.abs().max().item())
    except Exception as error:  # older versions lack the module, the operator or its types
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return None if off <= TOLERANCE * greatest else f"off by {off} of {greatest}"


def measure(rank, ranks, args):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=ranks, device_id=torch.device("cuda", rank))
    rows = []
    for name in args.only:
        for m in args.m:
            layer = Layer(name, m, rank, ranks)
            about = {"layer": name, "m": m, "n": layer.n, "k": layer.k, "ranks": ranks}
            reason = compared(layer)
            calls = {"cublas": layer.gemm, "nccl": layer.transfer, "cublas_nccl": layer.nccl, "fused": layer.fused}
            for contestant, call in calls.items():
                row = {**about, "contestant": contestant}
                if contestant == "fused" and reason:
                    row["left_out"] = reason
                else:
                    row["us"] = time(call, args)
                rows.append(row)
                if rank == 0:
                    print(json.dumps(row), flush=True)
            del layer, calls, call
    if rank == 0:
        print(f"\n{'layer':<8} {'M':>6} {'N':>6} {'K':>6} {'contestant':<12} {'us':>10}")
        for row in rows:
            if "us" in row:
                print(f"{row['layer']:<8} {row['m']:>6} {row['n']:>6} {row['k']:>6} {row['contestant']:<12} {row['us']:>10.1f}")
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(LAYERS))
    numbers = {"type": lambda text: [int(number) for number in text.split(",")]}
    parser.add_argument("--m", default=[4096, 8192, 16384], **numbers)
    parser.add_argument("--ranks", type=int, default=torch.cuda.device_count())
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--round-ms", type=float, default=50.0)
    args = parser.parse_args()
    if args.ranks < 2:
        sys.exit("there are fewer than two GPUs")
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", str(port())
    mp.spawn(measure, args=(args.ranks, args), nprocs=args.ranks)


if __name__ == "__main__":
    main()
