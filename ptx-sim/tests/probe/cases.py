"""The probe's cases, drawn at random under a fixed seed. One line each: words of the form key=value.

Kinds: `load`, `store`, `reduce_OP` (a kernel runs), `encode` (the driver is asked whether it takes the parameters).
Lists have dimension 0, the innermost, first. `bytes` is what the load's mbarrier is told to expect.
`python3 cases.py > cases.txt` writes them all.
"""

import random

SIZES = {"u8": 1, "u16": 2, "u32": 4, "i32": 4, "u64": 8, "i64": 8, "f16": 2, "f32": 4, "f64": 8, "bf16": 2,
         "f32ftz": 4, "tf32": 4, "tf32ftz": 4}
FLOATS = ["f16", "f32", "f64", "bf16", "f32ftz", "tf32", "tf32ftz"]
SPANS = {0: 0, 32: 32, 64: 64, 128: 128}
BUFFER = 65536
TILE = 16384
CORNERS = {3: 32768, 4: 128, 5: 16}

ORDER = ["kind", "kernel", "mode", "element", "extents", "strides", "box", "lower", "upper", "channels", "pixels", "steps",
         "interleave", "swizzle", "fill", "offset", "data", "place", "bytes", "at", "offsets"]


def line(case):
    show = lambda value: ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
    return " ".join(f"{key}={show(case[key])}" for key in ORDER if key in case)


def parse(text):
    case = {}
    for word in text.split():
        key, value = word.split("=")
        if key in ("extents", "strides", "box", "lower", "upper", "steps", "at", "offsets"):
            case[key] = [int(x) for x in value.split(",")] if value else []
        elif key in ("kind", "kernel", "mode", "element", "fill", "data"):
            case[key] = value
        else:
            case[key] = int(value)
    return case


