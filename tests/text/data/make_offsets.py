#!/usr/bin/env python3
"""Stores where Hugging Face tokenizers says each token comes from, for the texts of the test data, as byte ranges.

    python3 -m venv /tmp/v && /tmp/v/bin/pip install tokenizers==0.23.3
    /tmp/v/bin/python make_offsets.py ../../../../shared/data     (the folder with tokenizers/*/cases.json)

offsets.json: {"bpe_gpt2": [[begin, end, begin, end, ...] of the first text, ...], ...}, special tokens not added.
"""
import json
import pathlib
import sys

import tokenizers

KINDS = ["bpe_gpt2", "bpe_llama2", "bpe_llama3", "bpe_qwen", "unigram", "wordpiece_bert"]


def main():
    out = {"made_by": "tokenizers " + tokenizers.__version__}
    for kind in KINDS:
        folder = pathlib.Path(sys.argv[1]) / "tokenizers" / kind
        tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        rows = []
        for case in json.loads((folder / "cases.json").read_text(encoding="utf-8")):
            text = case["text"]
            at = [0]  # the byte each character begins at
            for c in text:
                at.append(at[-1] + len(c.encode()))
            e = tokenizer.encode(text, add_special_tokens=False)
            assert e.ids == case["ids_no_special"]
            rows.append([at[i] for pair in e.offsets for i in pair])
        out[kind] = rows
    text = json.dumps(out, separators=(",", ":")).replace('"bpe', '\n"bpe').replace('"uni', '\n"uni').replace('"word', '\n"word')
    (pathlib.Path(__file__).parent / "offsets.json").write_text(text + "\n")


main()
