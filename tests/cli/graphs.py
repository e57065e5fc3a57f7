#!/usr/bin/env python3
"""The commands that compile and look at graphs: opt, run with its reports, diff, reduce, dot, inspect --html, devices, build.

usage: graphs.py RLX_COMMAND SOURCE_FOLDER BUILD_FOLDER [NAME...]"""
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import xml.etree.ElementTree as xml

import cases

RLX = pathlib.Path(sys.argv[1]).resolve()
ROOT = pathlib.Path(sys.argv[2]).resolve()
BUILD = pathlib.Path(sys.argv[3]).resolve()

LAYER = """graph @layer(x: f32[n,16], param w: f32[16,8], param b: f32[8]) {
  h = matmul(x, w)
  a = add(h, b)
  y = gelu(a)
  z = softmax(y, axis=1)
  return z
}
"""
LOOP = """graph @loop(c: f32[4], xs: f32[10,4]) {
  r:2 = scan(c, xs, body=graph @step(c: f32[4], x: f32[4]) {
    s = add(c, x)
    n = tanh(s)
    return n, s
  }, length=10, carries=1)
  return r, r#1
}
"""
NAN = """graph @nan(x: f32[4]) {
  a = mul(x, x)
  b = neg(a)
  bad = log(b)
  y = exp(bad)
  return y
}
"""


def rlx(*arguments, code=0):
    run = subprocess.run([str(RLX), *map(str, arguments)], capture_output=True, text=True, timeout=300)
    assert run.returncode == code, f"exit {run.returncode}, not {code}: {run.stdout}{run.stderr}"
    return run.stdout if code == 0 else run.stdout + run.stderr


def written(folder, text, name="g.rlx"):
    path = folder / name
    path.write_text(text)
    return path


def test_devices():
    assert {"cpu", "ref"} <= set(rlx("devices").split())
    devices = json.loads(rlx("devices", "--json"))
    assert [d["name"] for d in devices if d["available"]][-1] == "ref", devices
    assert all(d["available"] != bool(d.get("reason")) for d in devices), devices


def test_report_names_kernels_memory_and_fusion(folder):
    path = written(folder, LAYER)
    text = rlx("run", path, "--random", 1, "--bind", "n=4", "--report")
    assert re.search(r"graph 'layer' on cpu, .* steps", text), text
    assert "GFLOP/s" in text and "memory:" in text and "joined" in text, text
    report = json.loads(rlx("run", path, "--random", 1, "--bind", "n=4", "--report", "--json"))
    assert report["format"] == "rlx.report" and report["device"] == "cpu"
    steps = report["plan"]["steps"]
    assert steps and all(s["kernel"] and s["seconds"] > 0 for s in steps)
    assert len(report["plan"]["timeline"]) == len(steps)
    assert max(report["plan"]["timeline"]) <= report["plan"]["arena_bytes"]
    assert "--json requires --report; see 'rlx help run'" in rlx("run", path, "--random", 1, "--bind", "n=4", "--json", code=2)


def test_profile_is_a_trace(folder):
    path = written(folder, LAYER)
    rlx("run", path, "--random", 1, "--bind", "n=4", "--profile", folder / "trace.json")
    slices = [e for e in json.loads((folder / "trace.json").read_text())["traceEvents"] if e["ph"] == "X"]
    events = [e for e in slices if e["tid"] == 1]  # the others are what threads did of them
    assert events and all(e["dur"] >= 0 and "kernel" in e["args"] and "bytes" in e["args"] for e in events)
    ends = [e["ts"] + e["dur"] for e in events]
    assert all(e["ts"] >= end - 1e-3 for e, end in zip(events[1:], ends)), "steps overlap"


def test_check_nan_names_the_operator(folder):
    path = written(folder, NAN)
    text = rlx("run", path, "--random", 1, "--check-nan", code=1)
    assert "check-nan: log" in text, text
    rlx("run", written(folder, LAYER), "--random", 1, "--bind", "n=2", "--check-nan")


