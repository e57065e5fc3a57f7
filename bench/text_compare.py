"""Encoding speed against Hugging Face tokenizers on one thread, in alternating rounds.

usage: text_compare.py BENCH_PROGRAM DOCUMENTS.json TOKENIZER.json...

DOCUMENTS.json is a list of texts; `text_compare.py --corpus DOCUMENTS.json` writes about 10 MB of them: English from
the licence texts and Python's documentation strings, code from Python's library, and Chinese and Japanese text drawn
from common characters and repeated words.
Needs the Python package `tokenizers`.
"""
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import sysconfig
import time

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"


def corpus(path):
    import ast
    rng = random.Random(1)
    english, code = [], []
    for p in sorted(pathlib.Path("/usr/share/common-licenses").glob("*")):
        english.append(p.read_text(errors="ignore"))
    # Files give either their code or their documentation strings, so that nothing is in the corpus twice.
    files = sorted(p for p in pathlib.Path(sysconfig.get_paths()["stdlib"]).rglob("*.py") if "lib2to3" not in p.parts)
    for i, p in enumerate(files):
        source = p.read_text(errors="ignore")
        if i % 3 == 0:
            code.append(source)
            continue
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)) and ast.get_docstring(node):
                english.append(ast.get_docstring(node))
    han = [chr(0x4E00 + int(rng.paretovariate(0.7) * 37) % 6000) for _ in range(4000)]
    words = ["".join(rng.choice(han) for _ in range(rng.choice([1, 2, 2, 2, 3, 4]))) for _ in range(8000)]
    kana = ["".join(chr(rng.randrange(0x3042, 0x3094)) for _ in range(rng.choice([1, 1, 2, 3]))) for _ in range(400)]
    cjk = []
    for _ in range(12000):
        line = []
        for _ in range(rng.randrange(5, 40)):
            line.append(words[min(int(rng.paretovariate(0.8)), len(words) - 1)])
            if rng.random() < 0.3:
                line.append(rng.choice(kana))
            if rng.random() < 0.15:
                line.append(rng.choice("，。、！？"))
        cjk.append("".join(line) + "\n")
    documents, size = [], 0
    joined = {"e": "\n".join(english), "c": "\n".join(code), "j": "".join(cjk)}
    at = dict.fromkeys(joined, 0)
    while size < 10_000_000:
        kind = rng.choices("ecj", [45, 35, 20])[0]
        length = rng.randrange(500, 6000)
        text = joined[kind][at[kind]:at[kind] + length]
        at[kind] += length
        if not text:
            if all(at[k] >= len(joined[k]) for k in joined):
                break  # nothing is used twice
            continue
        documents.append(text)
        size += len(text.encode())
    json.dump(documents, open(path, "w"))
    print(len(documents), "documents,", size, "bytes")


def main():
    if sys.argv[1] == "--corpus":
        return corpus(sys.argv[2])
    import tokenizers
    program, documents_path, files = sys.argv[1], sys.argv[2], sys.argv[3:]
    documents = json.load(open(documents_path))
    size = sum(len(d.encode()) for d in documents) / 1e6
    print(f"tokenizers {tokenizers.__version__}, {size:.1f} MB")
    for file in files:
        ours, theirs = [], []
        for _ in range(3):
            peer = tokenizers.Tokenizer.from_file(file)  # as ours: one that has not seen the text
            peer.no_truncation()
            peer.no_padding()
            out = subprocess.run([program, documents_path, file, "encode"], capture_output=True, text=True, check=True).stdout
            ours.append(json.loads(out)["value"])
            start = time.perf_counter()
            peer.encode_batch_fast(documents, add_special_tokens=False)
            theirs.append(size / (time.perf_counter() - start))
        a, b = statistics.median(ours), statistics.median(theirs)
        print(f"{file}: ours {a:.1f} MB/s, peer {b:.1f} MB/s, ratio {a / b:.2f}", flush=True)


main()
