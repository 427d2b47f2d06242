#!/usr/bin/env python3
"""Makes the corpus: PTX from the sources, and what a GPU gives for each case.

    generate.py compile [TOPIC ..]    sources to PTX: wants nvcc 13 on the path, and Triton 3.6; no GPU
    generate.py run [TOPIC ..]        PTX to outputs: wants an H100 or H200 and its driver; nothing else

A topic is a file without its ending, as `cuda/scan`; without any, all of them are made. The JSON file beside each source
lists its cases; README.md says what its fields mean.
"""

import importlib.util
import json
import re
import struct
import subprocess
import sys
import traceback
from pathlib import Path

import device

HERE = Path(__file__).resolve().parent
NVCC = ["nvcc", "-gencode=arch=compute_90a,code=compute_90a", "-ptx", "-O3", "-lineinfo"]


def cases(topic):
    return json.loads((HERE / f"{topic}.json").read_text())


# PTX


def clean(ptx):
    """Without debug sections, without what names folders of the machine, and each line's own place only."""
    ptx = re.sub(r"\n\s*\.section\s+\.debug_\w+\s*\{.*?\n\s*\}", "", ptx, flags=re.DOTALL)
    ptx = re.sub(r'(\.file\s+\d+\s+)"[^"]*?([^"/]*)".*', r'\1"\2"', ptx)
    ptx = re.sub(r"(\.loc\s+\d+ \d+ \d+),.*", r"\1", ptx)
    for folder in set(re.findall(r"_INTERNAL_([0-9a-f]{8})_", ptx)):
        ptx = ptx.replace(folder, "00000000")
    lines = [line.rstrip() for line in ptx.splitlines()]
    return "\n".join(lines).strip("\n\0") + "\n"


def compile_cuda(topic):
    source = HERE / f"{topic}.cu"
    return subprocess.run([*NVCC, source.name, "-o", "-"], cwd=source.parent, check=True, stdout=subprocess.PIPE).stdout.decode()


def compile_triton(topic):
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    [case] = cases(topic)
    spec = importlib.util.spec_from_file_location(case["kernel"], HERE / f"{topic}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernel = getattr(module, case["kernel"])
    types = case["triton"]
    constants = {name: ty for name, ty in types.items() if isinstance(ty, int)}
    signature = {name: "constexpr" if name in constants else ty for name, ty in types.items()}
    aligned = {(i,): [["tt.divisibility", 16]] for i, ty in enumerate(signature.values()) if ty.startswith("*")}
    options = {"num_warps": case["block"][0] // 32}
    compiled = triton.compile(ASTSource(kernel, signature, constants, aligned), GPUTarget("cuda", 90, 32), options)
    assert compiled.metadata.shared == case.get("shared", 0), f"it uses {compiled.metadata.shared} bytes of shared memory"
    return compiled.asm["ptx"]


def compile_topic(topic):
    ptx = compile_triton(topic) if topic.startswith("triton/") else compile_cuda(topic)
    (HERE / f"{topic}.ptx").write_text(clean(ptx))


# Inputs: as `foreign/inputs.rs` makes them.

SIZES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "i32": 4, "i64": 8, "f16": 2, "bf16": 2, "f32": 4, "f64": 8}
FORMATS = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "i32": "i", "i64": "q", "f16": "e", "f32": "f", "f64": "d"}


def mixed(i):
    """A word that looks random."""
    x = ((i ^ 0x9E3779B9) * 0x85EBCA6B) & 0xFFFFFFFF
    return (((x ^ (x >> 13)) * 0xC2B2AE35) & 0xFFFFFFFF) ^ (x >> 16)


def number(ty, value):
    if ty == "bf16":
        # What the manifest asks for is exact.
        return struct.pack("<f", value)[2:]
    return struct.pack("<" + FORMATS[ty], value if ty[0] == "f" else int(value))


def contents(index, buffer):
    ty, count, fill = buffer["type"], buffer["count"], buffer.get("fill")
    size = SIZES[ty] * count
    if fill is None:
        return bytes(size)
    word = lambda i: mixed(i + (index << 20))
    if fill == "bits":
        return b"".join(struct.pack("<I", word(i)) for i in range(size // 4 + 1))[:size]
    if isinstance(fill[0], str):
        return b"".join(bytes.fromhex(fill[word(i) % len(fill)])[::-1] for i in range(count))
    start, end, step = fill
    steps = int((end - start) / step)
    return b"".join(number(ty, start + word(i) % steps * step) for i in range(count))


# Outputs


def argument(gpu, arg, buffers, addresses):
    """The bytes of an argument, and their alignment."""
    if isinstance(arg, str):
        return struct.pack("<Q", addresses[arg]), 8
    if "hex" in arg:
        return bytes.fromhex(arg["hex"]), 16
    if "map" in arg:
        ty = arg.get("as", buffers[arg["map"]]["type"])
        return gpu.tensor_map(ty, SIZES.get(ty, 4), addresses[arg["map"]], arg), 64
    [(ty, value)] = arg.items()
    return number(ty, value), 8


def run_case(gpu, module, case):
    buffers = {buffer["name"]: buffer for buffer in case["buffers"]}
    addresses = {}
    for index, buffer in enumerate(case["buffers"]):
        addresses[buffer["name"]] = gpu.upload(contents(index, buffer))
    args = [argument(gpu, arg, buffers, addresses) for arg in case["args"]]
    printed = gpu.launch(module, case, args)
    compared = [name for name, buffer in buffers.items() if "compare" in buffer]
    return b"".join(gpu.download(addresses[name], SIZES[buffers[name]["type"]] * buffers[name]["count"]) for name in compared), printed


def run_topic(topic):
    gpu = device.Device()
    outputs, texts = b"", b""
    for case in cases(topic):
        # Variables of a module keep their values: each case has a module of its own.
        module = gpu.load((HERE / f"{topic}.ptx").read_bytes())
        try:
            output, printed = run_case(gpu, module, case)
        except Exception as error:
            raise RuntimeError(case.get("name", case["kernel"])) from error
        outputs += output
        texts += printed if case.get("prints") else b""
    (HERE / f"{topic}.out").write_bytes(outputs)
    if texts:
        (HERE / f"{topic}.txt").write_bytes(texts)


def main(what, *topics):
    topics = topics or sorted(str(path.relative_to(HERE).with_suffix("")) for path in HERE.glob("*/*.json"))
    if what == "compile":
        return sum(attempt(topic, compile_topic, topic) for topic in topics)
    if what == "run" and len(topics) == 1:
        return attempt(topics[0], run_topic, topics[0])
    if what == "run":
        # A process for each: after an illegal access no launch of the same process works.
        command = [sys.executable, __file__, "run"]
        return sum(attempt(topic, subprocess.run, [*command, topic], check=True, timeout=60) for topic in topics)
    raise SystemExit(__doc__)


def attempt(topic, work, *args, **options):
    """Does the work, and says whether it failed: what is wrong with one topic does not keep others from being made."""
    try:
        work(*args, **options)
        return 0
    except Exception:
        print(f"{topic}:", file=sys.stderr)
        traceback.print_exc()
        return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) > 1 else __doc__)
