#!/usr/bin/env python3
"""./dev check: layers, formatting, file sizes, kernels for another machine, attacks, named tests, refusals,
generated documents. Exit 1 when something must change."""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAX_LINES, REPORT_LINES = 1000, 600


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
                if room == "backend" and target.split("/")[2] != parts[1] and len(target.split("/")) > 3:
                    errors.append(f"{where}: backend/{parts[1]} includes {target}")
            elif number.get(other, 99) >= number[room]:
                errors.append(f"{where}: room {room} ({number[room]}) includes {target} ({number.get(other, '?')})")
    return errors


def formatting():
    files = [str(p) for p in tracked("*.h", "*.cpp")]
    result = subprocess.run(["clang-format-19", "--dry-run", "-Werror", *files], cwd=ROOT, text=True, capture_output=True)
    names = sorted({line.split(":")[0] for line in result.stderr.splitlines() if "error:" in line})
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
    for name in ("docs/corrections.md", "docs/derivatives-checklist.md"):
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
    build = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build/dev")
    failed = 0
    for name, check in (("layers", layers), ("formatting", formatting), ("sizes", sizes),
                        ("AArch64", other_machines), ("attacks", attacks), ("named tests", named_tests), ("refusals", lambda: refusals(build)),
                        ("documents", lambda: documents(build))):
        errors = check()
        for error in errors:
            print(error)
        print(f"{name}: {'ok' if not errors else str(len(errors)) + ' errors'}")
        failed += len(errors)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
