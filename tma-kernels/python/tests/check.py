"""Tests the installed wheel `tma_kernels` against PyTorch: on the CPU, where the simulator runs the kernels, and on a
GPU if there is one.

    cargo tma wheel --package tma-kernels-python
    pip install --force-reinstall target/wheels/tma_kernels-*.whl
    python tma-kernels/python/tests/check.py [--device cpu|cuda] [--json RESULTS.json]

It prints the results as JSON. It is run by hand: it needs PyTorch. `tests/rivals/torch_wheel.py` measures.
"""

import argparse
import json
import sys
import time
import traceback

import torch

import tma_kernels
from tma_kernels import arrays

F8 = torch.float8_e4m3fn
ACTIVATIONS = {
    "none": lambda x: x,
    "relu": torch.relu,
    "silu": torch.nn.functional.silu,
    "gelu": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
}
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
    for name, activation in ACTIVATIONS.items():
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
    found = tma_kernels.gemm_scaled(a, b, None, None, out_dtype=torch.float32)
    close(found, (a.double() @ b.double().t()).float(), 2e-3)
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


def gemm_gradients(device, n):
    """Compares gradients with those of PyTorch in float64."""

    def compare(a, b, relative=1e-2, **options):
        dtype = options.get("out_dtype") or a.dtype
        operands = [x for x in (a, b, options.get("bias"), options.get("residual")) if x is not None]
        c = tma_kernels.gemm(a, b, **options)
        of_c = random(*c.shape, device=device, dtype=dtype)
        found = torch.autograd.grad(c, operands, of_c)
        double = {id(x): x.detach().double().requires_grad_() for x in operands}
        sums = double[id(a)] @ double[id(b)] * options.get("alpha", 1.0)
        for added in operands[2:]:
            sums = sums + double[id(added)]
        result = ACTIVATIONS[options.get("activation", "none")](sums)
        wanted = torch.autograd.grad(result, list(double.values()), of_c.double())
        for ours, reference, operand in zip(found, wanted, operands, strict=True):
            close(ours, reference.to(operand.dtype), relative)

    make = lambda *shape, **options: random(*shape, device=device, **options).requires_grad_()
    transposed = lambda *shape, **options: make(*shape, **options).mT
    for dtype in (torch.bfloat16, torch.float16):
        for left in (make, transposed):
            for right in (make, transposed):
                shape = (n, n + 8) if left is make else (n + 8, n)
                other = (n + 8, 2 * n) if right is make else (2 * n, n + 8)
                compare(left(*shape, dtype=dtype), right(*other, dtype=dtype), alpha=-0.5)
    passed(f"{device}: gradients of gemm in all layouts")
    a, b = make(n, n, scale=0.5), transposed(2 * n, n, scale=0.5)
    for activation in ACTIVATIONS:
        compare(a, b, 2e-2, bias=make(2 * n), residual=make(n, 2 * n), activation=activation)
    compare(a, b, bias=make(2 * n, dtype=torch.float32), out_dtype=torch.float32)
    passed(f"{device}: gradients of gemm with bias, residual and activations")
    # Rows of the result that are no multiples of 16 bytes are operands of the gradients.
    compare(make(n, n), transposed(n + 3, n), bias=make(n + 3))
    compare(make(3, n, n), make(3, n, n), bias=make(n))
    compare(make(n, n, dtype=torch.float32), transposed(n + 4, n, dtype=torch.float32), 5e-3)
    w = make(2 * n, n)
    x = random(n, n, device=device)
    tma_kernels.gemm(x, w.t()).sum().backward()  # from a gradient whose strides are 0
    close(w.grad, x.double().sum(0).expand(2 * n, n).to(w.dtype))
    assert w.grad.is_contiguous()
    x, w = (random(n, n, device=device).to(F8).requires_grad_() for _ in "xw")
    refused(lambda: tma_kernels.gemm(x, w.t()).sum().backward(), "TMA0566: `a` has elements of float8")
    passed(f"{device}: gradients of gemm with other shapes and types, and an error for float8")


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


