"""Our workloads beside other systems, in turns: one process each, a round of ours, a round of each peer, and so on.

usage: compare.py PROGRAM [NAME...]    PROGRAM: bench_workloads; prints JSON lines like the other benchmarks

Peers run under the Python interpreters named in RLX_PEER_PYTHON (several with ':'; default: this one). What is not installed
is left out. A ratio is the median over the rounds of the fastest peer's time over ours.
"""
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHONS = os.environ.get("RLX_PEER_PYTHON", sys.executable).split(":")
ROUNDS = int(os.environ.get("RLX_PEER_ROUNDS", "9"))
FILES = ["onnxruntime", "openvino"]
GOALS = {"minilm_train_8x128": 1.5, "resnet18_f32_1": 1, "resnet18_f32_8": 1, "resnet18_int8_1": 1,
         "resnet18_int8_8": 1, "lstm_b32_t128_h256": 1.5, "rnn_b32_t128_h256": 3, "pendulum_1000": 500,
         "tiny_gpt_train_8x128": 2, "minilm_1x16": 1.4, "minilm_4x15": 1.2, "minilm_8x128": 1.05, "minilm_32x128": 1.1}


class Server:
    def __init__(self, command):
        env = {**os.environ, "OMP_NUM_THREADS": "2"}
        self.run = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env,
                                    stderr=subprocess.DEVNULL if "peer.py" in command[1] else None)
        self.answer = self.run.stdout.readline().strip()
        self.ready = self.answer == "ready"

    def round(self, seconds):
        self.run.stdin.write(f"{seconds}\n")
        self.run.stdin.flush()
        return float(self.run.stdout.readline())

    def close(self):
        self.run.stdin.close()
        self.run.wait()


def model_file(name, program):
    """The ONNX file of a workload, written by whichever interpreter has what it takes; None without one."""
    if "train" in name or not name.startswith(("resnet", "minilm")):
        return None
    folder = os.path.join(os.path.dirname(os.path.abspath(program)), "models")
    file = os.path.join(folder, name.rsplit("_", 1)[0] + ".onnx")
    for python in PYTHONS:
        if not os.path.exists(file):
            subprocess.run([python, os.path.join(HERE, "models.py"), folder], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, check=False)
    return file if os.path.exists(file) else None


def compare(program, name):
    file = model_file(name, program)
    images = name.startswith("resnet")
    if images and not file:
        print(f"bench: {name} needs the Python packages onnx and onnxruntime to write its model", file=sys.stderr)
        return
    arguments = [name] + ([file] if file else [])
    ours, peers = Server([program, "--serve", *(arguments if images else [name])]), {}
    if not ours.ready:
        print(f"bench: {name} does not run", file=sys.stderr)
        return
    systems = (FILES if file else []) + ([] if images else os.environ.get("RLX_PEERS", "torch,torch_compile").split(","))
    for system in systems:
        for python in PYTHONS:
            if system in peers:
                continue
            peer = Server([python, os.path.join(HERE, "peer.py"), system, *arguments])
            if peer.ready:
                peers[system] = peer
            else:
                peer.close()
    seconds = 0.7
    times, others = [], {system: [] for system in peers}
    for _ in range(ROUNDS):
        times.append(ours.round(seconds))
        for system, peer in peers.items():
            others[system].append(peer.round(seconds))
    line = {"name": name, "value": 1 / statistics.median(times), "unit": "1/s",
            "ms": 1e3 * statistics.median(times), "peers_ms": {s: 1e3 * statistics.median(t) for s, t in others.items()}}
    if others:
        best = min(others, key=lambda s: statistics.median(others[s]))
        line["peer"], line["peer_name"] = 1 / statistics.median(others[best]), best
        line["ratio"] = statistics.median(t / o for t, o in zip(others[best], times))
    if name in GOALS:
        line["goal"] = f">= {GOALS[name]}x"
    print(json.dumps(line), flush=True)
    for server in [ours, *peers.values()]:
        server.close()


def main():
    program, wanted = sys.argv[1], sys.argv[2:]
    for name in GOALS:
        if not wanted or any(w in name for w in wanted):
            compare(program, name)


main()
