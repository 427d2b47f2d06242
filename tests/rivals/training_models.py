"""GPT-2 and Llama in PyTorch, with weights from a checkpoint of `tma-train`.

Both are one decoder, whose norms, positions and activations differ. Queries, keys and values are
one product, and so are gates and the others, as in the kernels that it is compared with.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from safetensors import safe_open
from torch import nn

# The names of Hugging Face for the tensors of a layer.
GPT2 = {
    "norm_1": ["ln_1"],
    "qkv": ["attn.c_attn"],
    "out": ["attn.c_proj"],
    "norm_2": ["ln_2"],
    "up": ["mlp.c_fc"],
    "down": ["mlp.c_proj"],
}
LLAMA = {
    "norm_1": ["input_layernorm"],
    "qkv": ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
    "out": ["self_attn.o_proj"],
    "norm_2": ["post_attention_layernorm"],
    "up": ["mlp.gate_proj", "mlp.up_proj"],
    "down": ["mlp.down_proj"],
}
GPT2_TOP = {
    "embedding": "transformer.wte",
    "positions": "transformer.wpe",
    "last_norm": "transformer.ln_f",
}
LLAMA_TOP = {"embedding": "model.embed_tokens", "last_norm": "model.norm", "head": "lm_head"}


@dataclass(frozen=True)
class Shape:
    """The extents of a decoder."""

    is_gpt2: bool
    vocabulary: int
    width: int
    layers: int
    heads: int
    key_heads: int
    depth: int
    mlp_width: int
    context: int
    epsilon: float
    rotary_base: float
    is_tied: bool

    @property
    def qkv_columns(self):
        return (self.heads + 2 * self.key_heads) * self.depth

    def flops_per_token(self, parameters, length):
        """Operations of a token, as `Trainer::flops_per_token` of `tma-training` counts them."""
        looked_up = self.context * self.width if self.is_gpt2 else 0
        looked_up += 0 if self.is_tied else self.vocabulary * self.width
        attention = 12 * self.layers * self.heads * self.depth * length // 2
        return 6 * (parameters - looked_up) + attention


def shape_of(config):
    """The extents in a `config.json`."""
    if config["model_type"] == "gpt2":
        width, heads = config["n_embd"], config["n_head"]
        return Shape(
            is_gpt2=True, vocabulary=config["vocab_size"], width=width, layers=config["n_layer"],
            heads=heads, key_heads=heads, depth=width // heads, mlp_width=config["n_inner"],
            context=config["n_positions"], epsilon=config["layer_norm_epsilon"], rotary_base=0.0,
            is_tied=True)
    return Shape(
        is_gpt2=False, vocabulary=config["vocab_size"], width=config["hidden_size"],
        layers=config["num_hidden_layers"], heads=config["num_attention_heads"],
        key_heads=config["num_key_value_heads"], depth=config["head_dim"],
        mlp_width=config["intermediate_size"], context=config["max_position_embeddings"],
        epsilon=config["rms_norm_eps"], rotary_base=config["rope_theta"],
        is_tied=config["tie_word_embeddings"])


class Norm(nn.Module):
    """LayerNorm or RMSNorm, computed in f32."""

    def __init__(self, shape):
        super().__init__()
        self.epsilon = shape.epsilon
        self.weight = nn.Parameter(torch.ones(shape.width))
        self.bias = nn.Parameter(torch.zeros(shape.width)) if shape.is_gpt2 else None

    def forward(self, x):
        x = x.float()
        if self.bias is not None:
            return F.layer_norm(x, x.shape[-1:], self.weight, self.bias, self.epsilon)
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.epsilon) * self.weight


def attend(q, k, v, repeats_keys):
    """Causal attention; heads are the second dimension.

    With `repeats_keys`, heads of keys are repeated in memory, for kernels that do not share them.
    """
    groups = q.shape[1] // k.shape[1]
    if groups > 1 and repeats_keys:
        k, v = (x.repeat_interleave(groups, dim=1) for x in (k, v))
    shares = groups > 1 and not repeats_keys
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=shares)


def rotate(x, cos, sin):
    """Rotates pairs that consist of an element of the first half and one of the second."""
    a, b = x.float().chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1).to(x.dtype)


def rotary_angles(shape):
    """Angles of positions × pairs."""
    pairs = torch.arange(0, shape.depth, 2, dtype=torch.float64)
    frequencies = shape.rotary_base ** (-pairs / shape.depth)
    return torch.outer(torch.arange(shape.context, dtype=torch.float64), frequencies)


class Block(nn.Module):
    """A layer of a decoder."""

    def __init__(self, shape, repeats_keys):
        super().__init__()
        self.shape, self.repeats_keys = shape, repeats_keys
        width, has_bias = shape.width, shape.is_gpt2
        ups = shape.mlp_width if shape.is_gpt2 else 2 * shape.mlp_width
        self.norm_1, self.norm_2 = Norm(shape), Norm(shape)
        self.qkv = nn.Linear(width, shape.qkv_columns, bias=has_bias)
        self.out = nn.Linear(shape.heads * shape.depth, width, bias=has_bias)
        self.up = nn.Linear(width, ups, bias=has_bias)
        self.down = nn.Linear(shape.mlp_width, width, bias=has_bias)

    def forward(self, x, angles):
        x = x + self.attention(self.norm_1(x), angles)
        return x + self.mlp(self.norm_2(x))

    def attention(self, x, angles):
        batch, length, _ = x.shape
        heads, key_heads, depth = self.shape.heads, self.shape.key_heads, self.shape.depth
        qkv = self.qkv(x).view(batch, length, heads + 2 * key_heads, depth).transpose(1, 2)
        q, k, v = qkv.split([heads, key_heads, key_heads], dim=1)
        if angles is not None:
            q, k = (rotate(part, *angles) for part in (q, k))
        attended = attend(q, k, v, self.repeats_keys)
        return self.out(attended.transpose(1, 2).reshape(batch, length, heads * depth))

    def mlp(self, x):
        if self.shape.is_gpt2:
            return self.down(F.gelu(self.up(x), approximate="tanh"))
        gate, up = self.up(x).chunk(2, dim=-1)
        return self.down(F.silu(gate) * up)


class Decoder(nn.Module):
    """GPT-2 or Llama, with the mean loss of a batch as its result.

    `residual` is the type of the sums that layers add to.
    """

    def __init__(self, shape, residual, repeats_keys):
        super().__init__()
        self.shape, self.residual = shape, residual
        self.embedding = nn.Embedding(shape.vocabulary, shape.width)
        self.positions = nn.Embedding(shape.context, shape.width) if shape.is_gpt2 else None
        self.blocks = nn.ModuleList(Block(shape, repeats_keys) for _ in range(shape.layers))
        self.last_norm = Norm(shape)
        self.head = None if shape.is_tied else nn.Linear(shape.width, shape.vocabulary, bias=False)
        if not shape.is_gpt2:
            angles = rotary_angles(shape)
            self.register_buffer("cos", angles.cos().float())
            self.register_buffer("sin", angles.sin().float())

    def forward(self, tokens, labels):
        x = self.embedding(tokens)
        length = tokens.shape[1]
        angles = None
        if self.positions is not None:
            x = x + self.positions.weight[:length]
        else:
            angles = self.cos[:length], self.sin[:length]
        x = x.to(self.residual)
        for block in self.blocks:
            x = block(x, angles)
        return self.loss(x, labels)

    def loss(self, x, labels):
        weight = self.embedding.weight if self.head is None else self.head.weight
        logits = F.linear(self.last_norm(x), weight)
        return F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())

    def compiled(self, mode, by_layer):
        """Compiles the model as a whole, or each layer, all of which share the result."""
        if not by_layer:
            return torch.compile(self, mode=mode, dynamic=False)
        for block in self.blocks:
            block.compile(mode=mode, dynamic=False)
        self.loss = torch.compile(self.loss, mode=mode, dynamic=False)
        return self


def sources(name, shape):
    """The names of Hugging Face for a parameter of `Decoder`, which is made of these tensors."""
    first, *rest = name.split(".")
    if first != "blocks":
        return [f"{(GPT2_TOP if shape.is_gpt2 else LLAMA_TOP)[first]}.{rest[-1]}"]
    layer, part, end = rest
    prefix = f"transformer.h.{layer}" if shape.is_gpt2 else f"model.layers.{layer}"
    return [f"{prefix}.{each}.{end}" for each in (GPT2 if shape.is_gpt2 else LLAMA)[part]]


def is_transposed(name, shape):
    """Whether the checkpoint has a matrix with inputs first, as `Conv1D` of GPT-2."""
    return shape.is_gpt2 and name.startswith("blocks.") and name.endswith(".weight") and (
        ".norm_" not in name)


@torch.no_grad()
def load(model, path):
    """Copies the f32 parameters of an `optimizer.safetensors` to a `Decoder`."""
    with safe_open(path, framework="pt") as file:
        unused = {name for name in file.keys() if name.startswith("master.")}
        for name, parameter in model.named_parameters():
            names = [f"master.{source}" for source in sources(name, model.shape)]
            found = torch.cat([file.get_tensor(each) for each in names])
            found = found.T if is_transposed(name, model.shape) else found
            if found.shape != parameter.shape:
                raise ValueError(f"{names} of {path}: {found.shape} is not {parameter.shape}")
            parameter.copy_(found)
            unused -= set(names)
    if unused:
        raise ValueError(f"{path} has tensors that the model has not: {sorted(unused)}")
