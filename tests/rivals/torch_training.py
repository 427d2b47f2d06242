#!/usr/bin/env python3
"""Trains GPT-2 and Llama by `tma-train` and by PyTorch, in the same rounds on one GPU.

    cargo build --release -p tma-train --features cuda      # in the folder models
    ./torch_training.py --ours ./tma-train
    ./torch_training.py --ours ./tma-train --models llama-1b --sequences 8 --only-speed
    ./torch_training.py --ours ./tma-train --device cpu     # tiny models, the simulator and a CPU

Both begin with the same weights, which `tma-train --save-initial` writes, and read the same windows
of the same text. They have the same learning rates, weight decay, betas and limit of the norm.
PyTorch has f32 parameters and fused AdamW, and products in bf16 by autocast. Recipes are
PRECISION/MODE, where MODE is one of `torch.compile` or `eager`, and PRECISION is

    autocast    sums of the residual are f32
    bf16        sums of the residual are bf16, as in tma-train
    f32         all is f32; products are TF32

With `/blocks` after it, each layer is compiled, instead of the whole model. Recipes are tried for up
to `--compile-seconds` and half of the model's time, and the fastest one trains, with the fastest
kernel of attention. Without another one that works, it is `bf16/eager`.

In a round each contestant trains some steps; the other one is stopped meanwhile, and keeps its
memory. The first round is not counted. Losses are compared at each step. PyTorch in f32 trains the
first steps as well: the distance of PyTorch in bf16 from it is what rounding alone does.

Prints JSON lines on the standard output; progress and a table on the standard error. Exits with 1
if losses differ by more than `--bound`, in the mean over all steps or in the mean of the last 50.
The memory of `tma-train` is that of its process with the context of CUDA; that of PyTorch is what
tensors have at most.
"""

import argparse
import faulthandler
import json
import math
import shutil
import sys
import tempfile
import time
import traceback
from dataclasses import replace
from pathlib import Path

import rounds

try:
    import torch

    import training_data as data
    import training_models as models
    import training_report as report
    import training_torch as rival
    from training_cases import BETAS, CASES, CLIP, WEIGHT_DECAY, Plan
    from training_process import Process
except ModuleNotFoundError as error:
    rounds.missing(f"there is no {error.name}", "`pip install torch numpy safetensors`")

# The share of a model's time for recipes, and the least time for one of them.
COMPILE_SHARE = 0.5
LEAST_COMPILE_S = 15.0
# The steps of PyTorch in f32 go on for at least so many, even if the time is up.
LEAST_REFERENCE_STEPS = 5


BEGIN = time.monotonic()


def note(text):
    """Prints a line of progress."""
    print(f"[{time.monotonic() - BEGIN:6.1f} s] {text}", file=sys.stderr, flush=True)


def emit(**fields):
    """Prints a line of results."""
    print(json.dumps(fields), flush=True)


class Ours:
    """A run of `tma-train`, with the lines of its steps."""

    def __init__(self, plan, args, text, folder):
        (folder / "config.json").write_text(json.dumps(plan.case.config))
        self.output = folder / "output"
        case, device = plan.case, "sim" if args.device == "cpu" else "0"
        command = [
            args.ours, "--model", folder, "--text", text, "--output", self.output, "--json",
            "--save-initial", "--save-every", plan.steps, "--validation", 0, "--steps", plan.steps,
            "--batch", case.sequences, "--sequences", case.sequences, "--length", case.length,
            "--learning-rate", case.learning_rate, "--warmup", plan.warmup, "--seed", args.seed,
            "--weight-decay", WEIGHT_DECAY, "--clip", CLIP, "--beta1", BETAS[0],
            "--beta2", BETAS[1], "--print-every", 50, "--device", device]
        self.process = Process(list(map(str, command)), args.step_seconds)
        self.lines = []

    def until(self, steps):
        """Trains up to so many steps, and returns the tokens a second of those that it did.

        A pause is in the time of the first one, which does not count.
        """
        new = self.process.round(steps - len(self.lines))
        for line in new:  # numbers that are not finite are null
            for name in ("loss", "gradient_norm"):
                line[name] = math.nan if line[name] is None else line[name]
        self.lines += new
        seconds = [line["seconds"] for line in new[1:]]
        tokens = new[-1]["tokens"] / new[-1]["step"]
        return tokens * len(seconds) / sum(seconds) if seconds else None

    @property
    def weights(self):
        return self.output / "checkpoint-000000" / "optimizer.safetensors"

    def tokens(self):
        return data.read_tokens(self.output / "tokens.bin")


