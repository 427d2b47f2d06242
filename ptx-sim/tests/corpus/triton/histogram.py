"""Counts of bytes: by atomics of each element, and by Triton's own histogram and one atomic a bin."""
import triton
import triton.language as tl


@triton.jit
def histogram(x, by_element, by_block, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0).to(tl.int32)
    tl.atomic_add(by_element + v, 1, mask=i < n)
    counts = tl.histogram(v, 256, mask=i < n)
    tl.atomic_add(by_block + tl.arange(0, 256), counts)
