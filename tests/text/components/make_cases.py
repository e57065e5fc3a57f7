#!/usr/bin/env python3
"""Runs single components of Hugging Face tokenizers over texts and writes what they do to cases.json.

    python3 -m venv /tmp/v && /tmp/v/bin/pip install tokenizers==0.23 && /tmp/v/bin/python make_cases.py
"""
import json
import pathlib

import tokenizers

TEXTS = ["", " ", "Hello, World!", "  two  spaces ", "tab\tand\nlines\r\n", "don't can't I'LL", "abc123def 4567 ١٢٣ ²",
         "Ünïcödé e\u0301 ﬁ Å ẞ İstanbul ΑΣ", "中文字符 and 日本語テキスト", "🙂👍🏽 a\u200db \u00a0nbsp\u3000wide",
         "a.b,c;d!e?f-g_h (i) [j] {k} «l» ¿m? …", "▁meta▁space", "x+y=z $5 ~10% ^caret `tick`", "\u0000ctl\u0007 \ufffd",
         "ｆｕｌｌ　ｗｉｄｔｈ ㎏ ½", "aaa  bbb   ccc"]
NORMALIZERS = [
    {"type": "NFC"}, {"type": "NFD"}, {"type": "NFKC"}, {"type": "NFKD"}, {"type": "Lowercase"}, {"type": "StripAccents"},
    {"type": "Strip", "strip_left": True, "strip_right": True}, {"type": "Strip", "strip_left": True, "strip_right": False},
    {"type": "Strip", "strip_left": False, "strip_right": True}, {"type": "Prepend", "prepend": "▁"}, {"type": "Nmt"},
    {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
    {"type": "Replace", "pattern": {"Regex": "[a-c]+"}, "content": "<>"}, {"type": "ByteLevel"},
    {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
    {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": False, "strip_accents": None,
     "lowercase": False},
    {"type": "BertNormalizer", "clean_text": False, "handle_chinese_chars": True, "strip_accents": True,
     "lowercase": False},
    {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"}]},
]
BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
PRETOKENIZERS = [
    {"type": "BertPreTokenizer"}, {"type": "Whitespace"}, {"type": "WhitespaceSplit"},
    {"type": "CharDelimiterSplit", "delimiter": "a"},
    {"type": "Digits", "individual_digits": True}, {"type": "Digits", "individual_digits": False},
    {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
    {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
    {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": False},
    {"type": "Sequence", "pretokenizers": [
        {"type": "Punctuation", "behavior": "Contiguous"},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        {"type": "Digits", "individual_digits": False}]},
] + [{"type": "Punctuation", "behavior": b} for b in BEHAVIORS] + [
    {"type": "Split", "pattern": {"Regex": r"\s+|\d"}, "behavior": b, "invert": i} for b in BEHAVIORS for i in (False, True)
] + [{"type": "Split", "pattern": {"String": "a."}, "behavior": "Isolated", "invert": False}] + [
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": p, "split": s}
    for p in ("always", "never", "first") for s in (True, False)]
TOKENS = [[], ["Hello"], ["▁Hel", "lo", "▁", "wor", "▁ld"], ["Ġa", "b", "Ċ", "Ã©", "not byte"], ["a", "##b", ".", "do", "not", "'s", "!"],
          ["<0xE4>", "<0xB8>", "<0xAD>", "x", "<0xFF>", "<0x41>", "<0xC3>"], ["  a ", "a</w>", "b</w>"], ["▁▁a", "▁b"]]
DECODERS = [
    {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}, {"type": "ByteFallback"},
    {"type": "Fuse"}, {"type": "WordPiece", "prefix": "##", "cleanup": True},
    {"type": "WordPiece", "prefix": "##", "cleanup": False}, {"type": "BPEDecoder", "suffix": "</w>"},
    {"type": "Strip", "content": " ", "start": 1, "stop": 1}, {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
    {"type": "Replace", "pattern": {"Regex": "[ab]+"}, "content": "*"},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never", "split": True},
    {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"},
                                      {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
    {"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "Replace", "pattern": {"String": "a"}, "content": "A"}]},
    {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Replace", "pattern": {"String": "x"}, "content": "y"}]},
]


def tokenizer(**parts):
    base = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
            "pre_tokenizer": None, "post_processor": None, "decoder": None,
            "model": {"type": "BPE", "vocab": {}, "merges": []}}
    return tokenizers.Tokenizer.from_str(json.dumps({**base, **parts}))


def main():
    out = {"made_by": "tokenizers " + tokenizers.__version__, "normalizers": [], "pre_tokenizers": [], "decoders": []}
    for config in NORMALIZERS:
        n = tokenizer(normalizer=config).normalizer
        out["normalizers"].append({"config": config, "cases": [[t, n.normalize_str(t)] for t in TEXTS]})
    for config in PRETOKENIZERS:
        p = tokenizer(pre_tokenizer=config).pre_tokenizer
        out["pre_tokenizers"].append(
            {"config": config, "cases": [[t, [w for w, _ in p.pre_tokenize_str(t)]] for t in TEXTS]})
    for config in DECODERS:
        d = tokenizer(decoder=config).decoder
        out["decoders"].append({"config": config, "cases": [[t, d.decode(t)] for t in TOKENS]})
    path = pathlib.Path(__file__).parent / "cases.json"
    path.write_text(json.dumps(out, ensure_ascii=False, indent=None).replace('{"config"', '\n{"config"') + "\n", encoding="utf-8")


main()