def chosen(plan, args):
    """PyTorch's trainer by the fastest recipe. `tma-train` prepares its first step meanwhile."""
    attention = rival.fastest_attention(plan.case, models.shape_of(plan.case.config), args.device)
    note(f"{plan.name}: attention by {attention.name}")
    best, rate = None, 0.0
    end = time.monotonic() + min(args.compile_seconds, COMPILE_SHARE * plan.seconds_left())
    for recipe in (*args.recipes, rival.FALLBACK):
        left = max(end - time.monotonic(), 0.0 if best else LEAST_COMPILE_S)
        if best and (recipe is rival.FALLBACK or left < LEAST_COMPILE_S):
            continue
        start = time.monotonic()
        trainer = compiled(plan, recipe, attention, args.device, left)
        if trainer is None:
            continue
        seconds, found = time.monotonic() - start, trainer.trial(rival.TRIAL_STEPS)
        note(f"{plan.name}: {recipe} compiled in {seconds:.0f} s, {found:.0f} tokens/s")
        emit(model=plan.name, recipe=str(recipe), attention=attention.name,
             compile_s=round(seconds, 1), tokens_per_s=round(found))
        best, rate = (trainer, found) if found > rate else (best, rate)
        del trainer  # its memory goes before the next one takes more
    if best is None:
        raise RuntimeError("no recipe works: give others by --recipes")
    return best


def compiled(plan, recipe, attention, device, seconds):
    """A trainer that is compiled and warm, or `None` if that fails or takes too long."""
    rival.free_memory()
    try:
        with rival.time_limit(seconds):
            trainer = rival.Trainer(plan.case, recipe, attention, device)
            trainer.trial(rival.WARM_UP_STEPS)
            return trainer
    except (Exception, rival.TimeUp) as error:
        # A compiler has errors of many kinds, of which none ends the comparison.
        note(f"{plan.name}: {recipe} fails: {type(error).__name__} {error}".splitlines()[0])
        return None


def race(plan, args, ours, trainer):
    """Trains all steps in rounds. Returns PyTorch's losses with norms, and rates of each round."""
    ours.until(1)  # its weights are saved by then
    trainer.begin(ours.weights)
    tokens, results, rates = ours.tokens(), [], []
    rival.reset_peak_memory()
    for number in range(plan.rounds + 1):
        start = time.monotonic()
        steps = range(len(results), len(results) + plan.round_steps)
        batches = plan.batches(tokens, args.seed, steps)
        names = report.CONTESTANTS if number % 2 == 0 else reversed(report.CONTESTANTS)
        rates.append({})
        for name in names:
            if name == "torch":
                new, rate = trainer.round(batches, [plan.rate(step) for step in steps])
                results += new
            else:
                rate = ours.until(steps.stop)
            rates[-1][name] = rate
        seconds = time.monotonic() - start
        report_round(plan, number, ours, results, rates[-1], seconds)
        if number < plan.rounds and plan.is_late(seconds):
            note(f"{plan.name}: the time is up after {len(results)} of {plan.steps} steps")
            break
    check_rates(plan, ours)
    return results, rates


