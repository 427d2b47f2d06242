"""Tests the installed wheel `tma_kernels`, and races it against PyTorch's own operators on a GPU.

    cargo tma wheel --package tma-kernels-python
    pip install --force-reinstall target/wheels/tma_kernels-*.whl
    python tma-kernels/python/tests/check.py [RESULTS.json]

The results are printed as JSON, and written to the file. It is run by hand: it needs PyTorch.
"""

import json
import statistics
import sys
import time
import traceback

import torch

import tma_kernels
from tma_kernels import arrays

F8 = torch.float8_e4m3fn
report = {"torch": torch.__version__, "python": sys.version.split()[0], "passed": []}


def passed(name):
    report["passed"].append(name)
    print(f"passed: {name}", file=sys.stderr, flush=True)


def close(found, wanted, relative=1e-2):
    """Compares with a bound relative to the greatest value."""
    assert found.shape == wanted.shape and found.dtype == wanted.dtype, (found.shape, found.dtype, wanted.dtype)
    error = (found.double() - wanted.double()).abs().max() / wanted.double().abs().max().clamp(min=1e-30)
    assert error <= relative, f"relative error {error:.2e}"


def refused(call, *texts):
    try:
        call()
    except (RuntimeError, TypeError) as error:
        assert all(text in str(error) for text in texts), f"{texts} not in: {error}"
    else:
        raise AssertionError(f"not refused: {texts}")


def random(*shape, device, dtype=torch.bfloat16, scale=1.0):
    values = torch.randn(*shape, device=device, dtype=torch.float32) * scale
    return values.to(dtype)