def test_tools_look_into_loops(folder):
    path = written(folder, LOOP)
    rlx("run", path, "--random", 1, "--profile", folder / "trace.json")
    names = [e["name"] for e in json.loads((folder / "trace.json").read_text())["traceEvents"] if e["ph"] == "X"]
    assert names.count("step 9") == 1 and names.count("r scan") == 5, names
    assert re.search(r"0\.0\.0 .* median of 10", rlx("run", path, "--random", 1, "--report"))
    falling = written(folder, LOOP.replace("add(c, x)", "log(c)"), "falling.rlx")
    text = rlx("run", falling, "--random", 1, "--check-nan", code=1)
    assert re.search(r"check-nan: scan r, step \d: \S+ log", text), text
    text = rlx("diff", path, "--random", 1, "--tolerance", 0, "--output-dir", folder / "out", code=1)
    assert re.search(r"part at r scan, step \d: n ", text), text
    rlx("run", folder / "out/parting.rlx", "--input", folder / "out/parting.npz")


def test_opt_prints_graphs_that_read_back(folder):
    path = written(folder, LAYER)
    final = rlx("opt", path, "--bind", "n=4")
    assert "fused" in final, final
    rlx("verify", written(folder, final, "final.rlx"))
    for stage in ("input", "cse", "dce", "legalise", "fuse"):
        rlx("verify", written(folder, rlx("opt", path, "--bind", "n=4", "--dump", stage).split("// " + stage)[-1], "s.rlx"))
    assert "step 0" in rlx("opt", path, "--bind", "n=4", "--dump", "plan")
    assert "sizes are symbolic" in rlx("opt", path, "--dump", "plan", code=1)
    assert "there is no stage 'cs'" in rlx("opt", path, "--dump", "cs", code=1)


def test_opt_runs_single_passes(folder):
    path = written(folder, "graph @g(x: f32[4]) {\n  a = exp(x)\n  b = exp(x)\n  y = add(a, b)\n  return y\n}\n")
    assert rlx("opt", path, "--pass", "cse,dce").count("exp(") == 1
    assert rlx("opt", path, "--pass", "fold_constants").count("exp(") == 2
    codes = written(folder, """graph @g(x: i8[2,4], w: i8[4,3]) {
  xf = dequantize(x, scale=0.5)
  wf = dequantize(w, scale=0.25)
  m = matmul(xf, wf)
  y = quantize(m, scale=2.0)
  return y
}
""", "codes.rlx")
    assert "q_matmul(" in rlx("opt", codes, "--pass", "quantise_products,dce")
    assert "unknown pass 'cs'; did you mean 'cse'" in rlx("opt", path, "--pass", "cs", code=1)


