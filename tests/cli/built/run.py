#!/usr/bin/env python3
"""run.py WRITER BUILD SOURCE COMPILER [SAMPLES]: programs that `rlx build` writes, compiled, linked with rlx::run alone and run: the bytes are those of the
compiled graph, and no interpreter, reference rule, parser or pass is inside."""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

WRITER, BUILD, ROOT = (pathlib.Path(a).resolve() for a in sys.argv[1:4])
COMPILER = sys.argv[4]
SAMPLES = int(sys.argv[5]) if len(sys.argv) > 5 else 1
PARTS = 2 * SAMPLES
MODELS = sorted(ROOT.parent.glob("shared/data/onnx/*/model.onnx"))
INSIDE = r"\brlx::(?:backend::built::Program::run|cpu::RegionProgram|ir::Graph::append)\b"
# place_buffers plans the bodies of loops.
OUTSIDE = r"\brlx::(?:ir::Interpreter|ir::parse_|ir::\w*Parser|ops::\w+::(?:reference|decompose|vjp|jvp|vmap|samples)\(|passes::(?!place_buffers|Lifetime|Placement)\w+|runtime::|io::)"


def flags():
    """As the package tells them; sanitizers as this build has them."""
    libs = re.search(r"^Libs: .*", (BUILD / "rlx-run.pc").read_text(), re.M).group(0).split()[1:]
    sanitizers = re.search(r"^RLX_SANITIZE:\w+=(.+)$", (BUILD / "CMakeCache.txt").read_text(), re.M)
    return [f"-L{BUILD}", *libs[1:]], [f"-fsanitize={sanitizers.group(1)}"] if sanitizers else []


def call(command, **more):
    run = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=800, **more)
    if run.returncode:
        sys.exit(f"{command[0]}: {run.stdout[-4000:]}{run.stderr[-4000:]}")
    return run.stdout


def compiled(folder, part):
    out = folder / f"part_{part}"
    libs, sanitizers = flags()
    call([COMPILER, "-std=c++20", "-O0", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers", "-pthread", *sanitizers, f"-I{ROOT}",
          f"-I{folder}", "-o", out, folder / f"main_{part}.cpp", *libs])
    return call([out], env={**os.environ, "RLX_THREADS": "2"}), out, bool(sanitizers)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        call([WRITER, folder, PARTS, SAMPLES, *(m.parent for m in MODELS if (m.parent / "inputs.safetensors").exists())], env={**os.environ, "RLX_THREADS": "2"})
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for text, program, sanitized in pool.map(lambda part: compiled(folder, part), range(PARTS)):
                print(text, end="")
                if sanitized:
                    continue  # their tables refer to everything
                names = call(["nm", "-C", program])
                if not re.search(INSIDE, names):
                    sys.exit(f"{program}: no names of steps in it; this test would prove nothing")
                found = sorted(set(re.findall(rf"{OUTSIDE}\S*", names)))
                if found:
                    sys.exit(f"{program}: holds what programs do not need: {found[:20]}")


main()