def gemms(device, n):
    make = lambda *shape, dtype=torch.bfloat16: random(*shape, device=device, dtype=dtype)
    for dtype in (torch.bfloat16, torch.float16):
        a, b = make(n, n + 8, dtype=dtype), make(n + 8, 2 * n, dtype=dtype)
        wanted = a.double() @ b.double()
        close(tma_kernels.gemm(a, b), wanted.to(dtype))
        close(tma_kernels.gemm(a, b, out_dtype=torch.float32), wanted.float(), 1e-4)
        close(tma_kernels.gemm(a, b.t().contiguous().t()), wanted.to(dtype))
        close(tma_kernels.gemm(a.t().contiguous().t(), b, alpha=-0.5), (-0.5 * wanted).to(dtype))
    passed(f"{device}: gemm of bfloat16 and float16 in all layouts")
    bias, residual = make(2 * n, dtype=torch.float16), make(n, 2 * n, dtype=torch.float16)
    sums = wanted + residual.double() + bias.double()
    for name, activation in {
        "relu": torch.relu,
        "silu": torch.nn.functional.silu,
        "gelu": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    }.items():
        found = tma_kernels.gemm(a, b, bias=bias, residual=residual, activation=name)
        close(found, activation(sums).half())
    passed(f"{device}: gemm with bias, residual and activations")
    c = make(n, 2 * n, dtype=torch.float16)
    wanted_c = (2 * wanted + 0.5 * c.double()).half()
    assert tma_kernels.gemm_(c, a, b, alpha=2.0, beta=0.5) is None
    close(c, wanted_c)
    wide = torch.zeros(n, 4 * n, device=device, dtype=torch.float16)
    tma_kernels.gemm_(wide[:, n : 3 * n], a, b)
    close(wide[:, n : 3 * n].clone(), wanted.half())
    assert not wide[:, :n].any() and not wide[:, 3 * n :].any(), "elements beside the result have changed"
    passed(f"{device}: gemm_ in place, and in a part of a matrix")
    a, b = make(3, n, n), make(3, n, n)
    close(tma_kernels.gemm(a, b.mT.contiguous().mT), (a.double() @ b.double()).bfloat16())
    passed(f"{device}: batches")
    a, b = make(n, n, dtype=torch.float32), make(n, n, dtype=torch.float32)
    close(tma_kernels.gemm(a, b.t()), (a.double() @ b.double().t()).float(), 2e-3)
    a, b = (random(n, n, device=device, scale=0.5).to(F8) for _ in range(2))
    close(tma_kernels.gemm(a, b.t()), (a.double() @ b.double().t()).bfloat16())
    close(tma_kernels.gemm_scaled(a, b, None, None, out_dtype=torch.float32), (a.double() @ b.double().t()).float(), 2e-3)
    blocks = -(-n // 128)
    scale_a, scale_b = (torch.rand(*shape, device=device) + 0.5 for shape in ((n, blocks), (blocks, blocks)))
    spread_a = scale_a.repeat_interleave(128, 1)[:, :n].double()
    spread_b = scale_b.repeat_interleave(128, 0).repeat_interleave(128, 1)[:n, :n].double()
    wanted = (a.double() * spread_a) @ (b.double() * spread_b).t()
    close(tma_kernels.gemm_scaled(a, b, scale_a, scale_b), wanted.bfloat16())
    i = torch.randint(-8, 8, (n, n), device=device, dtype=torch.int8)
    assert torch.equal(tma_kernels.gemm(i, i.t()).long(), (i.double() @ i.double().t()).long())
    passed(f"{device}: gemm of float32, float8 and int8, and gemm_scaled")


def attentions(device, length):
    for dtype, depth, causal in ((torch.bfloat16, 64, False), (torch.float16, 128, True)):
        make = lambda heads: random(1, heads, length, depth, device=device, dtype=dtype)
        q, k, v = make(4), make(2), make(2)
        spread = (q.float(), *(x.float().repeat_interleave(2, 1) for x in (k, v)))
        wanted = torch.nn.functional.scaled_dot_product_attention(*spread, is_causal=causal)
        close(tma_kernels.attention(q, k, v, causal=causal), wanted.to(dtype))
    wanted = torch.nn.functional.scaled_dot_product_attention(*spread, is_causal=True, scale=0.25)
    close(tma_kernels.attention(q, k, v, causal=True, scale=0.25), wanted.to(dtype))
    # Batch × sequence × heads × depth, as most models have it.
    q, k, v = (x.transpose(1, 2).contiguous().transpose(1, 2) for x in (q, k, v))
    close(tma_kernels.attention(q, k, v, causal=True, scale=0.25), wanted.to(dtype))
    seen = torch.arange(length, device=device)
    seen = (seen[:, None] - seen[None, :] <= length // 3) & (seen[:, None] >= seen[None, :])
    wanted = torch.nn.functional.scaled_dot_product_attention(*spread, attn_mask=seen)
    close(tma_kernels.attention(q, k, v, causal=True, window=length // 3), wanted.to(dtype))
    passed(f"{device}: attention")


def attention_gradients(device, length):
    """Compares gradients with those of PyTorch in float64, whose scores are written to memory."""
    for dtype, depth, causal in ((torch.bfloat16, 64, True), (torch.float16, 128, False), (torch.bfloat16, 80, True)):
        make = lambda heads: random(2, heads, length, depth, device=device, dtype=dtype).requires_grad_()
        q, k, v = make(4), make(2), make(2)
        of_o = random(2, 4, length, depth, device=device, dtype=dtype)
        o, lse = tma_kernels.attention_with_lse(q, k, v, causal=causal)
        assert o.requires_grad and not lse.requires_grad
        found = torch.autograd.grad(o, (q, k, v), of_o)
        double = [x.detach().double().requires_grad_() for x in (q, k, v)]
        spread = (double[0], *(x.repeat_interleave(2, 1) for x in double[1:]))
        scores = spread[0] @ spread[1].mT / depth**0.5
        if causal:
            hidden = torch.ones(length, length, dtype=torch.bool, device=device).triu(1)
            scores = scores.masked_fill(hidden, float("-inf"))
        close(lse, scores.logsumexp(-1).float(), 1e-3)
        wanted = torch.autograd.grad(scores.softmax(-1) @ spread[2], double, of_o.double())
        for ours, reference in zip(found, wanted):
            close(ours, reference.to(dtype), 2e-2)
    torch.use_deterministic_algorithms(True)
    gradients = lambda: torch.autograd.grad(tma_kernels.attention_with_lse(q, k, v)[0], (q, k, v), of_o)
    assert all(torch.equal(*pair) for pair in zip(gradients(), gradients())), "not the same in every run"
    torch.use_deterministic_algorithms(False)
    passed(f"{device}: gradients of attention")


def errors(device):
    a = random(64, 64, device=device)
    refused(lambda: tma_kernels.gemm(a, a.half()), "TMA0566: `b` has elements of float16; pass bfloat16")
    refused(lambda: tma_kernels.gemm(a[0], a), "TMA0566: `a` has 1 dimensions")
    refused(lambda: tma_kernels.gemm(a, a, activation="tanh"), "TMA0566: `activation` is `tanh`; pass `none`")
    refused(lambda: tma_kernels.gemm(a, a[:32]), "TMA0546: ", "B")
    refused(lambda: tma_kernels.gemm(a, a, bias=a), "TMA0566: `bias` has 2 dimensions, not 1")
    refused(lambda: tma_kernels.gemm(a.double(), a), "TMA0566: `a` has elements of f64")
    refused(lambda: tma_kernels.gemm(a, a, out_dtype=torch.int64), "TMA0566: `a`")
    refused(lambda: tma_kernels.gemm(a, 1), "b")
    refused(lambda: tma_kernels.gemm(a[:, 1:], a[1:]), "TMA050")
    q = random(1, 2, 64, 32, device=device)
    refused(lambda: tma_kernels.attention(q, q, q), "TMA0550: ")
    if device != "cpu":
        refused(lambda: tma_kernels.gemm(a, a.cpu()), "`b`")
    passed(f"{device}: errors have codes and name arguments")


def opchecks(device):
    a = random(64, 64, device=device)
    check = torch.library.opcheck
    check(tma_kernels.gemm, (a, a))
    check(tma_kernels.gemm, (a, a.t()), {"bias": a[0], "activation": "relu", "out_dtype": torch.bfloat16})
    check(tma_kernels.gemm_, (a.clone(), a, a), {"beta": 1.0})
    # The others compare arguments by functions that PyTorch does not have for float8.
    tests = ("test_autograd_registration", "test_faketensor")
    check(tma_kernels.gemm_scaled, (a.to(F8), a.to(F8), None, None), test_utils=tests)
    q = random(1, 2, 64, 64, device=device)
    check(tma_kernels.attention, (q, q, q), {"causal": True})
    with_gradient = [x.clone().requires_grad_() for x in (q, q, q)]
    check(tma_kernels.attention_with_lse, tuple(with_gradient), {"causal": True})
    passed(f"{device}: opcheck")


def compiled(device, backend):
    def model(x, w, bias, c):
        y = tma_kernels.gemm(x.sin(), w.t(), bias=bias, activation="silu")
        tma_kernels.gemm_(c, y, w, alpha=0.5)
        heads = c.view(1, -1, 2, 64).transpose(1, 2)
        return tma_kernels.attention(heads, heads, heads, causal=True) + 1

    torch._dynamo.reset()
    fast = torch.compile(model, fullgraph=True, backend=backend, dynamic=True)
    w, bias = random(128, 128, device=device, scale=0.1), random(128, device=device)
    for rows in (64, 96, 160):
        x, outputs = random(rows, 128, device=device), [torch.zeros(rows, 128, device=device, dtype=w.dtype) for _ in "ab"]
        close(fast(x, w, bias, outputs[0]), model(x, w, bias, outputs[1]), 2e-2)
        close(*outputs, 2e-2)
    explanation = torch._dynamo.explain(model)(x, w, bias, outputs[0])
    assert explanation.graph_break_count == 0, explanation.break_reasons
    passed(f"{device}: torch.compile with the backend {backend}, symbolic extents and no graph break")


def by_dlpack(device):
    a = random(64, 64, device=device)
    wanted = tma_kernels.gemm(a, a, activation="relu")
    found = arrays.gemm(a, a, activation="relu")
    assert found.shape == (64, 64) and found.dtype == "bfloat16"
    assert torch.equal(torch.from_dlpack(found), wanted)
    out = torch.zeros_like(a)
    arrays.gemm(a, a, activation="relu", out=out)
    if device != "cpu":
        torch.cuda.synchronize()
    assert torch.equal(out, wanted)
    refused(lambda: arrays.gemm(a, a, out=out[:2]), "`out` for `c`")
    try:
        arrays.gemm(a, a, activation="tanh")
    except tma_kernels.Error as error:
        assert error.code == "TMA0566"
    passed(f"{device}: arrays by DLPack")


def streams_and_graphs():
    a, b = random(512, 512, device="cuda"), random(512, 512, device="cuda", scale=0.05)
    wanted = a.clone()
    for _ in range(20):
        wanted = tma_kernels.gemm(wanted, b) + a
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        found = a.clone()
        for _ in range(20):
            found = tma_kernels.gemm(found, b) + a
    torch.cuda.current_stream().wait_stream(stream)
    assert torch.equal(found, wanted)
    passed("cuda: PyTorch's streams")

    # Few rows and a long K: outside of a capture, sums are split among clusters.
    for m, n, k in ((512, 512, 512), (64, 1024, 8192), (128, 4096, 4096)):
        x, w = random(m, k, device="cuda"), random(n, k, device="cuda", scale=0.02)
        tma_kernels.gemm(x, w.t())
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = tma_kernels.gemm(x, w.t(), activation="relu")
            z = tma_kernels.gemm(y, y.t(), alpha=0.125)
        for _ in range(3):
            x.copy_(random(m, k, device="cuda"))
            graph.replay()
            torch.cuda.synchronize()
            close(y, torch.relu(x.float() @ w.float().t()).bfloat16())
            close(z, (0.125 * (y.float() @ y.float().t())).bfloat16())
    q = random(2, 8, 512, 128, device="cuda")
    wanted = tma_kernels.attention(q, q, q, causal=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        o = tma_kernels.attention(q, q, q, causal=True)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(o, wanted)
    passed("cuda: CUDA graphs")


def microseconds_of_host(call, calls=200, rounds=15):
    """Time of the host for one call while the GPU is busy, so that nothing waits for it."""
    times = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        torch.cuda._sleep(20_000_000)
        start = time.perf_counter()
        for _ in range(calls):
            call()
        times.append((time.perf_counter() - start) / calls * 1e6)
        torch.cuda.synchronize()
    return {"median": statistics.median(times), "least": min(times)}


def microseconds_of_gpu(call, calls):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in "ab")
    torch.cuda._sleep(2_000_000)
    start.record()
    for _ in range(calls):
        call()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / calls * 1e3


def race(name, contestants, calls=20, rounds=12):
    """Runs the contestants in turns, and reports the medians of their times."""
    for call in contestants.values():
        for _ in range(5):
            call()
    torch.cuda.synchronize()
    times = {contestant: [] for contestant in contestants}
    for i in range(rounds):
        order = list(contestants)
        for contestant in order if i % 2 == 0 else order[::-1]:
            times[contestant].append(microseconds_of_gpu(contestants[contestant], calls))
    result = {contestant: {"gpu_us": statistics.median(of)} for contestant, of in times.items()}
    for contestant, call in contestants.items():
        result[contestant]["host_us"] = microseconds_of_host(call)
    ours, theirs = (result[contestant]["gpu_us"] for contestant in contestants)
    result["theirs_over_ours"] = theirs / ours
    report.setdefault("race", {})[name] = result
    print(name, json.dumps(result), file=sys.stderr, flush=True)


def races():
    report["gpu"] = torch.cuda.get_device_name()
    with torch.inference_mode():
        for m, n, k in ((256, 256, 256), (1024, 1024, 1024), (4096, 4096, 4096), (8192, 8192, 8192), (64, 4096, 4096)):
            x, w = random(m, k, device="cuda"), random(n, k, device="cuda", scale=0.02)
            bias = random(n, device="cuda")
            race(f"mm {m}x{n}x{k}", {"ours": lambda: tma_kernels.gemm(x, w.t()), "torch": lambda: torch.mm(x, w.t())})
        b = w.t().contiguous()
        race("mm row-major", {"ours": lambda: tma_kernels.gemm(x, b), "torch": lambda: torch.mm(x, b)})
        out = torch.empty(m, n, device="cuda", dtype=x.dtype)
        race("mm in place", {"ours": lambda: tma_kernels.gemm_(out, x, b), "torch": lambda: torch.mm(x, b, out=out)})
        linear = torch.nn.functional.linear
        race("linear", {"ours": lambda: tma_kernels.gemm(x, w.t(), bias=bias), "torch": lambda: linear(x, w, bias)})
        sdpa = torch.nn.functional.scaled_dot_product_attention
        for heads, length in ((16, 1024), (16, 8192)):
            q, k, v = (random(1, heads, length, 128, device="cuda") for _ in "qkv")
            ours = lambda: tma_kernels.attention(q, k, v, causal=True)
            race(f"attention {heads}x{length}", {"ours": ours, "torch": lambda: sdpa(q, k, v, is_causal=True)})
    x = random(256, 256, device="cuda")
    report["host_us_with_autograd_keys"] = {
        "ours": microseconds_of_host(lambda: tma_kernels.gemm(x, x)),
        "torch": microseconds_of_host(lambda: torch.mm(x, x)),
    }


def attempt(test, *arguments):
    """Runs a test. A failure is reported, and does not keep the others from running."""
    try:
        test(*arguments)
    except Exception as error:
        name = " ".join([test.__name__, *map(str, arguments)])
        report.setdefault("failed", {})[name] = f"{type(error).__name__}: {error}"[:2000]
        traceback.print_exc()


def main():
    torch.manual_seed(1)
    attempt(gemms, "cpu", 64)
    attempt(attentions, "cpu", 64)
    attempt(attention_gradients, "cpu", 40)
    if torch.cuda.is_available():
        attempt(gemms, "cuda", 64)
        attempt(gemms, "cuda", 1024)
        attempt(attentions, "cuda", 512)
        attempt(attention_gradients, "cuda", 300)
    for device in ["cpu"] + ["cuda"] * torch.cuda.is_available():
        attempt(errors, device)
        attempt(opchecks, device)
        attempt(compiled, device, "aot_eager")
        attempt(by_dlpack, device)
    if torch.cuda.is_available():
        attempt(streams_and_graphs)
        attempt(races)
        attempt(compiled, "cuda", "inductor")


if __name__ == "__main__":
    main()
    text = json.dumps(report, indent=1)
    print(text)
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w") as file:
            file.write(text)
    sys.exit("failed" in report)
