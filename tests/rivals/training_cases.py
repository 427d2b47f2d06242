"""The models that are trained, and the steps of each."""

import time
from dataclasses import dataclass

import training_data as data

# Those of AdamW and of the limit of the norm, in both contestants.
BETAS = (0.9, 0.95)
EPSILON = 1e-8  # tma-train has no option for it
WEIGHT_DECAY = 0.1
CLIP = 1.0


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

    def seconds_left(self):
        """The seconds until the end of the time."""
        return self.deadline - time.monotonic()

    def is_late(self, seconds=0.0):
        """Whether the time is up after so many more seconds."""
        return seconds > self.seconds_left()

    def rate(self, step):
        return data.learning_rate(self.case.learning_rate, self.warmup, self.steps, step)

    def batches(self, tokens, seed, steps):
        """The windows of a range of steps."""
        extents = self.case.sequences, self.case.length
        return [data.windows(tokens, seed, step, *extents) for step in steps]
