#!/usr/bin/env python3
"""Writes the embeddings that Hugging Face transformers computes for ten sentences, in f32 on the CPU.

    python sentence_embeddings.py MODEL_FOLDER > embeddings.json
"""

import json
import sys

import torch
import transformers

SENTENCES = [
    "The tensor memory accelerator copies tiles between global and shared memory.",
    "Tiles of a matrix are moved by a copy engine of the GPU.",
    "A cat sleeps on the warm windowsill.",
    "The kitten is napping in the sun.",
    "How do I reset my password?",
    "I forgot my login and cannot get into my account.",
    "Der Zug nach Köln fährt um halb neun ab.",
    "Stock markets fell sharply on Monday after the central bank raised interest rates by half a percentage point, "
    "while economists warned that inflation would stay high well into the next year.",
    "日本語の文",
    "Yes.",
]


def main():
    tokenizer = transformers.AutoTokenizer.from_pretrained(sys.argv[1])
    model = transformers.AutoModel.from_pretrained(sys.argv[1], dtype=torch.float32).eval()
    batch = tokenizer(SENTENCES, padding=True, truncation=True, max_length=256, return_tensors="pt")
    with torch.no_grad():
        states = model(**batch).last_hidden_state
    mask = batch["attention_mask"].unsqueeze(-1).float()
    embeddings = torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1))
    json.dump(list(zip(SENTENCES, embeddings.tolist())), sys.stdout)


if __name__ == "__main__":
    main()
