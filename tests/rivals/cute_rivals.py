#!/usr/bin/env python3
"""CuTe DSL's Hopper examples, in rounds with the kernels of this repository.

    ./cute_rivals.py dense_gemm --examples cutlass/examples/python/CuTeDSL/cute/hopper/kernel --ours ./tma-gpu-bench
    ./cute_rivals.py attention --examples cutlass/examples/python/CuTeDSL/cute/hopper/kernel --ours ./tma-gpu-bench

The examples are files of the repository NVIDIA/cutlass, and need the wheel nvidia-cutlass-dsl of the same version. They
are run as they are, but for two things: what they would measure with is replaced by rounds, and their matrices are
normally distributed. Before that each is run small, with its own data and its own check.
"""

import argparse
import contextlib
import importlib.util
import math
import sys
from pathlib import Path

import rounds

try:
    import torch
    import cuda.bindings.driver as driver
    import cutlass
    import cutlass.torch
except ModuleNotFoundError as error:
    rounds.missing(f"there is no {error.name}", "install CuTe DSL: `pip install nvidia-cutlass-dsl torch cuda-python`")

HEADS, HEAD = 16, 128
FMHA = {"cute_fmha": False, "cute_fmha_persistent": True}
DENSE = {"dense_gemm": "cute_dense_gemm", "dense_gemm_persistent": "cute_dense_gemm_persistent"}


