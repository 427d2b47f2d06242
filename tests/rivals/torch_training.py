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

With `/blocks` after it, each layer is compiled, instead of the whole model. All recipes are tried
while `--compile-seconds` last, and the fastest one trains, with the fastest kernel of attention.

In a round each contestant trains some steps; the other one is stopped meanwhile, and keeps its
memory. The first round is not counted. Losses are compared at each step. PyTorch in f32 trains the
first steps as well: the distance of PyTorch in bf16 from it is what rounding alone does.

Prints JSON lines on the standard output; progress and a table on the standard error. Exits with 1 if
losses differ by more than `--bound`, in the mean over all steps or in the mean of the last 50.
"""

import argparse
import faulthandler
import json
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import rounds

try:
    import torch

    import training_data as data
    import training_models as models
    import training_torch as rival
    from training_process import Process
except ModuleNotFoundError as error:
    rounds.missing(f"there is no {error.name}", "`pip install torch numpy safetensors`")

PEAK = 989e12  # dense bf16 operations a second of an H100 or H200, as NVIDIA states them
LAST_STEPS = 50
# The steps of PyTorch in f32 go on for at least so many, even if the time is up.
LEAST_REFERENCE_STEPS = 5


def gpt2(layers, width, heads, context, vocabulary):
    return {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": vocabulary,
            "n_layer": layers, "n_embd": width, "n_head": heads, "n_inner": 4 * width,
            "n_positions": context, "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new",
            "tie_word_embeddings": True}


def llama(layers, width, heads, key_heads, mlp_width, context, vocabulary):
    return {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": vocabulary,
            "num_hidden_layers": layers, "hidden_size": width, "num_attention_heads": heads,
            "num_key_value_heads": key_heads, "head_dim": 64, "intermediate_size": mlp_width,
            "max_position_embeddings": context, "rms_norm_eps": 1e-5, "rope_theta": 500000.0,
            "hidden_act": "silu", "attention_bias": False, "mlp_bias": False,
            "tie_word_embeddings": True}


@dataclass(frozen=True)
class Case:
    """A model, and what a step of it reads."""

    config: dict
    sequences: int
    length: int
    learning_rate: float


# Texts are bytes. Vocabularies are nevertheless those of the published models: most of their rows
# are in no text, but take part in each step.
CASES = {
    "gpt2": Case(gpt2(12, 768, 12, 1024, 50304), 32, 1024, 6e-4),
    "llama-1b": Case(llama(16, 2048, 32, 8, 8192, 8192, 128256), 4, 2048, 3e-4),
    "tiny-gpt2": Case(gpt2(2, 128, 2, 128, 320), 2, 32, 1e-3),
    "tiny-llama": Case(llama(2, 64, 2, 1, 128, 128, 320), 2, 32, 1e-3),
}


def note(text):
    print(f"[{time.monotonic() - BEGIN:6.1f} s] {text}", file=sys.stderr, flush=True)


BEGIN = time.monotonic()


def emit(**fields):
    print(json.dumps(fields), flush=True)


class Ours:
    """A run of `tma-train`, with the lines of its steps."""

    def __init__(self, plan, args, text, folder):
        (folder / "config.json").write_text(json.dumps(plan.case.config))
        self.output = folder / "output"
        command = [args.ours, "--model", folder, "--text", text, "--output", self.output, "--json",
                   "--save-initial", "--validation", 0, "--save-every", plan.steps, "--steps", plan.steps,
                   "--batch", plan.case.sequences, "--sequences", plan.case.sequences,
                   "--length", plan.case.length, "--learning-rate", plan.case.learning_rate,
                   "--warmup", plan.warmup, "--weight-decay", rival.WEIGHT_DECAY,
                   "--clip", rival.CLIP, "--beta1", rival.BETAS[0], "--beta2", rival.BETAS[1],
                   "--seed", args.seed, "--print-every", 50,
                   "--device", "sim" if args.device == "cpu" else "0"]
        self.process = Process(list(map(str, command)), args.step_seconds)
        self.lines = []

    def until(self, steps):
        """Trains up to so many steps, and returns the tokens a second of those that it did.

        A pause is in the time of the first one, which does not count.
        """
        new = self.process.round(steps - len(self.lines))
        self.lines += new
        seconds = [line["seconds"] for line in new[1:]]
        tokens = new[-1]["tokens"] / new[-1]["step"]
        return tokens * len(seconds) / sum(seconds) if seconds else None

    @property
    def weights(self):
        return self.output / "checkpoint-000000" / "optimizer.safetensors"

    def tokens(self):
        return data.read_tokens(self.output / "tokens.bin")


@dataclass(frozen=True)
class Plan:
    """The steps of a model, and when they end."""

    name: str
    case: Case
    steps: int
    rounds: int
    deadline: float

    @property
    def warmup(self):
        return self.steps // 10

    @property
    def round_steps(self):
        return self.steps // (self.rounds + 1)

    @property
    def tokens(self):
        return self.case.sequences * self.case.length

    def is_late(self, seconds=0.0):
        """Whether the time is up after so many more seconds."""
        return time.monotonic() + seconds > self.deadline

    def rate(self, step):
        return data.learning_rate(self.case.learning_rate, self.warmup, self.steps, step)

    def batches(self, tokens, seed, steps):
        """The windows of a range of steps."""
        extents = self.case.sequences, self.case.length
        return [data.windows(tokens, seed, step, *extents) for step in steps]


def chosen(plan, args, ours):
    """PyTorch's trainer by the fastest recipe.

    The first one is compiled while `tma-train` prepares its own first step.
    """
    attention = rival.fastest_attention(plan.case, models.shape_of(plan.case.config), args.device)
    note(f"{plan.name}: attention by {attention.name}")
    best, rate, begin, last = None, 0.0, time.monotonic(), 0.0
    for recipe in args.recipes:
        left = args.compile_seconds - (time.monotonic() - begin)
        if best and (left < last or plan.is_late(last)):
            note(f"{plan.name}: no time is left to compile {recipe}")
            continue
        try:
            start = time.monotonic()
            with rival.time_limit(max(left, 1.0)):
                trainer = rival.Trainer(plan.case, recipe, attention, args.device)
                trainer.trial(rival.WARM_UP_STEPS)
            last = time.monotonic() - start
        except (Exception, rival.TimeUp) as error:
            note(f"{plan.name}: {recipe} fails: {type(error).__name__} {error}".splitlines()[0])
            continue
        if not ours.lines:
            ours.until(1)
        found = trainer.trial(rival.TRIAL_STEPS)
        note(f"{plan.name}: {recipe} compiled in {last:.0f} s, {found:.0f} tokens/s")
        emit(model=plan.name, recipe=str(recipe), attention=attention.name,
             compile_s=round(last, 1), tokens_per_s=round(found))
        if found > rate:
            best, rate = trainer, found
        del trainer
        rival.free_memory()
    if best is None:
        raise RuntimeError("no recipe works: give others by --recipes")
    return best


def race(plan, args, ours, trainer):
    """Trains all steps in rounds. Returns PyTorch's losses and norms, and rates of both by round."""
    trainer.begin(ours.weights)
    tokens, results, rates = ours.tokens(), [], []
    rival.reset_peak_memory()
    for number in range(plan.rounds + 1):
        start, first = time.monotonic(), len(results)
        steps = range(first, first + plan.round_steps)
        batches = plan.batches(tokens, args.seed, steps)
        found = {}

        def train_theirs():
            more, found["torch"] = trainer.round(batches, [plan.rate(step) for step in steps])
            results.extend(more)

        def train_ours():
            found["tma-train"] = ours.until(steps.stop)

        for train in (train_ours, train_theirs) if number % 2 == 0 else (train_theirs, train_ours):
            train()
        rates.append(found)
        seconds = time.monotonic() - start
        report_round(plan, number, ours, results, found, seconds)
        if number < plan.rounds and plan.is_late(seconds):
            note(f"{plan.name}: the time is up after {len(results)} of {plan.steps} steps")
            break
    check_rates(plan, ours)
    return results, rates


