"""Rows sorted, up and down: shuffles within warps."""
import triton
import triton.language as tl


@triton.jit
def sort(x, up, down, ROWS: tl.constexpr, COLS: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLS + tl.arange(0, COLS)[None, :]
    tile = tl.load(x + at)
    tl.store(up + at, tl.sort(tile))
    tl.store(down + at, tl.sort(tile, descending=True) ^ tile)