def layers(device):
    """The operators between GEMMs: norms, rotary embeddings, and writes to a cache."""
    for dtype, shape in ((torch.bfloat16, (40, 128)), (torch.float16, (2, 24, 96)), (torch.float32, (2, 3, 8, 64))):
        x, residual, weight = (random(*s, device=device, dtype=dtype) for s in (shape, shape, shape[-1:]))
        norm = lambda x: x.double() * (x.double().square().mean(-1, keepdim=True) + 1e-6).rsqrt()
        close(tma_kernels.rms_norm(x, weight), (norm(x) * weight.double()).to(dtype))
        close(tma_kernels.rms_norm(x, weight, one_plus_weight=True), (norm(x) * (1 + weight.double())).to(dtype))
        added = x + residual
        close(tma_kernels.add_rms_norm_(residual, x, None), norm(added).to(dtype))
        close(residual, added)
    refused(lambda: tma_kernels.rms_norm(x, weight[1:]), "TMA0575: ", "`weight`")
    passed(f"{device}: rms_norm and add_rms_norm_")

    tokens, heads, depth = 24, 3, 64
    positions = torch.randint(0, 100, (tokens,), device=device, dtype=torch.int32)
    angles = torch.arange(100, device=device).unsqueeze(1) / 10000 ** (torch.arange(depth // 2, device=device) / 32)
    cos, sin = angles.cos(), angles.sin()
    for layout in ("halves", "pairs"):
        x = random(tokens, heads, depth, device=device).requires_grad_()
        y = tma_kernels.rotary(x, positions, cos, sin, layout=layout)
        double = x.detach().double().requires_grad_()
        pairs = double.unflatten(-1, (2, -1)).mT if layout == "halves" else double.unflatten(-1, (-1, 2))
        factors = torch.polar(torch.ones_like(angles), angles)[positions.long(), None]
        turned = torch.view_as_real(torch.view_as_complex(pairs.contiguous()) * factors)
        wanted = (turned.mT if layout == "halves" else turned).flatten(-2)
        close(y, wanted.to(x.dtype))
        of_y = random(*y.shape, device=device)
        found, reference = torch.autograd.grad(y, x, of_y), torch.autograd.grad(wanted, double, of_y.double())
        close(found[0], reference[0].to(x.dtype))
    refused(lambda: tma_kernels.rotary(x, positions, cos, sin, layout="half"), "TMA0566: `layout` is `half`")
    passed(f"{device}: rotary, with its gradient")


def caches(device):
    k, v = (random(2, 2, 3, 64, device=device) for _ in "kv")
    lengths = torch.tensor([14, 0], device=device, dtype=torch.int32)
    table = torch.tensor([[2, 0], [1, 3]], device=device, dtype=torch.int32)
    paged, plain = (torch.zeros(2, 4, 2, 16, 64, device=device, dtype=k.dtype) for _ in "ab")
    tma_kernels.append_(*paged, k, v, lengths, table=table)
    plain = plain.view(2, 2, 2, 32, 64)
    tma_kernels.append_(*plain, k, v, lengths)
    for i, length in enumerate(lengths.tolist()):
        for cache, new in zip(range(2), (k, v)):
            assert torch.equal(plain[cache, i, :, length : length + 3], new[i])
            pages = paged[cache, table[i].long()].transpose(0, 1).flatten(1, 2)
            assert torch.equal(pages, plain[cache, i])
    scales = [torch.rand(2, 2, device=device) + 0.5 for _ in "kv"]
    quantised = torch.zeros_like(plain).to(F8)
    tma_kernels.append_(*quantised, k, v, lengths, key_scales=scales[0], value_scales=scales[1])
    for cache, new, scale in zip(quantised, (k, v), scales):
        wanted = (new.float() / scale[:, :, None, None]).to(F8)
        for i, length in enumerate(lengths.tolist()):
            assert torch.equal(cache[i, :, length : length + 3].float(), wanted[i].float())
    passed(f"{device}: append_ to caches with and without pages, and of float8")

    q, lengths = random(2, 4, 3, 64, device=device), lengths + 3
    seen = lambda keys: torch.arange(3, device=device)[:, None] + keys - 3 >= torch.arange(keys, device=device)

    def wanted(keys, values, sinks=None, bias=None):
        """Attention with a causal mask, of each sequence's own keys in float32."""
        results = []
        for i, length in enumerate(lengths.tolist()):
            k, v = (each[i, :, :length].repeat_interleave(2, 0).float() for each in (keys, values))
            scores = (q[i].float() @ k.mT / 8).masked_fill(~seen(length), -torch.inf)
            if bias is not None:
                scores = scores + bias[0, :, :, :length].float()
            if sinks is not None:
                scores = torch.cat([scores, sinks[:, None, None].expand(4, 3, 1)], -1)
            results.append(scores.softmax(-1)[..., :length] @ v)
        return torch.stack(results).to(q.dtype)

    close(tma_kernels.attention_cached(q, *plain, lengths, causal=True), wanted(*plain))
    close(tma_kernels.attention_cached(q, *paged, lengths, table=table, causal=True), wanted(*plain))
    sinks, bias = torch.rand(4, device=device), random(1, 4, 3, 32, device=device)
    found = tma_kernels.attention_cached(q, *plain, lengths, sinks=sinks, bias=bias, causal=True)
    close(found, wanted(*plain, sinks, bias))
    short, scales = plain.to(F8), [torch.rand(2, 2, device=device) for _ in "kv"]
    found = tma_kernels.attention_cached(
        q, *short, lengths, key_scales=scales[0], value_scales=scales[1], causal=True
    )
    close(found, wanted(*(each.float() * scale[:, :, None, None] for each, scale in zip(short, scales))))
    narrow = (plain[0], plain[1, ..., :32])
    close(tma_kernels.attention_cached(q, *narrow, lengths, causal=True), wanted(*narrow))
    call = lambda **options: lambda: tma_kernels.attention_cached(q, *plain, lengths, **options)
    refused(call(key_scales=scales[0]), "TMA0566: `value_scales` is None")
    refused(call(key_scales=scales[0], value_scales=scales[1]), "TMA0566: `key_scales` is for a cache of float8")
    passed(f"{device}: attention_cached with and without pages, with factors, sinks and a bias")

    q, cache = random(2, 16, 2, 576, device=device), random(4, 1, 32, 576, device=device)
    latents, rotated = cache[..., :512], cache[..., 512:]
    lengths = torch.tensor([40, 7], device=device, dtype=torch.int32)
    found = tma_kernels.mla_attention(q, latents, rotated, lengths, table=table)
    for i, length in enumerate(lengths.tolist()):
        keys = cache[table[i].long(), 0].flatten(0, 1)[:length].float()
        close(found[i], ((q[i].float() @ keys.T / 192**0.5).softmax(-1) @ keys[:, :512]).to(q.dtype))
    passed(f"{device}: mla_attention")


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
    q = random(1, 3, 64, 64, device=device)
    refused(lambda: tma_kernels.attention(q, q[:, :2], q[:, :2]), "TMA0551: ", "heads of `q`")
    if device != "cpu":
        refused(lambda: tma_kernels.gemm(a, a.cpu()), "`b`")
    passed(f"{device}: errors have codes and name arguments")


def cases(device):
    """Calls of every operator: its arguments, and whether it is differentiated."""
    make = lambda *shape: random(*shape, device=device, scale=0.3)
    a, b, c, bias = make(64, 80), make(128, 80), make(64, 128), make(128)
    q, k, v = make(1, 4, 40, 64), make(1, 2, 56, 64), make(1, 2, 56, 64)
    scales = [torch.rand(*shape, device=device) for shape in ((64, 1), (1, 1))]
    o, lse = tma_kernels.attention_with_lse(q, k, v, causal=True)
    yield "gemm", (a, b.t()), {}, True
    yield "gemm", (a, b.t()), {"bias": bias, "residual": c, "activation": "gelu", "alpha": 0.5}, True
    yield "gemm", (a, b.t()), {"bias": bias.float(), "out_dtype": torch.float32}, False
    yield "gemm_", (c.clone(), a, b.t()), {"beta": 1.0, "activation": "silu"}, False
    yield "gemm_scaled", (a.to(F8), b.to(F8), *scales), {}, False
    yield "attention", (q, k, v), {"causal": True, "window": 20, "soft_cap": 30.0}, False
    yield "attention_with_lse", (q, k, v), {"causal": True}, True
    yield "attention_backward", (q, k, v, o, lse, make(*o.shape)), {"causal": True}, False
    yield "rms_norm", (a, a[0]), {}, False
    yield "add_rms_norm_", (a.clone(), a, a[0]), {}, False
    positions, angles = torch.arange(40, device=device, dtype=torch.int32), torch.rand(40, 32, device=device)
    yield "rotary", (make(40, 2, 64), positions, angles.cos(), angles.sin()), {"layout": "pairs"}, True
    cache, table = [torch.zeros(6, 2, 16, 64, device=device, dtype=q.dtype) for _ in "kv"], positions[:6].view(1, 6)
    yield "append_", (*cache, k, v, positions[3:4]), {"table": table}, False
    yield "attention_cached", (q[:, :, :2], *cache, positions[40 - 1 :]), {"table": table, "causal": True}, False
    latents = make(3, 1, 32, 576)
    arguments = (make(1, 8, 1, 576), latents[..., :512], latents[..., 512:], positions[40 - 1 :])
    yield "mla_attention", arguments, {"table": table[:, :2], "causal": True}, False


def differentiated(arguments, options):
    """Copies of the arguments, whose matrices need gradients. Indices and angles have none."""

    def copied(value):
        is_differentiated = isinstance(value, torch.Tensor) and value.dtype == torch.bfloat16
        return value.detach().clone().requires_grad_() if is_differentiated else value

    return tuple(map(copied, arguments)), {name: copied(value) for name, value in options.items()}


def opchecks(device):
    for name, arguments, options, has_gradient in cases(device):
        utilities = ["test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic"]
        if name == "gemm_scaled":
            # The others compare arguments by functions that PyTorch does not have for float8.
            utilities = ["test_autograd_registration", "test_faketensor"]
        elif name == "attention_backward":
            utilities.remove("test_aot_dispatch_dynamic")  # compares the memory for intermediate results
        if has_gradient:
            arguments, options = differentiated(arguments, options)
        torch.library.opcheck(getattr(torch.ops.tma_kernels, name).default, arguments, options, test_utils=utilities)
    passed(f"{device}: opcheck of every operator")


def compiled(device, backend):
    """Compiles a call of each operator, and compares results and gradients with those of the call in eager mode."""
    for name, arguments, options, has_gradient in cases(device):
        operator, is_in_place = getattr(tma_kernels, name), name.endswith("_")

        def model(*arguments, **options):
            # Something for the compiler to fuse, before and after.
            first = arguments[0] if is_in_place or arguments[0].dtype == F8 else arguments[0] + 0
            result = operator(first, *arguments[1:], **options)
            parts = result if isinstance(result, tuple) else (result,)
            parts = [part for part in parts if part is not None] + [first] * is_in_place
            return [part * 2 for part in parts if part.is_floating_point()]

        def run(call):
            mine, named = differentiated(arguments, options) if has_gradient else (arguments, options)
            # The operators write at most their first two arguments.
            results = call(*(x.clone() for x in mine[:2]), *mine[2:], **named)
            if has_gradient:
                tensors = [x for x in (*mine, *named.values()) if isinstance(x, torch.Tensor) and x.requires_grad]
                results += torch.autograd.grad(results[0].float().square().sum(), tensors)
            return results

        torch._dynamo.reset()
        fast = torch.compile(model, fullgraph=True, backend=backend)
        for ours, wanted in zip(run(fast), run(model), strict=True):
            close(ours, wanted, 2e-2)
    passed(f"{device}: torch.compile of every operator with the backend {backend}, also of its gradients")


def compiled_model(device, backend):
    def model(x, w, bias, c):
        y = tma_kernels.gemm(x.sin(), w.t(), bias=bias, activation="silu")
        tma_kernels.gemm_(c, y, w, alpha=0.5)
        heads = c.view(1, -1, 2, 64).transpose(1, 2)
        return tma_kernels.attention(heads, heads, heads, causal=True) + 1

    torch._dynamo.reset()
    fast = torch.compile(model, fullgraph=True, backend=backend, dynamic=True)
    w, bias = random(128, 128, device=device, scale=0.1), random(128, device=device)
    for rows in (64, 96, 160):
        x = random(rows, 128, device=device)
        outputs = [torch.zeros_like(x) for _ in "ab"]
        close(fast(x, w, bias, outputs[0]), model(x, w, bias, outputs[1]), 2e-2)
        close(*outputs, 2e-2)
    explanation = torch._dynamo.explain(model)(x, w, bias, outputs[0])
    assert explanation.graph_break_count == 0, explanation.break_reasons
    passed(f"{device}: torch.compile of a model with the backend {backend}, symbolic extents and no graph break")


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


def streams():
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


def graphs():
    """Captures calls, and replays them with other elements in the same tensors."""

    def compare(name, inputs, call, reference, relative=1e-2):
        call()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                found = call()
        except RuntimeError as error:
            raise RuntimeError(f"capture of {name}") from error
        for _ in range(3):
            for x in inputs:
                x.copy_(random(*x.shape, device="cuda", scale=0.3).to(x.dtype))
            graph.replay()
            torch.cuda.synchronize()
            close(found, reference(), relative)

    # Few rows and a long K: outside of a capture, sums are split among clusters.
    for m, n, k in ((512, 512, 512), (64, 1024, 8192), (128, 4096, 4096)):
        x, w, c = (random(*shape, device="cuda") for shape in ((m, k), (n, k), (m, n)))
        product = lambda: x.float() @ w.float().t()
        call = lambda: tma_kernels.gemm(x, w.t(), activation="relu")
        shape = f"{m} x {n} x {k}"
        compare(f"gemm {shape}", [x, w], call, lambda: torch.relu(product()).bfloat16())
        # What is captured after the other reads its result.
        chained = lambda: tma_kernels.gemm(call(), w, alpha=0.125)
        compare(f"two gemms {shape}", [x, w], chained, lambda: (0.125 * torch.relu(product()).bfloat16().float() @ w.float()).bfloat16())

        def in_place():
            c.zero_()
            tma_kernels.gemm_(c, x, w.t(), beta=1.0)
            tma_kernels.gemm_(c, x, w.t(), alpha=-0.5, beta=1.0)
            return c

        compare(f"gemm_ {shape}", [x, w], in_place, lambda: (0.5 * product()).bfloat16(), 2e-2)
    x, w = (random(rows, 512, device="cuda").to(F8) for rows in (256, 384))
    scale_x, scale_w = (torch.rand(rows, 4, device="cuda") for rows in (256, 3))
    spread = lambda x, scale, rows: x.float() * scale.repeat_interleave(rows, 0).repeat_interleave(128, 1)
    reference = lambda: (spread(x, scale_x, 1) @ spread(w, scale_w, 128).t()).bfloat16()
    scaled = lambda: tma_kernels.gemm_scaled(x, w, scale_x, scale_w)
    compare("gemm_scaled", [x, w, scale_x, scale_w], scaled, reference)
    q, k, v = (random(2, 8, 512, 128, device="cuda") for _ in "qkv")
    sdpa = torch.nn.functional.scaled_dot_product_attention
    reference = lambda: sdpa(q.float(), k.float(), v.float(), is_causal=True).bfloat16()
    compare("attention", [q, k, v], lambda: tma_kernels.attention(q, k, v, causal=True), reference)
    q, lengths = q[:, :, :1].contiguous(), torch.tensor([512, 512], device="cuda", dtype=torch.int32)
    reference = lambda: sdpa(q.float(), k.float(), v.float()).bfloat16()
    compare("attention_cached", [q, k, v], lambda: tma_kernels.attention_cached(q, k, v, lengths), reference)
    passed("cuda: CUDA graphs of gemm, gemm_, gemm_scaled, attention and attention_cached")


def attempt(test, *arguments):
    """Runs a test. A failure is reported, and does not keep the others from running."""
    try:
        test(*arguments)
    except Exception as error:
        name = " ".join([test.__name__, *map(str, arguments)])
        report.setdefault("failed", {})[name] = f"{type(error).__name__}: {error}"[:2000]
        traceback.print_exc()


def run_on(device):
    is_gpu = device == "cuda"
    attempt(gemms, device, 1024 if is_gpu else 64)
    attempt(gemm_gradients, device, 512 if is_gpu else 64)
    attempt(attentions, device, 512 if is_gpu else 64)
    attempt(attention_gradients, device, 300 if is_gpu else 40)
    for test in (layers, caches, errors, opchecks, by_dlpack):
        attempt(test, device)
    for backend in ("aot_eager", "inductor") if is_gpu else ("aot_eager",):
        attempt(compiled, device, backend)
        attempt(compiled_model, device, backend)
    if is_gpu:
        attempt(gemms, device, 64)
        attempt(streams)
        attempt(graphs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), help="both by default, if there is a GPU")
    parser.add_argument("--json", help="the file for the results")
    options = parser.parse_args()
    has_gpu = torch.cuda.is_available()
    if options.device == "cuda" and not has_gpu:
        parser.exit(2, "PyTorch finds no GPU; pass --device cpu\n")
    torch.manual_seed(1)
    start = time.perf_counter()
    for device in [options.device] if options.device else ["cpu"] + ["cuda"] * has_gpu:
        run_on(device)
    report["seconds"] = round(time.perf_counter() - start, 1)
    text = json.dumps(report, indent=1)
    print(text)
    if options.json:
        with open(options.json, "w") as file:
            file.write(text)
    sys.exit("failed" in report)


if __name__ == "__main__":
    main()
