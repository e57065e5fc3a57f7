#!/usr/bin/env python3
"""Programs that once gave wrong numbers, lost something or were refused (../shared/findings/core), run from outside. Each
says in its first lines what came; what must come stands here.

usage: findings.py RLX_COMMAND FOLDER"""
import base64
import math
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

RLX = pathlib.Path(sys.argv[1]).resolve()
FOLDER = pathlib.Path(sys.argv[2]).resolve()
FORMATS = {"f8": "d", "f4": "f", "f2": "e", "i4": "i", "b1": "?"}


def rlx(*arguments):
    return subprocess.run([str(RLX), *map(str, arguments)], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)


def npy(path, kind, shape, values):
    """An array of one of FORMATS, row-major."""
    order = "|" if kind == "b1" else "<"
    extents = "".join(f"{n}, " for n in shape)
    head = f"{{'descr': '{order}{kind}', 'fortran_order': False, 'shape': ({extents}), }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    data = struct.pack(f"<{len(values)}{FORMATS[kind]}", *values)
    path.write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode() + data)


class Case:
    def __init__(self, name, scratch):
        self.file, self.scratch = FOLDER / f"{name}.rlx", scratch

    def like(self, text):
        """Another program of the same kind."""
        out = Case(self.file.stem, self.scratch)
        out.file = self.scratch / f"like{len(list(self.scratch.iterdir()))}.rlx"
        out.file.write_text(text)
        return out

    def refused(self, pattern, *arguments):
        """The command tells it as the user's error."""
        result = rlx(*(arguments or ("verify",)), self.file)
        assert result.returncode == 1 and re.search(pattern, result.stderr + result.stdout, re.S), (result.returncode, result.stderr)

    def text(self, *arguments):
        result = rlx(*arguments, self.file)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def derived(self, *arguments):
        """The case that `rlx grad` makes of it."""
        return self.like(self.text("grad", *arguments))

    def run(self, inputs, code=0):
        """Outputs by name as lists of numbers; with another code, the message."""
        words = []
        for name, array in inputs.items():
            path = self.scratch / f"{name}.npy"
            npy(path, *array)
            words += ["--input", f"{name}={path}"]
        result = rlx("run", self.file, *words)
        assert result.returncode == code, (result.returncode, result.stderr)
        if code:
            return result.stderr
        out = {}
        for name, extents, values, rest in re.findall(r"^(\w+): \w+\[([\d,]*)\]\{(.*?)( \.\.\.)?\}$", result.stdout, re.M):
            numbers = [float(v) for v in values.split(", ")]
            size = math.prod(int(n) for n in extents.split(",") if n)
            out[name] = numbers * size if rest else numbers  # equal elements are printed once
        for name, packed in re.findall(r'^(\w+): f64\[[\d,]*\]"(.*)"$', result.stdout, re.M):  # NaN keeps its bits
            data = base64.b64decode(packed)
            out[name] = list(struct.unpack(f"<{len(data) // 8}d", data))
        return out


def near(got, want, tolerance=1e-9):
    assert len(got) == len(want), (got, want)
    for g, w in zip(got, want):
        assert math.isclose(g, w, rel_tol=tolerance, abs_tol=tolerance), (got, want)


def f64(shape, *values):
    return ("f8", shape, values)


def check_argmax_i8_wraps(c):
    c.refused("i8", "run")
    c.like("graph @f() { return iota(shape=i8[300]) }").refused("i8")


