#!/usr/bin/env python3
"""PyTorch's convolutions (cuDNN), in rounds with every tile of `tma_kernels::conv`.

    cargo run -p tma-codegen --example ptx -- --target sm_90a --out PTX tma-kernels/src/conv/kernel.rs
    ./conv_rivals.py --ptx PTX

The kernels are loaded from their PTX, with the arguments that `conv/launch.rs` passes.
"""

import argparse
import ctypes as C
import os

import rounds

try:
    import torch
    import torch.nn.functional as F
except ModuleNotFoundError as error:
    rounds.missing(f"there is no {error.name}", "install PyTorch for CUDA: `pip install torch`")

# Pixels and filters of a block, as in `conv/choose.rs`.
TILES = {"wide": (128, 256), "tall": (192, 128), "square": (128, 128), "low": (64, 128), "narrow": (128, 64),
         "small": (64, 64)}
# Images, rows and columns, channels, filters, taps, stride.
SHAPES = [(64, 56, 64, 64, 3, 1), (64, 28, 128, 128, 3, 1), (64, 14, 256, 256, 3, 1), (64, 7, 512, 512, 3, 1),
          (64, 56, 128, 128, 3, 2), (64, 28, 256, 256, 3, 2), (64, 56, 64, 256, 1, 1), (64, 56, 256, 64, 1, 1),
          (64, 28, 512, 128, 1, 1), (64, 14, 1024, 256, 1, 1), (64, 7, 2048, 512, 1, 1), (16, 28, 128, 128, 5, 1),
          (256, 56, 64, 64, 3, 1), (256, 28, 128, 128, 3, 1), (256, 14, 256, 256, 3, 1), (256, 7, 512, 512, 3, 1),
          (32, 14, 256, 256, 3, 1), (8, 7, 512, 512, 3, 1), (1, 56, 64, 64, 3, 1)]

BF16, SWIZZLE_128, L2_256 = 9, 3, 3  # CUtensorMapDataType, CUtensorMapSwizzle, CUtensorMapL2promotion
SHARED_MEMORY = 232448  # the most that a block can have: more than any of them needs
LOG_BUFFER, LOG_SIZE = 5, 6  # CUjit_option
DYNAMIC_SHARED = 8  # CUfunction_attribute
DEPENDENT = 6  # CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION

cuda = None  # the driver's library


class Attribute(C.Structure):
    _fields_ = [("id", C.c_int), ("padding", C.c_int), ("value", C.c_uint * 16)]


class Launch(C.Structure):
    _fields_ = [(name, C.c_uint) for name in ("gx", "gy", "gz", "bx", "by", "bz", "shared")] + [
        ("stream", C.c_void_p), ("attributes", C.POINTER(Attribute)), ("count", C.c_uint)]


def check(status, what):
    if status:
        raise RuntimeError(f"{what}: CUDA error {status}")


def array(kind, values):
    return (kind * len(values))(*values)


def descriptor():
    """128 bytes at a multiple of 64, and their address."""
    memory = (C.c_uint8 * 192)()
    return memory, C.addressof(memory) + -C.addressof(memory) % 64


def tiled(tensor, extents, strides, box):
    """A map of boxes; innermost first, strides in bytes."""
    memory, address = descriptor()
    ones = array(C.c_uint32, [1] * len(extents))
    check(cuda.cuTensorMapEncodeTiled(
        C.c_void_p(address), BF16, len(extents), C.c_void_p(tensor.data_ptr()), array(C.c_uint64, extents),
        array(C.c_uint64, strides), array(C.c_uint32, box), ones, 0, SWIZZLE_128, L2_256, 0), "cuTensorMapEncodeTiled")
    return memory, address


def columns(tensor, corners, stride, pixels):
    """A map of columns of pixels, of a contiguous tensor: images, rows, columns, channels."""
    memory, address = descriptor()
    images, height, width, channels = tensor.shape
    strides = [2 * channels, 2 * channels * width, 2 * channels * width * height]
    check(cuda.cuTensorMapEncodeIm2col(
        C.c_void_p(address), BF16, 4, C.c_void_p(tensor.data_ptr()),
        array(C.c_uint64, [channels, width, height, images]), array(C.c_uint64, strides),
        array(C.c_int, [corners[0]] * 2), array(C.c_int, [corners[1]] * 2), C.c_uint32(64), C.c_uint32(pixels),
        array(C.c_uint32, [1, stride, stride, 1]), 0, SWIZZLE_128, L2_256, 0), "cuTensorMapEncodeIm2col")
    return memory, address


