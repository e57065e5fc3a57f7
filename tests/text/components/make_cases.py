#!/usr/bin/env python3
"""Runs single components of Hugging Face tokenizers over texts and writes what they do to cases.json.

    python3 -m venv /tmp/v && /tmp/v/bin/pip install tokenizers==0.23.3 sentencepiece==0.2.2 protobuf
    /tmp/v/bin/python make_cases.py

The table of the Precompiled normalizer is the one of ../data/sp_unigram.model.
"""
import base64
import json
import pathlib

import tokenizers
from sentencepiece import sentencepiece_model_pb2

MODEL = sentencepiece_model_pb2.ModelProto.FromString((pathlib.Path(__file__).parent / "../data/sp_unigram.model").read_bytes())
CHARSMAP = base64.b64encode(MODEL.normalizer_spec.precompiled_charsmap).decode()

TEXTS = ["", " ", "Hello, World!", "  two  spaces ", "tab\tand\nlines\r\n", "don't can't I'LL", "abc123def 4567 ١٢٣ ²",
         "Ünïcödé e\u0301 ﬁ Å ẞ İstanbul ΑΣ", "中文字符 and 日本語テキスト", "🙂👍🏽 a\u200db \u00a0nbsp\u3000wide",
         "a.b,c;d!e?f-g_h (i) [j] {k} «l» ¿m? …", "▁meta▁space", "x+y=z $5 ~10% ^caret `tick`", "\u0000ctl\u0007 \ufffd",
         "ｆｕｌｌ　ｗｉｄｔｈ ㎏ ½", "aaa  bbb   ccc", "ﬁne ＡＢＣ　x…", "cafe\u0301 e\u0301\u0301 é\u0301", "Straße ẞ\u200bx \u200b"]
