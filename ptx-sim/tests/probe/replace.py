"""What `tensormap.replace` makes of a descriptor's bits, compared with what the driver encodes for the same parameters."""

import ctypes

import cases
import run

FIELDS = [("global_address", None, [], "b64"), ("rank", None, [], "b32"), ("box_dim", 0, [], "b32"),
          ("box_dim", 2, [], "b32"), ("global_dim", 0, [], "b32"), ("global_dim", 2, [], "b32"),
          ("global_stride", 0, [], "b64"), ("global_stride", 1, [], "b64"), ("element_stride", 1, [], "b32"),
          ("elemtype", None, range(13), "b32"), ("interleave_layout", None, range(3), "b32"),
          ("swizzle_mode", None, range(4), "b32"), ("fill_mode", None, range(2), "b32")]


def name(field, ordinal, number):
    return "_".join([field] + [str(x) for x in (ordinal, number) if x is not None])


def kernel(field, ordinal, number, type):
    operands = ["[%rd0]"] + [str(x) for x in (ordinal, number) if x is not None]
    operands += [] if number is not None else ["%rd1" if type == "b64" else "%r0"]
    return f""".visible .entry {name(field, ordinal, number)}(.param .u64 map, .param .u64 value)
{{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd0, [map];
    ld.param.u64 %rd1, [value];
    cvt.u32.u64 %r0, %rd1;
    tensormap.replace.tile.{field}.global.b1024.{type} {", ".join(operands)};
    ret;
}}
"""


def text():
    parts = [".version 8.3\n.target sm_90a\n.address_size 64\n"]
    for field, ordinal, numbers, type in FIELDS:
        parts += [kernel(field, ordinal, number, type) for number in numbers or [None]]
    return "\n".join(parts)


def main():
    gpu = run.Gpu()
    module = ctypes.c_void_p()
    gpu.call("cuModuleLoadData", ctypes.byref(module), text().encode() + b"\0")
    base = dict(kind="load", mode="tiled", element="u32", extents=[64, 32, 16], strides=[512, 32768], box=[4, 8, 4],
                steps=[1, 1, 1], interleave=0, swizzle=0, fill="zeros", offset=0)

    def compare(field, ordinal, number, value, **changes):
        status, before = gpu.encode(base)
        wanted_status, wanted = gpu.encode({**base, **changes})
        gpu.call("cuMemcpyHtoD_v2", gpu.out, before, ctypes.c_size_t(128))
        function = ctypes.c_void_p()
        gpu.call("cuModuleGetFunction", ctypes.byref(function), module, name(field, ordinal, number).encode())
        value = ctypes.c_uint64(value)
        params = (ctypes.c_void_p * 2)(ctypes.addressof(gpu.out), ctypes.addressof(value))
        gpu.call("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, None, params, None)
        status = gpu.ask("cuCtxSynchronize")
        after = ctypes.create_string_buffer(128)
        gpu.call("cuMemcpyDtoH_v2", after, gpu.out, ctypes.c_size_t(128))
        differ = [i for i in range(128) if after.raw[i] != wanted[i]]
        print(name(field, ordinal, number), value.value, changes, "encode", wanted_status, "run", status, "bytes that differ", differ,
              "changed", [(i, before[i], after.raw[i]) for i in range(128) if after.raw[i] != before[i]])

    compare("global_address", None, None, gpu.tensor.value + 256, offset=256)
    compare("rank", None, None, 1, extents=[64, 32], strides=[512], box=[4, 8], steps=[1, 1])
    compare("rank", None, None, 2)
    compare("box_dim", 0, None, 16, box=[16, 8, 4])
    compare("box_dim", 2, None, 7, box=[4, 8, 7])
    compare("global_dim", 0, None, 60, extents=[60, 32, 16])
    compare("global_dim", 2, None, 3, extents=[64, 32, 3])
    compare("global_stride", 0, None, 1024, strides=[1024, 32768])
    compare("global_stride", 1, None, 65536, strides=[512, 65536])
    compare("element_stride", 1, None, 3, steps=[1, 3, 1])
    for number, element in enumerate(["u8", "u16", "u32", "i32", "u64", "i64", "f16", "f32", "f32ftz", "f64", "bf16",
                                      "tf32", "tf32ftz"]):
        compare("elemtype", None, number, 0, element=element, box=[4 if cases.SIZES[element] > 2 else 16, 8, 4])
        compare("elemtype", None, number, 0, element=element)
    for number, layout in enumerate([0, 16, 32]):
        compare("interleave_layout", None, number, 0, interleave=layout, swizzle=32 if layout == 32 else 0)
    for number, swizzle in enumerate([0, 32, 64, 128]):
        compare("swizzle_mode", None, number, 0, swizzle=swizzle)
    compare("fill_mode", None, 1, 0, element="f32", fill="nan")


if __name__ == "__main__":
    main()
