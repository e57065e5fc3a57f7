#!/usr/bin/env python3
"""Runs the commands of cases.txt and compares what they print and how they end.

usage: run.py RLX_COMMAND [--update]     (--update writes what the command does now; read the difference)

A case: a line `# name`, a line `$ rlx ...` run in this folder, `< ` lines for standard input, `> ` lines expected on
standard output, `! ` lines expected on standard error, and `exit N` where N is not 0. `\\` at the end of a line: no
line end there. Standard error that ends in `...` may go on in any way.
"""
import pathlib
import shlex
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def joined(lines):
    return "".join(line[:-1] if line.endswith("\\") else line + "\n" for line in lines)


def shown(prefix, text):
    lines = text.split("\n")
    last = lines.pop()
    out = [f"{prefix} {line}".rstrip() if not line else f"{prefix} {line}" for line in lines]
    return out + ([f"{prefix} {last}\\"] if last else [])


def main():
    rlx, update = sys.argv[1], "--update" in sys.argv
    cases = []
    for line in (HERE / "cases.txt").read_text(encoding="utf-8").split("\n"):
        if line.startswith("# "):
            cases.append({"name": line[2:], "$": [], "<": [], ">": [], "!": [], "exit": 0})
        elif line.startswith("exit "):
            cases[-1]["exit"] = int(line[5:])
        elif line:
            assert line[0] in "$<>!" and line[1:2] in ("", " "), line
            cases[-1][line[0]].append(line[2:])
    failed, out = 0, []
    for case in cases:
        command = shlex.split(case["$"][0])
        assert command[0] == "rlx", case
        run = subprocess.run([rlx, *command[1:]], input=joined(case["<"]).encode(), capture_output=True, cwd=HERE, timeout=60)
        stdout, stderr = run.stdout.decode(), run.stderr.decode()
        out += [f"# {case['name']}", f"$ {case['$'][0]}", *(f"< {line}".rstrip() for line in case["<"]),
                *shown(">", stdout), *shown("!", stderr)] + ([f"exit {run.returncode}"] if run.returncode else []) + [""]
        expected = (joined(case[">"]), joined(case["!"]), case["exit"])
        if expected[1].endswith("...\n") and stderr.startswith(expected[1][:-4]):
            stderr = expected[1]  # words of a library
        if (stdout, stderr, run.returncode) != expected and not update:
            failed += 1
            print(f"{case['name']}: $ {case['$'][0]}\n  got      {(stdout, stderr, run.returncode)}\n  expected {expected}")
    if update:
        (HERE / "cases.txt").write_text("\n".join(out), encoding="utf-8")
    print(f"{len(cases)} cases, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
