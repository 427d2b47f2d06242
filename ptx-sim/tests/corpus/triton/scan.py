"""Running sums, and an associative scan of an operation that does not commute: affine maps, one after the other."""
import triton
import triton.language as tl


@triton.jit
def composed(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def scan(x, sums, factors, offsets, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.store(sums + i, tl.cumsum(v, 0))
    factor, offset = tl.associative_scan((v | 1, v), 0, composed)
    tl.store(factors + i, factor)
    tl.store(offsets + i, offset)
