"""Gradients of operators that take more than an expression."""

import torch

from ._library import Error

_DTYPES = (torch.bfloat16, torch.float16, torch.float32)


def gemm(needed, grad, arguments):
    """Returns the gradients of `a`, `b`, `bias` and `residual` of `gemm`: those that are needed, and None for others.

    `grad` is the gradient of c = activation(x) with x = alpha · a · b + residual + bias. With an activation, x is
    computed again.
    """
    a, b, bias, residual, activation, alpha, out_dtype = arguments
    if a.dtype not in _DTYPES:
        name = str(a.dtype).removeprefix("torch.")
        raise Error(f"TMA0566: `a` has elements of {name}, which have no gradients; pass bfloat16, float16 or float32")
    if activation != "none":
        x = torch.ops.tma_kernels.gemm.default(a, b, bias=bias, residual=residual, alpha=alpha, out_dtype=out_dtype)
        if activation == "relu":
            grad = torch.ops.aten.threshold_backward(grad, x, 0)
        elif activation == "gelu":
            grad = torch.ops.aten.gelu_backward(grad, x, approximate="tanh")
        else:
            grad = torch.ops.aten.silu_backward(grad, x)
    # The operands of a GEMM have one type.
    of_product = grad.to(a.dtype)
    of_a = _product_like(a, of_product, b.mT, alpha) if "a" in needed else None
    of_b = _product_like(b, a.mT, of_product, alpha) if "b" in needed else None
    of_bias = grad.sum(dim=tuple(range(grad.dim() - 1))) if "bias" in needed else None
    return of_a, of_b, of_bias, grad if "residual" in needed else None


def _product_like(like, a, b, alpha):
    """Returns alpha · a · b, transposed in memory if `like` is: so PyTorch adds it to a gradient without a copy."""
    if _is_transposed(like):
        return _product(b.mT, a.mT, alpha).mT
    return _product(a, b, alpha)


def _product(a, b, alpha):
    if a.element_size() == 2:
        return torch.ops.tma_kernels.gemm.default(_in_rows_or_columns(a), _in_rows_or_columns(b), alpha=alpha)
    return torch.ops.tma_kernels.gemm.default(_in_rows(a), _in_rows(b.mT).mT, alpha=alpha)


def _is_transposed(x):
    return x.stride(-1) != 1 and x.stride(-2) == 1


def _in_rows_or_columns(x):
    return _in_rows(x.mT).mT if _is_transposed(x) else _in_rows(x)


def _in_rows(x):
    """Returns the matrix with rows that begin at multiples of 16 bytes, as the copy engine reads them. It copies only
    a matrix that has no such rows."""
    unit = 16 // x.element_size()
    is_aligned = all(stride > 0 and stride % unit == 0 for stride in x.stride()[:-1])
    if x.stride(-1) == 1 and is_aligned:
        return x
    columns = x.shape[-1]
    return torch.nn.functional.pad(x.contiguous(), (0, -columns % unit))[..., :columns]
