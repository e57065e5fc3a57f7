#!/usr/bin/env python3
"""Writes a small vocabulary of ranks in the form of tiktoken and of tekken.json, and the answers of the libraries these
come from. Needs tiktoken and mistral-common.

usage: make_ranked.py
"""
import base64
import collections
import json
import pathlib

import regex
import tiktoken
from mistral_common.tokens.tokenizers.tekken import Tekkenizer

HERE = pathlib.Path(__file__).resolve().parent
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
          r"\s+(?!\S)|\s+")
QWEN = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
TEKKEN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|"
          r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|"
          r"\s*[\r\n]+|\s+(?!\S)|\s+")
TEXT = ("The quick brown fox jumps over the lazy dog. It's the other dog's turn, they'll say; there we are then.\n"
        "In the beginning there was nothing, and then there were things: 123 things, 4567 things and more.\n"
        "def encode(text): return [token for token in text.split()]\n    if there is: then\n\n"
        "中文字符和日本語のテキスト。 Ünïcödé здравствуй мир 🙂🙂 THE END The End\n") * 3
TEXTS = ["", "a", "Hello, world!", "the other things", "there's 12345 things", "  two  spaces ", "\n\n  x\r\n", "I'LL WE'VE it's",
         "中文字符", "日本語のテキスト。", "Ünïcödé é", "🙂👍🏽", "def f(x):\n    return x", "<|eot_id|> [INST] <s>", "thethethe",
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "\u0000\u007f", "ǅ ʰ İ", "www.things.org/there?then=1"]


def ranks(count):
    """All bytes, then the most frequent pair of neighbours again and again."""
    out = [bytes([b]) for b in range(256)]
    words = [[bytes([b]) for b in w.encode()] for w in regex.findall(LLAMA3, TEXT)]
    while len(out) < count:
        pairs = collections.Counter(p for w in words for p in zip(w, w[1:]))
        (left, right), _ = max(pairs.items(), key=lambda item: (item[1], item[0]))
        if left + right not in out:
            out.append(left + right)
        for w in words:
            i = 0
            while i + 1 < len(w):
                if w[i] == left and w[i + 1] == right:
                    w[i:i + 2] = [left + right]
                i += 1
    return out


def main():
    tokens = ranks(420)
    lines = "".join(f"{base64.b64encode(t).decode()} {i}\n" for i, t in enumerate(tokens))
    (HERE / "ranks.tiktoken").write_text(lines)
    mergeable = {t: i for i, t in enumerate(tokens)}
    special = [{"rank": i, "token_str": s, "is_control": True} for i, s in enumerate(
        ["<unk>", "<s>", "</s>", "[INST]", "[/INST]"])]
    tekken = {"config": {"pattern": TEKKEN, "num_vocab_tokens": len(tokens), "default_vocab_size": 400,
                         "default_num_special_tokens": 10, "version": "v3"},
              "vocab": [{"rank": i, "token_bytes": base64.b64encode(t).decode(), "token_str": None}
                        for i, t in enumerate(tokens)],
              "special_tokens": special}
    (HERE / "tekken.json").write_text(json.dumps(tekken, indent=0) + "\n")
    mistral = Tekkenizer.from_file(HERE / "tekken.json")
    cases = []
    encodings = {name: tiktoken.Encoding(name, pat_str=p, mergeable_ranks=mergeable, special_tokens={})
                 for name, p in (("llama3", LLAMA3), ("qwen", QWEN))}
    for text in TEXTS:
        cases.append({"text": text, **{n: e.encode_ordinary(text) for n, e in encodings.items()},
                      "tekken": mistral.encode(text, bos=True, eos=False)})
    (HERE / "ranked_cases.json").write_text(json.dumps(cases, ensure_ascii=True, indent=0) + "\n")


main()
