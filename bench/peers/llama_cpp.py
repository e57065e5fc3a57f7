"""Language models beside llama.cpp (the Python package xllamacpp), on the same GGUF file.

usage: llama_cpp.py greedy RLX FILE [OPTION...]   ten prompts, 32 tokens each: how many texts are the same
       llama_cpp.py speed RLX FILE [OPTION...]    tokens a second of a prompt and of writing, in turns
RLX is the rlx command; OPTIONs go to 'rlx generate' or 'rlx bench'. Prints JSON lines like the other benchmarks.
RLX_PEER_ROUNDS (default 3) turns, RLX_PEER_PROMPT (default 142) tokens of the prompt, 2 threads on either side.
"""
import json
import os
import statistics
import subprocess
import sys

import xllamacpp

PROMPTS = [
    "The three primary colours are", "Once upon a time there was a small dog who", "The capital of France is",
    "To bake bread, you need", "In 1969, two astronauts", "A compiler is a program that",
    "The most important thing about friendship is", "Water boils when", "My favourite season is autumn because",
    "The difference between a virus and a bacterium is",
]
WRITTEN = 32, 64  # tokens of a greedy text, of a timed one


def server(file):
    p = xllamacpp.CommonParams()
    p.model.path = file
    p.n_ctx, p.n_parallel, p.cpuparams.n_threads = 2048, 1, 2
    return xllamacpp.Server(p)


def complete(peer, prompt, tokens):
    return peer.handle_completions({"prompt": prompt, "n_predict": tokens, "temperature": 0, "cache_prompt": False,
                                    "ignore_eos": tokens == WRITTEN[1]})


def ours(*command):
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def greedy(rlx, file, options):
    peer = server(file)
    same = 0
    for prompt in PROMPTS:
        theirs = complete(peer, prompt, WRITTEN[0])["choices"][0]["text"]
        text = ours(rlx, "generate", file, "-p", prompt, "-n", str(WRITTEN[0]), "--temp", "0", "-t", "2", "--json", *options)["text"]
        same += text == theirs
        if text != theirs:
            print(json.dumps({"prompt": prompt, "ours": text, "peer": theirs}))
    print(json.dumps({"name": "greedy_" + os.path.basename(file), "value": same, "unit": "of 10", "goal": 9}))


def speed(rlx, file, options):
    peer = server(file)
    length = int(os.environ.get("RLX_PEER_PROMPT", "142"))
    rounds = int(os.environ.get("RLX_PEER_ROUNDS", "3"))
    prompt = list(range(1000, 1000 + length))
    read, written = [], []
    for _ in range(rounds):
        r = ours(rlx, "bench", file, "-p", str(length), "-n", str(WRITTEN[1]), "-t", "2", "-r", "3", "--json", *options)
        runs = [complete(peer, prompt, WRITTEN[1])["timings"] for _ in range(2)]
        read.append((r["prompt_tokens_per_second"], max(t["prompt_per_second"] for t in runs)))
        written.append((r["tokens_per_second"], max(t["predicted_per_second"] for t in runs)))
    for what, pairs, goal in (("prompt", read, 3), ("write", written, 2)):
        print(json.dumps({"name": f"{what}_{length}_{os.path.basename(file)}", "value": statistics.median(a for a, _ in pairs),
                          "unit": "tok/s", "peer": statistics.median(b for _, b in pairs), "peer_name": "llama.cpp",
                          "ratio": statistics.median(a / b for a, b in pairs), "goal": goal}))


if __name__ == "__main__":
    commands = {"greedy": greedy, "speed": speed}
    if len(sys.argv) < 4 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    commands[sys.argv[1]](sys.argv[2], sys.argv[3], sys.argv[4:])