def test_opt_explains_a_node(folder):
    path = written(folder, LAYER)
    text = rlx("opt", path, "--bind", "n=4", "--explain", "a")
    assert text.startswith("input: add(h, b)") and re.search(r"step \d+: ", text), text
    assert "no node is called 'q'" in rlx("opt", path, "--bind", "n=4", "--explain", "q", code=1)
    told = json.loads(rlx("opt", path, "--bind", "n=4", "--explain", "a", "--json"))
    assert told["node"] == "a" and told["stages"][0] == {"stage": "input", "statement": "add(h, b) : f32[4,8]"}, told
    step = told["steps"][0]
    assert {"node": "y", "joined": True, "text": "3 operators joined"} in told["fusion"], told  # the piece that it is in
    assert "fusion: y: 3 operators joined\n" in rlx("opt", path, "--bind", "n=4", "--explain", "a")
    assert step["step"] == "0" and step["kernel"] and all(d["kernel"] and d["reason"] for d in step["declined"]), told
    told = json.loads(rlx("opt", path, "--bind", "n=4", "--explain", "y", "--json"))
    assert any("joined" in r["text"] for r in told["fusion"]), told
    told = json.loads(rlx("opt", path, "--bind", "n=4", "--json"))
    assert told["stages"][0]["name"] == "input" and told["stages"][-1]["text"].startswith("graph @layer"), told
    assert told["report"]["plan"]["steps"] and "fused" in told["stages"][-1]["text"]
    assert json.loads(rlx("opt", path, "--json"))["report"] is None  # sizes are open
    assert "excludes" in rlx("opt", path, "--json", "--dump", "plan", code=2)
    nested = written(folder, """graph @nested(x: f32[4], w: f32[4,4]) {
  r = scan(x, w, body=graph @turn(c: f32[4], w: f32[4,4]) {
    y = while(c, w, cond=graph @more(a: f32[4], w: f32[4,4]) {
      go = compare(reduce(a), full(shape=f32[], value=1), kind=lt)
      return go
    }, body=graph @next(a: f32[4], w: f32[4,4]) {
      inner = matmul(reshape(a, shape=(1,4)), w)
      out = reshape(inner, shape=(4))
      return out
    }, carries=1, max_iterations=3)
    return y
  }, length=2, carries=1, consts=1)
  return r
}
""", "nested.rlx")
    text = rlx("opt", nested, "--explain", "inner")
    assert re.search(r"step 0: scan.*step 0\.0\.0: while.*step 0\.0\.0\.1\.0: matmul", text, re.S), text


def test_diff_agrees_and_finds_the_first_node(folder):
    path = written(folder, LAYER)
    assert re.search("ref and cpu agree: .* as a whole ", rlx("diff", path, "--random", 1, "--bind", "n=4"))
    for command in ("diff", "reduce"):
        assert "'-1' is not a number of 0 or more" in rlx(command, path, "--random", 1, "--tolerance", -1, code=2)
    text = rlx("diff", path, "--random", 1, "--bind", "n=4", "--tolerance", 0, "--output-dir", folder / "out", code=1)
    assert "ref and cpu part at" in text, text
    rlx("run", folder / "out/parting.rlx", "--input", folder / "out/parting.npz")
    told = json.loads(rlx("diff", path, "--random", 1, "--bind", "n=4", "--json"))
    assert told["agree"] and told["nodes"] and all(n["error"] < 1e-4 for n in told["nodes"]) and told["parting"] is None, told
    both = subprocess.run([RLX, "diff", path, "--random", "1", "--bind", "n=4", "--tolerance", "0", "--json"], capture_output=True, text=True)
    told = json.loads(both.stdout)
    assert both.returncode == 1 and not told["agree"] and told["parting"]["where"] and told["parting"]["graph"].startswith("graph"), both


def test_reduce_keeps_what_goes_wrong(folder):
    path = written(folder, NAN)
    script = written(folder, f'#!/bin/sh\nexec {RLX} run "$1" --input "$2" --check-nan\n', "wrong.sh")
    script.chmod(0o755)
    text = rlx("reduce", path, "--random", 1, "--command", script, "--output-dir", folder / "out")
    assert "log(" in text and "exp(" not in text and "mul(" not in text, text
    assert (folder / "out/reduced.rlx").exists() and not (folder / "out/reduce-trial").exists()
    assert "does not go wrong" in rlx("reduce", path, "--random", 1, code=1)
    refused = rlx("reduce", path, "--random", 1, "--command", "no-such-command", code=1)
    assert "reduce: --command no-such-command: the shell cannot run it" in refused, refused


def test_pictures(folder):
    for name, text in (("layer", LAYER), ("loop", LOOP)):
        path = written(folder, text)
        dot = rlx("dot", path)
        assert dot.startswith("digraph") and dot.count("{") == dot.count("}")
        assert ("cluster" in dot) == (name == "loop")
        picture = rlx("dot", path, "--svg")
        root = xml.fromstring(picture)
        boxes = root.findall(".//{http://www.w3.org/2000/svg}rect")
        assert len(boxes) >= 6, picture
    if shutil.which("dot"):
        subprocess.run(["dot", "-Tsvg", "-o", "/dev/null"], input=dot, text=True, check=True)


