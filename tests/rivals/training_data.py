"""The text, the windows and the learning rates of a run of `tma-train`.

Windows and learning rates are those of `models/tma-train/src/windows.rs` and `schedule.rs`, so that
another program can train on the same tokens in the same order. Nothing here needs PyTorch.
"""

import math
import random

import numpy as np

MASK = 2**64 - 1
# The header of `tokens.bin`: a magic number, the bytes of a token, the number of tokens, a hash.
HEADER = 56
MAGIC = b"tmatoks1"
LAST_SHARE = 0.1

SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]


def mixed(word):
    """SplitMix64, of which a word is a step."""
    word = (word + 0x9E3779B97F4A7C15) & MASK
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
    return word ^ (word >> 31)


def window_start(seed, step, index, starts):
    """Where a window of a step begins, as a number below `starts`. The first step is 0."""
    word = mixed(mixed(mixed(seed) ^ step) ^ index)
    return (word * starts) >> 64


def windows(tokens, seed, step, count, length):
    """The windows of a step: `count` rows of `length` + 1 tokens, of the whole text."""
    starts = len(tokens) - length
    rows = [window_start(seed, step, index, starts) for index in range(count)]
    return np.stack([tokens[start : start + length + 1] for start in rows]).astype(np.int64)


def learning_rate(peak, warmup, steps, step):
    """The learning rate of a step, of which the first one is 0: a linear warm-up, then a cosine."""
    if step < warmup:
        return float(np.float32(peak * (step + 1) / warmup))
    progress = min((step - warmup) / max(steps - warmup - 1, 1), 1.0)
    remaining = (1.0 + math.cos(math.pi * progress)) / 2.0
    return float(np.float32(peak * (LAST_SHARE + (1.0 - LAST_SHARE) * remaining)))


def read_tokens(path):
    """The tokens in a `tokens.bin` of `tma-train`."""
    with open(path, "rb") as file:
        header = file.read(HEADER)
    width = int.from_bytes(header[8:16], "little")
    if header[:8] != MAGIC or width not in (2, 4):
        raise ValueError(f"{path} is not a file of tokens: it begins with {header[:8]!r}")
    return np.memmap(path, dtype=f"<u{width}", mode="r", offset=HEADER)


def words(chance, count):
    """Made-up words of two to four syllables."""
    lengths = (2 + int(3 * chance.random()) for _ in range(count))
    return ["".join(chosen(chance, SYLLABLES) for _ in range(length)) for length in lengths]


def chosen(chance, choices):
    return choices[int(chance.random() * len(choices))]


def frequent(chance, choices):
    """A choice of which the first ones are much more frequent, as in languages."""
    return choices[int(len(choices) ** chance.random()) - 1]


def synthetic_text(size, seed=0):
    """At least `size` bytes of sentences, the same for the same seed.

    Verbs agree with the number of their subject, and the second half of a sentence repeats its
    subject, so that there is something to learn at several distances.
    """
    chance = random.Random(seed)
    nouns, verbs, adjectives = (words(chance, count) for count in (2000, 800, 400))
    sentences, written = [], 0
    while written < size:
        sentences.append(sentence(chance, nouns, verbs, adjectives))
        written += len(sentences[-1])
    return "".join(sentences).encode()


def sentence(chance, nouns, verbs, adjectives):
    is_plural = chance.random() < 0.5
    noun_end, verb_end = ("s", "") if is_plural else ("", "s")
    subject = f"{frequent(chance, adjectives)} {frequent(chance, nouns)}{noun_end}"
    first, second = (f"{frequent(chance, verbs)}{verb_end}" for _ in range(2))
    item = f"{frequent(chance, adjectives)} {frequent(chance, nouns)}"
    end = "\n" if chance.random() < 0.2 else " "
    return f"The {subject} {first} a {item}, and the {subject} {second} it.{end}"
