#!/usr/bin/env python3
"""Writes what Hugging Face transformers computes for small models: `reference/MODEL.json`.

Weights are numbers that a formula gives (`noise`), which the tests repeat, so that the files hold only
a model's configuration, the names and shapes of its tensors, and results: logits at some positions of
a prompt, and the tokens of greedy decoding. Everything runs in f32 on the CPU; weights are multiples of
2^-8 that bf16 holds exactly.

    python transformers_reference.py OUTPUT_FOLDER [MODEL ..]
"""

import json
import pathlib
import sys
import tempfile

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file

PROMPT = "The tensor memory accelerator"
NEW_TOKENS = 12
LEAST_MARGIN = 0.06  # of the logits' standard deviation; rounding to bf16 moves them by 0.01 to 0.02
LEAST_EXPERT_MARGIN = 0.03  # of router logits' standard deviation, between the last expert chosen and the next
KEPT_POSITIONS = [0, 7, 17, -1]
SENTENCES = [PROMPT, "A shorter text", "é"]  # of different lengths
VOCABULARY = 264  # bytes and eight more

SMALL = dict(vocab_size=VOCABULARY, hidden_size=64, num_hidden_layers=2, max_position_embeddings=128)
HEADS = dict(num_attention_heads=4, num_key_value_heads=2, intermediate_size=96)
LLAMA3 = dict(rope_type="llama3", rope_theta=10000.0, factor=4.0, low_freq_factor=1.0,
              high_freq_factor=4.0, original_max_position_embeddings=32)
YARN = dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=32)

MODELS = {
    "llama2": ("LlamaConfig", {**SMALL, **HEADS, "num_key_value_heads": 4}),
    "llama3": ("LlamaConfig", {**SMALL, **HEADS, "rope_parameters": LLAMA3, "tie_word_embeddings": True}),
    "qwen2": ("Qwen2Config", {**SMALL, **HEADS, "rope_parameters": YARN}),
    "qwen3": ("Qwen3Config", {**SMALL, **HEADS, "head_dim": 64, "tie_word_embeddings": True}),
    "qwen3_moe": ("Qwen3MoeConfig", {**SMALL, **HEADS, "head_dim": 32, "num_experts": 8, "num_experts_per_tok": 2,
                                     "moe_intermediate_size": 40, "decoder_sparse_step": 2, "norm_topk_prob": False}),
    "mixtral": ("MixtralConfig", {**SMALL, **HEADS, "num_local_experts": 4, "num_experts_per_tok": 2}),
    "mistral": ("MistralConfig", {**SMALL, **HEADS, "sliding_window": 16, "head_dim": 32}),
    "gemma2": ("Gemma2Config", {**SMALL, **HEADS, "head_dim": 32, "sliding_window": 16, "query_pre_attn_scalar": 24,
                                "attn_logit_softcapping": 5.0, "final_logit_softcapping": 30.0}),
    "gpt2": ("GPT2Config", {"vocab_size": VOCABULARY, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 128,
                            "bos_token_id": 256, "eos_token_id": 256}),
    "bert": ("BertConfig", {**SMALL, "num_attention_heads": 4, "intermediate_size": 96, "type_vocab_size": 2}),
    "minilm": ("BertConfig", {**SMALL, "hidden_size": 96, "num_attention_heads": 3, "intermediate_size": 192}),
}


def mixed(words):
    """SplitMix64's output function, of u64."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def seed(name):
    """FNV-1a of a tensor's name."""
    found = 0xCBF29CE484222325
    for byte in name.encode():
        found = (found ^ byte) * 0x100000001B3 % 2**64
    return found


def noise(name, count):
    """Multiples of 1/128 from -1 up to, but without, 1."""
    with np.errstate(over="ignore"):
        index = np.arange(1, count + 1, dtype=np.uint64)
        words = mixed(np.uint64(seed(name)) + index * np.uint64(0x9E3779B97F4A7C15))
    return (words >> np.uint64(56)).astype(np.float32) / 128 - 1


def weight(name, shape):
    """The numbers of a tensor: norms are near their neutral element, others small."""
    numbers = torch.from_numpy(noise(name, int(np.prod(shape)))).reshape(shape)
    is_norm = "norm" in name.lower() or ".ln_" in name
    if is_norm and name.endswith("weight"):
        return numbers / 2 if "gemma" in name else 1 + torch.floor(numbers * 64) / 128
    if len(shape) == 1:
        return numbers / 4
    return numbers / 8 if "embed" in name or "wte" in name or "wpe" in name else numbers / 4