def test_page_is_complete_and_alone(folder):
    for text, plan in ((LAYER, False), (LOOP, True)):
        path = written(folder, text)
        rlx("inspect", path, "--html", folder / "page.html")
        page = (folder / "page.html").read_text()
        assert "http://" not in page.replace("http://www.w3.org/2000/svg", "") and "https://" not in page
        assert ("Plan over time" in page) == plan and "Rewrites" in page
        # Steps of a body stand under the step that runs them.
        assert bool(re.search(r'<td class="r">\d+\.0\.0</td>', page)) == plan
    rlx("inspect", written(folder, LAYER), "--html", folder / "page.html", "--bind", "n=4")
    assert "Plan over time" in (folder / "page.html").read_text()
    rlx("convert", written(folder, LOOP, "loop.rlx"), folder / "loop.onnx")
    rlx("inspect", folder / "loop.onnx", "--html", folder / "page.html")
    assert "Plan over time" in (folder / "page.html").read_text()
    assert "x: f32[4,16]" in rlx("inspect", written(folder, LAYER), "--bind", "n=4")
    weights = next((ROOT / "tests/fuzz/corpus/safetensors").iterdir())
    assert "--bind is for graphs" in rlx("inspect", weights, "--bind", "n=4", code=2)
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser:
        seen = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", f"file://{folder}/page.html"],
                              capture_output=True, text=True, timeout=120).stdout
        # The script ran: all stages but the first are hidden.
        assert seen.count("display: none") >= 3, seen[:500]
    else:
        print("test_page_is_complete_and_alone: no browser found; its script was not run")
    for option in ("--context 8", "--batch 2", "--kv f16"):
        wrong = rlx("inspect", path, *option.split(), code=2)
        assert f"{option.split()[0]} is for language models; '{path}' is a graph; see 'rlx help inspect'" in wrong, wrong
    assert "--html is for graphs" in rlx("inspect", RLX, "--html", folder / "x.html", code=1)


MAIN = r"""#include <stdio.h>
#include "twice.h"
int main(void) {
  const float x[3] = {1, 2, 3};
  float y[3] = {0}, again[3] = {0};
  const void* in[] = {x, x};
  void* out[] = {y};
  void* other[] = {again};
  twice* one = twice_create_threads(1);
  if (!one || twice_run(one, in, other) || twice_threads < 1) {
    puts(twice_error());
    return 1;
  }
  twice_free(one);
  twice* p = twice_create();
  if (!p || twice_inputs != 2 || twice_outputs != 1 || twice_run(p, in, out)) {
    puts(twice_error());
    return 1;
  }
  if (y[0] != again[0] || y[1] != again[1] || y[2] != again[2]) return 2;
  printf("%g %g %g\n", y[0], y[1], y[2]);
  twice_free(p);
  return 0;
}
"""

HOSTILE = r"""#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include "twice.h"
static const float x[3] = {1, 2, 3};
static const void* const in[] = {x, x};
static atomic_int told, ended;
static void say(int code) { printf("%d %s\n", code, twice_error()); }
static void* user(void* p) {
  float y[3];
  void* out[] = {y};
  for (long i = 0; i < 50000000 && !told; ++i) {
    if (!twice_run(p, in, out)) continue;
    if (!atomic_exchange(&told, 1)) say(1);
  }
  ++ended;
  return 0;
}
int main(void) {
  float y[3];
  void *out[] = {y}, *none[] = {0}, *inside[] = {(void*)(x + 1)};
  const void* one[] = {x, 0};
  const size_t bytes[] = {12, 12}, few[] = {12, 8};
  int code;
  twice* p = twice_create_threads(-2);
  say(p != 0);
  p = twice_create();
  code = twice_run(0, in, out), say(code);
  code = twice_run(p, 0, out), say(code);
  code = twice_run(p, in, 0), say(code);
  code = twice_run(p, one, out), say(code);
  code = twice_run(p, in, none), say(code);
  code = twice_run(p, in, inside), say(code);
  code = twice_run_sized(p, in, few, out, bytes), say(code);
  code = twice_run_sized(p, in, bytes, out, few + 1), say(code);
  pthread_t a, b;
  pthread_create(&a, 0, user, p), pthread_create(&b, 0, user, p);
  pthread_join(a, 0), pthread_join(b, 0);
  if (twice_run_sized(p, in, bytes, out, bytes)) say(1);
  twice_free(p);
  twice_free(0);
  return 0;
}
"""

