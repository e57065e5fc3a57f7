#!/usr/bin/env python3
"""Files, tokenizers, templates and commands that once crashed, lost something or differed (../shared/findings/text), tried
with the built command. Scripts run as they are; what a text describes is built here. What must come stands here.

usage: text.py RLX_COMMAND FOLDER SOURCE_FOLDER"""
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import zlib

RLX, FOLDER, ROOT = (pathlib.Path(w).resolve() for w in sys.argv[1:4])
CORPUS = ROOT / "tests/fuzz/corpus"
MARK = "\u2581"


def run(words, folder, text="", **variables):
    """(exit code, standard output, standard error)"""
    done = subprocess.run([str(w) for w in words], cwd=folder, input=text.encode(), capture_output=True, timeout=120,
                          env={**os.environ, "RLX": str(RLX), **{k: str(v) for k, v in variables.items()}})
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def rlx(folder, *words, text="", code=0):
    got, out, errors = run([RLX, *words], folder, text)
    assert got == code, f"exit {got}, not {code}: {errors}"
    return out if code == 0 else errors


def script(name, folder, **variables):
    """A script as it is; with what it prints as `exit N`."""
    _, out, errors = run(["bash", FOLDER / name], folder, **variables)
    return [int(n) for n in re.findall(r"exit (\d+)", out)], out, errors


def expect(pattern, text):
    assert re.search(pattern, text, re.S), f"{pattern!r} is not in {text!r}"


def gguf(path, **entries):
    """Metadata only: strings, numbers, flags, and lists of one of them."""
    def value(v):
        if isinstance(v, bool):
            return 7, struct.pack("<?", v)
        if isinstance(v, int):
            return 5, struct.pack("<i", v)
        if isinstance(v, float):
            return 6, struct.pack("<f", v)
        if isinstance(v, str):
            return 8, struct.pack("<Q", len(v.encode())) + v.encode()
        kind = value(v[0])[0] if v else 8
        return 9, struct.pack("<IQ", kind, len(v)) + b"".join(value(e)[1] for e in v)

    data = b"GGUF" + struct.pack("<IQQ", 3, 0, len(entries))
    for key, v in entries.items():
        key = key.replace("__", ".").encode()
        kind, packed = value(v)
        data += struct.pack("<Q", len(key)) + key + struct.pack("<I", kind) + packed
    path.write_bytes(data + b"\0" * (-len(data) % 32))
    return path