def report_round(plan, number, ours, results, found, seconds):
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
    """The losses of PyTorch in f32."""
    recipe = rival.Recipe("f32", "eager", False)
    trainer = rival.Trainer(plan.case, recipe, rival.REFERENCE_ATTENTION, args.device)
    trainer.begin(ours.weights)
    tokens, losses, longest = ours.tokens(), [], 0.0
    for step in range(steps):
        if len(losses) >= LEAST_REFERENCE_STEPS and plan.is_late(longest):
            break
        start = time.monotonic()
        found, _ = trainer.round(plan.batches(tokens, args.seed, [step]), [plan.rate(step)])
        longest = max(longest, time.monotonic() - start) if losses else 0.0
        losses.append(found[0][0])
    note(f"{plan.name}: {len(losses)} steps of PyTorch in f32")
    return losses


def mean_distance(a, b):
    """The mean absolute difference of numbers that both have."""
    return statistics.fmean(abs(x - y) for x, y in zip(a, b))


def loss_line(ours, results, exact, bound):
    """The comparison of losses and of norms of gradients."""
    count = min(len(ours), len(results))
    mine, norms = ([line[name] for line in ours[:count]] for name in ("loss", "gradient_norm"))
    theirs, their_norms = ([result[index] for result in results[:count]] for index in (0, 1))
    differences = [abs(x - y) for x, y in zip(mine, theirs)]
    last = abs(statistics.fmean(mine[-LAST_STEPS:]) - statistics.fmean(theirs[-LAST_STEPS:]))
    mean = statistics.fmean(differences)
    line = {
        "steps": count, "first_difference": differences[0], "mean_difference": mean,
        "greatest_difference": max(differences),
        "greatest_at_step": 1 + differences.index(max(differences)),
        "difference_of_last_means": last,
        "mean_ratio_of_norms": statistics.fmean(x / y for x, y in zip(norms, their_norms)),
        "bound": bound, "is_within_bound": max(mean, last) <= bound,
    }
    if exact:
        line["first_steps"] = {
            "steps": len(exact), "tma-train_and_torch": mean_distance(mine[:len(exact)], theirs),
            "tma-train_and_torch_f32": mean_distance(mine, exact),
            "torch_and_torch_f32": mean_distance(theirs, exact)}
    curves = {"tma-train": mine, "torch": theirs, "torch_f32": exact}
    return line, {name: [round(loss, 5) for loss in curve] for name, curve in curves.items()}


