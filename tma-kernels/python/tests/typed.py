"""What a type checker knows of the module, from its stubs. It is checked, and never run:

    mypy --strict tma-kernels/python/tests/typed.py

Each comment says which error the line must have.
"""

from typing import Any, assert_type

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

import tma_kernels
from tma_kernels import arrays

a = torch.zeros(64, 64)
assert_type(tma_kernels.gemm(a, b=a, bias=a[0], activation="relu", out_dtype=torch.float32), Tensor)
assert_type(tma_kernels.attention_with_lse(a, a, a, causal=True, window=8), tuple[Tensor, Tensor])
tma_kernels.gemm_(a, a, a, beta=1.0)
tma_kernels.gemm(a)  # type: ignore[call-arg]
tma_kernels.gemm(a, a, a)  # type: ignore[call-arg]
tma_kernels.gemm(a, a, activatio="relu")  # type: ignore[call-arg]
tma_kernels.gemm(a, 1)  # type: ignore[arg-type]
tma_kernels.no_operator  # type: ignore[attr-defined]

x: npt.NDArray[Any] = np.zeros((64, 64), np.float32)
assert_type(arrays.gemm(x, x.T, alpha=2.0, out_dtype="float32"), arrays.Array)
assert_type(arrays.gemm(x, a, out=a, stream=0), Tensor)
assert_type(arrays.attention_with_lse(x, x, x), tuple[arrays.Array, arrays.Array])
arrays.gemm_(x, x, x)
arrays.gemm(x, [1.0])  # type: ignore[call-overload]
np.from_dlpack(arrays.gemm(x, x.T))

try:
    arrays.gemm(x, x)
except tma_kernels.Error as error:
    assert_type(error.code, str)
