"""first_sources.py BUILD: no source of the preset of ./dev run may use what that preset leaves out (cmake/rlx_dense.cmake).

A source that includes X.h is taken to call X.cpp, and the families of kernels are found by name. Linking would tell for certain, and takes minutes.
"""
import json
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OPTIONAL = "rlx/backend/cuda/"  # included where RLX_CUDA is on
STANDS_FOR = "rlx/backend/cpu/nodes/left_out.cpp"  # the families of the headers that it includes
FAMILIES = "rlx/backend/cpu/nodes/device.cpp"  # calls all of them


def found(pattern, source):
    with open(os.path.join(ROOT, source), encoding="utf-8") as file:
        return re.findall(pattern, file.read(), re.M)


def includes(source):
    return found(r'^#include "((?:rlx|apps|bench)/[^"]+)\.h"', source)


def main():
    with open(os.path.join(sys.argv[1], "compile_commands.json"), encoding="utf-8") as file:
        compiled = {os.path.relpath(entry["file"], ROOT) for entry in json.load(file)}
    there = compiled | {name + ".cpp" for name in includes(STANDS_FOR)}
    missing = [f"{source} includes {name}.h, and {name}.cpp is left out"
               for source in sorted(compiled) if source.startswith(("rlx/", "apps/", "bench/")) for name in includes(source)
               if name + ".cpp" not in there and not name.startswith(OPTIONAL) and os.path.exists(os.path.join(ROOT, name + ".cpp"))]
    defined = {name for source in compiled if source.startswith("rlx/backend/") for name in found(r"^void (add_\w+)\(", source)}
    missing += [f"{FAMILIES} calls {name}, which {STANDS_FOR} should define"
                for name in found(r"RLX_FAMILY\((?:backend::)?(add_\w+)\)", FAMILIES) if name not in defined]
    print("\n".join(missing) or f"sources: {len(compiled)}")
    sys.exit(1 if missing else 0)


main()
