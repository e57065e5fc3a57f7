"""Two checks of the sources compiled per instruction set.

symbols OBJECTS...   no object may hold a shared (weak) symbol from outside its own level: the linker would keep
                     one copy of several, perhaps the one with instructions the machine lacks
compile COMPILER DIR every source must compile for another machine (baseline level)
"""
import glob
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor


def symbols(objects):
    bad = []
    for path in objects:
        level = re.search(r"rlx_isa_(\w+)\.dir", path).group(1)
        names = subprocess.run(["nm", "-C", path], capture_output=True, text=True, check=True).stdout
        for line in names.splitlines():
            found = re.match(r"[0-9a-f]* *([WVu]) (.*)", line)
            if found and found.group(2).startswith("DW.ref."):
                continue  # a data pointer of the exception tables
            if found and f"rlx::cpu::{level}::" not in found.group(2) and line[0] != " ":
                bad.append(f"{path}: {found.group(2)}")
    return bad


def compile_all(compiler, root):
    def problem(source):
        command = [compiler, "-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-psabi",
                   "-Wno-missing-field-initializers", "-DRLX_ISA=baseline",
                   "-I", root, "-c", source, "-o", os.devnull]
        run = subprocess.run(command, capture_output=True, text=True)
        return f"{source}:\n{run.stderr[:4000]}" if run.returncode else ""

    sources = sorted(glob.glob(os.path.join(root, "rlx/backend/cpu/*/isa/*.cpp")))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [text for text in pool.map(problem, sources) if text]


problems = symbols(sys.argv[2:]) if sys.argv[1] == "symbols" else compile_all(sys.argv[2], sys.argv[3])
print("\n".join(problems) or "ok")
sys.exit(1 if problems else 0)
