#!/usr/bin/env python3
"""PyTorch's attention with its gradients, grouped GEMM and scaled GEMM, in rounds with the kernels of this repository.

    ./torch_rivals.py attention --ours ./tma-gpu-bench
    ./torch_rivals.py backward --ours ./tma-gpu-bench
    ./torch_rivals.py grouped --ours ./tma-gpu-bench
    ./torch_rivals.py scaled --ours ./tma-gpu-bench
    ./torch_rivals.py few_rows --ours ./tma-gpu-bench
    ./torch_rivals.py decode --ours ./tma-gpu-bench
"""

import argparse
import itertools
import sys
from functools import partial

import rounds

try:
    import torch
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel
except ModuleNotFoundError as error:
    rounds.missing(f"there is no {error.name}", "install PyTorch for CUDA: `pip install torch`")

HEADS = 16
DEPTHS = [64, 128, 256]
# Queries of a head, in one sequence or in several.
QUERIES = 16384
LENGTHS = [512, 1024, 2048, 4096, 8192, 16384]
BACKENDS = {
    "torch_flash": SDPBackend.FLASH_ATTENTION,
    "torch_cudnn": SDPBackend.CUDNN_ATTENTION,
    "torch_efficient": SDPBackend.EFFICIENT_ATTENTION,
}
# FlashAttention-3's own package, `pip install fa3-fwd`.
FLASH_3 = "fa3"
# N and K of each group: the two products of an expert.
GROUPED = [(4096, 7168), (7168, 2048)]
GROUPS = [8, 64]
# M, N and K of products with scales.
SCALED = [(4096, 7168, 2048), (8192, 7168, 7168), (4096, 4096, 7168), (4096, 7168, 16384), (128, 7168, 2048)]
# Rows of A, and N and K of weights with scales, as in tests/src/gpu/bench/few_rows.rs.
FEW_ROWS = [1, 8, 16, 64, 128]
WEIGHTS = [(7168, 2048), (4096, 7168), (7168, 16384), (24576, 1536)]
BLOCK = 128
# Sequences, heads, heads of keys, and keys of a decoder's step.
DECODE = [
    (1, 32, 8, 8192),
    (1, 32, 8, 131072),
    (16, 32, 8, 8192),
    (32, 32, 8, 4096),
    (64, 32, 8, 4096),
    (128, 64, 8, 4096),
    (8, 128, 1, 32768),
]
# Bytes of caches that launches go through in turn, so that the L2 cache holds none of them.
COLD_BYTES = 200_000_000


