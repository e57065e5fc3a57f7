#!/usr/bin/env python3
"""The commands over language models from outside: what they print, write and refuse.

usage: cli.py RLX ROOT"""
import json
import os
import subprocess
import sys
import tempfile

RLX, ROOT = sys.argv[1], sys.argv[2]
DATA = os.environ.get("RLX_DATA") or os.path.join(ROOT, "../shared/data")
MODEL = f"{DATA}/gguf/qwen2-Q8_0.gguf"
failures = []


def check(name, condition, text=""):
    if not condition:
        failures.append(name)
        print(f"FAILED {name}: {text}")


def run(*args, text=None):
    return subprocess.run([RLX, *map(str, args)], capture_output=True, text=True, errors="replace", input=text)


def good(name, *args, text=None):
    done = run(*args, text=text)
    check(name, done.returncode == 0, f"exit {done.returncode}: {done.stderr}")
    return done.stdout


def refused(name, message, *args, code=1, text=None):
    done = run(*args, text=text)
    check(name, done.returncode == code and message in done.stderr, f"exit {done.returncode}: {done.stderr}")


def write(path, text):
    with open(path, "w") as f:
        f.write(text)
    return path


def texts(folder):
    """One file of text, one of talks."""
    plain = write(f"{folder}/plain.txt", "the cat sat on the mat and the dog sat on the log. " * 40)
    talks = [{"prompt": f"question {i}", "completion": f" answer {i * i}"} for i in range(12)]
    return plain, write(f"{folder}/talks.jsonl", "".join(json.dumps(t) + "\n" for t in talks))


def check_generate():
    once = good("generate", "generate", MODEL, "-p", "the cat", "-n", 12, "-q")
    check("generate twice", good("generate", "generate", MODEL, "-p", "the cat", "-n", 12, "-q") == once)
    told = json.loads(good("generate --json", "generate", MODEL, "-p", "the cat", "-n", 12, "--json"))
    check("generate --json", len(told["tokens"]) == 12, told)
    # Guesses change nothing, whoever makes them.
    for extra in (["--lookup", 4], ["--draft", f"{DATA}/gguf/qwen2-F16.gguf", "--draft-tokens", 3]):
        check(f"generate {extra[0]}", good("generate", "generate", MODEL, "-p", "the cat", "-n", 12, "-q", *extra) == once)
    exact = good("generate --activations f32", "generate", MODEL, "-p", "the cat", "-n", 12, "--json", "--activations", "f32")
    check("activations in f32 change probabilities", json.loads(exact)["log_probabilities"] != told["log_probabilities"])
    refused("a draft with other tokens", "vocabulary of", "generate", MODEL, "-p", "x", "--draft", f"{DATA}/gguf/gemma3-F16.gguf")
    refused("no draft head", "has no draft head", "generate", MODEL, "-p", "x", "--mtp", 2)
    refused("generate without a model", "no-such-model", "generate", "no-such-model", "-p", "x")


def check_named(folder):
    """Models by their names in the cache."""
    cache = f"{folder}/cache"
    os.makedirs(f"{cache}/rlx/models")
    os.symlink(os.path.abspath(MODEL), f"{cache}/rlx/models/tiny.gguf")
    with_cache = dict(os.environ, XDG_CACHE_HOME=cache)
    with_cache.pop("RLX_MODELS", None)

    def named(*args):
        return subprocess.run([RLX, *map(str, args)], capture_output=True, text=True, errors="replace", env=with_cache)

    check("models", "tiny" in named("models").stdout)
    ids = f"{DATA}/gguf/qwen2-Q8_0.expected.safetensors"
    for args in (["logits", "tiny", "-i", ids, "-o", f"{folder}/named.safetensors"], ["inspect", "tiny"],
                 ["generate", "tiny", "-p", "the", "-n", 2, "-q"]):
        done = named(*args)
        check(f"{args[0]} by name", done.returncode == 0, done.stderr)


def check_chat():
    said = good("chat", "chat", MODEL, "-n", 4, text="/temp abc\n/temp\n/tokens 0\n/tokens 3\n/retry\n/nothing\n/stats\n/quit\n")
    for line in ("/temp: 'abc' is not a number from 0 on", "/temp: '' is not a number", "/tokens: '0' is not a number from 1 on",
                 "/retry: there is no message yet", "unknown command '/nothing'; /help lists them", "no answer yet"):
        check("chat", line in said, f"{line!r} is not in {said!r}")