def speed_line(plan, rates, flops, memory):
    """The comparison of rates, over the rounds that count."""
    line = {"sequences": plan.case.sequences, "length": plan.case.length, "rounds": len(rates) - 1}
    for name in ("tma-train", "torch"):
        middle, width = rounds.spread([found[name] for found in rates[1:]])
        line[name] = {"tokens_per_s": round(middle), "spread": round(width, 4),
                      "share_of_peak": round(middle * flops / PEAK, 4), "peak_gib": memory.get(name)}
    ratios = [found["tma-train"] / found["torch"] for found in rates[1:]]
    middle, width = rounds.spread(ratios)
    line["ratio"] = {"median": round(middle, 4), "spread": round(width, 4),
                     "rounds": [round(ratio, 4) for ratio in ratios]}
    return line


def compare(plan, args, text, folder):
    """Trains a model by both, and returns the lines of results by the name of the comparison."""
    ours = Ours(plan, args, text, folder)
    try:
        trainer = chosen(plan, args, ours)
        results, rates = race(plan, args, ours, trainer)
        memory = {"torch": rival.peak_gib()}
        free = rival.free_gib()
    finally:
        ours.process.close()
    if free is not None:
        memory["tma-train"] = round(rival.free_gib() - free, 2)
    parameters, recipe = trainer.parameters(), str(trainer.recipe)
    lines = {}
    if not args.only_losses and len(rates) > 1:
        shape = models.shape_of(plan.case.config)
        flops = shape.flops_per_token(parameters, plan.case.length)
        lines["speed"] = speed_line(plan, rates, flops, memory)
    del trainer
    rival.free_memory()
    if not args.only_speed:
        exact = reference(plan, args, ours, min(args.reference_steps, len(results)))
        lines["losses"], curves = loss_line(ours.lines, results, exact, args.bound)
        emit(model=plan.name, curves=curves)
    for benchmark, line in lines.items():
        emit(model=plan.name, benchmark=benchmark, parameters=parameters, recipe=recipe, **line)
    return lines


