#!/usr/bin/env python3
"""./dev check: layers, formatting, file sizes, headers alone, kernels for another machine, attacks, named tests,
links, refusals, generated documents. Exit 1 when something must change.

    check.py [BUILD] [--quick]

--quick is for the test run: it leaves out kernels for another machine, whose compiler the tests do not install, and says
what it leaves out for want of a package."""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAX_LINES, REPORT_LINES = 1000, 600
BACKENDS = ("cpu", "cuda")  # folders of rlx/backend that do not know each other


def tracked(*patterns):
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", *patterns], cwd=ROOT, text=True,
                         capture_output=True, check=True).stdout.split()
    return [ROOT / path for path in out if (ROOT / path).exists()]


def layers():
    """A room includes rooms with a smaller number only; the backends do not know each other."""
    number = {}
    for line in (ROOT / "cmake/layers.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            room, n = line.split()
            number[room] = int(n)
    errors = []
    for path in tracked("rlx/*.h", "rlx/*.cpp"):
        parts = path.relative_to(ROOT / "rlx").parts
        if len(parts) == 1:
            continue  # the umbrella header may include everything
        room = parts[0]
        if room not in number:
            errors.append(f"{path.relative_to(ROOT)}: room '{room}' is not in cmake/layers.txt")
            continue
        for line_number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if not match:
                continue
            target = match.group(1)
            where = f"{path.relative_to(ROOT)}:{line_number}"
            if not target.startswith("rlx/"):
                errors.append(f"{where}: includes '{target}'; the library includes rlx/ paths only")
                continue
            other = target.split("/")[1]
            if other == room:
                folder = target.split("/")[2]
                if room == "backend" and folder in BACKENDS and folder != parts[1]:
                    errors.append(f"{where}: backend/{parts[1]} includes {target}")
            elif number.get(other, 99) >= number[room]:
                errors.append(f"{where}: room {room} ({number[room]}) includes {target} ({number.get(other, '?')})")
    return errors


class Skipped(Exception):
    """A check that cannot run here, and why."""


def formatting():
    if not shutil.which("clang-format-19"):
        raise Skipped("clang-format-19 is not installed")
    files = [str(p) for p in tracked("*.h", "*.cpp")]
    result = subprocess.run(["clang-format-19", "--dry-run", "-Werror", *files], cwd=ROOT, text=True, capture_output=True)
    names = sorted(set(re.findall(r"^(/[^:]+):\d+:\d+: error:", result.stderr, re.M)))
    return [f"{pathlib.Path(name).relative_to(ROOT)}: not formatted; run ./dev fmt" for name in names]


def sizes():
    """Long files are reported; very long ones need the word 'table' in their first lines."""
    errors = []
    for path in tracked("*.h", "*.cpp", "*.py", "*.cmake", "dev"):
        lines = path.read_text().splitlines()
        name = path.relative_to(ROOT)
        if len(lines) > MAX_LINES and "table" not in " ".join(lines[:12]).lower():
            errors.append(f"{name}: {len(lines)} lines; find the seam, or say on top why it is one table")
        elif len(lines) > REPORT_LINES:
            print(f"note: {name} has {len(lines)} lines")
    return errors


def unproven_headers():
    """Headers that no source of their room includes first. A source that does proves in every build that the header
    needs nothing in front of it."""
    proven = set()
    for path in tracked("rlx/*.cpp"):
        first = re.search(r'^#include [<"]([^>"]+)[>"]', path.read_text(), re.M)
        if first:
            proven.add(first.group(1))
    return [h for h in tracked("rlx/*.h") if str(h.relative_to(ROOT)) not in proven]


def twins():
    """Where a header has a source of the same name, that source includes it first."""
    missing = [h for h in unproven_headers() if h.with_suffix(".cpp").exists()]
    return [f"{h.with_suffix('.cpp').relative_to(ROOT)}: its first include must be {h.relative_to(ROOT)}" for h in missing]


def headers(build):
    """Every other header compiles alone, with the flags of a source of its room."""
    commands = json.loads((pathlib.Path(build) / "compile_commands.json").read_text())
    flags = {}
    for entry in commands:
        file = pathlib.Path(entry["file"])
        if "rlx" in file.parts:
            words = [w for w in entry["command"].split() if w.startswith(("-I", "-D", "-std", "-m", "-isystem", "-W"))]
            # Not -Werror: g++ always warns of `#pragma once` in what it is given to compile.
            flags.setdefault(file.parent, [w for w in words if w not in ("-Winvalid-pch", "-Werror")])
    compiler = commands[0]["command"].replace("ccache ", "").split()[0]

    def alone(header):
        # Instruction sets are chosen by flags; a header for one of them is compiled as the sources that open it.
        folder = header.parent if header.parent.name != "simd" else header.parent.parent / "kernels/isa"
        room = next((d for d in [folder, *header.parents] if d in flags), None)
        words = flags.get(room, ["-std=c++20", f"-I{ROOT}"])
        result = subprocess.run([compiler, *words, "-Wno-unused", "-Wno-pragma-once-outside-header", "-fsyntax-only", "-x",
                                 "c++", str(header)], text=True, capture_output=True)
        lines = [line for line in result.stderr.splitlines() if "error" in line]
        return [f"{header.relative_to(ROOT)} does not compile alone: {lines[0] if lines else ''}"] if result.returncode else []

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return sum(pool.map(alone, unproven_headers()), [])


def refusals(build):
    """Every operator refuses at least one wrong call in tests/errors, with a message that begins with its name."""
    listed = subprocess.run([f"{build}/apps/rlx", "ops", "--json"], text=True, capture_output=True, check=True).stdout
    tests = "".join(path.read_text() for path in tracked("tests/errors/*.cpp"))
    return [f"tests/errors: no wrong call of '{op['name']}' is tested" for op in json.loads(listed)
            if f'"{op["name"]}: ' not in tests]


def attacks():
    """Every attack that docs/hostile-input.md lists names a test that exists: Suite.name, or Suite.name/case."""
    rows = re.findall(r"^\| (\d+) \|.*`(\w+)\.(\w+)(?:/(\w+))?` \|$", (ROOT / "docs/hostile-input.md").read_text(), re.M)
    sources = [path.read_text() for path in tracked("tests/*/*_test.cpp")]
    errors = []
    for number, suite, name, case in rows:
        found = [s for s in sources if re.search(rf"TEST(_P|_F)?\({suite},\s*{name}\)", s)]
        if not found or (case and not any(f'{{"{case}",' in s for s in found)):
            errors.append(f"docs/hostile-input.md: attack {number} names no test that exists")
    if [int(row[0]) for row in rows] != list(range(1, len(rows) + 1)) or len(rows) < 30:
        errors.append(f"docs/hostile-input.md: {len(rows)} attacks, and not numbered from 1 on")
    return errors


def named_tests():
    """Each `file: Suite.name` in the tables of docs/ is a test of that file."""
    errors = []
    for name in ("docs/corrections.md", "docs/derivatives-checklist.md", "docs/execution-checklist.md"):
        found = 0
        for line_number, line in enumerate((ROOT / name).read_text().splitlines(), 1):
            for path, suite, test in re.findall(r"`(tests/[\w/]+\.cpp): (\w+)\.(\w+)`", line):
                found += 1
                file = ROOT / path
                pattern = rf"\bTEST(?:_F|_P)?\(\s*{suite},\s*{test}\)"
                if not file.exists() or not re.search(pattern, file.read_text()):
                    errors.append(f"{name}:{line_number}: there is no test {suite}.{test} in {path}")
            cells = line.split("|")
            if len(cells) > 3 and not line.startswith("|--") and "tests/" not in line and "| test" not in line:
                errors.append(f"{name}:{line_number}: this row names no test")
        if not found:
            errors.append(f"{name}: it names no test")
    return errors


def links():
    """Every link of a document to a file of the tree leads somewhere."""
    errors = []
    for path in tracked("*.md"):
        for line_number, line in enumerate(path.read_text().splitlines(), 1):
            for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", line):
                if "://" not in target and not (path.parent / target).exists():
                    errors.append(f"{path.relative_to(ROOT)}:{line_number}: there is no {target}")
    return errors


def documents(build):
    result = subprocess.run([sys.executable, str(ROOT / "docs/generate.py"), build, "--check"], text=True,
                            capture_output=True)
    return result.stdout.split("\n")[:-1] if result.returncode else []


def other_machines():
    """The kernel sources compile for AArch64."""
    result = subprocess.run([sys.executable, str(ROOT / "tests/backend/cpu/check_isa.py"), "compile",
                             "aarch64-linux-gnu-g++", str(ROOT)], text=True, capture_output=True)
    return [result.stdout + result.stderr] if result.returncode else []


def main():
    words = [w for w in sys.argv[1:] if not w.startswith("--")]
    quick = "--quick" in sys.argv
    build = words[0] if words else str(ROOT / "build/dev")
    failed = 0
    for name, slow, check in (
            ("layers", False, layers), ("formatting", False, formatting), ("sizes", False, sizes), ("first includes", False, twins),
            ("headers alone", False, lambda: headers(build)), ("AArch64", True, other_machines), ("attacks", False, attacks),
            ("named tests", False, named_tests), ("links", False, links), ("refusals", False, lambda: refusals(build)),
            ("documents", False, lambda: documents(build))):
        if quick and slow:
            continue
        try:
            errors = check()
        except Skipped as why:
            print(f"{name}: skipped, {why}")
            continue
        for error in errors:
            print(error)
        print(f"{name}: {'ok' if not errors else str(len(errors)) + ' errors'}")
        failed += len(errors)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
