"""Training by PyTorch: recipes, attention, steps, times."""

import contextlib
import gc
import signal
import time
from dataclasses import dataclass

import numpy as np
import torch

import training_models as models
from training_cases import BETAS, CLIP, EPSILON, WEIGHT_DECAY

# Steps until a recipe is compiled and warm, and those that are timed.
WARM_UP_STEPS = 3
TRIAL_STEPS = 5
# Launches of attention that are timed.
ATTENTION_LAUNCHES = 10

RESIDUALS = {"f32": torch.float32, "autocast": torch.float32, "bf16": torch.bfloat16}
# Modes of `torch.compile`, and none.
MODES = ("eager", "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
BLOCKS = "blocks"


class TimeUp(BaseException):
    """The end of a time limit. It is no `Exception`, which compilers catch."""


@contextlib.contextmanager
def time_limit(seconds):
    """Raises `TimeUp` after so many seconds."""

    def end(*_):
        raise TimeUp(f"more than {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@dataclass(frozen=True)
class Recipe:
    """The precision of a model, and how it is compiled."""

    precision: str
    mode: str
    by_layer: bool

    @staticmethod
    def parse(text):
        """The recipe of PRECISION/MODE or PRECISION/MODE/blocks."""
        precision, _, rest = text.partition("/")
        mode, _, scope = rest.partition("/")
        for found, known in ((precision, RESIDUALS), (mode, MODES), (scope, ("", BLOCKS))):
            if found not in known:
                raise ValueError(f"{found!r} of {text} is unknown; known are {', '.join(known)}")
        return Recipe(precision, mode, scope == BLOCKS)

    def __str__(self):
        """The text that `parse` reads."""
        return f"{self.precision}/{self.mode}" + (f"/{BLOCKS}" if self.by_layer else "")


@dataclass(frozen=True)
class Attention:
    """A kernel of `scaled_dot_product_attention`, and whether heads of keys are repeated for it."""

    kernel: str
    repeats_keys: bool

    @property
    def name(self):
        return self.kernel + ("_repeated_keys" if self.repeats_keys else "")

    def use(self):
        """Lets PyTorch have this kernel alone, from now on."""
        backends = torch.backends.cuda
        switches = {
            "flash": backends.enable_flash_sdp, "cudnn": backends.enable_cudnn_sdp,
            "efficient": backends.enable_mem_efficient_sdp, "math": backends.enable_math_sdp}
        for kernel, switch in switches.items():
            switch(self.kernel in (kernel, "any"))


# Flash attention and cuDNN have no f32, so PyTorch chooses among the others.
REFERENCE_ATTENTION = Attention("any", True)


def synchronize():
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def attention_seconds(attention, case, shape):
    """The time of attention and its gradients, with operands as the model has them."""
    attention.use()
    heads, key_heads = shape.heads, shape.key_heads
    columns = (case.sequences, case.length, heads + 2 * key_heads, shape.depth)
    options = {"device": "cuda", "dtype": torch.bfloat16}
    qkv = torch.randn(columns, requires_grad=True, **options)
    gradient = torch.randn(case.sequences, case.length, heads, shape.depth, **options)

    def launch():
        q, k, v = qkv.transpose(1, 2).split([heads, key_heads, key_heads], dim=1)
        attended = models.attend(q, k, v, attention.repeats_keys).transpose(1, 2)
        attended.backward(gradient)

    for _ in range(2):
        launch()
    synchronize()
    start = time.monotonic()
    for _ in range(ATTENTION_LAUNCHES):
        launch()
    synchronize()
    return (time.monotonic() - start) / ATTENTION_LAUNCHES


def fastest_attention(case, shape, device):
    """The fastest kernel that works for a model."""
    is_grouped = shape.heads != shape.key_heads
    if device == "cpu":
        return Attention("any", is_grouped)
    found = {}
    for kernel in ("flash", "cudnn"):
        for repeats_keys in (False, True) if is_grouped else (False,):
            attention = Attention(kernel, repeats_keys)
            with contextlib.suppress(RuntimeError):  # not every kernel shares heads of keys
                found[attention] = attention_seconds(attention, case, shape)
    if not found:
        raise RuntimeError("neither flash attention nor cuDNN works here")
    return min(found, key=found.get)


# The recipe of a machine where no other works.
FALLBACK = Recipe("bf16", "eager", False)
REFERENCE = Recipe("f32", "eager", False)


class Trainer:
    """A model in PyTorch with its optimiser."""

    def __init__(self, case, recipe, attention, device):
        self.case, self.recipe, self.attention, self.device = case, recipe, attention, device
        with torch.device(device):
            self.model = models.Decoder(
                models.shape_of(case.config), RESIDUALS[recipe.precision], attention.repeats_keys)
        compiles = recipe.mode != "eager"
        self.run = self.model.compiled(recipe.mode, recipe.by_layer) if compiles else self.model
        self.optimizer = self.new_optimizer()

    def new_optimizer(self):
        """AdamW, with weight decay for matrices and tables only."""
        all_ = list(self.model.parameters())
        groups = [{"params": [x for x in all_ if x.dim() > 1], "weight_decay": WEIGHT_DECAY},
                  {"params": [x for x in all_ if x.dim() == 1], "weight_decay": 0.0}]
        return torch.optim.AdamW(groups, lr=0.0, betas=BETAS, eps=EPSILON, fused=True)

    def parameters(self):
        """The numbers of the model."""
        return sum(x.numel() for x in self.model.parameters())

    def begin(self, weights):
        """Begins again with the weights of a checkpoint."""
        self.optimizer = None  # its memory goes before the new one takes more
        models.load(self.model, weights)
        self.optimizer = self.new_optimizer()

    def step(self, windows, rate):
        """Trains a step. Returns loss and norm of gradients, without waiting for them."""
        torch.compiler.cudagraph_mark_step_begin()
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        is_mixed = self.recipe.precision != "f32"
        with torch.autocast(self.device, dtype=torch.bfloat16, enabled=is_mixed):
            loss = self.run(windows[:, :-1].contiguous(), windows[:, 1:].contiguous())
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return torch.stack([loss.detach().float(), norm.float()])

    def round(self, batches, rates):
        """Trains a step for each batch. Returns losses with norms, and tokens a second.

        Batches are on the device before the time begins, as from a loader that is ahead.
        """
        self.attention.use()
        torch.set_float32_matmul_precision("high")
        on_device = torch.from_numpy(np.stack(batches)).to(self.device)
        synchronize()
        start = time.monotonic()
        results = [self.step(windows, rate) for windows, rate in zip(on_device, rates)]
        synchronize()
        seconds = time.monotonic() - start
        tokens = len(batches) * self.case.sequences * self.case.length
        return torch.stack(results).tolist(), tokens / seconds

    def trial(self, steps):
        """Trains steps on random tokens. Returns tokens a second."""
        chance = np.random.default_rng(0)
        extents = (self.case.sequences, self.case.length + 1)
        batches = [chance.integers(0, 256, extents) for _ in range(steps)]
        _, tokens_per_second = self.round(batches, [0.0] * steps)
        return tokens_per_second


def free_memory():
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def forget_compiled():
    """Frees what was compiled, so that the next model does not count as a change of this one."""
    torch.compiler.reset()
    free_memory()


def reset_peak_memory():
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()


def peak_gib():
    """The most memory that tensors had at a time, or `None` on a CPU."""
    if not torch.cuda.is_available():
        return None
    return round(torch.cuda.max_memory_allocated() / 2**30, 2)


def free_gib():
    """The free memory of the GPU, or `None` on a CPU."""
    if not torch.cuda.is_available():
        return None
    return torch.cuda.mem_get_info()[0] / 2**30


def device_name(device):
    return torch.cuda.get_device_name() if device == "cuda" else device
