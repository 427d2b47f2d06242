#!/usr/bin/env python3
"""How long an editor waits after a keystroke in a kernel: rust-analyzer, with and without the protocol check.

    tests/benches/keystroke.py FOLDER [--rust-analyzer PROGRAM] [--turns N]

In FOLDER it makes a package with a kernel file for each row, and one with the same kernels as `protocol = trusted(..)`,
which the check leaves out. It types a number into each first kernel in turn, and asks for the file's diagnostics. A
row tells the medians, with the quartiles, and their ratio. Needs the component rust-analyzer, and no GPU;
lab/checker-cost.md has the figures.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]

FILES = [
    "examples/src/bin/tma_copy_pipelined.rs",
    "examples/src/bin/dense_gemm.rs",
    "examples/src/bin/attention.rs",
    "tma-kernels/src/gemm/grouped/kernel.rs",
    "tma-kernels/src/gemm/full.rs",
]

MANIFEST = """[package]
name = "{name}"
version = "0.0.0"
edition = "2024"

[workspace]

[dependencies]
anyhow = "1"
tma-runtime = {{ path = "{root}/tma-runtime" }}

[build-dependencies]
tma-codegen = {{ path = "{root}/codegen/back" }}

[profile.dev.package.tma-front]
opt-level = 1
[profile.dev.package.tma-protocol]
opt-level = 1
[profile.dev.package.tma-codegen]
opt-level = 1
"""

KERNEL = "#[tma_kernel("
TRUSTED = KERNEL + 'protocol = trusted("as before there was a check"), '
TYPED = "\n    let typed = {};"


def package(folder, is_checked):
    """A package with a module for each file, and the text of each with a place to type at."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "src").mkdir(exist_ok=True)
    (folder / "Cargo.toml").write_text(MANIFEST.format(name=folder.name, root=ROOT))
    (folder / "Cargo.lock").write_bytes((ROOT / "Cargo.lock").read_bytes())
    (folder / "build.rs").write_text("fn main() {\n    tma_codegen::build();\n}\n")
    texts = {}
    for path in FILES:
        text = (ROOT / path).read_text()
        # What launches the kernel comes behind it, and has other dependencies.
        text = text.split("\nfn main()")[0] + "\n" if "\nfn main()" in text else text
        head, kernel = text.split(KERNEL, 1)
        # The kernel's body begins behind the first line that ends its head.
        begin = re.search(r"^ *(\) \{|\{)$", kernel, re.MULTILINE).end()
        kernel = kernel[:begin] + TYPED + kernel[begin:]
        text = head + KERNEL + kernel
        name = re.sub(r"\W", "_", path.removesuffix(".rs"))
        texts[path] = (folder / "src" / f"{name}.rs", text if is_checked else text.replace(KERNEL, TRUSTED))
    for place, text in texts.values():
        place.write_text(text.replace(TYPED, TYPED.format(0)))
    (folder / "src/lib.rs").write_text("".join(f"pub mod {place.stem};\n" for place, _ in texts.values()))
    return texts


class Editor:
    """An editor with one package open."""

    def __init__(self, program, folder):
        environment = {**os.environ, "TMA_PTX": "off"}
        log = open(folder / "rust-analyzer.log", "w")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": log}
        self.process = subprocess.Popen([program], cwd=folder, env=environment, **pipes)
        self.number = 0
        self.is_ready = False
        capabilities = {
            "experimental": {"serverStatusNotification": True},
            "textDocument": {"diagnostic": {}},
        }
        options = {"checkOnSave": False, "cachePriming": {"enable": False}}
        initialize = {"processId": None, "rootUri": folder.as_uri(), "capabilities": capabilities}
        self.request("initialize", {**initialize, "initializationOptions": options})
        self.notify("initialized", {})
        while not self.is_ready:
            self.read()

    def send(self, message):
        text = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(text), text))
        self.process.stdin.flush()

    def notify(self, method, params):
        self.send({"method": method, "params": params})

    def read(self):
        """The next message; questions of the server are answered with nothing."""
        length = 0
        while line := self.process.stdout.readline().strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        message = json.loads(self.process.stdout.read(length))
        if message.get("method") == "experimental/serverStatus":
            self.is_ready = message["params"]["quiescent"]
        elif "method" in message and "id" in message:
            self.send({"id": message["id"], "result": None})
        return message

    def request(self, method, params):
        """The answer; asked again where the server has another state by then."""
        while True:
            self.number += 1
            self.send({"id": self.number, "method": method, "params": params})
            while (message := self.read()).get("id") != self.number or "method" in message:
                pass
            if "error" not in message:
                return message["result"]
            if message["error"]["code"] not in (-32801, -32802):
                raise RuntimeError(message["error"]["message"])

    def open(self, place, text):
        document = {"uri": place.as_uri(), "languageId": "rust", "version": 0, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})
        return self.diagnostics(place)

    def diagnostics(self, place):
        report = self.request("textDocument/diagnostic", {"textDocument": {"uri": place.as_uri()}})
        return [item["message"] for item in report["items"]]

    def type(self, place, version, text):
        document = {"uri": place.as_uri(), "version": version}
        self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})
        return self.diagnostics(place)


def seconds(editor, place, text, turns):
    """How long each keystroke takes, after two that do not count."""
    found = editor.open(place, text.replace(TYPED, TYPED.format(0)))
    times = []
    for turn in range(1, turns + 3):
        start = time.monotonic()
        found = editor.type(place, turn, text.replace(TYPED, TYPED.format(turn)))
        times.append(time.monotonic() - start)
    errors = [message for message in found if "TMA" in message or "macro" in message]
    assert not errors, f"{place}: {errors[0]}"
    return times[2:]


def told(times):
    low, middle, high = (1000 * x for x in statistics.quantiles(times, n=4))
    return f"{middle:7.1f} ({low:.1f} to {high:.1f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rust-analyzer", default="rust-analyzer")
    parser.add_argument("--turns", type=int, default=20)
    arguments = parser.parse_args()
    editors = {}
    for name, is_checked in [("checked", True), ("trusted", False)]:
        folder = (arguments.folder / name).resolve()
        texts = package(folder, is_checked)
        editors[name] = (Editor(arguments.rust_analyzer, folder), texts)
    print("ms after a keystroke: with the check, without, ratio")
    for path in FILES:
        times = {name: seconds(editor, *texts[path], arguments.turns) for name, (editor, texts) in editors.items()}
        ratio = statistics.median(times["checked"]) / statistics.median(times["trusted"])
        print(f"{told(times['checked'])} {told(times['trusted'])} {ratio:6.2f}  {path}", flush=True)


if __name__ == "__main__":
    main()
