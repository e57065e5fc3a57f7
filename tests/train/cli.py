#!/usr/bin/env python3
"""rlx train from outside: the stored curves through graph files, checkpoints, messages.

usage: cli.py RLX ROOT"""
import json
import os
import struct
import subprocess
import sys
import tempfile
import time

RLX, ROOT = sys.argv[1], sys.argv[2]
DATA = os.environ.get("RLX_DATA") or os.path.join(ROOT, "../shared/data")
failures = []


def check(name, condition, text=""):
    if not condition:
        failures.append(name)
        print(f"FAILED {name}: {text}")


def run(*args):
    return subprocess.run([RLX, "train", *args], capture_output=True, text=True)


def tensors(path):
    """Name -> list of numbers, of f32 and f64 tensors."""
    with open(path, "rb") as f:
        raw = f.read()
    size = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + size])
    out = {}
    for name, t in header.items():
        if name == "__metadata__":
            continue
        begin, end = t["data_offsets"]
        code, width = {"F32": ("f", 4), "F64": ("d", 8)}[t["dtype"]]
        out[name] = struct.unpack(f"<{(end - begin) // width}{code}", raw[8 + size + begin:8 + size + end])
    return out


def arguments(folder, config):
    """The options that say what config.json says."""
    o = config["optimizer"]
    settings = []
    for key, value in o.items():
        if key in ("name", "formula", "lr"):
            continue
        pairs = zip(("beta1", "beta2"), value) if key == "betas" else [(key, float(value))]
        settings += [f"{k}={v}" for k, v in pairs]
    args = ["--data", f"{folder}/data.safetensors", "--init", f"{folder}/init.safetensors", "--optimizer", o["name"].lower(),
            "--set", ",".join(settings), "--lr", str(o["lr"]), "--steps", str(config["steps"])]
    if s := config.get("schedule"):
        args += ["--schedule", "cosine", "--warmup", str(s["warmup_steps"]), "--min-lr", str(s["min_lr"])]
    if c := config.get("gradient_clipping"):
        args += ["--clip-norm", str(c["max_norm"])]
    if config["frozen"]:
        args += ["--frozen", ",".join(config["frozen"])]
    batches = next(iter(config["data"].values()))["shape"][0]
    return args + ["--accumulate", str(batches // config["steps"])]


def curve(name, scratch):
    folder = f"{DATA}/training/{name}"
    with open(f"{folder}/config.json") as f:
        config = json.load(f)
    with open(f"{folder}/curve.json") as f:
        want = json.load(f)["float64"]
    save = f"{scratch}/{name}.safetensors"
    r = run(f"{ROOT}/tests/train/graphs/{name}.rlx", *arguments(folder, config), "--json", "--save", save)
    if r.returncode != 0:
        return check(name, False, r.stderr)
    got = json.loads(r.stdout)["loss"]
    worst = max(abs(a - b) / max(1, abs(b)) for a, b in zip(got, want))
    check(name, len(got) == len(want) and worst <= config["tolerance"]["loss_f32"], f"loss differs by {worst}")
    final = "final_f64" if os.path.exists(f"{folder}/final_f64.safetensors") else "final"
    weights = tensors(save)
    for key, value in tensors(f"{folder}/{final}.safetensors").items():
        apart = max(abs(a - b) for a, b in zip(weights[key], value)) / max(max(map(abs, value)), 1e-30)
        check(name, apart <= config["tolerance"]["params_f32"], f"{key} differs by {apart}")


def interrupted(scratch):
    """Two halves through a checkpoint end with the bytes of one whole."""
    folder, graph = f"{DATA}/training/tiny_gpt_adamw", f"{ROOT}/tests/train/graphs/tiny_gpt_adamw.rlx"
    common = ["--data", f"{folder}/data.safetensors", "--seed", "5", "--optimizer", "adamw", "--lr", "0.003", "--average", "0.9"]
    whole, second, half = (f"{scratch}/{n}.safetensors" for n in ("whole", "second", "half"))
    check("whole", run(graph, *common, "--steps", "20", "--checkpoint", whole).returncode == 0)
    check("half", run(graph, *common, "--steps", "9", "--checkpoint", half).returncode == 0)
    check("second", run(graph, *common, "--steps", "20", "--resume", half, "--checkpoint", second).returncode == 0)
    with open(whole, "rb") as a, open(second, "rb") as b:
        check("resume", a.read() == b.read(), "the checkpoints differ")


def killed(scratch):
    """A run that is killed goes on from its last checkpoint, and ends with the bytes of one that was not."""
    folder, graph = f"{DATA}/training/tiny_gpt_adamw", f"{ROOT}/tests/train/graphs/tiny_gpt_adamw.rlx"
    common = ["--data", f"{folder}/data.safetensors", "--schedule", "cosine", "--warmup", "5", "--lr", "0.003", "--steps", "60"]
    whole, cut = f"{scratch}/unkilled.safetensors", f"{scratch}/killed.safetensors"
    check("unkilled", run(graph, *common, "--checkpoint", whole).returncode == 0)
    every = ["--checkpoint", cut, "--checkpoint-every", "1"]
    child = subprocess.Popen([RLX, "train", graph, *common, *every], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while child.poll() is None and not os.path.exists(cut):
        time.sleep(0.001)
    child.kill()
    child.wait()
    check("checkpoint", os.path.exists(cut), "no checkpoint was written on the way")
    r = run(graph, *common, "--resume", cut, "--checkpoint", cut)
    check("go on", r.returncode == 0, r.stderr)
    with open(whole, "rb") as a, open(cut, "rb") as b:
        check("killed", a.read() == b.read(), "the checkpoints differ")


def lost(scratch):
    """A loss that is no number ends the training, and the weights of before stay."""
    graph, save = f"{scratch}/nan.rlx", f"{scratch}/nan_weights.safetensors"
    with open(graph, "w") as f:
        f.write("graph @nan(x: f32[], param w: f32[]) { return mul(x, w) }")
    header = json.dumps({"x": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).encode()
    with open(f"{scratch}/nan_data.safetensors", "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header + struct.pack("<4f", 1, 2, float("nan"), 4))
    r = run(graph, "--data", f"{scratch}/nan_data.safetensors", "--save", save, "--checkpoint", f"{scratch}/nan_check",
            "--checkpoint-every", "1")
    check("nan", r.returncode == 1 and "train: the loss of step 2 is nan" in r.stderr, f"{r.returncode} {r.stderr}")
    check("nan weights", not os.path.exists(save), "weights were written")
    r = run(graph, "--data", f"{scratch}/nan_data.safetensors", "--resume", f"{scratch}/nan_check", "--steps", "2", "--save", save)
    check("nan before", r.returncode == 0 and "nothing to do: 2 steps" in r.stdout, r.stdout + r.stderr)


def messages(scratch):
    graph = f"{ROOT}/tests/train/graphs/mlp_sgd_momentum.rlx"
    data = f"{DATA}/training/mlp_sgd_momentum/data.safetensors"
    for name, args, words in (
            ("no data", [graph], "--data is required"),
            ("other data", [graph, "--data", f"{DATA}/training/tiny_gpt_adamw/data.safetensors"], "input 'x' (f32[n,8]) has no data"),
            ("optimizer", [graph, "--data", data, "--optimizer", "adan"], "adan"),
            ("setting", [graph, "--data", data, "--set", "beta=1"], "adamw has no setting 'beta'"),
            ("number", [graph, "--data", data, "--set", "beta1=x"], "NAME=NUMBER expected"),
            ("twice", [graph, "--data", data, "--set", "beta1=0.5,beta1=0.6"], "train: --set beta1 is given twice"),
            ("history", [graph, "--data", data, "--optimizer", "lbfgs", "--set", "history_size=1e18"], "1 to 1000 is needed"),
            ("steps", [graph, "--data", data, "--steps", "-3"], "--steps: '-3' is not a number of 0 or more"),
            ("folder", [graph, "--data", data, "--save", f"{scratch}/none/w"], f"there is no folder '{scratch}/none'"),
            ("a folder", [graph, "--data", data, "--checkpoint", scratch], "is a folder; the name of a file is needed"),
            ("every", [graph, "--data", data, "--checkpoint-every", "3"], "requires --checkpoint"),
            ("frozen", [graph, "--data", data, "--frozen", "q*"], "no param has that name"),
            ("device", [graph, "--data", data, "--device", "tpu"], "unknown device 'tpu'"),
            ("average", [graph, "--data", data, "--save-average", f"{scratch}/a"], "requires --average")):
        r = run(*args)
        check(name, r.returncode in (1, 2) and words in r.stderr, f"{r.returncode} {r.stderr}")
    for option, value in (("--clip-norm", "-1"), ("--clip-value", "0"), ("--budget", "-5"), ("--lr", "-1"), ("--lr", "nan"), ("--progress", "much")):
        r = run(graph, "--data", data, option, value)
        check(f"{option} {value}", r.returncode == 2 and option in r.stderr and value in r.stderr, f"{r.returncode} {r.stderr}")
    losses = [json.loads(run(graph, "--data", data, "--json", *more).stdout or '{"loss": 0}')["loss"] for more in ((), ("--budget", "4000"))]
    check("budget", losses[0] == losses[1], losses)
    r = run(graph, "--data", data, "--progress", "lines", "--steps", "3")
    check("progress", "step 3 of 3, loss " in r.stderr and "3 steps in" in r.stdout, r.stderr + r.stdout)


def main():
    if not os.path.isdir(f"{DATA}/training"):
        print(f"skipped: no folder {DATA}/training; set RLX_DATA")
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        for name in sorted(os.listdir(f"{DATA}/training")):
            if os.path.exists(f"{ROOT}/tests/train/graphs/{name}.rlx"):
                curve(name, scratch)
        interrupted(scratch)
        killed(scratch)
        lost(scratch)
        messages(scratch)
    print("rlx train: " + (f"{len(failures)} failed" if failures else "all passed"))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