def up(value, to):
    return -(-value // to) * to


def strides_of(rng, extents, size, unit=16):
    strides, at = [], extents[0] * size
    for extent in extents[1:]:
        at = up(at, unit) + unit * rng.choice([0, 0, 1])
        strides.append(at)
        at *= extent
    return strides, at


def tiled(rng, kind, element=None, steps=False, fill="zeros", swizzle=None, rank=None, inside=False):
    """A tiled map without interleave, and coordinates; None if what was drawn is too large."""
    rank = rank or rng.randint(1, 5)
    element = element or rng.choice(list(SIZES))
    size = SIZES[element]
    swizzle = rng.choice([0, 0, 32, 64, 128]) if swizzle is None else swizzle
    span = SPANS[swizzle]
    row = 16 * rng.randint(1, span // 16) if span else 16 * rng.choice([1, 1, 2, 3, 4, 8])
    if row // size > 256:
        return None
    box = [row // size] + [rng.randint(1, [0, 0, 40, 12, 6, 4][rank]) for _ in range(1, rank)]
    step = [1] + [rng.randint(1, 8) if steps else 1 for _ in range(1, rank)]
    if steps and rng.random() < 0.3:
        step[0] = rng.randint(1, 8)  # without interleave it is ignored
    most = [max(1, 1400 // size)] + [[0, 60, 16, 8, 6][rank - 1]] * (rank - 1)
    extents = [rng.randint(1, most[0] if d == 0 else most[d]) for d in range(rank)]
    strides, total = strides_of(rng, extents, size)
    counts = [box[0]] + [-(-b // s) for b, s in zip(box[1:], step[1:])]
    rows = 1
    for count in counts[1:]:
        rows *= count
    if total + 64 > BUFFER or rows * max(span, row) > TILE:
        return None
    unit = 16 // size or 1
    low = 0 if kind != "load" or inside else -1
    at = [unit * rng.randint(low * 8, max(1, extents[0] // unit + 2))]
    at += [rng.randint(low * b, e + 2) for b, e in zip(box[1:], extents[1:])]
    if rng.random() < 0.5:
        at = [unit * rng.randint(0, max(0, (extents[0] - 1) // unit))]
        at += [rng.randint(0, e - 1) for e in extents[1:]]
    return dict(kind=kind, mode="tiled", element=element, extents=extents, strides=strides, box=box, steps=step,
                interleave=0, swizzle=swizzle, fill=fill, offset=16 * rng.randint(0, 3), data="bits", place=0,
                bytes=rows * row, at=at)


def layers(kind, layout, **changes):
    """A map of an interleaved layout, of a buffer whose 16-bit words are their own numbers."""
    case = dict(kind=kind, mode="tiled", element="u16", extents=[40, 6, 5], strides=[1024 + 32, 8192 + 64],
                box=[16, 4, 3], steps=[1, 1, 1], interleave=layout, swizzle=32 if layout == 32 else 0, fill="zeros",
                offset=0, data="index", place=0, bytes=0, at=[0, 0, 0])
    case.update(changes)
    return case


def im2col(rng, kind, element=None, fill="zeros", far=False):
    rank = rng.randint(3, 5)
    spatial = rank - 2
    element = element or rng.choice(["u8", "u16", "f16", "bf16", "f32", "tf32", "u64", "f64"])
    size = SIZES[element]
    swizzle = rng.choice([0, 0, 32, 64, 128])
    span = SPANS[swizzle]
    row = 16 * rng.randint(1, span // 16) if span else 16 * rng.choice([1, 2, 3, 4])
    channels = row // size
    extents = [rng.randint(max(1, 16 // size), 3 * channels)]
    extents += [rng.randint(2, [0, 40, 12, 6][spatial]) for _ in range(spatial)] + [rng.randint(1, 4)]
    strides, total = strides_of(rng, extents, size)
    step = [1] + [rng.choice([1, 1, 2, 3]) for _ in range(spatial)] + [1]
    store = kind != "load"
    reach = 3
    lower = [rng.randint(0 if store else -reach, reach) for _ in range(spatial)]
    upper = [rng.randint(-reach, 0 if store else reach) for _ in range(spatial)]
    first = lower
    last = [e - 1 + u for e, u in zip(extents[1:], upper)]
    if any(f > l for f, l in zip(first, last)):
        return None
    pixels = rng.choice([1, 5, 16, 32, 64, 100])
    pitch = max(span, row)
    if total + 64 > BUFFER or pixels * pitch > TILE:
        return None
    at = [(16 // size or 1) * rng.randint(0, max(0, extents[0] * size // 16))]
    for f, l, s in zip(first, last, step[1:]):
        at.append(f + rng.randint(0, (l - f) // s) * s)
    at.append(rng.randint(0, extents[-1] - 1))
    offsets = [] if store else [rng.randint(0, 3) for _ in range(spatial)]
    return dict(kind=kind, mode="im2col", element=element, extents=extents, strides=strides, lower=lower,
                upper=upper, channels=channels, pixels=pixels, steps=step, interleave=0, swizzle=swizzle, fill=fill,
                offset=16 * rng.randint(0, 3), data="bits", place=0, bytes=pixels * row, at=at, offsets=offsets)


def drawn(count, make):
    """`count` of the cases that `make` draws."""
    cases = []
    while len(cases) < count:
        case = make()
        if case is not None:
            cases.append(case)
    return cases


def matrix(kind, element, **changes):
    """A plain 40×20 matrix with a box of 16 bytes by 8 that hangs over both of its ends."""
    size = SIZES[element]
    inner = 16 // size
    extents = [inner * 5 - (inner > 1), 20]
    case = dict(kind=kind, mode="tiled", element=element, extents=extents, strides=[96], box=[inner * 2, 8],
                steps=[1, 1], interleave=0, swizzle=0, fill="zeros", offset=0, data="bits", place=0, bytes=256,
                at=[inner * 4, 15])
    case.update(changes)
    return case


def encodes(rng):
    """Parameters at the edges of what the driver takes."""
    cases = []
    base = dict(kind="encode", mode="tiled", element="u16", extents=[64, 32, 16], strides=[128, 4096], box=[16, 8, 4],
                steps=[1, 1, 1], interleave=0, swizzle=0, fill="zeros", offset=0)
    column = dict(kind="encode", mode="im2col", element="u16", extents=[64, 32, 16, 8], strides=[128, 4096, 65536],
                  lower=[-1, -1], upper=[-1, -1], channels=16, pixels=32, steps=[1, 1, 1, 1], interleave=0, swizzle=0,
                  fill="zeros", offset=0)

    def tile(**changes):
        cases.append({**base, **changes})

    def pixel(**changes):
        cases.append({**column, **changes})

    for offset in [0, 8, 16, 24, 32]:
        for layout, swizzle in [(0, 0), (16, 0), (32, 32)]:
            tile(offset=offset, interleave=layout, swizzle=swizzle)
            pixel(offset=offset, interleave=layout, swizzle=swizzle)
    for layout in [0, 16, 32]:
        for swizzle in [0, 32, 64, 128]:
            for inner in [1, 2, 4, 8, 12, 16, 24, 32, 40, 64, 72, 128, 256, 257, 0]:
                tile(interleave=layout, swizzle=swizzle, box=[inner, 8, 4])
                pixel(interleave=layout, swizzle=swizzle, channels=inner)
        for stride in [0, 16, 32, 48, 64, 96, 128, 136, 144, 1 << 39, (1 << 40) - 16, (1 << 40) - 32, 1 << 40]:
            for swizzle in [0, 32]:
                tile(interleave=layout, swizzle=swizzle, strides=[stride, 4096])
                tile(interleave=layout, swizzle=swizzle, strides=[128, stride])
                pixel(interleave=layout, swizzle=swizzle, strides=[128, stride, 65536])
        for rank in range(1, 6):
            tile(interleave=layout, swizzle=32 if layout == 32 else 0, extents=[64] * rank,
                 strides=[128 * 64 ** i for i in range(rank - 1)], box=[16] + [2] * (rank - 1), steps=[1] * rank)
            if rank > 2:
                pixel(interleave=layout, swizzle=32 if layout == 32 else 0, extents=[64] * rank,
                      strides=[128 * 64 ** i for i in range(rank - 1)], lower=[0] * (rank - 2),
                      upper=[0] * (rank - 2), steps=[1] * rank)
    for extent in [0, 1, (1 << 32) - 1, 1 << 32, (1 << 32) + 1]:
        tile(extents=[extent, 32, 16])
        tile(extents=[64, extent, 16])
        tile(extents=[64, 32, extent])
        pixel(extents=[64, 32, 16, extent])
        pixel(extents=[64, extent, 16, 8])
    for box in [0, 1, 2, 255, 256, 257]:
        tile(box=[16, box, 4])
        tile(box=[16, 8, box])
    for boxes in [[256, 256, count] for count in [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 32, 64, 127, 128, 129, 256]]:
        tile(element="u8", box=boxes)
        tile(element="u16", box=boxes)
        tile(element="u64", box=boxes)
        tile(element="u64", box=boxes, steps=[1, 2, 2])
    for count in [16, 31, 32, 33, 55, 56, 57, 58, 63, 64, 65, 127, 128, 129]:
        tile(element="u8", box=[16, 256, count])
    for pixels in [64, 113, 114, 127, 128, 129, 256, 512, 1023, 1024]:
        pixel(element="u64", channels=256, pixels=pixels)
    for step in [0, 1, 2, 7, 8, 9]:
        for dimension in range(3):
            steps = [1, 1, 1]
            steps[dimension] = step
            tile(steps=steps)
            tile(steps=steps, interleave=16)
            tile(steps=steps, box=[16, 1, 1])
            pixel(steps=steps + [1])
        pixel(steps=[1, 1, 1, step])
    for element in SIZES:
        for fill in ["zeros", "nan"]:
            for layout, swizzle in [(0, 0), (16, 0), (32, 32)]:
                tile(element=element, fill=fill, interleave=layout, swizzle=swizzle, strides=[512, 16384])
                pixel(element=element, fill=fill, interleave=layout, swizzle=swizzle, strides=[512, 16384, 262144])
    for pixels in [0, 1, 7, 256, 512, 1023, 1024, 1025]:
        pixel(pixels=pixels)
    for rank in range(3, 6):
        spatial, reach = rank - 2, CORNERS[rank]
        plain = dict(extents=[64] + [100] * (spatial + 1), strides=[128 * 100 ** i for i in range(rank - 1)],
                     steps=[1] * rank)
        for dimension in range(spatial):
            for corner in [-reach - 1, -reach, -1, 0, 1, reach - 1, reach]:
                low, high = [0] * spatial, [0] * spatial
                low[dimension] = corner
                pixel(lower=low, upper=[0] * spatial, **plain)
                pixel(lower=low, upper=[reach - 1] * spatial, **plain)
                high[dimension] = corner
                pixel(lower=[0] * spatial, upper=high, **plain)
        # A box of 100 with corners that leave 2, 1, 0, -1 of it.
        if rank < 5:
            for left in [2, 1, 0, -1]:
                pixel(lower=[50] + [0] * (spatial - 1), upper=[left - 50] + [0] * (spatial - 1), **plain)
        small = dict(plain, extents=[64] + [10] * (spatial + 1))
        for left in [2, 1, 0, -1]:
            pixel(lower=[5] + [0] * (spatial - 1), upper=[left - 5] + [0] * (spatial - 1), **small)
    return cases


def runs(rng):
    """Cases that no GPU should refuse."""
    cases = drawn(100, lambda: tiled(rng, "load"))
    cases += drawn(60, lambda: tiled(rng, "load", steps=True))
    cases += drawn(40, lambda: tiled(rng, "load", element=rng.choice(FLOATS), fill="nan"))
    cases += [matrix("load", element, at=[0, 0]) for element in SIZES]
    cases += [matrix("load", element, fill="nan") for element in FLOATS]
    cases += drawn(50, lambda: tiled(rng, "store"))
    cases += drawn(30, lambda: tiled(rng, "store", steps=True))
    cases += drawn(60, lambda: interleaved(rng, "load"))
    cases += drawn(10, lambda: interleaved(rng, "load", element="f16", fill="nan"))
    cases += drawn(30, lambda: interleaved(rng, "store"))
    cases += drawn(100, lambda: im2col(rng, "load"))
    cases += drawn(20, lambda: im2col(rng, "load", element=rng.choice(FLOATS), fill="nan"))
    cases += drawn(25, lambda: im2col(rng, "store"))
    return cases


def interleaved(rng, kind, element=None, fill="zeros"):
    """A map of an interleaved layout: dimension 0 counts pixels of a slice, the last but one slices.

    With rank 4 and 5 the bytes that the mbarrier is told are others than those that come.
    """
    layout = rng.choice([16, 32])
    rank = rng.randint(3, 5)
    element = element or rng.choice(["u8", "u16", "f16", "u32", "f32", "u64"])
    size = SIZES[element]
    swizzle = 32 if layout == 32 else rng.choice([0, 0, 32, 64, 128])
    inner = 16 // size
    box = [inner * rng.randint(1, max(1, 24 // inner)), rng.randint(1, 40)]
    box += [rng.randint(1, [4, 4, 3][rank - 3]) for _ in range(2, rank)]
    step = [rng.choice([1, 1, 1, 2, 3]) for _ in range(rank)]
    extents = [rng.randint(1, 40), rng.randint(1, 4)] + [rng.randint(1, [8, 4, 3][rank - 3]) for _ in range(2, rank)]
    strides, at = [], extents[0] * layout
    for extent in extents[1:]:
        at = up(at, 32) + 32 * rng.choice([0, 0, 1])
        strides.append(at)
        at *= extent
    pixels = -(-box[0] // step[0])
    rows = 1
    for d in range(2, rank):
        rows *= -(-box[d] // step[d])
    if at + 64 > BUFFER or rows * max(pixels * layout, 128) > TILE:
        return None
    low = -1 if kind == "load" else 0
    first = [rng.randint(low * 4, e) for e in extents]
    return dict(kind=kind, mode="tiled", element=element, extents=extents, strides=strides, box=box, steps=step,
                interleave=layout, swizzle=swizzle, fill=fill, offset=32 * rng.randint(0, 1), data="index", place=0,
                bytes=rows * pixels * layout, at=first)


def interleaves():
    """What the box says of dimension 1, and how short rows are padded."""
    cases = []
    for layout in [16, 32]:
        for slices in [1, 2, 7, 8, 9, 16, 17, 64, 256]:
            for element, inner in [("u8", 16), ("u16", 8), ("u64", 2)]:
                cases.append(layers("load", layout, element=element, box=[inner, slices, 3], bytes=inner * 3 * layout))
        for first in [-1, 1, 36]:
            cases.append(layers("load", layout, at=[first, 0, 0], bytes=16 * 3 * layout))
        for second in [-1, 3, 5, 6]:
            cases.append(layers("load", layout, at=[0, second, 0], bytes=16 * 3 * layout))
            cases.append(layers("store", layout, at=[0, max(second, 0), 0], bytes=0))
    for swizzle in [0, 32, 64, 128]:
        for inner in [2, 4, 6, 8]:
            cases.append(layers("load", 16, element="u64", swizzle=swizzle, box=[inner, 1, 5], bytes=inner * 5 * 16))
            cases.append(layers("store", 16, element="u64", swizzle=swizzle, box=[inner, 1, 5]))
    return cases


def interleaved_columns():
    """Im2col mode of interleaved layouts."""
    cases = []
    for layout, swizzle in [(16, 0), (16, 32), (16, 64), (16, 128), (32, 32)]:
        pixels = lambda **changes: columns("load", **{**dict(interleave=layout, swizzle=swizzle, pixels=40, bytes=40 * layout,
                                           extents=[9, 3, 8, 2], strides=[512, 2048, 20480]), **changes})
        cases += [pixels(), pixels(at=[2, 1, 3, 0]), pixels(at=[-1, 0, -1, 1]), pixels(offsets=[1, 2]),
                  pixels(channels=8), pixels(channels=64), pixels(steps=[2, 1, 1, 1]), pixels(steps=[1, 2, 1, 1]),
                  pixels(steps=[1, 1, 2, 1]), pixels(lower=[-1, 0], upper=[0, -2]), pixels(lower=[1, -2], upper=[-3, 1],
                                                                                       at=[2, 1, 3, 0]),
                  pixels(at=[0, 3, 0, 0]), pixels(at=[0, -1, 0, 0])]
        cases.append(columns("store", interleave=layout, swizzle=swizzle, pixels=40, bytes=0, lower=[0, 0], upper=[0, 0],
                             extents=[9, 3, 8, 2], strides=[512, 2048, 20480], offsets=[], at=[2, 1, 3, 0]))
    cases += [columns("load", interleave=16, extents=[9, 3, 4], strides=[512, 2048], lower=[-1], upper=[1], steps=[1] * 3,
                      at=[2, 1, 0], offsets=[1], bytes=512),
              columns("load", interleave=16, extents=[9, 2, 3, 4, 2], strides=[256, 512, 2048, 8192], lower=[-1, 0, 1],
                      upper=[1, -1, 0], steps=[1, 1, 1, 2, 1], at=[2, 1, 0, 1, 0], offsets=[1, 1, 0], pixels=100,
                      bytes=1600)]
    return cases


def reductions(rng):
    """Each operation on each element type: inside of the tensor, and over its ends."""
    cases = [matrix(f"reduce_{op}", element, at=at) for op in ["add", "min", "max", "inc", "dec", "and", "or", "xor"]
             for element in SIZES for at in [[0, 0], [16 // SIZES[element] * 4, 15]]]
    draw = lambda kind, element: drawn(1, lambda: tiled(rng, kind, element=element, rank=rng.randint(1, 3)))
    legal = [("add", element) for element in ["u32", "i32", "u64", "f16", "bf16", "f32", "f64", "f32ftz", "tf32", "tf32ftz"]]
    legal += [(op, element) for op in ["min", "max"] for element in ["u32", "i32", "u64", "i64", "f16", "bf16"]]
    legal += [(op, "u32") for op in ["inc", "dec"]]
    legal += [(op, element) for op in ["and", "or", "xor"] for element in ["u32", "i32", "u64"]]
    for op, element in legal:
        cases.append(matrix(f"reduce_{op}", element, data="special", at=[0, 0]))
        for _ in range(2):
            cases += draw(f"reduce_{op}", element)
    for op in ["add", "xor"]:
        cases += drawn(4, lambda: im2col(rng, f"reduce_{op}", element="u32"))
    return cases


def specials():
    """Loads of numbers at the edges of their formats."""
    return [matrix("load", element, data="special", at=[0, 0], fill=fill) for element in FLOATS
            for fill in ["zeros", "nan"]]


def columns(kind, **changes):
    case = dict(kind=kind, mode="im2col", element="u16", extents=[32, 9, 8, 2], strides=[64, 576 + 64, 5120],
                lower=[-1, -1], upper=[-1, -1], channels=16, pixels=32, steps=[1] * 4, interleave=0, swizzle=0,
                fill="zeros", offset=0, data="index", place=0, bytes=1024, at=[0, 2, 2, 0], offsets=[0, 0])
    case.update(changes)
    return case


def edges():
    """What a GPU may refuse."""
    cases = [matrix("load", "u16", place=place, swizzle=swizzle, at=[0, 0]) for place in [16, 32, 64, 128, 256, 384]
             for swizzle in [0, 32]]
    cases += [matrix("load", "u8", place=place, swizzle=128, box=[128, 8], extents=[200, 20], strides=[208], at=[0, 0],
                     bytes=1024) for place in [64, 128, 256, 512, 640]]
    cases += [matrix("store", "u16", place=place, at=[0, 0]) for place in [16, 64]]
    cases += [matrix("load", "u16", at=[4, 0]), matrix("load", "u16", at=[8, -3]), matrix("load", "u32", at=[-4, 0])]
    cases += [matrix("store", "u16", at=[0, -1]), matrix("store", "u16", at=[-8, 0]), matrix("store", "u16", at=[4, 0])]
    cases += [matrix("reduce_add", "u32", at=[0, -1])]
    # Instructions of another rank or mode than the map's.
    cube = dict(extents=[40, 6, 5], strides=[96, 640], box=[8, 2, 2], steps=[1] * 3, at=[0, 0, 0], bytes=64)
    cases += [matrix("load", "u16", kernel="load_im2col_3d", **cube), columns("load", kernel="load_tile_4d"),
              matrix("store", "u16", kernel="store_im2col_no_offs_3d", **cube),
              columns("store", kernel="store_tile_4d", lower=[0, 0], upper=[0, 0])]
    cases += [matrix("load", "u16", at=[0]), matrix("load", "u16", at=[0, 0, 0])]
    for at in [[0, -1, -1, 0], [0, -2, 2, 0], [0, 2, -2, 0], [0, 7, 6, 0], [0, 8, 2, 0], [0, 9, 2, 0], [0, 2, 7, 0],
               [0, 2, 9, 0], [0, 2, 2, 1], [0, 2, 2, 2], [0, 2, 2, -1], [-8, 2, 2, 0], [24, 2, 2, 0], [4, 2, 2, 0],
               [40, 2, 2, 0], [0, 7, 6, 1]]:
        cases.append(columns("load", at=at))
    for offsets in [[1, 1], [2, 2], [3, 0], [255, 0], [0, 255], [256, 0], [257, 1], [65535, 65535]]:
        cases.append(columns("load", offsets=offsets))
    for steps in [[1, 2, 1, 1], [1, 1, 2, 1], [1, 2, 2, 1], [1, 3, 2, 1], [1, 1, 1, 2], [2, 1, 1, 1], [1, 8, 8, 1]]:
        cases.append(columns("load", steps=steps))
        cases.append(columns("load", steps=steps, at=[0, -1, -1, 0]))
    for channels in [1, 4, 8, 12, 24]:
        cases.append(columns("load", channels=channels, bytes=32 * 2 * channels))
    inside = dict(lower=[0, 0], upper=[0, 0], offsets=[])
    cases += [columns("store", **inside), columns("store", **dict(inside, lower=[1, 2], upper=[-1, 0])),
              columns("store", **dict(inside, lower=[-1, 0])), columns("store", **dict(inside, upper=[1, 0])),
              columns("store", **dict(inside, at=[0, 0, 0, 1])), columns("store", **dict(inside, at=[24, 0, 0, 0])),
              columns("store", **dict(inside, at=[0, -1, 0, 0])), columns("store", **dict(inside, at=[0, 8, 7, 1])),
              columns("store", **dict(inside, at=[0, 0, 0, 2])), columns("store", **dict(inside, at=[0, 9, 0, 0]))]
    return cases


def main():
    rng = random.Random(20)
    for case in runs(rng) + interleaves() + interleaved_columns() + specials() + reductions(rng) + edges() + encodes(rng):
        print(line(case))


if __name__ == "__main__":
    main()
