#!/usr/bin/env python3
"""Collectives of torch.distributed through NCCL, and of PyTorch's symmetric memory, as `tma-team-bench` measures ours.

    ./torch_team.py
    ./torch_team.py --only all_reduce --sizes 1024,1048576 --element f32

Prints a JSON line per result, and a table of all of them at the end. `device_us` is the time of a call in a CUDA graph
of many, `wall_us` that of a call from Python. Both are medians over rounds, of the slowest rank. Multicast of NVLink is
off in all of them.
"""

import argparse
import json
import os
import socket
import statistics
import sys
import time

# Before NCCL and PyTorch read them.
os.environ["NCCL_NVLS_ENABLE"] = "0"
os.environ["TORCH_SYMM_MEM_DISABLE_MULTICAST"] = "1"

try:
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp
except ModuleNotFoundError as error:
    sys.exit(f"there is no {error.name}; install PyTorch for CUDA: `pip install torch`")

SIZES = [1 << log for log in range(10, 31)]
ELEMENTS = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
# The calls of a graph, and the bytes that they move at most.
CALLS = 200
ROUND_BYTES = 1 << 33
# Operators of symmetric memory that read and write peers' memory without multicast. Their tensors are limited by the
# time of the first method, not by memory.
SYMMETRIC = {
    "symm_one_shot": ("one_shot_all_reduce", 1 << 24),
    "symm_two_shot": ("two_shot_all_reduce_", 1 << 30),
}


def port():
    with socket.socket() as free:
        free.bind(("localhost", 0))
        return free.getsockname()[1]


def symmetric(name, length, element):
    """Returns the call of an operator of symmetric memory, or the reason why there is none."""
    operator, most = SYMMETRIC[name]
    if length * element.itemsize > most:
        return None, f"measured up to {most} bytes"
    try:
        import torch.distributed._symmetric_memory as memory

        run = getattr(torch.ops.symm_mem, operator)
        group = dist.group.WORLD.group_name
        x = memory.empty(length, dtype=element, device="cuda")
        x.zero_()
        memory.rendezvous(x, group)
        run(x, "sum", group)
    except Exception as error:  # older versions lack the module, the operator or its types
        return None, f"{type(error).__name__}: {error}".splitlines()[0]
    return lambda: run(x, "sum", group), None


def call_of(name, collective, length, element, ranks):
    if name != "nccl":
        return symmetric(name, length, element)
    whole = torch.zeros(length, dtype=element, device="cuda")
    piece = torch.zeros(length // ranks, dtype=element, device="cuda")
    calls = {
        "all_reduce": lambda: dist.all_reduce(whole),
        "all_gather": lambda: dist.all_gather_into_tensor(whole, piece),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(piece, whole),
    }
    return calls[collective], None


def slowest(value):
    value = torch.tensor([value], dtype=torch.float64, device="cuda")
    dist.all_reduce(value, op=dist.ReduceOp.MAX)
    return value.item()


def times(call, calls, rounds):
    """Returns the microseconds of a call, on the device and on the host."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            call()
    graph.replay()
    torch.cuda.synchronize()
    device, wall = [], []
    for _ in range(rounds):
        dist.barrier()
        torch.cuda.synchronize()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        device.append(slowest(start.elapsed_time(end) * 1e3 / calls))
        dist.barrier()
        torch.cuda.synchronize()
        begun = time.perf_counter()
        for _ in range(calls):
            call()
        torch.cuda.synchronize()
        wall.append(slowest((time.perf_counter() - begun) * 1e6 / calls))
    return statistics.median(device), statistics.median(wall)


def report(rows, rank, row):
    if rank == 0:
        print(json.dumps(row), flush=True)
        rows.append(row)


def measure(rank, ranks, args):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=ranks, device_id=torch.device("cuda", rank))
    element, rows = ELEMENTS[args.element], []
    for collective in args.only:
        for size in args.sizes:
            length = -(-size // element.itemsize // ranks) * ranks
            size = length * element.itemsize
            names = ["nccl", *SYMMETRIC] if collective == "all_reduce" else ["nccl"]
            for name in names:
                row = {"collective": collective, "contestant": name, "bytes": size, "ranks": ranks}
                call, reason = call_of(name, collective, length, element, ranks)
                if call is None:
                    report(rows, rank, {**row, "left_out": reason})
                    continue
                calls = max(4, min(CALLS, ROUND_BYTES // size))
                device, wall = times(call, calls, args.rounds)
                sent = (ranks - 1) / ranks * (2 if collective == "all_reduce" else 1)
                bus = size / device / 1e3 * sent
                report(rows, rank, {**row, "device_us": device, "wall_us": wall, "bus_gbps": bus})
                del call
    if rank == 0:
        print(f"\n{'collective':<15} {'contestant':<14} {'bytes':>11} {'device us':>11} {'wall us':>11} {'bus GB/s':>9}")
        for row in rows:
            if "left_out" not in row:
                numbers = f"{row['device_us']:>11.2f} {row['wall_us']:>11.2f} {row['bus_gbps']:>9.1f}"
                print(f"{row['collective']:<15} {row['contestant']:<14} {row['bytes']:>11} {numbers}")
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = ["all_reduce", "all_gather", "reduce_scatter"]
    parser.add_argument("--only", type=lambda text: text.split(","), default=names)
    parser.add_argument("--sizes", type=lambda text: [int(size) for size in text.split(",")], default=SIZES)
    parser.add_argument("--element", choices=ELEMENTS, default="bf16")
    parser.add_argument("--ranks", type=int, default=torch.cuda.device_count())
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    if args.ranks < 2:
        sys.exit("there are fewer than two GPUs")
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", str(port())
    mp.spawn(measure, args=(args.ranks, args), nprocs=args.ranks)


if __name__ == "__main__":
    main()
