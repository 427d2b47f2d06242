"""Sums, extremes and places of extremes: of rows and of columns of a tile."""
import triton
import triton.language as tl


@triton.jit
def reduce(x, sums, most, places, everything, ROWS: tl.constexpr, COLS: tl.constexpr):
    at = tl.program_id(0) * ROWS * COLS
    rows, cols = tl.arange(0, ROWS), tl.arange(0, COLS)
    tile = tl.load(x + at + rows[:, None] * COLS + cols[None, :])
    tl.store(sums + tl.program_id(0) * ROWS + rows, tl.sum(tile, 1))
    tl.store(most + tl.program_id(0) * COLS + cols, tl.max(tile, 0))
    tl.store(places + tl.program_id(0) * ROWS + rows, tl.argmin(tile, 1))
    tl.atomic_add(everything, tl.sum(tile))