def load(folder, name):
    """The example of this name as a module; none if neither the folder nor one in it has such a file."""
    folder = Path(folder).resolve()
    path = next((path for path in sorted(folder.rglob(f"{name}.py"))), None)
    if not path:
        return None
    # Examples import what they share from a folder `helpers` above them, but only find it if they are the program.
    above = next((each for each in path.parents if (each / "helpers").is_dir()), folder)
    sys.path.insert(0, str(above))
    spec = importlib.util.spec_from_file_location(f"cute_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def replaced(owner, name, replacement):
    original = getattr(owner, name)
    setattr(owner, name, replacement)
    try:
        yield original
    finally:
        setattr(owner, name, original)


def launches_of(module, run):
    """What the example would have measured: a function that launches its kernel on the current stream."""
    caught = []

    def caught_instead(compiled, *, workspace_generator, **_):
        arguments = workspace_generator()

        def launch():
            stream = driver.CUstream(torch.cuda.current_stream().cuda_stream)
            compiled(*arguments.args[:-1], stream, **arguments.kwargs)

        caught.append(launch)
        return 0.0

    # The examples talk on the standard output, which is for results here.
    with replaced(module.testing, "benchmark", caught_instead), contextlib.redirect_stdout(sys.stderr):
        run()
    return caught[0]


def with_normal_data(run):
    """Runs an example whose random matrices are normally distributed."""
    original = cutlass.torch.create_and_permute_torch_tensor

    def normal(*args, init_type=None, init_config=None, **options):
        if init_type == cutlass.torch.TensorInitType.RANDOM:
            init_type = cutlass.torch.TensorInitType.GAUSSIAN
            init_config = cutlass.torch.GaussianInitConfig(0.0, 1.0, 1.0)
        return original(*args, init_type=init_type, init_config=init_config, **options)

    with replaced(cutlass.torch, "create_and_permute_torch_tensor", normal):
        run()


def race(benchmark, shape, operations, theirs, ours, args):
    """`theirs`: names and launches; `ours`: names as results have them."""
    contestants = []
    for name, launch in theirs:
        contestants.append(rounds.Theirs(name, launch, operations, args.slice_ms))
    for name in ours if args.ours else []:
        contestant = rounds.Ours(args.ours, name, shape, args.slice_ms)
        contestant.name = name.split("/", 2)[2]
        contestants.append(contestant)
    rounds.race(benchmark, shape, contestants, args.rounds)


def dense_gemm(args):
    f16, f32 = cutlass.Float16, cutlass.Float32
    modules = {title: load(args.examples, name) for name, title in DENSE.items()}
    modules = {title: module for title, module in modules.items() if module}
    if not modules:
        rounds.missing(f"no dense_gemm.py in {args.examples}", "give the folder of the Hopper examples")

    def runner(module, m, n, k, unchecked):
        return lambda: module.run(
            mnkl=(m, n, k, 1), a_dtype=f16, b_dtype=f16, c_dtype=f16, acc_dtype=f32, a_major="k", b_major="k",
            c_major="n", tile_shape_mn=args.tile, cluster_shape_mn=args.cluster, tolerance=0.1, warmup_iterations=0,
            iterations=1, skip_ref_check=unchecked)

    for module in modules.values():
        launches_of(module, runner(module, 512, 512, 256, False))
    for m, n, k in args.shapes:
        theirs = []
        for title, module in modules.items():
            run = runner(module, m, n, k, True)
            launch = []
            with_normal_data(lambda: launch.append(launches_of(module, run)))
            theirs.append((title, launch[0]))
        ours = [f"products/f16/{kernel}" for kernel in args.kernels.split(",")]
        race("products/f16", (m, n, k), 2 * m * n * k, theirs, ours, args)


def attention(args):
    bf16, f32 = cutlass.BFloat16, cutlass.Float32
    module = load(args.examples, "fmha")
    if not module:
        rounds.missing(f"no fmha.py in {args.examples}", "give the folder of the Hopper examples")

    def runner(length, causal, persistent, unchecked):
        shape = (1, length, HEADS, HEAD)
        return lambda: module.run(
            q_shape=shape, k_shape=shape, in_dtype=bf16, out_dtype=bf16, qk_acc_dtype=f32, pv_acc_dtype=f32,
            mma_tiler_mn=(64, 128), is_persistent=persistent, is_causal=causal, bottom_right_align=False, scale_q=1.0,
            scale_k=1.0, scale_v=1.0, inv_scale_o=1.0, scale_softmax=1 / math.sqrt(HEAD), window_size=(-1, -1),
            tolerance=0.1, warmup_iterations=0, iterations=1, skip_ref_check=unchecked)

    for persistent in FMHA.values():
        launches_of(module, runner(512, True, persistent, False))
    for length in args.lengths:
        for mask, causal in (("full", False), ("causal", True)):
            theirs = []
            for title, persistent in FMHA.items():
                run = runner(length, causal, persistent, True)
                with_normal_data(lambda: theirs.append((title, launches_of(module, run))))
            pairs = length * (length + 1) // 2 if causal else length * length
            ours = [f"attention/{mask}/{kernel}" for kernel in args.kernels.split(",")]
            shape, operations = (HEADS, length, HEAD), 4 * HEADS * HEAD * pairs
            race(f"attention/{mask}", shape, operations, theirs, ours, args)


def extents(text):
    parts = [int(part) for part in text.split("x")]
    return tuple(parts * 3) if len(parts) == 1 else tuple(parts)


def pair(text):
    return tuple(int(part) for part in text.split("x"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("benchmark", choices=["dense_gemm", "attention"])
    parser.add_argument("--examples", required=True, help="the folder examples/python/CuTeDSL/cute/hopper of NVIDIA/cutlass")
    parser.add_argument("--ours", help="the program tma-gpu-bench; without it only the examples are measured")
    parser.add_argument("--kernels", help="which of our kernels; by default those of our examples")
    parser.add_argument("--shapes", type=lambda text: [extents(part) for part in text.split(",")],
                        default=[(4096,) * 3, (8192,) * 3], help="of dense_gemm, such as 4096,8192x8192x1024")
    parser.add_argument("--tile", type=pair, default=(128, 256), help="the tile of dense_gemm")
    parser.add_argument("--cluster", type=pair, default=(2, 1), help="the cluster of dense_gemm")
    parser.add_argument("--lengths", type=lambda text: [int(part) for part in text.split(",")],
                        default=[512, 1024, 2048, 4096, 8192, 16384], help="of attention")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--slice-ms", type=float, default=100)
    args = parser.parse_args()
    defaults = {"dense_gemm": "dense_gemm::f16_f16_f32_k_k", "attention": "example"}
    args.kernels = args.kernels or defaults[args.benchmark]
    if not torch.cuda.is_available():
        rounds.missing("PyTorch sees no GPU", "run this on a machine with one, with PyTorch for CUDA")
    torch.manual_seed(1)
    {"dense_gemm": dense_gemm, "attention": attention}[args.benchmark](args)


if __name__ == "__main__":
    main()
