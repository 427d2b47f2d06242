"""Runs the probe's cases on a GPU through the driver, each worker in a process of its own: a fault ends only that.

`python3 run.py CASES RESULTS` reads lines of `cases.py` and writes, for each case, what the GPU did: the bytes of shared memory after a
load (late if its mbarrier's phase did not complete with the bytes it was told), those of global memory after a store,
exclusive or with what they were.
"""

import ctypes
import lzma
import multiprocessing
import pickle
import struct
import sys

import cases
import kernels

ELEMENTS = ["u8", "u16", "u32", "i32", "u64", "i64", "f16", "f32", "f64", "bf16", "f32ftz", "tf32", "tf32ftz"]
SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
INTERLEAVES = {0: 0, 16: 1, 32: 2}
WORKERS = 8


def bits(word):
    word = word * 0x9e3779b1 & 0xffffffff
    word ^= word >> 15
    return word * 0x85ebca77 & 0xffffffff


# Zero, one, the greatest number, infinity, NaNs, subnormal numbers, and what lies between two numbers of TF32.
SPECIAL = [0, 0x3f800000, 0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fc00000, 0x7fffffff, 0x7f801000, 1, 0x7fffff, 0x800fff,
           0x3f801000, 0x3f803000, 0x3f800fff, 0x3f801001, 0x3f802fff, 0x3fffffff, 0x3ffff000, 0x1000, 0x2000, 0x7f7ff000,
           0x7c017c01, 0x00010001, 0x7e007e00, 0x7bff7bff]


def special(word):
    return SPECIAL[word % len(SPECIAL)] ^ word // len(SPECIAL) % 2 << 31


def pattern(kind):
    if kind == "index":
        return b"".join(struct.pack("<H", i & 0xffff) for i in range(cases.BUFFER // 2))
    if kind == "special":
        return b"".join(struct.pack("<I", special(i)) for i in range(cases.BUFFER // 4))
    return b"".join(struct.pack("<I", bits(i + 77)) for i in range(cases.BUFFER // 4))


class Gpu:
    def __init__(self):
        self.cu = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device, self.context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)
        self.call("cuCtxSetCurrent", self.context)
        self.module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(self.module), kernels.text().encode() + b"\0")
        self.tensor, self.out = ctypes.c_uint64(), ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(self.tensor), ctypes.c_size_t(cases.BUFFER))
        self.call("cuMemAlloc_v2", ctypes.byref(self.out), ctypes.c_size_t(cases.BUFFER))
        self.patterns = {kind: pattern(kind) for kind in ["index", "bits", "special"]}

    def ask(self, name, *args):
        return getattr(self.cu, name)(*args)

    def call(self, name, *args):
        status = self.ask(name, *args)
        if status:
            raise RuntimeError(f"{name}: {status}")

    def encode(self, case):
        array = lambda kind, values: (kind * max(1, len(values)))(*values)
        whole = ctypes.create_string_buffer(256)
        address = ctypes.addressof(whole)
        place = (address + 63) // 64 * 64
        shape = [ELEMENTS.index(case["element"]), len(case["extents"]),
                 ctypes.c_void_p(self.tensor.value + case["offset"]), array(ctypes.c_uint64, case["extents"]),
                 array(ctypes.c_uint64, case["strides"])]
        last = [array(ctypes.c_uint32, case["steps"]), INTERLEAVES[case["interleave"]], SWIZZLES[case["swizzle"]], 0,
                int(case["fill"] == "nan")]
        if case["mode"] == "tiled":
            status = self.ask("cuTensorMapEncodeTiled", ctypes.c_void_p(place), *shape,
                              array(ctypes.c_uint32, case["box"]), *last)
        else:
            status = self.ask("cuTensorMapEncodeIm2col", ctypes.c_void_p(place), *shape,
                              array(ctypes.c_int, case["lower"]), array(ctypes.c_int, case["upper"]),
                              case["channels"], case["pixels"], *last)
        return status, whole.raw[place - address:place - address + 128]

    def run(self, case):
        status, descriptor = self.encode(case)
        if status or case["kind"] == "encode":
            return dict(encode=status)
        mode = "tile" if case["mode"] == "tiled" else "im2col" if case["kind"] == "load" else "im2col_no_offs"
        function = ctypes.c_void_p()
        name = case.get("kernel") or f"{case['kind']}_{mode}_{len(case['at'])}d"
        self.call("cuModuleGetFunction", ctypes.byref(function), self.module, name.encode())
        self.call("cuMemcpyHtoD_v2", self.tensor, self.patterns[case["data"]], ctypes.c_size_t(cases.BUFFER))
        self.call("cuMemsetD8_v2", self.out, 0, ctypes.c_size_t(cases.BUFFER))
        coordinates = (case["at"] + [0] * 5)[:5]
        offsets = (case.get("offsets", []) + [0] * 3)[:3]
        values = [ctypes.create_string_buffer(descriptor, 128), self.out, ctypes.c_uint32(case["bytes"]),
                  ctypes.c_uint32(case["place"])]
        values += [ctypes.c_int32(value) for value in coordinates] + [ctypes.c_uint32(value) for value in offsets]
        params = (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
        self.call("cuLaunchKernel", function, 1, 1, 1, 32, 1, 1, 0, None, params, None)
        status = self.ask("cuCtxSynchronize")
        if status:
            return dict(encode=0, fault=status)
        read = ctypes.create_string_buffer(cases.BUFFER)
        if case["kind"] != "load":
            self.call("cuMemcpyDtoH_v2", read, self.tensor, ctypes.c_size_t(cases.BUFFER))
            before = self.patterns[case["data"]]
            return dict(encode=0, data=bytes(old ^ new for old, new in zip(before, read.raw)))
        self.call("cuMemcpyDtoH_v2", read, self.out, ctypes.c_size_t(cases.BUFFER))
        late, = struct.unpack_from("<I", read.raw, kernels.DUMP)
        return dict(encode=0, data=read.raw[:kernels.DUMP], late=late)


def work(jobs, results):
    gpu = Gpu()
    while True:
        job = jobs.get()
        if job is None:
            return
        index, text = job
        result = gpu.run(cases.parse(text))
        results.put((index, result))
        if "fault" in result:
            results.close()
            results.join_thread()
            return  # the context is gone


def run_all(lines):
    jobs, results = multiprocessing.Queue(), multiprocessing.Queue()
    for job in enumerate(lines):
        jobs.put(job)
    for _ in range(WORKERS):
        jobs.put(None)
    start = lambda: multiprocessing.Process(target=work, args=(jobs, results))
    workers = [start() for _ in range(WORKERS)]
    for worker in workers:
        worker.start()
    found = {}
    while len(found) < len(lines):
        try:
            index, result = results.get(timeout=60)
        except Exception:
            print("no answer for a minute;", len(lines) - len(found), "cases are missing")
            break
        found[index] = result
        if "fault" in result:
            workers.append(start())
            workers[-1].start()
    for worker in workers:
        worker.kill()
    return found


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        lines = [line for line in file.read().splitlines() if line and not line.startswith("#")]
    with lzma.open(sys.argv[2], "wb") as file:
        pickle.dump(run_all(lines), file)