def report_round(plan, number, ours, results, found, seconds):
    """Reports the rates of a round and its last losses."""
    emit(model=plan.name, round=number, counts=number > 0,
         tokens_per_s={name: rate and round(rate) for name, rate in found.items()})
    note(f"{plan.name}: step {len(results)} of {plan.steps}, {seconds:.1f} s; losses "
         f"{ours.lines[len(results) - 1]['loss']:.4f} and {results[-1][0]:.4f}; tokens/s "
         + ", ".join(f"{rate or 0:.0f} by {name}" for name, rate in found.items()))


def check_rates(plan, ours):
    """Checks that both have the same learning rates."""
    for index, line in enumerate(ours.lines):
        wanted, found = plan.rate(index), line["learning_rate"]
        if abs(found - wanted) > 1e-6 * wanted:
            raise RuntimeError(f"step {index + 1} has a learning rate of {found}, not {wanted}")


def reference(plan, args, ours, steps):
    """The losses of PyTorch in f32, as far as memory and time allow."""
    losses, longest = [], 0.0
    try:
        trainer = rival.Trainer(plan.case, rival.REFERENCE, rival.REFERENCE_ATTENTION, args.device)
        trainer.begin(ours.weights)
        tokens = ours.tokens()
        while len(losses) < min(steps, LEAST_REFERENCE_STEPS) or (
                len(losses) < steps and not plan.is_late(longest)):
            start, step = time.monotonic(), len(losses)
            found, _ = trainer.round(plan.batches(tokens, args.seed, [step]), [plan.rate(step)])
            losses.append(found[0][0])
            longest = time.monotonic() - start
    except torch.OutOfMemoryError as error:
        note(f"{plan.name}: PyTorch in f32 has not enough memory: {error}".splitlines()[0])
    note(f"{plan.name}: {len(losses)} steps of PyTorch in f32")
    return losses


def compare(plan, args, text, folder):
    """Trains a model by both, and returns the lines of results by the name of the comparison."""
    ours = Ours(plan, args, text, folder)
    try:
        trainer = chosen(plan, args)
        results, rates = race(plan, args, ours, trainer)
        memory, free = {"torch": rival.peak_gib()}, rival.free_gib()
    finally:
        ours.process.close()
    memory["tma-train"] = None if free is None else round(rival.free_gib() - free, 2)
    parameters = trainer.parameters()
    facts = {"model": plan.name, "parameters": parameters, "recipe": str(trainer.recipe)}
    del trainer
    rival.forget_compiled()
    lines = {}
    if not args.only_losses and len(rates) > 1:
        shape = models.shape_of(plan.case.config)
        flops = shape.flops_per_token(parameters, plan.case.length)
        lines["speed"] = report.speed_line(plan, rates, flops, memory)
        emit(benchmark="speed", **facts, **lines["speed"])
    if not args.only_speed:
        exact = reference(plan, args, ours, min(args.reference_steps, len(results)))
        lines["losses"] = report.loss_line(ours.lines, results, exact, args.bound)
        emit(benchmark="losses", **facts, **lines["losses"])
        emit(benchmark="curves", **facts, **report.curves(ours.lines, results, exact))
    return lines


def arguments():
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    add = parser.add_argument
    add("--ours", required=True, help="the program tma-train")
    add("--models", help=f"names among {', '.join(CASES)}, with commas between them")
    add("--device", choices=("cuda", "cpu"), default="cuda")
    add("--text", type=Path, help="the text to train on; the default is synthetic")
    add("--text-bytes", type=int, default=8 << 20, help="the size of the synthetic text")
    add("--sequences", type=int, help="sequences of a step")
    add("--length", type=int, help="tokens of a sequence")
    add("--steps", type=int, help="steps of training: 200, 80 with --only-speed, 5 on a CPU")
    add("--rounds", type=int, help="rounds that count: 9, 3 with --only-speed, 0 on a CPU")
    add("--recipes", help="recipes of PyTorch, with commas between them")
    add("--reference-steps", type=int, default=50, help="steps of PyTorch in f32")
    add("--bound", type=float, help="the greatest difference of losses: 0.02, 0.01 on a CPU")
    add("--seed", type=int, default=0)
    add("--seconds", type=float, default=240, help="the time for all, after which less is done")
    add("--compile-seconds", type=float, default=100, help="the time for a model's recipes")
    add("--step-seconds", type=float, default=120, help="the longest wait for a step of tma-train")
    add("--folder", type=Path, help="the folder for checkpoints, which are removed at the end")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--only-speed", action="store_true")
    only.add_argument("--only-losses", action="store_true")
    args = parser.parse_args()
    set_defaults(args)
    check(parser, args)
    return args


