"""Compares the rlx command with the Python packages gguf, safetensors and numpy, both ways.

usage: cross_check.py RLX_COMMAND DATA_FOLDER    (in an environment that has the packages; not part of the tests)
"""
import glob
import json
import os
import subprocess
import sys
import tempfile

import gguf
import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

RLX, DATA = sys.argv[1], sys.argv[2]
SCRATCH = tempfile.TemporaryDirectory()


def scratch(name):
    return os.path.join(SCRATCH.name, name)


def rlx(*arguments):
    run = subprocess.run([RLX, *arguments], capture_output=True, text=True)
    assert run.returncode == 0, (arguments, run.stderr)
    return run.stdout


def read(path):
    with open(path, "rb") as f:
        return f.read()


def values(tensor):
    if tensor.tensor_type.name in ("F16", "F32", "F64") or tensor.tensor_type.name.startswith("I"):
        if not tensor.tensor_type.name.startswith("IQ"):
            return tensor.data
    return gguf.quants.dequantize(tensor.data, tensor.tensor_type)


def same(a, b):
    assert a.dtype == b.dtype and np.array_equal(a, b)


def stored_gguf():
    count = 0
    for path in sorted(glob.glob(f"{DATA}/gguf/*.gguf")):
        theirs = gguf.GGUFReader(path).tensors
        rlx("convert", path, scratch("x.safetensors"))
        ours = load_file(scratch("x.safetensors"))
        for t in theirs:
            same(ours[t.name], values(t).reshape(ours[t.name].shape))
            count += 1
        rlx("convert", path, scratch("copy.gguf"))
        assert read(path) == read(scratch("copy.gguf"))
        rlx("convert", path, scratch("x.npz"))
        arrays = np.load(scratch("x.npz"))
        for name, array in ours.items():
            same(arrays[name], array)
        rlx("convert", path, scratch("q.gguf"), "--type", "q8_0")
        again = gguf.GGUFReader(scratch("q.gguf"))
        assert again.get_field("general.architecture").contents() == "llama"
        for a, b in zip(theirs, again.tensors, strict=True):
            assert a.name == b.name and (len(a.shape) < 2 or b.tensor_type.name == "Q8_0")
    return count


def stored_safetensors():
    count = 0
    for path in sorted(glob.glob(f"{DATA}/checkpoints/*/model.safetensors")):
        theirs = load_file(path)
        rlx("convert", path, scratch("x.npz"), "--deflate")
        rlx("convert", scratch("x.npz"), scratch("y.safetensors"))
        rlx("convert", path, scratch("y.gguf"))
        arrays, back = np.load(scratch("x.npz")), load_file(scratch("y.safetensors"))
        for name, array in theirs.items():
            same(arrays[name], array)
            same(back[name], array)
            count += 1
        for t in gguf.GGUFReader(scratch("y.gguf")).tensors:
            same(t.data.reshape(theirs[t.name].shape), theirs[t.name])
    return count


def files_made_in_python():
    writer = gguf.GGUFWriter(scratch("p.gguf"), "toy")
    writer.add_custom_alignment(64)
    writer.add_array("arr.f", [0.5, 1.5])
    writer.add_array("arr.b", [True, False])
    writer.add_string("text", "h\u00e9")
    random = np.random.default_rng(0)
    for name in ("float32", "float16", "float64", "int8", "int16", "int32", "int64"):
        writer.add_tensor(name, (random.standard_normal((3, 32)) * 10).astype(name))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    shown = json.loads(rlx("inspect", "--json", scratch("p.gguf")))
    assert shown["alignment"] == 64 and len(shown["tensors"]) == 7
    rlx("convert", scratch("p.gguf"), scratch("p2.gguf"))
    assert read(scratch("p.gguf")) == read(scratch("p2.gguf"))

    names = "bool uint8 int8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64".split()
    arrays = {name: np.array([0, 1, 1], dtype=name) for name in names}
    save_file(arrays, scratch("d.safetensors"), metadata={"a": 'h\u00e9"'})
    rlx("convert", scratch("d.safetensors"), scratch("d.npz"))
    rlx("convert", scratch("d.npz"), scratch("d2.safetensors"))
    rlx("convert", scratch("d.safetensors"), scratch("d3.safetensors"))
    npz, back = np.load(scratch("d.npz")), load_file(scratch("d2.safetensors"))
    for name, array in arrays.items():
        same(npz[name], array)
        same(back[name], array)
    with safe_open(scratch("d3.safetensors"), "np") as f:
        assert f.metadata() == {"a": 'h\u00e9"'}


print(f"stored GGUF files: {stored_gguf()} tensors equal, copies byte-equal")
print(f"stored checkpoints: {stored_safetensors()} tensors equal through npz, safetensors and GGUF")
files_made_in_python()
print("files made in Python: equal")
