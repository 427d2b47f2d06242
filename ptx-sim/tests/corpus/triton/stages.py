"""A matrix times a vector in a loop with stages: Triton brings tiles ahead with `cp.async`."""
import triton
import triton.language as tl


@triton.jit
def stages(a, x, out, rows, cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    sums = tl.zeros((ROWS, COLS), tl.float32)
    for at in tl.range(0, cols, COLS, num_stages=3):
        c = at + tl.arange(0, COLS)
        tile = tl.load(a + r[:, None] * cols + c[None, :], mask=(r[:, None] < rows) & (c[None, :] < cols), other=0.0)
        sums += tile * tl.load(x + c, mask=c < cols, other=0.0)[None, :]
    tl.store(out + r, tl.sum(sums, 1), mask=r < rows)