def byte_tokens():
    """The characters of byte-level vocabularies, in the order of the bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(b) if b in plain else chr(next(others)) for b in range(256)]


def check_01_index_self(folder):
    codes, _, errors = script("01-index-self.sh", folder)
    assert codes == [1, 1] and errors.count("index.json") == 2, (codes, errors)


def check_02_llama3_bos(folder):
    for pre, bos in (("llama-bpe", True), ("llama3", True), ("tekken", True), ("chameleon", True), ("gpt-2", False)):
        file = gguf(folder / "t.gguf", general__architecture="llama", tokenizer__ggml__model="gpt2", tokenizer__ggml__pre=pre,
                    tokenizer__ggml__tokens=[*byte_tokens(), "<|begin_of_text|>"], tokenizer__ggml__token_type=[1] * 256 + [3],
                    tokenizer__ggml__merges=[], tokenizer__ggml__bos_token_id=256)
        assert rlx(folder, "tokenize", file, text="Hi").split() == ["256"] * bos + ["72", "105"], pre


def check_03_phi3_rstrip(folder):
    tokens = ["<unk>", "<s>", "</s>", "<|endoftext|>", "<|user|>", "<|end|>", "<|assistant|>", MARK, "Hi", MARK + "Hi", "H", "i", "\n"]
    file = gguf(folder / "t.gguf", general__architecture="phi3", general__name="Phi-3-mini", tokenizer__ggml__model="llama",
                tokenizer__ggml__tokens=tokens, tokenizer__ggml__scores=[-float(i) for i in range(len(tokens))],
                tokenizer__ggml__token_type=[2, 3, 3, 3, 3, 3, 3] + [1] * 6, tokenizer__ggml__bos_token_id=1,
                tokenizer__ggml__eos_token_id=3, tokenizer__ggml__unknown_token_id=0)
    got = rlx(folder, "tokenize", "--whole", file, text="<|user|>\nHi<|end|>\n<|assistant|>\n")
    assert got.split() == ["1", "4", "9", "5", "6"], got


def check_04_stdout_full(folder):
    codes, _, errors = script("04-stdout-full.sh", folder, TOKENIZER_JSON=CORPUS / "tokenizer_load/bpe.json")
    assert codes == [1, 1, 1] and errors.count("cannot write standard output") == 3, (codes, errors)


def check_05_shrink_sigbus(folder):
    """The cut comes after a quarter of a second: before the file is opened, while it is read, or later. tests/cli/run.py waits
    for the right moment."""
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + struct.pack("<Q", 1) + b"w" + struct.pack("<IQQIQ", 2, 1024, 25600, 0, 0)
    with open(folder / "big", "wb") as out:
        out.write(head + b"\0" * (-len(head) % 32))
        out.truncate(out.tell() + 25600 * 4096)
    codes, out, errors = script("05-shrink-sigbus.sh", folder, BIG=folder / "big")
    assert codes == [0] or (codes == [1] and re.search("became shorter|beyond the end of the file", errors)), (codes, errors)
    assert "tmp" not in out, out


def check_06_tmp_symlink(folder):
    _, out, _ = script("06-tmp-symlink.sh", folder, ANY_SAFETENSORS=CORPUS / "safetensors/small.safetensors")
    assert (folder / "victim").read_text() == "precious\n" and not (folder / "at.npz").is_symlink(), out


def check_07_raw_newline(folder):
    got = rlx(folder, "template", FOLDER / "07-raw-newline.jinja", text='[{"role": "user", "content": "x"}]')
    assert got.rstrip("\n") == (FOLDER / "07-raw-newline.expected").read_text().rstrip("\n"), got


# What jinja2 3.1.6 gives; tests/text/templates/probes.json has hundreds more.
TEMPLATES = [
    ('{{ "<"|safe + "a<b" }}', "<a&lt;b"), ('{{ none|selectattr("a")|list }}', "[]"), ("{{ none|map('upper')|list }}", "[]"),
    ("{{ none|select|list }}{{ none|reject|list }}{{ none|rejectattr('a')|list }}", "[][][]"), ('{{ "%s"|format(1) }}', "1"),
    ('{{ "{}-{}".format(1, "a") }}', "1-a"), ("{{ {1: 2}[1] }}", "2"), ("{% macro f(a, b) %}{{ b }}{{ a }}{% endmacro %}{{ f(*[1, 2]) }}", "21"),
    ('{{ "%s,%d" % ("a", 3) }}', "a,3"), ("{% for k, v in [{'g': 1}, {'g': 2}, {'g': 1}]|groupby('g') %}{{ k }}:{{ v|length }} {% endfor %}", "1:2 2:1 "),
    ("{{ [1, 2, 3]|batch(2, 0)|list }}", "[[1, 2], [3, 0]]"), ("{{ [1, 2, 3]|slice(2)|list }}", "[[1, 2], [3]]"),
    ('{{ "foo bar baz qux"|truncate(9) }}', "foo..."), ('{{ "a b c"|wordcount }}', "3"), ('{{ "abc def"|wordwrap(4) }}', "abc\ndef"),
    ('[{{ "a"|center(5) }}]', "[  a  ]"), ('{{ "a b&c"|urlencode }}', "a%20b%26c"), ('{{ "<p>a  b</p>"|striptags }}', "a b"),
    ('{{ ("<"|e)|forceescape }}', "&amp;lt;"), ('{{ "abc"|attr("nope") is undefined }}', "True"), ("{{ {'a': 1}|pprint }}", "{'a': 1}"),
    ("{{ [7]|random }}", "7"), ("{{ 1500|filesizeformat }}", "1.5 kB"),
    ("{% for n in [{'v': 1, 'c': [{'v': 2, 'c': []}]}] recursive %}{{ n.v }}{{ loop(n.c) }}{% endfor %}", "12"),
    ("{% macro f() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, a=2) }}", "(1,){'a': 2}"), ("{{ dict({'a': 1}, b=2) }}", "{'a': 1, 'b': 2}"),
    ("{{ [5, 6].0 }}", "5"), ("{{ range(3) }}", "range(0, 3)"), ("{{ 0x1f }}", "31"), ('{{ "1f"|int(base=16) }}', "31"),
    ("{{ 'upper' is filter }}{{ 'odd' is test }}{{ ('a'|e) is escaped }}", "TrueTrueTrue"), ('{{ "a-b-c".partition("-") }}', "('a', '-', 'b-c')"),
    ('{{ "a-b-c".rpartition("-") }}', "('a-b', '-', 'c')"), ('{{ "abc".index("c") }}', "2"),
    ('[{{ "a".center(3) }}{{ "a".ljust(3) }}{{ "a".rjust(3) }}]', "[ a a    a]"), ('{{ "7".zfill(3) }}', "007"),
    ('{{ "a1".isalnum() }}{{ "A".isupper() }}{{ "1".isnumeric() }}{{ "1".isdecimal() }}', "TrueTrueTrueTrue"), ('{{ "aB".swapcase() }}', "Ab"),
    ('{{ "a\tb".expandtabs(4) }}', "a   b"),
]


def check_08_jinja_missing(folder):
    for source, wanted in TEMPLATES:
        (folder / "t.jinja").write_text(source)
        got = rlx(folder, "template", "t.jinja", text="[]")
        assert got.rstrip("\n") == wanted.rstrip("\n"), (source, got)


def tokenizer(folder, vocab, **parts):
    """A folder with a tokenizer.json of whole words."""
    model = {"type": "BPE", "vocab": {t: i for i, t in enumerate(vocab)}, "merges": []}
    (folder / "tokenizer.json").write_text(json.dumps({"added_tokens": [], "model": model, **parts}))
    return folder / "tokenizer.json"


def check_09_nfc_11a7(folder):
    for form in ("NFC", "NFKC"):
        file = tokenizer(folder, ["\ub904", "\u11a7"], normalizer={"type": form})
        assert rlx(folder, "tokenize", file, text="\u1105\u116f\u11a7").split() == ["0", "1"], form


def check_10_normalizer_bomb(folder):
    out = run([sys.executable, FOLDER / "10-normalizer-bomb.py"], folder, TOKENIZER_JSON=CORPUS / "tokenizer_load/bpe.json")[1]
    expect(r"returncode=1, .*at most 64 times the text", out)


def check_11_fifo(folder):
    codes, _, errors = script("11-fifo.sh", folder)
    assert codes == [1, 1, 1] and errors.count("is not a regular file") == 2 and "Too many levels" in errors, (codes, errors)
    (folder / "model").mkdir()
    for name in ("tokenizer.json", "chat_template.jinja", "model.safetensors"):
        os.mkfifo(folder / "model" / name)
        assert "is not a regular file" in rlx(folder, "tokenize" if name[0] == "t" else "template" if name[0] == "c" else "inspect",
                                              "model", code=1), name
        (folder / "model" / name).unlink()


def check_12_neox_offsets(folder):
    file = tokenizer(folder, byte_tokens(), post_processor={"type": "ByteLevel", "trim_offsets": True, "add_prefix_space": False},
                     pre_tokenizer={"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True},
                     added_tokens=[{"id": 256, "content": "  ", "special": False, "normalized": True, "lstrip": False, "rstrip": False,
                                    "single_word": False}])
    assert rlx(folder, "tokenize", "--offsets", file, text="  ").split() == ["256:2-2"]


def check_13_gguf_vocab_refused(folder):
    for pre in ("deepseek-llm", "qwen35"):
        file = gguf(folder / "t.gguf", general__architecture="llama", tokenizer__ggml__model="gpt2", tokenizer__ggml__pre=pre,
                    tokenizer__ggml__tokens=byte_tokens(), tokenizer__ggml__token_type=[1] * 256, tokenizer__ggml__merges=[])
        assert rlx(folder, "tokenize", file, text="Hi").split() == ["72", "105"], pre
    file = gguf(folder / "t.gguf", general__architecture="gemma4", tokenizer__ggml__model="gemma4", tokenizer__ggml__bos_token_id=0,
                tokenizer__ggml__tokens=["<bos>", MARK, "a", "b", "ab"], tokenizer__ggml__token_type=[3, 1, 1, 1, 1],
                tokenizer__ggml__merges=["a b"])
    assert rlx(folder, "tokenize", file, text="ab a").split() == ["0", "4", "1", "2"]
    file = gguf(folder / "t.gguf", general__architecture="bert", tokenizer__ggml__model="t5", tokenizer__ggml__tokens=["<unk>", MARK + "a", "[PAD2]"],
                tokenizer__ggml__scores=[0.0, -1.0, 0.0], tokenizer__ggml__token_type=[2, 1, 5], tokenizer__ggml__unknown_token_id=0,
                tokenizer__ggml__add_bos_token=False, tokenizer__ggml__add_eos_token=False)
    assert rlx(folder, "tokenize", file, text="a").split() == ["1"]


def npz_bomb(path, megabytes):
    """One entry of zeros, deflated."""
    head = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({megabytes << 20},), }}"
    head = b"\x93NUMPY\1\0" + struct.pack("<H", 118) + head.ljust(117).encode() + b"\n"
    squeeze, packed, checksum = zlib.compressobj(9, zlib.DEFLATED, -15), b"", zlib.crc32(head)
    packed += squeeze.compress(head)
    zeros = bytes(1 << 20)
    for _ in range(megabytes):
        packed += squeeze.compress(zeros)
        checksum = zlib.crc32(zeros, checksum)
    packed += squeeze.flush()
    sizes = struct.pack("<III", checksum, len(packed), len(head) + (megabytes << 20))
    local = b"PK\3\4" + struct.pack("<HHHHH", 20, 0, 8, 0, 0) + sizes + struct.pack("<HH", 5, 0) + b"a.npy" + packed
    entry = b"PK\1\2" + struct.pack("<HHHHHH", 20, 20, 0, 8, 0, 0) + sizes + struct.pack("<HHHHHII", 5, 0, 0, 0, 0, 0, 0) + b"a.npy"
    path.write_bytes(local + entry + b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(entry), len(local), 0))


def check_14_cli(folder):
    for words in ("--version", "-V", "version"):
        expect(r"^rlx \d+\.\d+", rlx(folder, words))
    expect("inspect", rlx(folder, "help"))
    expect("unknown command 'nosuch'", rlx(folder, "nosuch", code=2))
    expect("did you mean 'inspect'", rlx(folder, "inspec", code=2))
    expect("No such file", rlx(folder, "template", "nofile", code=1))
    small = CORPUS / "safetensors/small.safetensors"
    expect("no chat template", rlx(folder, "template", small, text="[]", code=1))
    (folder / "cut.safetensors").write_bytes(small.read_bytes()[:40])
    expect("safetensors", rlx(folder, "inspect", "cut.safetensors", code=1))
    npz_bomb(folder / "bomb.npz", 512)
    expect(r"536870912", rlx(folder, "inspect", "bomb.npz"))
    limited = run(["bash", "-c", "ulimit -v 400000; exec \"$RLX\" inspect bomb.npz"], folder,
                  RLX_THREADS=1, OMP_NUM_THREADS=1)  # stacks of many threads would count
    assert limited[0] == 0, limited
    (folder / "m2").mkdir()
    (folder / "m2/config.json").write_text('{"model_type": "mamba2", "time_step_limit": [0.0, Infinity]}')
    (folder / "m2/model.safetensors").write_bytes(small.read_bytes())
    expect("mamba2", rlx(folder, "inspect", "m2"))
    (folder / "words").mkdir()
    (folder / "words/vocab.json").write_text(json.dumps({t: i for i, t in enumerate([*byte_tokens(), "ab"])}))
    (folder / "words/merges.txt").write_text("#version: 0.2\na b\n")
    assert rlx(folder, "tokenize", "--truncate", "2", "words", text="ab ab").split() == ["256", "32"]
    for shell in ("bash", "zsh", "fish"):
        expect("rlx", rlx(folder, "completion", shell))
    expect(r"^\.TH RLX", rlx(folder, "man"))
    expect("--progress", rlx(folder, "help", "convert"))
    expect("--pair", rlx(folder, "help", "tokenize"))


def main():
    if not FOLDER.is_dir():
        print(f"no folder {FOLDER}: skipped")
        return 0
    failed = 0
    for stem in sorted({p.stem for p in FOLDER.iterdir() if p.name[0].isdigit()}):
        check = globals().get("check_" + stem.replace("-", "_"))
        with tempfile.TemporaryDirectory() as scratch:
            try:
                assert check, "nothing says what must come"
                check(pathlib.Path(scratch))
                print(f"{stem}: as it should be")
            except (AssertionError, subprocess.SubprocessError) as e:
                failed += 1
                print(f"{stem}: WRONG {e}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
