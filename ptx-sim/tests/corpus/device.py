"""A GPU by the driver's own functions, so that it gets the very PTX and the very parameters of the simulator."""

import ctypes
import os
import sys
import tempfile
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p

# CUtensorMapDataType, CUtensorMapSwizzle, CUtensorMapFloatOOBfill.
ELEMENTS = ["u8", "u16", "u32", "i32", "u64", "i64", "f16", "f32", "f64", "bf16", "f32_ftz", "tf32", "tf32_ftz"]
SWIZZLES = {None: 0, 32: 1, 64: 2, 128: 3}
OUTSIDE = {None: 0, "nan": 1}
CLUSTER_DIMENSION = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION


class Attribute(ctypes.Structure):
    """CUlaunchAttribute with the cluster's extents."""

    _fields_ = [("id", c_int), ("pad", c_int), ("extents", c_uint * 3), ("rest", ctypes.c_char * 52)]


class Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = [("grid", c_uint * 3), ("block", c_uint * 3), ("shared", c_uint), ("stream", c_void_p),
                ("attributes", ctypes.POINTER(Attribute)), ("count", c_uint)]


def extents(of, length=3):
    """Numbers with ones after them."""
    return (c_uint * length)(*of, *[1] * (length - len(of)))


def aligned(content, alignment):
    """Host memory with these bytes, at a multiple of the alignment; and what keeps it alive."""
    memory = ctypes.create_string_buffer(len(content) + alignment)
    at = -ctypes.addressof(memory) % alignment + ctypes.addressof(memory)
    ctypes.memmove(at, content, len(content))
    return at, memory


class Device:
    def __init__(self):
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        context = c_void_p()
        self.call("cuDevicePrimaryCtxRetain", byref(context), 0)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *args):
        code = getattr(self.driver, name)(*args)
        if code:
            text = c_char_p()
            self.driver.cuGetErrorString(code, byref(text))
            raise RuntimeError(f"{name}: {code}, {(text.value or b'').decode()}")

    def load(self, ptx):
        log = ctypes.create_string_buffer(8192)
        # CU_JIT_ERROR_LOG_BUFFER and its size.
        options, values = (c_int * 2)(5, 6), (c_void_p * 2)(ctypes.addressof(log), len(log))
        module = c_void_p()
        try:
            self.call("cuModuleLoadDataEx", byref(module), ptx + b"\0", 2, options, values)
        except RuntimeError as error:
            raise RuntimeError(log.value.decode()) from error
        return module

    def upload(self, content):
        address = c_uint64()
        self.call("cuMemAlloc_v2", byref(address), c_size_t(len(content)))
        self.call("cuMemcpyHtoD_v2", address, content, c_size_t(len(content)))
        return address.value

    def download(self, address, size):
        content = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH_v2", content, c_uint64(address), c_size_t(size))
        return content.raw

    def tensor_map(self, element, size, address, wanted):
        """The descriptor's bytes. The manifest has the outermost dimension first, the driver the innermost."""
        extents, box = wanted["extents"][::-1], wanted["box"][::-1]
        rank = len(extents)
        strides, dense = [], 1
        for extent, given in zip(extents, wanted.get("strides", [None] * (rank - 1))[::-1]):
            dense = given or dense * extent
            strides.append(dense * size)
        place, memory = aligned(bytes(128), 64)
        self.call(
            "cuTensorMapEncodeTiled", c_void_p(place), ELEMENTS.index(element), rank, c_uint64(address),
            (c_uint64 * rank)(*extents), (c_uint64 * rank)(*strides, 0), (c_uint * rank)(*box),
            (c_uint * rank)(*wanted.get("steps", [1] * rank)[::-1]), 0, SWIZZLES[wanted.get("swizzle")], 0,
            OUTSIDE[wanted.get("outside")],
        )
        return ctypes.string_at(place, 128)

    def launch(self, module, case, args):
        """Runs a kernel to its end, and gives what it printed."""
        function = c_void_p()
        self.call("cuModuleGetFunction", byref(function), module, case["kernel"].encode())
        places = [aligned(*arg) for arg in args]
        params = (c_void_p * len(places))(*[at for at, _ in places])
        cluster = Attribute(CLUSTER_DIMENSION, 0, extents(case.get("cluster", [])), b"")
        config = Config(extents(case.get("grid", [])), extents(case["block"]), case.get("shared", 0), None,
                        ctypes.pointer(cluster), int("cluster" in case))
        with tempfile.TemporaryFile() as file:
            sys.stdout.flush()
            stdout = os.dup(1)
            os.dup2(file.fileno(), 1)
            try:
                self.call("cuLaunchKernelEx", byref(config), function, params, None)
                self.call("cuCtxSynchronize")
                ctypes.CDLL(None).fflush(None)
            finally:
                os.dup2(stdout, 1)
                os.close(stdout)
            file.seek(0)
            return file.read()
