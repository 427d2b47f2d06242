"""The comparison of two runs of training: losses, rates, and a table of both."""

import statistics
import sys

import rounds

PEAK = 989e12  # dense bf16 operations a second of an H100 or H200, as NVIDIA states them
LAST_STEPS = 50
CONTESTANTS = ("tma-train", "torch")


def mean_distance(a, b):
    """The mean absolute difference of numbers that both have."""
    return statistics.fmean(abs(x - y) for x, y in zip(a, b))


def rounded(number):
    """A number with the digits that a reader wants."""
    return round(number, 6)


def loss_line(lines, results, exact, bound):
    """The comparison of losses and of norms of gradients.

    `lines` are those of `tma-train`, `results` losses with norms by PyTorch, and `exact` losses by
    PyTorch in f32.
    """
    count = min(len(lines), len(results))
    ours, theirs = [line["loss"] for line in lines[:count]], [loss for loss, _ in results[:count]]
    differences = [abs(x - y) for x, y in zip(ours, theirs)]
    last_means = [statistics.fmean(losses[-LAST_STEPS:]) for losses in (ours, theirs)]
    last, mean = abs(last_means[0] - last_means[1]), statistics.fmean(differences)
    norms = [line["gradient_norm"] / norm for line, (_, norm) in zip(lines, results)]
    first = {"first_steps": first_steps(ours, theirs, exact)} if exact else {}
    return {
        "steps": count, "first_difference": rounded(differences[0]),
        "mean_difference": rounded(mean), "greatest_difference": rounded(max(differences)),
        "greatest_at_step": 1 + differences.index(max(differences)),
        "difference_of_last_means": rounded(last), "last_steps": min(LAST_STEPS, count),
        "mean_ratio_of_norms": rounded(statistics.fmean(norms)),
        "bound": bound, "is_within_bound": mean <= bound and last <= bound, **first}


def first_steps(ours, theirs, exact):
    """The distances from losses without rounding to bf16, beside that of the contestants."""
    return {
        "steps": len(exact),
        "tma-train and torch": rounded(mean_distance(ours[: len(exact)], theirs)),
        "tma-train and torch in f32": rounded(mean_distance(ours, exact)),
        "torch and torch in f32": rounded(mean_distance(theirs, exact))}


def curves(lines, results, exact):
    """The losses of all steps."""
    found = {"tma-train": [line["loss"] for line in lines], "torch": [loss for loss, _ in results],
             "torch_f32": exact}
    return {name: [round(loss, 5) for loss in losses] for name, losses in found.items()}


def speed_line(plan, rates, flops, memory):
    """The comparison of rates, over the rounds that count."""
    line = {"sequences": plan.case.sequences, "length": plan.case.length, "rounds": len(rates) - 1}
    for name in CONTESTANTS:
        middle, width = rounds.spread([found[name] for found in rates[1:]])
        line[name] = {
            "tokens_per_s": round(middle), "spread": round(width, 4),
            "share_of_peak": round(middle * flops / PEAK, 4), "peak_gib": memory.get(name)}
    ratios = [found["tma-train"] / found["torch"] for found in rates[1:]]
    middle, width = rounds.spread(ratios)
    line["ratio"] = {"median": round(middle, 4), "spread": round(width, 4),
                     "rounds": [round(ratio, 4) for ratio in ratios]}
    return line


def table(found):
    """Prints the results of models by name."""
    for name, lines in found.items():
        if "speed" in lines:
            print_speed(name, lines["speed"])
        if "losses" in lines:
            print_losses(name, lines["losses"])


def print_line(text):
    print(text, file=sys.stderr)


def print_speed(model, line):
    print_line(f"\n{model:12} {'tokens/s':>10} {'of peak':>8} {'memory':>10}")
    for name in CONTESTANTS:
        part = line[name]
        memory = "" if part["peak_gib"] is None else f"{part['peak_gib']:.1f} GiB"
        share = f"{100 * part['share_of_peak']:.1f} %"
        print_line(f"{name:12} {part['tokens_per_s']:>10} {share:>8} {memory:>10}")
    ratio = line["ratio"]
    print_line(f"ratio of rates {ratio['median']:.3f}, spread {ratio['spread']:.3f}")


def print_losses(model, line):
    print_line(f"\n{model}: losses of {line['steps']} steps")
    verdict = "within" if line["is_within_bound"] else "NOT within"
    print_line(f"  mean difference     {line['mean_difference']:.5f}, {verdict} {line['bound']}")
    print_line(f"  of the last {line['last_steps']:<8}{line['difference_of_last_means']:.5f}")
    print_line(f"  greatest difference {line['greatest_difference']:.5f}, "
               f"in step {line['greatest_at_step']}")
    first = line.get("first_steps", {})
    for pair in [name for name in first if name != "steps"]:
        print_line(f"  first {first['steps']} steps, {pair}: {first[pair]:.5f}")