def normal(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def scaled_dot_product(backend, q, k, v, causal):
    def launch():
        with sdpa_kernel(BACKENDS[backend]):
            F.scaled_dot_product_attention(q, k, v, is_causal=causal)

    return launch


def flash_3(q, k, v, causal):
    """With batch × sequence × heads × depth, as its package lays tensors out."""
    try:
        from fa3_fwd_interface import flash_attn_func
    except ModuleNotFoundError as error:
        rounds.missing(f"there is no {error.name}", "install FlashAttention-3: `pip install fa3-fwd`")
    theirs = [x.transpose(1, 2).contiguous() for x in (q, k, v)]
    wanted = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    found = flash_attn_func(*theirs, causal=causal).transpose(1, 2)
    if not torch.allclose(found.float(), wanted.float(), rtol=2**-6, atol=2**-6):
        raise RuntimeError("its result is wrong")
    return lambda: flash_attn_func(*theirs, causal=causal)


def attention(args):
    cases = [(depth, mask, length) for depth in args.depths for mask in ("full", "causal") for length in args.lengths]
    for depth, mask, length in cases:
        causal, batch = mask == "causal", max(QUERIES // length, 1)
        q, k, v = (normal(batch, HEADS, length, depth) for _ in range(3))
        pairs = length * (length + 1) // 2 if causal else length * length
        operations, shape = 4 * batch * HEADS * depth * pairs, (batch * HEADS, length, depth)
        contestants = []
        for name in args.backends:
            try:
                rival = flash_3 if name == FLASH_3 else partial(scaled_dot_product, name)
                launch = rival(q, k, v, causal)
                contestants.append(rounds.Theirs(name, launch, operations, args.slice_ms))
            except RuntimeError as error:
                print(f"without {name} at {length}: {str(error).splitlines()[0]}", file=sys.stderr)
        if args.ours:
            for kernel in args.kernels.split(","):
                contestants.append(rounds.Ours(args.ours, f"attention/{mask}/{kernel}", shape, args.slice_ms))
                contestants[-1].name = kernel
        rounds.race(f"attention/{mask}", shape, contestants, args.rounds)


def backward(args):
    """The gradients of attention, from the results of a forward pass."""
    # The gradients run on the stream of the forward pass, which must be that of the capture.
    stream = torch.cuda.graph.default_capture_stream = torch.cuda.Stream()
    for depth, mask, length in itertools.product(args.depths, ("full", "causal"), args.lengths):
        causal, batch = mask == "causal", max(QUERIES // length, 1)
        operands = [normal(batch, HEADS, length, depth).requires_grad_() for _ in range(3)]
        gradient = normal(batch, HEADS, length, depth)
        pairs = length * (length + 1) // 2 if causal else length * length
        operations, shape = 10 * batch * HEADS * depth * pairs, (batch * HEADS, length, depth)
        contestants = []
        for name in (name for name in args.backends if name in BACKENDS):
            try:
                with torch.cuda.stream(stream), sdpa_kernel(BACKENDS[name]):
                    result = F.scaled_dot_product_attention(*operands, is_causal=causal)
                torch.cuda.synchronize()
                launch = lambda result=result: torch.autograd.grad(result, operands, gradient, retain_graph=True)
                contestants.append(rounds.Theirs(name, launch, operations, args.slice_ms))
            except RuntimeError as error:
                print(f"without {name} at {length}: {str(error).splitlines()[0]}", file=sys.stderr)
        if args.ours:
            ours = f"attention_backward/{mask}/tma_kernels"
            contestants.append(rounds.Ours(args.ours, ours, shape, args.slice_ms))
            contestants[-1].name = "tma_kernels"
        rounds.race(f"attention_backward/{mask}", shape, contestants, args.rounds)


def rows_of_groups(groups):
    """How many rows each group has: ragged, and the same each time."""
    return [128 * (1 + 37 * i % 16) - 13 * i % 128 for i in range(groups)]


def grouped(args):
    for groups in GROUPS:
        rows = rows_of_groups(groups)
        for n, k in GROUPED:
            a, b = normal(sum(rows), k), normal(groups, n, k)
            out = torch.empty(sum(rows), n, device="cuda", dtype=torch.bfloat16)
            parts, results = a.split(rows), out.split(rows)

            def loop():
                for part, weights, result in zip(parts, b, results):
                    torch.mm(part, weights.t(), out=result)

            operations = 2 * sum(rows) * n * k
            contestants = [rounds.Theirs("torch_loop", loop, operations, args.slice_ms)]
            if hasattr(torch, "_grouped_mm"):
                ends = torch.tensor(rows, device="cuda").cumsum(0).to(torch.int32)

                def at_once():
                    torch._grouped_mm(a, b.transpose(1, 2), offs=ends)

                loop()
                # bf16 rounds by 2^-9, and the sums of either are about √k.
                found = torch._grouped_mm(a, b.transpose(1, 2), offs=ends)
                if not torch.allclose(found.float(), out.float(), rtol=2**-7, atol=k**0.5 / 100):
                    print("torch._grouped_mm is wrong", file=sys.stderr)
                else:
                    contestants.append(rounds.Theirs("torch_grouped", at_once, operations, args.slice_ms))
            else:
                print("without torch._grouped_mm: this PyTorch has none", file=sys.stderr)
            if args.ours:
                contestants.append(rounds.Ours(args.ours, "grouped/bf16/tma_kernels", (groups, n, k), args.slice_ms))
            rounds.race("grouped/bf16", (groups, n, k), contestants, args.rounds, {"rows": sum(rows)})


def quantised(rows, columns, height):
    """e4m3, with a scale for each `height` rows and 128 columns, and what both stand for."""
    numbers = torch.randn(rows // height, height, columns // BLOCK, BLOCK, device="cuda")
    scales = numbers.abs().amax((1, 3), keepdim=True) / torch.finfo(torch.float8_e4m3fn).max
    elements = (numbers / scales).to(torch.float8_e4m3fn)
    meant = elements.float() * scales
    return elements.view(rows, columns), scales.view(rows // height, -1), meant.view(rows, columns)


def scaled(args):
    one = torch.ones((), device="cuda")
    for m, n, k in SCALED:
        (a, of_a, a_meant), (b, of_b, b_meant) = quantised(m, k, 1), quantised(n, k, BLOCK)
        # As cuBLASLt takes them: along M for A, along K for B.
        scales = of_a.t().contiguous().t(), of_b.t()
        wanted = a_meant[:64].double() @ b_meant.double().t()
        contestants = []
        for name, (scale_a, scale_b), fast in (
            ("cublaslt_scaled", scales, False),
            ("cublaslt_fast", (one, one), True),
            ("cublaslt_promoted", (one, one), False),
        ):
            def launch(scale_a=scale_a, scale_b=scale_b, fast=fast):
                return torch._scaled_mm(a, b.t(), scale_a, scale_b, out_dtype=torch.bfloat16, use_fast_accum=fast)
            try:
                found = launch()
            except (RuntimeError, ValueError) as error:
                print(f"without {name}: {str(error).splitlines()[0]}", file=sys.stderr)
                continue
            # bf16 rounds by 2^-9, the tensor cores by some 2^-13 of the greatest product.
            if name == "cublaslt_scaled" and (found[:64] - wanted).norm() > wanted.norm() / 200:
                print(f"{name} is wrong", file=sys.stderr)
                continue
            contestants.append(rounds.Theirs(name, launch, 2 * m * n * k, args.slice_ms))
        if args.ours:
            contestants.append(rounds.Ours(args.ours, "scaled/e4m3/tma_kernels", (m, n, k), args.slice_ms))
        rounds.race("scaled/e4m3", (m, n, k), contestants, args.rounds)


def few_rows_contestants(m, n, k):
    """What multiplies `m` rows by weights that no cache holds, in turn. Figures are terabytes of weights per second."""
    (a, of_a, a_meant), (b, of_b, b_meant) = quantised(m, k, 1), quantised(n, k, BLOCK)
    wanted = a_meant.double() @ b_meant.double().t()
    count = -(-COLD_BYTES // (n * k))
    weights = [b] + [b.clone() for _ in range(count - 1)]
    one_of_a = torch.ones(m, 1, device="cuda")
    one_of_b = torch.ones(1, n, device="cuda")
    along_m, out = of_a.t().contiguous().t(), torch.empty(m, n, device="cuda", dtype=torch.bfloat16)

    def by_rows(b):
        return torch._scaled_mm(a, b.t(), one_of_a, one_of_b, out_dtype=torch.bfloat16)

    def by_blocks(b):
        return torch._scaled_mm(a, b.t(), along_m, of_b.t(), out_dtype=torch.bfloat16)

    plain = a.float().double() @ b.float().double().t()
    candidates = [("torch_rowwise", by_rows, plain), ("cublaslt_scaled", by_blocks, wanted)]
    try:
        import deep_gemm

        # A's scales as its kernel reads them, so that no launch has to rearrange them.
        aligned = getattr(deep_gemm, "get_mn_major_tma_aligned_tensor", lambda scales: scales)(of_a)

        def by_deep_gemm(b):
            deep_gemm.fp8_gemm_nt((a, aligned), (b, of_b), out)
            return out

        candidates.append(("deep_gemm", by_deep_gemm, wanted))
    except (ImportError, OSError) as error:  # not there, or built for another PyTorch
        print(f"without deep_gemm: {error}", file=sys.stderr)
    contestants = []
    for name, multiply, meant in candidates:
        try:
            # bf16 rounds by 2^-9, the tensor cores by some 2^-13 of the greatest product.
            if (multiply(b).double() - meant).norm() > meant.norm() / 100:
                raise RuntimeError("its result is wrong")
            turns = itertools.cycle(weights)
            launch = lambda multiply=multiply, turns=turns: multiply(next(turns))
            contestants.append((name, launch))
        except (RuntimeError, ValueError, AssertionError, AttributeError) as error:
            message = str(error) or type(error).__name__
            print(f"without {name} at {(m, n, k)}: {message.splitlines()[0]}", file=sys.stderr)
    return contestants


def few_rows(args):
    for n, k in WEIGHTS:
        for m in FEW_ROWS:
            contestants = [rounds.Theirs(name, launch, n * k, args.slice_ms)
                           for name, launch in few_rows_contestants(m, n, k)]
            if args.ours:
                contestants.append(rounds.Ours(args.ours, "few_rows/cold/scaled", (m, n, k), args.slice_ms))
                contestants[-1].name = "tma_kernels"
            rounds.race("few_rows/cold", (m, n, k), contestants, args.rounds)


def decode_launches(name, caches):
    """What launches the step of each cache in turn, and what returns the first one's result."""
    if name == FLASH_3:
        from fa3_fwd_interface import flash_attn_with_kvcache

        theirs = [[x.transpose(1, 2).contiguous() for x in cache] for cache in caches]
        step = lambda q, k, v: flash_attn_with_kvcache(q, k, v, causal=True)
        result = lambda: step(*theirs[0]).transpose(1, 2)
    else:
        theirs = caches

        def step(q, k, v):
            with sdpa_kernel(BACKENDS[name]):
                return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)

        result = lambda: step(*theirs[0])
    turns = itertools.cycle(theirs)
    return lambda: step(*next(turns)), result


def decode(args):
    """One query per head and sequence. Figures are terabytes of keys and values per second."""
    for batch, heads, key_heads, keys in DECODE[: args.decode_shapes]:
        size = 2 * batch * key_heads * keys * BLOCK * 2
        shape = (batch, heads, key_heads, keys)
        for state in ("cold", "same"):
            count = -(-COLD_BYTES // size) if state == "cold" else 1
            caches = [(normal(batch, heads, 1, BLOCK), normal(batch, key_heads, keys, BLOCK),
                       normal(batch, key_heads, keys, BLOCK)) for _ in range(count)]
            q, k, v = (x[:1].double() for x in caches[0])
            groups = heads // key_heads
            weights = (q @ k.repeat_interleave(groups, 1).transpose(2, 3) / BLOCK**0.5).softmax(3)
            wanted = weights @ v.repeat_interleave(groups, 1)
            del q, k, v, weights
            contestants = []
            for name in args.backends:
                try:
                    launch, result = decode_launches(name, caches)
                    if (result()[:1] - wanted).abs().max() > wanted.abs().max() / 50:
                        raise RuntimeError("its result is wrong")
                    contestants.append(rounds.Theirs(name, launch, size, args.slice_ms))
                except (RuntimeError, ModuleNotFoundError) as error:
                    print(f"without {name} at {shape}: {str(error).splitlines()[0]}", file=sys.stderr)
            if args.ours:
                ours = f"decode/{state}/contiguous"
                contestants.append(rounds.Ours(args.ours, ours, shape, args.slice_ms))
                contestants[-1].name = "tma_kernels"
            rounds.race(f"decode/{state}", shape, contestants, args.rounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("benchmark", choices=["attention", "backward", "decode", "few_rows", "grouped", "scaled"])
    parser.add_argument("--ours", help="the program tma-gpu-bench; without it only PyTorch is measured")
    parser.add_argument("--kernels", default="tma_kernels", help="which of our kernels")
    parser.add_argument("--backends", type=lambda text: text.split(","), default=list(BACKENDS),
                        help=f"of {', '.join(BACKENDS)} and {FLASH_3}")
    parser.add_argument("--depths", type=lambda text: [int(part) for part in text.split(",")], default=DEPTHS)
    parser.add_argument("--lengths", type=lambda text: [int(part) for part in text.split(",")], default=LENGTHS)
    parser.add_argument("--decode-shapes", type=int, help="how many of the shapes of `decode`")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--slice-ms", type=float, default=100)
    args = parser.parse_args()
    if not torch.cuda.is_available():
        rounds.missing("PyTorch sees no GPU", "run this on a machine with one, with PyTorch for CUDA")
    torch.manual_seed(1)
    benchmarks = {"attention": attention, "backward": backward, "decode": decode, "few_rows": few_rows,
                  "grouped": grouped, "scaled": scaled}
    benchmarks[args.benchmark](args)


if __name__ == "__main__":
    main()
