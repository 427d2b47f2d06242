#!/usr/bin/env python3
"""Measures Hugging Face transformers at the shapes of `tma-model-bench`: weights of noise, bf16,
compiled by torch, with a static cache and CUDA graphs. Prints a JSON line for each result, of the same
form. Between its own measurements it runs those of `tma-model-bench`, if `--ours` names it.

    python torch_rivals.py --ours ./tma-model-bench --shape llama-3-8b --batches 1,16,64
"""

import argparse
import json
import statistics
import subprocess
import time

import torch
import transformers

SHAPES = {
    "llama-3-8b": ("LlamaConfig", dict(
        vocab_size=128256, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32,
        num_key_value_heads=8, max_position_embeddings=16384, rms_norm_eps=1e-5, rope_theta=500000.0)),
    "qwen3-8b": ("Qwen3Config", dict(
        vocab_size=151936, hidden_size=4096, intermediate_size=12288, num_hidden_layers=36, num_attention_heads=32,
        num_key_value_heads=8, head_dim=128, max_position_embeddings=16384, rms_norm_eps=1e-6, rope_theta=1000000.0)),
    "qwen3-30b-a3b": ("Qwen3MoeConfig", dict(
        vocab_size=151936, hidden_size=2048, intermediate_size=6144, num_hidden_layers=48, num_attention_heads=32,
        num_key_value_heads=4, head_dim=128, num_experts=128, num_experts_per_tok=8, moe_intermediate_size=768,
        norm_topk_prob=True, max_position_embeddings=16384, rms_norm_eps=1e-6, rope_theta=1000000.0)),
}


def decode(model, batch, context, steps, rounds):
    """Milliseconds of a step of greedy decoding."""
    cache = transformers.StaticCache(config=model.config, max_cache_len=context + steps * rounds + 64)
    tokens = torch.randint(0, model.config.vocab_size, (batch, context), device="cuda")
    with torch.no_grad():
        for first in range(0, context, 1024):  # the prompt, in parts that fit
            position = torch.arange(first, min(first + 1024, context), device="cuda")
            output = model(tokens[:, first:first + 1024], past_key_values=cache, cache_position=position,
                           position_ids=position[None], logits_to_keep=1)
        token = output.logits[:, -1:].argmax(-1)

        def step(token, position):
            output = model(token, past_key_values=cache, cache_position=position, position_ids=position[None])
            return output.logits[:, -1:].argmax(-1)

        compiled = torch.compile(step, mode="reduce-overhead", fullgraph=True)
        position = torch.tensor([context], device="cuda")
        found = []
        for i in range(8 + steps * rounds):
            if i >= 8 and (i - 8) % steps == 0:
                torch.cuda.synchronize()
                start = time.perf_counter()
            token = compiled(token, position).clone()
            position += 1
            token.cpu()  # a server sends it
            if i >= 8 and (i - 8) % steps == steps - 1:
                found.append(1e3 * (time.perf_counter() - start) / steps)
    return found


def prefill(model, prompt, rounds):
    """Milliseconds until the first token of a prompt."""
    tokens = torch.randint(0, model.config.vocab_size, (1, prompt), device="cuda")
    found = []
    with torch.no_grad():
        for _ in range(rounds + 1):
            torch.cuda.synchronize()
            start = time.perf_counter()
            model(tokens, logits_to_keep=1, use_cache=True).logits.argmax(-1).cpu()
            found.append(1e3 * (time.perf_counter() - start))
    return found[1:]


def line(shape, what, found, tokens):
    ms = statistics.median(found)
    print(json.dumps({"model": shape, "transformers": transformers.__version__, **what, "ms": ms, "least_ms": min(found),
                      "most_ms": max(found), "tokens_per_s": 1e3 * tokens / ms}), flush=True)


def read_bandwidth():
    """Terabytes a second of a kernel that only reads."""
    numbers = torch.zeros(2**30, dtype=torch.float32, device="cuda")
    found = []
    for _ in range(6):
        torch.cuda.synchronize()
        start = time.perf_counter()
        numbers.sum()
        torch.cuda.synchronize()
        found.append(time.perf_counter() - start)
    return 4 * 2**30 / min(found) / 1e12


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ours")
    parser.add_argument("--shape", default="llama-3-8b", choices=SHAPES)
    parser.add_argument("--batches", default="1,16,64")
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--prompt", type=int, default=8192)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()

    def ours():
        if options.ours:
            subprocess.run([options.ours, "--shape", options.shape, "--batches", options.batches, "--context",
                            str(options.context), "--steps", str(options.steps), "--prompt", str(options.prompt),
                            "--rounds", str(options.rounds)], check=False)

    print(json.dumps({"device": torch.cuda.get_device_name(), "read_tb_per_s": read_bandwidth()}), flush=True)
    torch.cuda.empty_cache()
    ours()
    kind, settings = SHAPES[options.shape]
    torch.set_default_dtype(torch.bfloat16)
    torch.set_float32_matmul_precision("high")
    with torch.device("cuda"):
        model = transformers.AutoModelForCausalLM.from_config(getattr(transformers, kind)(**settings))
    model = model.eval()
    for batch in map(int, options.batches.split(",")):
        found = decode(model, batch, options.context, options.steps, options.rounds)
        line(options.shape, {"decode": batch, "context": options.context}, found, batch)
    found = prefill(model, options.prompt, options.rounds)
    line(options.shape, {"prompt": options.prompt}, found, options.prompt)
    del model
    torch.cuda.empty_cache()
    ours()


if __name__ == "__main__":
    main()