def check_axis_mod_2_32(c):
    c.refused("4294967296")
    rows = "constant(value=i32[2]{0, 1})"
    for call in ("reduce(x, axes=[4294967296])", "transpose(x, perm=[4294967296, 1])", "concat(x, x, axis=4294967296)",
                 "cumsum(x, axis=4294967296)", "narrow(x, axis=4294967296, len=1)", "flip(x, axes=[4294967296])",
                 f"gather(x, {rows}, axis=4294967296)", "argmax(x, axis=4294967296)", "sort(x, axis=4294967296)",
                 "layer_norm(x, full(shape=f64[3]), axis=4294967296)", f"one_hot({rows}, depth=3, axis=4294967296)",
                 "top_k(x, k=1, axis=4294967296)", "iota(shape=f64[2,3], axis=4294967296)", "fake_quantize(x, bits=4294967304)",
                 "dot_general(x, x, lhs_contracting=[4294967296], rhs_contracting=[0])", f"take_along(x, {rows}, axis=4294967296)",
                 f"scatter_add(x, {rows}, rows=2, batch_dims=4294967296)",
                 "scan(x, length=2, carries=4294967297, body=graph(a: f64[2,3]) { return tanh(a) })"):
        c.like(f"graph @f(x: f64[2,3]) {{ return {call} }}").refused("42949673?[0-9]{2,3} is out of range")


def check_eigh_repeated_grad(c):
    got = c.derived("--wrt", "a").run({"a": f64((2, 2), 2, 0, 0, 2), "c": f64((2, 2), 0, 1, 1, 0)})["d_a"]
    if not all(math.isnan(v) for v in got):  # never finite and wrong
        near(got, [0, 4, 4, 0])


def check_fmt_not_idempotent(c):
    once = c.text("fmt")
    path = c.scratch / "once.rlx"
    path.write_text(once)
    c.file = path
    assert c.text("fmt") == once


def check_gelu_approx_f16_grad(c):
    near(c.derived("--wrt", "x").run({"x": ("f2", (2,), (300, -300))})["d_x"], [1, 0])


def check_hessian_while_solve(c):
    """Forward over reverse in both directions gives the columns; the batch of directions runs them at once."""
    hvp = c.derived("--wrt", "x", "--hvp")
    x = f64((2,), 1.5, 0.5)
    columns = [hvp.run({"x": x, "tangent_x": f64((2,), *d)}) for d in ((1, 0), (0, 1))]
    last = list(columns[0])[-1]
    both = c.derived("--wrt", "x", "--hvp", "--vmap", "tangent_x=0", "--batch", "2")
    near(both.run({"x": x, "tangent_x": f64((2, 2), 1, 0, 0, 1)})[last], columns[0][last] + columns[1][last])


def check_literal_overflow(c):
    c.refused("1e400")
    for number in ("constant(value=f64[1]{1e400})", "constant(value=f32[1]{-1e400})", "pad(full(shape=f64[2]), low=[1], high=[1], value=-1e999)"):
        c.like(f"graph @f() {{ return {number} }}").refused("1e(400|999)")


def check_mask_none_roundtrip(c):
    check_fmt_not_idempotent(c)


def check_output_name_lost(c):
    x = f64((3,), 1, 2, 4)
    assert list(c.derived("--wrt", "x", "--value").run({"x": x})) == ["s", "d_x"]


def check_scan_two_symbols(c):
    out = c.text("run", "--random", "1", "--bind", "m=3", "--bind", "n=2")
    assert re.search(r"f32\[2,4\]", out), out


def check_svd_scale(c):
    got = c.run({"a": f64((2, 2), 1e80, 2e80, 3e80, 4e80)})
    near([s / 1e80 for s in got["s"]], [5.464985704219043, 0.365966190626258])
    u = got["u"]
    near([u[0] * u[1] + u[2] * u[3], u[0] ** 2 + u[2] ** 2], [0, 1])
    values = c.like("graph @f(a: f64[2,2]) { return s=svd_values(a) }")
    for scale in (1e-300, 1e-150, 1e155, 1e300):
        got = values.run({"a": f64((2, 2), scale, 2 * scale, 3 * scale, 4 * scale)})["s"]
        near([s / scale for s in got], [5.464985704219043, 0.365966190626258])


def check_symbolic_broadcast_type(c):
    message = c.run({"x": f64((1,), 2), "y": f64((3,), 1, 2, 3)}, code=1)
    assert "1 and 3" in message, message


