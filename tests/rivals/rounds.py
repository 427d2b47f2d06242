"""Rounds of contestants, of which some run in another process: `tma-gpu-bench --serve`.

A slice is many launches of one contestant one after the other, as in `tests/src/gpu/bench/slices.rs`: recorded as a
CUDA graph, a quarter of them before those that count, clock and power read in the middle. In a round each contestant
has one slice, in an order that changes; ratios are taken within a round.
"""

import json
import math
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

try:
    import torch
except ModuleNotFoundError:
    torch = None  # which the scripts say

PER_GRAPH = 50


class Ours:
    """A kernel of this repository, which another process runs on request."""

    def __init__(self, program, name, shape, slice_ms):
        self.name = name
        self.request = f"{name} {'x'.join(map(str, shape))}\n"
        command = [program, "--serve", "--slice-ms", str(slice_ms)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.slice()  # checked, and recorded

    def slice(self):
        self.process.stdin.write(self.request)
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the program for {self.name} has ended")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"{self.name}: {answer['error']}")
        return answer

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Theirs:
    """What `launch` queues on the current stream, `operations` each time."""

    def __init__(self, name, launch, operations, slice_ms):
        self.name, self.operations, self.slice_ms = name, operations, slice_ms
        self.milliseconds(launch, 2)
        one = self.milliseconds(launch, 4) / 4
        wanted = max(1, math.ceil(slice_ms / one))
        self.launches = min(wanted, PER_GRAPH)
        self.repetitions = math.ceil(wanted / self.launches)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            for _ in range(self.launches):
                launch()

    @staticmethod
    def milliseconds(launch, launches):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(launches):
            launch()
        end.record()
        end.synchronize()
        return start.elapsed_time(end)

    def slice(self):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        with ThreadPoolExecutor() as other:  # this thread may wait for room in the queue
            state = other.submit(state_after, self.slice_ms * 0.75 / 1e3)
            for _ in range(math.ceil(self.repetitions / 4)):
                self.graph.replay()
            start.record()
            for _ in range(self.repetitions):
                self.graph.replay()
            end.record()
            end.synchronize()
        launches = self.launches * self.repetitions
        return {"tflops": self.operations * launches / start.elapsed_time(end) / 1e9, **state.result()}

    def close(self):
        self.graph.reset()


def state_after(seconds):
    """Clock in MHz and power in W after so many seconds, if NVML's Python package is there."""
    time.sleep(seconds)
    try:
        return {"mhz": torch.cuda.clock_rate(), "watts": torch.cuda.power_draw() / 1e3}
    except (ModuleNotFoundError, RuntimeError):
        return {}


def order(number, count):
    """The contestants in a round: those of `turns` in tma-runtime/src/tune/rounds.rs."""
    turns = range(count) if number // count % 2 == 0 else reversed(range(count))
    places = [count - turn // 2 if turn % 2 == 0 else turn // 2 + 1 for turn in turns]
    return [(number + place) % count for place in places]


def spread(values):
    """The median, and the distance from the 10th to the 90th percentile as a part of it."""
    values = sorted(values)
    at = lambda part: values[round((len(values) - 1) * part)]
    return at(0.5), (at(0.9) - at(0.1)) / at(0.5)


def race(benchmark, shape, contestants, rounds, notes=None):
    """Runs all rounds, and prints and returns a JSON line a contestant, with ratios to all others."""
    slices = {contestant.name: [] for contestant in contestants}
    for contestant in contestants:
        contestant.slice()  # warms the chip up
    for number in range(rounds):
        for index in order(number, len(contestants)):
            slices[contestants[index].name].append(contestants[index].slice())
    speeds = {name: [each["tflops"] for each in all_] for name, all_ in slices.items()}
    lines = []
    for name, all_ in slices.items():
        median, width = spread(speeds[name])
        line = {"benchmark": f"{benchmark}/{name}", "shape": list(shape), "tflops": round(median, 4),
                "spread": round(width, 4), **(notes or {})}
        for field in ("mhz", "watts", "celsius"):
            found = [each[field] for each in all_ if field in each]
            if found:
                line[field] = spread(found)[0]
        line["ratios"] = {}
        for other, to in speeds.items():
            if other != name:
                each = [a / b for a, b in zip(speeds[name], to)]
                middle, width = spread(each)
                line["ratios"][other] = {"median": round(middle, 4), "spread": round(width, 4),
                                         "rounds": [round(ratio, 4) for ratio in each]}
        line["rounds"] = [round(speed, 4) for speed in speeds[name]]
        print(json.dumps(line), file=sys.__stdout__, flush=True)
        lines.append(line)
    for contestant in contestants:
        contestant.close()
    return lines


def missing(what, how):
    """Says what is not there, and ends."""
    print(f"{what}: {how}", file=sys.stderr)
    sys.exit(2)