class Kernel:
    """The instance of a tile."""

    def __init__(self, folder, tile):
        self.pixels, self.filters = TILES[tile]
        self.threads = 128 + 2 * self.pixels
        name = f"forward__bf16_{tile}"
        with open(os.path.join(folder, f"{name}.ptx"), "rb") as file:
            image = file.read() + b"\0"
        module, function, log = C.c_void_p(), C.c_void_p(), C.create_string_buffer(8192)
        options, values = array(C.c_int, [LOG_BUFFER, LOG_SIZE]), array(C.c_void_p, [C.addressof(log), 8192])
        check(cuda.cuModuleLoadDataEx(C.byref(module), image, 2, options, values), log.value.decode() or name)
        check(cuda.cuModuleGetFunction(C.byref(function), module, name.encode()), name)
        check(cuda.cuFuncSetAttribute(function, DYNAMIC_SHARED, SHARED_MEMORY), name)
        self.function = function

    def bind(self, images, filters, output, stride):
        """A closure that queues the convolution."""
        count, taps, _, channels = filters.shape
        padding, (_, height, width, _) = taps // 2, output.shape
        maps = [columns(images, [-padding, padding - (taps - 1)], stride, self.pixels),
                # Channels, filters, columns and rows of taps.
                tiled(filters, [channels, count, taps, taps],
                      [2 * taps * taps * channels, 2 * channels, 2 * taps * channels], [64, self.filters, 1, 1]),
                columns(output, [0, 0], 1, 64)]
        pixels = output.numel() // count
        tiles = -(-pixels // self.pixels) * -(-count // self.filters)
        most = torch.cuda.get_device_properties(0).multi_processor_count
        blocks = -(-tiles // -(-tiles // most))
        none = [C.c_uint64(0), C.c_uint64(0)]
        scalars = [C.c_uint32(x) for x in (pixels, height, width, count, channels, taps, taps, stride, stride,
                                           padding, padding, 1, 1, 0)]
        places = [maps[0][1], maps[1][1], *map(C.addressof, none), maps[2][1], *map(C.addressof, scalars)]
        arguments = array(C.c_void_p, places)
        attributes = (Attribute * 1)()
        attributes[0].id, attributes[0].value[0] = DEPENDENT, 1

        def launch(keep=(maps, none, scalars)):
            stream = C.c_void_p(torch.cuda.current_stream().cuda_stream)
            how = Launch(blocks, 1, 1, self.threads, 1, 1, SHARED_MEMORY, stream, attributes, 1)
            check(cuda.cuLaunchKernelEx(C.byref(how), self.function, arguments, None), "cuLaunchKernelEx")

        return launch


def race(kernels, shape, args):
    count, extent, channels, filters, taps, stride = shape
    normal = lambda *extents: torch.randn(*extents, device="cuda", dtype=torch.bfloat16)
    images, weights = normal(count, extent, extent, channels), normal(filters, taps, taps, channels)
    of_images, of_weights = images.permute(0, 3, 1, 2), weights.permute(0, 3, 1, 2)
    theirs = lambda: F.conv2d(of_images, of_weights, None, stride, taps // 2)
    wanted = theirs().permute(0, 2, 3, 1)
    operations = 2 * wanted.numel() * channels * taps * taps
    contestants = [rounds.Theirs("cudnn", theirs, operations, args.slice_ms)]
    for tile, kernel in kernels.items():
        if kernel.filters > max(64, filters):
            continue
        output = torch.full(wanted.shape, float("nan"), device="cuda", dtype=torch.bfloat16)
        launch = kernel.bind(images, weights, output, stride)
        launch()
        # bf16 rounds by 2^-9, and sums of either are about the root of how many are added.
        close = torch.allclose(output.float(), wanted.float(), rtol=2**-7, atol=(channels * taps * taps) ** 0.5 / 100)
        if not close:
            raise RuntimeError(f"{tile} is wrong at {shape}")
        contestants.append(rounds.Theirs(tile, launch, operations, args.slice_ms))
    rounds.race("conv/bf16", shape, contestants, args.rounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ptx", required=True, help="the folder with the kernels' PTX")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--slice-ms", type=float, default=50)
    args = parser.parse_args()
    if not torch.cuda.is_available():
        rounds.missing("PyTorch sees no GPU", "run this on a machine with one, with PyTorch for CUDA")
    global cuda
    torch.zeros(1, device="cuda")  # makes the context
    cuda = C.CDLL("libcuda.so.1")
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(1)
    kernels = {tile: Kernel(args.ptx, tile) for tile in TILES}
    for shape in SHAPES:
        race(kernels, shape, args)


if __name__ == "__main__":
    main()