TOLD = """0 create: -2 threads; give 1 or more, or 0 for all
1 run: no object; twice_create makes one, or twice_error says why not
1 run: no list of inputs; it has the addresses of 'x', 'w'
1 run: no list of outputs; it has the addresses of 'y'
1 run: input 'w' has no memory
1 run: output 'y' has no memory, it needs 12 bytes
1 run: the memory of output 'y' is also that of 'w'; every output needs memory that nothing else uses
1 run: input 'w' has 8 bytes; it needs 12
1 run: output 'y' has 8 bytes; it needs 12
1 run: another thread runs this object; create one for each thread
"""


def npy(folder):
    """x = 1, 2, 3 as a file of NumPy's format."""
    head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"
    head += b" " * (-(10 + len(head) + 1) % 64) + b"\n"
    path = folder / "x.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + struct.pack("<3f", 1, 2, 3))
    return path


def test_values_come_from_any_file_of_tensors(folder):
    path = written(folder, "graph @g(x: f32[3], z: f32[3]) {\n  return y=sub(x, z)\n}\n")
    x = npy(folder)
    same = x.rename(folder / "x.of_any_name")
    assert "y: f32[3]{0.0, 0.0, 0.0}" in rlx("run", path, "-i", f"x={same}", "-i", f"z={same}")  # told by content
    both = folder / "both.safetensors"
    head = json.dumps({name: {"dtype": "F32", "shape": [3], "data_offsets": [at, at + 12]} for name, at in (("x", 0), ("z", 12))}).encode()
    both.write_bytes(struct.pack("<Q", len(head)) + head + struct.pack("<6f", 3, 2, 1, 1, 1, 1))
    assert "y: f32[3]{2.0, 1.0, 0.0}" in rlx("run", path, "-i", both)
    for arguments, message in (
            ((f"x={both}",), f"run: --input x={both}: '{both}' holds 2 tensors; NAME=FILE takes one, FILE alone takes all under their names"),
            ((both, f"x={same}"), "run: --input gives 'x' twice"),
            (("=a",), "run: --input =a; a file, or NAME=FILE, expected"),
            (("nowhere.npz",), "cannot open 'nowhere.npz'")):
        told = rlx("run", path, *(word for a in arguments for word in ("-i", a)), code=1)
        assert message in told, told


def linked():
    """What a program that `rlx build` wrote is linked with, as the package tells it; sanitizers as this build has them."""
    libs = re.search(r"^Libs: .*", (BUILD / "rlx-run.pc").read_text(), re.M).group(0).split()[1:]
    sanitizers = re.search(r"^RLX_SANITIZE:\w+=(.+)$", (BUILD / "CMakeCache.txt").read_text(), re.M)
    return [f"-L{BUILD}", *libs[1:]] + ([f"-fsanitize={sanitizers.group(1)}"] if sanitizers else [])


