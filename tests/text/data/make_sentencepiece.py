#!/usr/bin/env python3
"""Trains two small SentencePiece models and stores what the sentencepiece package does with them.

    python3 -m venv /tmp/v && /tmp/v/bin/pip install sentencepiece==0.2.2 gguf==0.19.0
    /tmp/v/bin/python make_sentencepiece.py ../../../../shared/data     (the folder with tokenizers/*/cases.json)

sp_bpe.model      like Llama 2: BPE, byte fallback, text not normalised, every space kept
sp_unigram.model  like T5: Unigram, byte fallback, a normalisation table made from RULES, extra spaces removed
sp_bpe.gguf, sp_unigram.gguf   the same vocabularies as GGUF metadata (models `llama` and `t5`), with a chat template
sp_cases.json     ids and decoded text of each text with each model
"""
import json
import pathlib
import sys
import tempfile

import gguf
import sentencepiece

HERE = pathlib.Path(__file__).parent
# Source and target as in SentencePiece's rule files; a longer source wins over a shorter one.
RULES = {"ﬁ": "fi", "Ａ": "A", "Ｂ": "B", "Ｃ": "C", "　": " ", "\u00a0": " ", "\t": " ", "\n": " ", "…": "...",
         "é": "e\u0301", "e\u0301\u0301": "E", "½": "1/2", "\u200b": "", "㎏": "kg", "ß": "ss", "ẞ": "SS"}
EXTRA = ["ﬁne ＡＢＣ　x\u00a0y\tz…", "cafe\u0301 cafe\u0301\u0301 café", "½ ㎏ Straße ẞ\u200bx", "   many   spaces   ", "▁under▁",
         "\U0001F600 \U00010348 unseen ⵣ", "<s> and </s> in text", "<0x41>", "tail ", "\x00\x01", "a\r\nb", "१२३ 中文字"]
TEMPLATE = ("{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content }}{{ eos_token }}{% endfor %}"
            "{% if add_generation_prompt %}[assistant]{% endif %}")


def train(texts, folder, name, **options):
    source = pathlib.Path(folder) / "text.txt"
    plain = [t for t in texts if t.strip() and t.isascii()]
    source.write_text("\n".join(" ".join(t.split()) for t in plain + EXTRA[:3]), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(source), model_prefix=str(pathlib.Path(folder) / name), vocab_size=600, byte_fallback=True,
        character_coverage=0.999, num_threads=1, hard_vocab_limit=False, minloglevel=2, **options)
    model = (pathlib.Path(folder) / (name + ".model")).read_bytes()
    (HERE / (name + ".model")).write_bytes(model)
    return model


def write_gguf(name, kind, model):
    from sentencepiece import sentencepiece_model_pb2
    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    writer = gguf.GGUFWriter(HERE / (name + ".gguf"), "llama" if kind == "llama" else "t5")
    writer.add_tokenizer_model(kind)
    writer.add_token_list([p.piece for p in proto.pieces])
    writer.add_token_scores([p.score for p in proto.pieces])
    writer.add_token_types([p.type for p in proto.pieces])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_space_prefix(proto.normalizer_spec.add_dummy_prefix)
    writer.add_remove_extra_whitespaces(proto.normalizer_spec.remove_extra_whitespaces)
    writer.add_add_bos_token(kind == "llama")
    writer.add_add_eos_token(kind == "t5")
    if proto.normalizer_spec.precompiled_charsmap:
        writer.add_precompiled_charsmap(proto.normalizer_spec.precompiled_charsmap)
    writer.add_chat_template(TEMPLATE)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    cases = json.loads((pathlib.Path(sys.argv[1]) / "tokenizers/unigram/cases.json").read_text(encoding="utf-8"))
    texts = [c["text"] for c in cases]
    out = {"made_by": "sentencepiece " + sentencepiece.__version__, "models": {}}
    with tempfile.TemporaryDirectory() as folder:
        rules = pathlib.Path(folder) / "rules.tsv"
        code = lambda s: " ".join(f"{ord(c):X}" for c in s)
        rules.write_text("".join(f"{code(a)}\t{code(b)}\n" for a, b in RULES.items()))
        models = {
            "sp_bpe": train(texts, folder, "sp_bpe", model_type="bpe", normalization_rule_name="identity",
                            remove_extra_whitespaces=False, allow_whitespace_only_pieces=True, split_digits=True),
            "sp_unigram": train(texts, folder, "sp_unigram", model_type="unigram", normalization_rule_tsv=str(rules)),
        }
    write_gguf("sp_bpe", "llama", models["sp_bpe"])
    write_gguf("sp_unigram", "t5", models["sp_unigram"])
    for name, model in models.items():
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        rows = []
        for text in EXTRA + texts[::3]:
            ids = processor.encode(text)
            rows.append([text, ids, processor.decode(ids)])
        out["models"][name] = rows
    text = json.dumps(out, ensure_ascii=False).replace("[[", "[\n[").replace("]], ", "]],\n").replace('"], [', '"],\n[')
    (HERE / "sp_cases.json").write_text(text + "\n", encoding="utf-8")


main()