def check_imatrix(folder, plain):
    file = f"{folder}/importance.gguf"
    good("imatrix", "imatrix", f"{DATA}/gguf/qwen2-F16.gguf", plain, "-o", file, "-c", 32, "--progress", "none")
    good("imatrix --add", "imatrix", f"{DATA}/gguf/qwen2-F16.gguf", plain, "-o", f"{folder}/more.dat", "-c", 32, "--add", file,
         "--progress", "none")
    codes = {}
    for kind, extra in (("plain", []), ("weighted", ["--imatrix", file]), ("older", ["--imatrix", f"{folder}/more.dat"])):
        out = f"{folder}/{kind}.gguf"
        told = good(f"quantize {kind}", "quantize", f"{DATA}/gguf/qwen2-F16.gguf", out, "Q4_0", "--progress", "none", *extra)
        check(f"quantize {kind}", ("weighed by importance" in told) == bool(extra), told)
        with open(out, "rb") as f:
            codes[kind] = f.read()[-50000:]  # behind what tells where the importance is from
    check("importance changes codes", codes["plain"] != codes["weighted"])
    # The older form rounds each sum to f32, which decides a code or two that were on the edge.
    other = sum(a != b for a, b in zip(codes["older"], codes["weighted"]))
    check("both forms of the file say the same", other <= 20, f"{other} of 50000 bytes differ")
    refused("imatrix of a text that is too short", "imatrix", "imatrix", MODEL, write(f"{folder}/short", ""), "-o", file)


def check_finetune(folder, plain, talks):
    common = ["-c", 24, "-b", 2, "--rank", 4, "--lr", "0.005", "--schedule", "constant", "--progress", "none"]
    told = json.loads(good("finetune", "finetune", MODEL, plain, "-o", f"{folder}/a", "--steps", 12, *common, "--held-back", "0.2",
                           "--json"))
    check("finetune learns", told["held_back_after"] < told["held_back_before"] and len(told["loss"]) == 12, told)
    for file in ("adapter_config.json", "adapter_model.safetensors", "checkpoint.safetensors"):
        check("finetune writes", os.path.exists(f"{folder}/a/{file}"), file)
    # Stopped halfway and gone on: the same adapter.
    good("finetune half", "finetune", MODEL, plain, "-o", f"{folder}/b", "--steps", 12, *common)
    good("finetune, first part", "finetune", MODEL, plain, "-o", f"{folder}/c", "--steps", 12, "--save-every", 6, *common)
    again = json.loads(good("finetune --resume", "finetune", MODEL, plain, "-o", f"{folder}/c", "--steps", 12, *common, "--resume",
                            "--json"))
    check("nothing is left to do", again["loss"] == [] and again["steps"] == 12, again)
    with open(f"{folder}/b/adapter_model.safetensors", "rb") as b, open(f"{folder}/c/adapter_model.safetensors", "rb") as c:
        check("the same adapter", b.read() == c.read())
    refused("another run", "is of another run", "finetune", MODEL, plain, "-o", f"{folder}/c", "--steps", 12, *common, "--seed", 9,
            "--resume")
    good("finetune talks", "finetune", MODEL, talks, "-o", f"{folder}/d", "--steps", 2, *common, "--target", "q_proj,v_proj")
    refused("unknown target", "has no products 'query'", "finetune", MODEL, plain, "-o", f"{folder}/e", *common, "--target", "query")
    bare = good("generate", "generate", MODEL, "-p", "the cat", "-n", 16, "-q")
    tuned = good("generate --adapter", "generate", MODEL, "-p", "the cat", "-n", 16, "-q", "--adapter", f"{folder}/a")
    check("the adapter changes the text", bare != tuned, tuned)


def check_pictures():
    for model in (MODEL, f"{DATA}/checkpoints/bert"):
        picture = good("dot of a model", "dot", model, "--svg")
        check("dot of a model", picture.startswith("<svg") and picture.count("<rect") > 30, picture[:200])


def check_judging(folder, plain):
    told = json.loads(good("perplexity", "perplexity", MODEL, plain, "-w", 32, "--json", "--progress", "none"))
    check("perplexity", told["perplexity"] > 1, told)
    told = json.loads(good("perplexity", "perplexity", MODEL, plain, "--json", "--progress", "none"))
    check("perplexity of a model made for 256 tokens", told["window"] == 256, told)
    for context in (64, 65536):
        memory = json.loads(good("inspect --json", "inspect", MODEL, "--json", "-c", context))["memory"]
        parts = sum(memory[k] for k in ("weights", "packed_weights", "derived_weights", "caches", "prompt_workspace", "program")) - memory["given_back_weights"]
        # A sanitizer's own tables are part of the program.
        most = 1 << (32 if os.environ.get("RLX_SANITIZE") else 28)
        check("inspect tells the memory", memory["resident"] == parts and 0 < memory["program"] < most, memory)
    speed = json.loads(good("bench", "bench", MODEL, "-p", 8, "-n", 4, "-r", 1, "--json"))
    check("bench", speed["prompt"] == 8, speed)


if not os.path.isdir(f"{DATA}/gguf"):
    print(f"skipped: no folder {DATA}/gguf")
    sys.exit(0)
with tempfile.TemporaryDirectory() as scratch:
    plain, talks = texts(scratch)
    check_generate()
    check_named(scratch)
    check_chat()
    check_imatrix(scratch, plain)
    check_finetune(scratch, plain, talks)
    check_pictures()
    check_judging(scratch, plain)
print(f"{len(failures)} failures")
sys.exit(1 if failures else 0)
