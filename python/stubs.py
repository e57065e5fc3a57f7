#!/usr/bin/env python3
"""Writes the types of rlx._rlx: what nanobind says of the module, and the methods that the package adds to its classes.

usage: stubs.py NANOBIND_STUB OUTPUT     (with the package on the path)
"""
import inspect
import re
import sys

sys.path.pop(0)  # this folder, where the package lies without its module
from rlx import _rlx  # noqa: E402

PREAMBLE = "from typing import Any\n\nimport numpy as numpy_\n\nfrom ._indexing import At\n"
# Set by classes of Python themselves, or by nanobind's own stub.
SKIPPED = {"__hash__", "__module__", "__dict__", "__weakref__", "__doc__", "__array_priority__"}


def signature(function):
    """The parameters and the result as text; annotations are texts already."""
    parts, star = [], False
    s = inspect.signature(function)
    for p in s.parameters.values():
        if p.kind == p.KEYWORD_ONLY and not star:
            parts.append("*")
        star = star or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        mark = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        kind = "" if not parts and p.name in ("self", "x", "a") else f": {p.annotation if p.annotation is not p.empty else 'Any'}"
        name = p.name if kind else "self"
        parts.append(f"{mark}{name}{kind}" + (f" = {p.default!r}" if p.default is not p.empty else ""))
    result = "Any" if s.return_annotation is s.empty else s.return_annotation
    text = f"({', '.join(parts)}) -> {result}"
    return re.sub(r"\b(ArrayLike|Axis)\b", "Any", text).replace("numpy.ndarray", "numpy_.ndarray")  # Array has a method numpy


def added(cls):
    """Lines for what Python set on a class."""
    lines = []
    for name, value in vars(cls).items():
        if name in SKIPPED or name.startswith("_") and not name.startswith("__"):
            continue
        if isinstance(value, property) and inspect.isfunction(value.fget):
            lines += ["    @property", f"    def {name}{signature(value.fget)}: ...", ""]
        elif inspect.isfunction(value):
            ignore = "  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""
            lines += [f"    def {name}{signature(value)}: ...{ignore}", ""]
    return lines


def main(source, target):
    out, pending = [], []
    for line in open(source).read().splitlines():
        line = re.sub(r"def __eq__\(self, arg: \w+, /\) -> bool: \.\.\.", "def __eq__(self, arg: object, /) -> bool: ...", line)
        out.append(re.sub(r"def __str__\(self\) -> object", "def __str__(self) -> str", line))
        if found := re.match(r"class (\w+)\b.*:$", line):
            pending = added(getattr(_rlx, found[1]))
        elif pending and line.strip().startswith('"""'):  # behind the class's own text
            out += [""] + pending
            pending = []
    with open(target, "w") as file:
        file.write('"""Generated; do not edit."""\n' + PREAMBLE + "\n".join(out) + "\n\n__version__: str\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