def with_noise(name, model_class, config):
    """A model whose files have noise, loaded from them, and the names and shapes of its tensors."""
    with tempfile.TemporaryDirectory() as folder:
        model_class.from_config(config).save_pretrained(folder)
        file = pathlib.Path(folder) / "model.safetensors"
        shapes = {key: list(value.shape) for key, value in load_file(file).items()}
        numbers = {key: weight(f"{name}.{key}", shape) for key, shape in shapes.items()}
        save_file(numbers, file, metadata={"format": "pt"})
        written = json.loads((pathlib.Path(folder) / "config.json").read_text())
        model = model_class.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    return model.eval(), {"config": written, "tensors": sorted(shapes.items())}


def byte_tokenizer():
    """A tokenizer of bytes, without merges."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: i for i, letter in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(f"<|special{i}|>", special=True) for i in range(8)])
    return tokenizer


def watch_routers(model):
    """A list to which each pass appends the margins of all routers' choices."""
    margins = []

    def note(router, _, output):
        logits = output[0]
        best = logits.topk(router.top_k + 1).values
        margins.append(((best[:, -2] - best[:, -1]) / logits.std()).min())

    for module in model.modules():
        if type(module).__name__.endswith("TopKRouter"):
            module.register_forward_hook(note)
    return margins


def decoder(model, tokens):
    """Logits of a prompt, and the tokens that greedy decoding appends, with the margins of each."""
    with torch.no_grad():
        logits = model(torch.tensor([tokens])).logits[0]
        continued, margins = list(tokens), []
        for _ in range(NEW_TOKENS):
            last = model(torch.tensor([continued])).logits[0, -1]
            best = last.topk(2)
            margins.append((best.values[0] - best.values[1]) / last.std())
            continued.append(int(best.indices[0]))
    return {"logits": rounded(logits[KEPT_POSITIONS]), "greedy": continued[len(tokens):], "margins": rounded(torch.stack(margins))}


def encoder(model, tokens):
    """Hidden states of a prompt."""
    with torch.no_grad():
        return {"states": rounded(model(torch.tensor([tokens])).last_hidden_state[0, KEPT_POSITIONS])}


def sentences(model, tokenizer):
    """Embeddings of sentences: the means of their hidden states, with a norm of 1."""
    with torch.no_grad():
        means = [model(torch.tensor([tokenizer.encode(text).ids])).last_hidden_state[0].mean(0) for text in SENTENCES]
    return list(zip(SENTENCES, rounded(torch.nn.functional.normalize(torch.stack(means)))))


def bf16_error(model, tokens, results):
    """The greatest error of the same model in bf16, relative to the standard deviation of a position."""
    with torch.no_grad():
        output = model.bfloat16()(torch.tensor([tokens]))
    found = (output.logits if "logits" in results else output.last_hidden_state)[0, KEPT_POSITIONS].float()
    exact = torch.tensor(results.get("logits", results.get("states")))
    if "logits" in results:
        found, exact = found.log_softmax(-1), exact.log_softmax(-1)
    return float(((found - exact).abs().amax(-1) / exact.std(-1)).max())


def rounded(values):
    """Numbers with five digits."""
    if values.dim() > 1:
        return [rounded(row) for row in values]
    return [float(f"{value:.5g}") for value in values.tolist()]


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = byte_tokenizer()
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    tokens = tokenizer.encode(PROMPT).ids
    for name in sys.argv[2:] or MODELS:
        kind, options = MODELS[name]
        config = getattr(transformers, kind)(**options)
        is_encoder = kind == "BertConfig"
        model_class = transformers.AutoModel if is_encoder else transformers.AutoModelForCausalLM
        for salt in range(1000):  # until no choice of a token is a close one
            model, written = with_noise(f"{name}{salt}", model_class, config)
            of_experts = watch_routers(model)
            results = (encoder if is_encoder else decoder)(model, tokens)
            are_experts_clear = min(of_experts, default=1.0) >= LEAST_EXPERT_MARGIN
            if are_experts_clear and min(results.get("margins", [1.0])) >= LEAST_MARGIN:
                break
        if is_encoder:
            results["sentences"] = sentences(model, tokenizer)
        written |= {"name": f"{name}{salt}", "bf16_error": bf16_error(model, tokens, results)}
        written |= {"transformers": transformers.__version__, "prompt": PROMPT, "tokens": tokens, **results}
        (folder / f"{name}.json").write_text(json.dumps(written) + "\n")
        print(name, len(written["tensors"]), results.get("greedy"), results.get("margins"), flush=True)


if __name__ == "__main__":
    main()
