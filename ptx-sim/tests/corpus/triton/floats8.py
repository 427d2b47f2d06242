"""Small floating-point types, and arithmetic in bfloat16."""
import triton
import triton.language as tl


@triton.jit
def floats8(x, y, eights, sums, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v, w = tl.load(x + i), tl.load(y + i)
    tl.store(eights + i, v.to(tl.float8e5).to(tl.uint8, bitcast=True) ^ v.to(tl.float8e4nv).to(tl.uint8, bitcast=True))
    tl.store(sums + i, v.to(tl.bfloat16) * w + w)
