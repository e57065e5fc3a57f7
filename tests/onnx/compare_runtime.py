#!/usr/bin/env python3
"""Runs exported models in ONNX Runtime (a peer: numpy, ml_dtypes, onnx and onnxruntime must be installed).

usage: compare_runtime.py DIR              a folder that `onnx_runner --samples DIR` wrote
       compare_runtime.py DIR --rlx RLX    models with data, each exported by `RLX convert` first

Prints what differs and what ONNX Runtime cannot run; the last line counts.
"""
import argparse
import collections
import json
import pathlib
import subprocess
import tempfile

import ml_dtypes
import numpy as np
import onnx
import onnxruntime

TYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16, "F8_E4M3": ml_dtypes.float8_e4m3fn,
         "F8_E5M2": ml_dtypes.float8_e5m2, "I64": np.int64, "I32": np.int32, "I16": np.int16, "I8": np.int8, "U8": np.uint8,
         "U32": np.uint32, "U64": np.uint64, "U16": np.uint16, "BOOL": np.bool_, "C64": np.complex64}


def load_file(path):
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return {name: np.frombuffer(data, np.uint8, t["data_offsets"][1] - t["data_offsets"][0], 8 + size + t["data_offsets"][0])
            .view(TYPES[t["dtype"]]).reshape(t["shape"]) for name, t in header.items()}


def close(got, want, tolerance):
    if want.dtype.name.startswith("float8") and got.dtype == np.uint8:  # codes
        got = got.view(want.dtype)
    if got.shape != want.shape:
        return f"shape {got.shape}, expected {want.shape}"
    if want.dtype.kind in "iub" and got.dtype.kind in "iub":
        return "" if np.array_equal(got.astype(want.dtype), want) else f"got {got.ravel()[:6]}, expected {want.ravel()[:6]}"
    got, want = got.astype(np.complex128), want.astype(np.complex128)
    same = (got == want) | (np.isnan(got) & np.isnan(want)) | (np.abs(got - want) <= tolerance * (1 + np.abs(want)))
    if same.all():
        return ""
    at = np.flatnonzero(~same.ravel())[0]
    return f"element {at} is {got.ravel()[at]}, expected {want.ravel()[at]}"


def run(model, inputs, check):
    """The outputs by name, or a string that says why there are none."""
    if check:
        onnx.checker.check_model(str(model))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        feed = {}
        for i in session.get_inputs():
            x = inputs[i.name]
            if x.dtype.name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
                return f"cannot be fed: {x.dtype.name}"
            feed[i.name] = x
        return dict(zip([o.name for o in session.get_outputs()], session.run(None, feed)))
    except Exception as e:  # noqa: BLE001 - its kinds of errors are told apart by their text
        text = str(e)
        for known in ("Could not find an implementation", "No corresponding Numpy type", "is not supported with", "NOT_IMPLEMENTED", "type 'tensor(", "Type Error", "not implemented"):
            if known in text:
                return "not implemented: " + " ".join(text[:200].split())
        return "error: " + " ".join(text[:400].split())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rlx")
    args = parser.parse_args()
    counts = collections.Counter()
    operators = collections.defaultdict(set)
    scratch = tempfile.TemporaryDirectory()
    for case in sorted(p for p in args.folder.iterdir() if (p / "model.onnx").exists()):
        model, tolerance = case / "model.onnx", 1e-4
        meta = json.loads((case / "meta.json").read_text()) if (case / "meta.json").exists() else {}
        if meta.get("expect_refusal"):
            continue
        if args.rlx:
            model = pathlib.Path(scratch.name) / f"{case.name}.onnx"
            done = subprocess.run([args.rlx, "convert", str(case / "model.onnx"), str(model)], capture_output=True, text=True)
            if done.returncode:
                print(f"{case.name}: not exported: {done.stderr.strip()}")
                counts["not exported"] += 1
                continue
            given = meta.get("tolerance", {})
            tolerance = max(tolerance, given.get("atol", 0), given.get("rtol", 0), given.get("relative_l2", 0))
        for number in ("", "2"):
            if not (case / f"inputs{number}.safetensors").exists():
                continue
            inputs, want = (load_file(case / f"{kind}{number}.safetensors") for kind in ("inputs", "outputs"))
            got = run(model, inputs, not number)
            if isinstance(got, str):
                outcome = got.split(":")[0]
                print(f"{case.name}{number}: {got}")
            else:
                some = [d for n in want if (d := close(cut(got, n, want[n]), want[n],
                                                       2e-2 if want[n].dtype.name in ("float16", "bfloat16") else tolerance))]
                outcome = "wrong" if some else "equal"
                if some:
                    print(f"{case.name}{number}: wrong: {some[0]}")
            counts[outcome] += 1
            operators[case.name.rsplit("_", 1)[0]].add(outcome)
    equal = sum("equal" in o and not o & {"wrong", "error"} for o in operators.values())
    print(", ".join(f"{n} {k}" for k, n in counts.most_common()) + f"; {equal} of {len(operators)} names equal where they run")


def cut(outputs, name, want):
    """Outputs that are as large as they can become have a count beside them."""
    x = outputs[name]
    for key in outputs:
        if key.startswith(name + ".count"):
            axis = next(i for i in range(x.ndim) if x.shape[i] != want.shape[i] or i == x.ndim - 1)
            x = np.take(x, np.arange(int(outputs[key])), axis)
    return x


if __name__ == "__main__":
    main()