def set_defaults(args):
    is_cpu = args.device == "cpu"
    on_gpu = {"models": "gpt2,llama-1b", "steps": 80 if args.only_speed else 200,
              "rounds": 3 if args.only_speed else 9, "bound": 0.02,
              "recipes": "bf16/default/blocks,bf16/default,autocast/default/blocks"}
    on_cpu = {"models": "tiny-gpt2,tiny-llama", "steps": 5, "rounds": 0, "bound": 0.01,
              "recipes": "bf16/eager"}
    for name, value in (on_cpu if is_cpu else on_gpu).items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    args.ours = Path(args.ours).resolve()
    args.models = args.models.split(",")
    args.recipes = args.recipes.split(",")[: 1 if args.only_losses else None]


def check(parser, args):
    """Ends with a message if an argument is out of its range."""
    unknown = [name for name in args.models if name not in CASES]
    if unknown:
        parser.error(f"--models: {unknown[0]} is unknown; known are {', '.join(CASES)}")
    if not args.ours.is_file():
        parser.error(f"--ours: {args.ours} is no file")
    parts = args.rounds + 1
    if args.rounds < 0:
        parser.error(f"--rounds: give at least 0, not {args.rounds}")
    if args.steps % parts or args.steps < 2 * parts:
        parser.error(f"--steps: {args.steps} are not {parts} equal rounds of 2 steps or more")
    try:
        args.recipes = [rival.Recipe.parse(text) for text in args.recipes]
    except ValueError as error:
        parser.error(f"--recipes: {error}")
    if args.device == "cuda" and not torch.cuda.is_available():
        rounds.missing("there is no GPU", "give --device cpu")


def compare_all(args, folder):
    """The results of all models by name. A model that fails has none."""
    text = args.text or folder / "text"
    if not args.text:
        text.write_bytes(data.synthetic_text(args.text_bytes))
        note("wrote the text")
    end, found = time.monotonic() + args.seconds, {}
    for index, name in enumerate(args.models):
        case = CASES[name]
        case = replace(case, sequences=args.sequences or case.sequences,
                       length=args.length or case.length)
        now = time.monotonic()
        deadline = now + (end - now) / (len(args.models) - index)
        plan = Plan(name, case, args.steps, args.rounds, deadline)
        of_model = folder / name
        of_model.mkdir()
        try:
            found[name] = compare(plan, args, text, of_model)
        except Exception:  # the other models are compared nevertheless
            traceback.print_exc()
        # Checkpoints are large.
        shutil.rmtree(of_model)
        rival.forget_compiled()
    return found


def main():
    args = arguments()
    # Each wait has its own limit; this one ends waits of drivers and compilers.
    faulthandler.dump_traceback_later(args.seconds + 2 * args.step_seconds, exit=True)
    emit(device=rival.device_name(args.device), torch=torch.__version__)
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        found = compare_all(args, Path(folder))
    report.table(found)
    losses = [lines["losses"]["is_within_bound"] for lines in found.values() if "losses" in lines]
    faulthandler.cancel_dump_traceback_later()
    sys.exit(0 if all(losses) and len(found) == len(args.models) else 1)


if __name__ == "__main__":
    main()