NORMALIZERS = [
    {"type": "NFC"}, {"type": "NFD"}, {"type": "NFKC"}, {"type": "NFKD"}, {"type": "Lowercase"}, {"type": "StripAccents"},
    {"type": "Strip", "strip_left": True, "strip_right": True}, {"type": "Strip", "strip_left": True, "strip_right": False},
    {"type": "Strip", "strip_left": False, "strip_right": True}, {"type": "Prepend", "prepend": "▁"}, {"type": "Nmt"},
    {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
    {"type": "Replace", "pattern": {"Regex": "[a-c]+"}, "content": "<>"}, {"type": "ByteLevel"},
    {"type": "Replace", "pattern": {"Regex": "^|(?=b)|$"}, "content": "#"}, {"type": "Replace", "pattern": {"Regex": "a|"}, "content": "#"},
    {"type": "Replace", "pattern": {"String": ""}, "content": "#"},
    {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
    {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": False, "strip_accents": None,
     "lowercase": False},
    {"type": "BertNormalizer", "clean_text": False, "handle_chinese_chars": True, "strip_accents": True,
     "lowercase": False},
    {"type": "Precompiled", "precompiled_charsmap": CHARSMAP},
    {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"}]},
]
BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
PRETOKENIZERS = [
    {"type": "BertPreTokenizer"}, {"type": "Whitespace"}, {"type": "WhitespaceSplit"},
    {"type": "CharDelimiterSplit", "delimiter": "a"},
    {"type": "FixedLength", "length": 5}, {"type": "FixedLength", "length": 1},
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
          ["<0xE4>", "<0xB8>", "<0xAD>", "x", "<0xFF>", "<0x41>", "<0xC3>"], ["  a ", "a</w>", "b</w>"], ["▁▁a", "▁b"],
          ["<pad>", "h", "h", "<pad>", "h", "|", "|", " n't", "a</w>b ", "x<pad>"], ["a ", "b</w> "]]
DECODERS = [
    {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}, {"type": "ByteFallback"},
    {"type": "Fuse"}, {"type": "WordPiece", "prefix": "##", "cleanup": True},
    {"type": "WordPiece", "prefix": "##", "cleanup": False}, {"type": "BPEDecoder", "suffix": "</w>"},
    {"type": "Strip", "content": " ", "start": 1, "stop": 1}, {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
    {"type": "Replace", "pattern": {"Regex": "[ab]+"}, "content": "*"},
    {"type": "Replace", "pattern": {"Regex": "^|$"}, "content": "*"}, {"type": "Replace", "pattern": {"String": ""}, "content": "*"},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never", "split": True},
    {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"},
                                      {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
    {"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "Replace", "pattern": {"String": "a"}, "content": "A"}]},
    {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Replace", "pattern": {"String": "x"}, "content": "y"}]},
    {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "WordPiece", "prefix": "##", "cleanup": False}]},
    {"type": "Sequence", "decoders": [{"type": "BPEDecoder", "suffix": "a"}, {"type": "BPEDecoder", "suffix": "</w>"}]},
    {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": True},
    {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": False},
]
# Post-processors over a byte-level BPE of single characters: [first, second or null] to ids and the rest.
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
LETTERS = "abcdĠĊ?"
PAIR_VOCAB = {**{c: i for i, c in enumerate(LETTERS)}, "ab": 7, "Ġa": 8, "ĠĠ": 9, "<s>": 10, "</s>": 11, "<pad>": 12}
PAIR_MODEL = {"type": "BPE", "vocab": PAIR_VOCAB, "merges": [["a", "b"], ["Ġ", "a"], ["Ġ", "Ġ"]], "unk_token": "?"}
PAIRS = [["ab cd", None], [" ab", None], ["", None], ["a  b\n", None], ["ab", "cd"], [" a b c d a b", " dcba "], ["", "a"],
         ["abcdabcdab", "cd"], ["cd", "abcdabcdab"]]
ROBERTA = {"type": "RobertaProcessing", "sep": ["</s>", 11], "cls": ["<s>", 10], "trim_offsets": True,
           "add_prefix_space": False}
TEMPLATE = {"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "both", "type_id": 1}},
                     {"Sequence": {"id": "B", "type_id": 2}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [10], "tokens": ["<s>"]},
                               "both": {"id": "both", "ids": [11, 10], "tokens": ["</s>", "<s>"]}}}
TRUNCATIONS = [{"direction": d, "max_length": n, "strategy": s, "stride": 0}
               for d, n, s in (("Right", 5, "LongestFirst"), ("Left", 5, "LongestFirst"), ("Right", 6, "LongestFirst"),
                               ("Right", 11, "OnlyFirst"), ("Left", 11, "OnlySecond"))]
PADDINGS = [{"strategy": s, "direction": d, "pad_to_multiple_of": m, "pad_id": 12, "pad_type_id": 1, "pad_token": "<pad>"}
            for s, d, m in (({"Fixed": 8}, "Right", None), ({"Fixed": 8}, "Left", None), ("BatchLongest", "Right", 4),
                            ({"Fixed": 5}, "Left", 4))]
FRAMES = [{"post_processor": p} for p in (
    ROBERTA, {**ROBERTA, "trim_offsets": False}, {**ROBERTA, "add_prefix_space": True},
    {"type": "BertProcessing", "sep": ["</s>", 11], "cls": ["<s>", 10]}, TEMPLATE,
    {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
    {"type": "Sequence", "processors": [BYTE_LEVEL, TEMPLATE]})
] + [{"post_processor": ROBERTA, "truncation": t} for t in TRUNCATIONS
] + [{"post_processor": TEMPLATE, "padding": p} for p in PADDINGS
] + [{"post_processor": ROBERTA, "truncation": TRUNCATIONS[0], "padding": PADDINGS[1]}]


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
    out["frames"] = []
    for parts in FRAMES:
        config = {"added_tokens": [{"id": i, "content": c, "special": True, "single_word": False, "lstrip": False,
                                    "rstrip": False, "normalized": False} for c, i in list(PAIR_VOCAB.items())[-3:]],
                  "pre_tokenizer": BYTE_LEVEL, "model": PAIR_MODEL, **parts}
        t = tokenizer(**config)
        cases = []
        for first, second in PAIRS:
            try:
                e = t.encode(first, second)
            except Exception:
                cases.append([[first, second], None])  # refused
                continue
            offsets = [i for pair in e.offsets for i in pair]  # the texts are ASCII: characters are bytes
            cases.append([[first, second], [e.ids, e.type_ids, e.attention_mask, e.special_tokens_mask, offsets]])
        out["frames"].append({"config": config, "cases": cases})
    path = pathlib.Path(__file__).parent / "cases.json"
    path.write_text(json.dumps(out, ensure_ascii=False, indent=None).replace('{"config"', '\n{"config"') + "\n", encoding="utf-8")


main()
