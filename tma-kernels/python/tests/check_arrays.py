"""Tests `arrays` of the installed wheel `tma_kernels` without PyTorch: with NumPy, and with JAX and
CuPy where they are installed. It is run by hand, like `check.py`.
"""

import gc
import importlib.util
import sys

import numpy as np

import tma_kernels
from tma_kernels import arrays

x = np.random.rand(72, 64).astype(np.float32)
w = np.random.rand(128, 64).astype(np.float32)
c = np.from_dlpack(arrays.gemm(x, w.T, alpha=2.0))
np.testing.assert_allclose(c, 2 * x @ w.T, rtol=2e-3)
found = None
out = np.zeros((72, 128), np.float32)
assert arrays.gemm(x, w.T, alpha=2.0, out=out) is out and np.array_equal(out, c)
assert arrays.gemm_(out, x, w.T, alpha=-2.0, beta=1.0) is None
assert abs(out).max() < 1e-3, "what was added is not subtracted again"
for wrong, text in {
    (lambda: arrays.gemm(x, w)): "TMA0546: ",
    (lambda: arrays.gemm(x, w.T, activation="tanh")): "TMA0566: `activation` is `tanh`",
    (lambda: arrays.gemm(x[::-1], w.T)): "TMA0566: `a` has a negative stride",
    (lambda: arrays.gemm(x.astype(np.int64), w.T)): "TMA0566: `a` has elements of i64",
    (lambda: arrays.gemm(x)): "misses its argument `b`",
    (lambda: arrays.gemm(x, [1.0])): "`b` is a list; pass an array with `__dlpack__`",
    (lambda: arrays.gemm(x, w.T, out=out[:3])): "`out` for `c` is float32 [3, 128]; pass float32 [72, 128]",
}.items():
    try:
        wrong()
    except (tma_kernels.Error, TypeError) as error:
        assert text in str(error), f"{text} is not in: {error}"
    else:
        raise AssertionError(f"not refused: {text}")
print(f"Python {sys.version.split()[0]}, NumPy {np.__version__}: equal to its product")

for name in ("jax", "cupy"):
    if importlib.util.find_spec(name) is None:
        continue
    library = importlib.import_module(name)
    of = importlib.import_module("jax.numpy") if name == "jax" else library
    from_dlpack = library.dlpack.from_dlpack if name == "jax" else library.from_dlpack
    # Arrays of JAX are always in row-major order, in which only elements of 16 bits are multiplied.
    a, b = of.asarray(x).astype(of.float16), of.asarray(w.T).astype(of.float16)
    found = from_dlpack(arrays.gemm(a, b, out_dtype="float32"))
    np.testing.assert_allclose(np.asarray(found.get() if name == "cupy" else found), x @ w.T, rtol=2e-3)
    print(f"{name} {library.__version__}: equal to NumPy's product")

assert len(arrays._exported) > 0
del c, found
gc.collect()
assert not arrays._exported, "a result is still alive"
# This one is alive when the interpreter ends.
c = np.from_dlpack(arrays.gemm(x, w.T))