def check_symbolic_grad_internal(c):
    x, g = f64((2, 4), 1, 2, 4, 8, 3, 1, 0, 2), f64((4,), 1, 1, 1, 1)
    assert len(c.derived("--wrt", "g").run({"x": x, "g": g})["d_g"]) == 4
    for operands, call in (("x: f64[1,c,5], y: f64[2,3,2]", "conv1d(x, y)"), ("x: f64[n,2], y: f64[m,2]", "concat(x, y, axis=1)"),
                           ("x: f64[n,2], y: f64[m,2]", "linear_recurrence(x, y)"), ("x: f64[n,n], y: f64[m]", "batched_dense_solve(x, y)"),
                           ("x: f64[n,2], y: f64[m,2]", 'einsum(x, y, equation="...i,...i->...i")'),
                           ("x: f64[n,m], y: f64[n]", "mul(cholesky(matmul(x, transpose(x))), y)")):
        d = c.like(f"graph @f({operands}) {{ z = {call}\n return reduce(mul(z, z)) }}").derived("--wrt", "x,y")
        words = ["--bind", "n=3"] * ("[n" in operands) + ["--bind", "m=4"] * ("[n,m]" in operands)
        expect = d.text("run", "--random", "1", *words)
        assert "d_x: f64[" in expect and "d_y: f64[" in expect, expect


def check_symbolic_matmul_grad(c):
    x, y = f64((2, 2, 3), *[1] * 12), f64((2, 3, 2), *[1] * 12)
    near(c.derived("--wrt", "x,y").run({"x": x, "y": y})["d_x"], [12] * 12)
    assert "1 and 2" in c.run({"x": f64((1, 2, 3), *[1] * 6), "y": y}, code=1)


def check_symbolic_variance_wrong(c):
    assert "1 and 2" in c.run({"x": f64((1,), 1), "y": f64((2,), 1, 3)}, code=1)
    near(c.derived("--wrt", "y").run({"x": f64((2,), 1, 1), "y": f64((2,), 1, 3)})["d_y"], [-1, 1])


def check_vmap_grad_if_solve(c):
    both = c.derived("--wrt", "a,b", "--vmap", "p=0,a=0,b=0", "--batch", "2")
    identity = (1, 0, 0, 1)
    out = both.run({"p": ("b1", (2,), (True, False)), "a": f64((2, 2, 2), *identity, *identity), "b": f64((2, 2), 1, 2, 3, 4)})
    near(out["d_b"], [1, 1, 6, 8])


def check_vmap_scan_shared_carry(c):
    out = c.derived("--vmap", "x=0", "--batch", "2").run({"x": f64((2,), 2, 3)})
    near(out["z"], [256, 6561])


def check_vmap_then_grad_if_nan(c):
    inputs = {"p": ("b1", (2,), (True, False)), "x": f64((2,), 2, 0)}
    near(c.derived("--wrt", "x", "--vmap", "p=0,x=0", "--batch", "2").run(inputs)["d_x"], [0.5, 0])
    inputs["d_output"] = f64((2,), 1, 1)
    near(c.derived("--vmap", "p=0,x=0", "--batch", "2").derived("--wrt", "x").run(inputs)["d_x"], [0.5, 0])


def check_vmap_while_gather(c):
    table = f64((4,), 0, 1, 2, 3)
    near(c.derived("--vmap", "i=0", "--batch", "2").run({"i": ("i4", (2,), (1, 3)), "tab": table})["y"], [6, 3])


def main():
    if not FOLDER.is_dir():
        print(f"no folder {FOLDER}: skipped")
        return 0
    failed = 0
    for path in sorted(FOLDER.glob("*.rlx")):
        check = globals().get(f"check_{path.stem}")
        with tempfile.TemporaryDirectory() as scratch:
            try:
                assert check, "nothing says what must come"
                check(Case(path.stem, pathlib.Path(scratch)))
                print(f"{path.stem}: as it should be")
            except (AssertionError, KeyError) as e:
                failed += 1
                print(f"{path.stem}: WRONG {e}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