def test_build_gives_a_library_in_c(folder):
    path = written(folder, "graph @twice(x: f32[3], param w: f32[3]) {\n  t = add(x, w)\n  y = exp(t)\n  return y\n}\n")
    expected = rlx("run", path, "--input", f"x={npy(folder)}", "--input", f"w={npy(folder)}")
    assert "no values for them: w\n" in rlx("build", path, "-o", folder / "out", "--threads", 2)
    assert "inputs[1]: w, f32[3], 12 bytes, a param that the graph came without a value for" in (folder / "out/twice.h").read_text()
    written(folder, MAIN, "main.c")
    out = folder / "out"
    run = subprocess.run(["g++", "-std=c++20", "-O1", f"-I{ROOT}", f"-I{out}", f'-Dtwice_WEIGHTS="{out}/twice.weights"', "-c",
                          "-o", folder / "twice.o", out / "twice.cpp"], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr[-2000:]
    written(folder, HOSTILE, "hostile.c")
    for program in ("main", "hostile"):
        subprocess.run(["gcc", "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{out}", "-c", "-o", folder / f"{program}.o", folder / f"{program}.c"],
                       check=True)
        run = subprocess.run(["g++", "-o", folder / program, folder / f"{program}.o", folder / "twice.o", *linked()],
                             capture_output=True, text=True, timeout=300)
        assert run.returncode == 0, run.stderr[-2000:]
    run = subprocess.run([folder / "hostile"], capture_output=True, text=True, timeout=300)
    assert (run.returncode, run.stdout) == (0, TOLD), (run.returncode, run.stdout, run.stderr[-2000:])
    few = {**os.environ, "RLX_THREADS": "1"}  # fewer threads than it was compiled for
    run = subprocess.run([folder / "main"], capture_output=True, text=True, env=few)
    assert run.returncode == 0, run.stdout
    numbers = [float(n) for n in run.stdout.split()]
    wanted = [float(n) for n in re.search(r"\{(.*)\}", expected).group(1).split(",")]
    assert all(abs(a - b) <= 1e-4 * abs(b) for a, b in zip(numbers, wanted)) and len(numbers) == 3, (numbers, wanted)
    # Nothing but what it needs is linked: the command links everything.
    assert (folder / "main").stat().st_size * 4 < RLX.stat().st_size, (folder / "main").stat().st_size
    run = subprocess.run([folder / "main"], capture_output=True, text=True, env={**os.environ, "RLX_ISA": "baseline"})
    assert run.returncode == 1 and "the program was built for rlx" in run.stdout, run.stdout
    odd = written(folder, 'graph @odd("/*/ a": f32[3], "*/": f32[3]) {\n  y = add("/*/ a", "*/")\n  return "b */ /*"=y\n}\n', "odd.rlx")
    rlx("build", odd, "-o", folder / "odd")
    subprocess.run(["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", folder / "odd/odd.h"], check=True)
    # Names of the sources themselves do not collide with that of the program.
    for name in ("made", "data", "Program", "f32"):
        rlx("build", path, "-o", folder / name, "--name", name)
        run = subprocess.run(["g++", "-std=c++20", "-fsyntax-only", f"-I{ROOT}", f'-D{name}_WEIGHTS="x"', folder / name / f"{name}.cpp"],
                             capture_output=True, text=True, timeout=300)
        assert run.returncode == 0, run.stderr[-2000:]
    waves = written(folder, "graph @waves(x: c64[3,3]) {\n  y:2 = eigh(x)\n  return y, y#1\n}\n")
    refused = rlx("build", waves, "-o", out, code=1)
    assert "step 'y' (eigh) runs by its reference rule (eigh_matrices: no factors of c64" in refused, refused
    assert "cannot be a name in C" in rlx("build", path, "-o", out, "--name", "2x", code=1)
    for name in ("class", "rlx", "main", "_Bool", "a__b", "time", "stdin", "size_t", "linux"):
        assert f"'{name}' means something else in C or C++" in rlx("build", path, "-o", out, "--name", name, code=1)
    assert "sizes of n are not known" in rlx("build", written(folder, LAYER), "-o", out, code=1)


sys.exit(1 if cases.run(globals(), sys.argv[4:]) else 0)