def table(found):
    """The results as text."""
    for name, lines in found.items():
        if "speed" in lines:
            print(f"\n{name:12} {'tokens/s':>10} {'of peak':>8} {'memory':>10}", file=sys.stderr)
            for who in ("tma-train", "torch"):
                line = lines["speed"][who]
                memory = "" if line["peak_gib"] is None else f"{line['peak_gib']:.1f} GiB"
                print(f"{who:12} {line['tokens_per_s']:>10} {100 * line['share_of_peak']:>6.1f} % "
                      f"{memory:>10}", file=sys.stderr)
            ratio = lines["speed"]["ratio"]
            print(f"ratio of rates {ratio['median']:.3f}, spread {ratio['spread']:.3f}", file=sys.stderr)
        if "losses" in lines:
            line = lines["losses"]
            verdict = "within" if line["is_within_bound"] else "NOT within"
            print(f"\n{name}: losses of {line['steps']} steps differ by {line['mean_difference']:.4f} "
                  f"in the mean, by {line['greatest_difference']:.4f} at most (step "
                  f"{line['greatest_at_step']}), by {line['difference_of_last_means']:.4f} in the mean "
                  f"of the last {LAST_STEPS}: {verdict} {line['bound']}", file=sys.stderr)
            for pair, distance in list(line.get("first_steps", {}).items())[1:]:
                print(f"  first {line['first_steps']['steps']} steps, {pair}: {distance:.4f}",
                      file=sys.stderr)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
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
              "recipes": "autocast/default/blocks,bf16/default/blocks,bf16/default"}
    on_cpu = {"models": "tiny-gpt2,tiny-llama", "steps": 5, "rounds": 0, "bound": 0.01,
              "recipes": "bf16/eager"}
    for name, value in (on_cpu if is_cpu else on_gpu).items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    args.models = args.models.split(",")
    args.recipes = args.recipes.split(",")


def check(parser, args):
    """Ends with a message if an argument is out of its range."""
    unknown = [name for name in args.models if name not in CASES]
    if unknown:
        parser.error(f"--models: {unknown[0]} is unknown; known are {', '.join(CASES)}")
    if args.rounds < 0 or args.steps < 1 or args.steps % (args.rounds + 1):
        parser.error(f"--steps: {args.steps} is no multiple of --rounds and one more, {args.rounds + 1}")
    try:
        args.recipes = [rival.Recipe.parse(text) for text in args.recipes]
    except ValueError as error:
        parser.error(f"--recipes: {error}")
    if args.device == "cuda" and not torch.cuda.is_available():
        rounds.missing("there is no GPU", "give --device cpu")


def main():
    args = arguments()
    # The least steps may take some time after the end of the time.
    faulthandler.dump_traceback_later(args.seconds + 2 * args.step_seconds, exit=True)
    emit(device=rival.device_name(args.device), torch=torch.__version__)
    end, found = time.monotonic() + args.seconds, {}
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        text = args.text or Path(folder) / "text"
        if not args.text:
            text.write_bytes(data.synthetic_text(args.text_bytes))
            note("wrote the text")
        for index, name in enumerate(args.models):
            case = CASES[name]
            case = Case(case.config, args.sequences or case.sequences, args.length or case.length,
                        case.learning_rate)
            now = time.monotonic()
            deadline = now + (end - now) / (len(args.models) - index)
            plan = Plan(name, case, args.steps, args.rounds, deadline)
            with tempfile.TemporaryDirectory(dir=folder) as of_model:
                found[name] = compare(plan, args, text, Path(of_model))
    table(found)
    faulthandler.cancel_dump_traceback_later()
    results = [lines["losses"] for lines in found.values() if "losses" in lines]
    sys.exit(0 if all(line["is_within_bound"] for line in results) else 1)


if __name__ == "__main__":
    main()
