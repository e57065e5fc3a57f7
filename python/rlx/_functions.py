"""Functions made from the records of operators."""

import functools
import inspect

from . import _rlx
from ._convert import as_array, is_number, number
from ._trace import apply_one

_kinds = ("bool", "int", "float", "str", "str", "dtype", "ints", "floats", "size", "sizes", "type", "array", "Graph")


def _operands(name, values):
    """Numbers beside arrays take the type of the first array."""
    partner = next((v for v in values if not is_number(v) and v is not None), None)
    if partner is None or not any(is_number(v) for v in values):
        return list(values)
    dtype = as_array(partner).dtype
    return [number(v, dtype) if is_number(v) else v for v in values]


def _make(record):
    name, names = record["name"], record["operands"]
    variadic = bool(names) and names[-1].endswith("...")
    plain = [n.rstrip("?").rstrip(".") for n in names]
    fields = record["fields"]
    known = {f[0] for f in fields}
    least = record["min_operands"]

    def function(*args, **keywords):
        values = list(args)
        if len(values) == 1 and variadic and isinstance(values[0], (list, tuple)):
            values = list(values[0])
        for n in plain[len(values):]:
            if n in keywords and n not in known:
                values.append(keywords.pop(n))
        while values and values[-1] is None:
            values.pop()
        if len(values) < least:
            raise _rlx.Error(f"{name}: {len(values)} operands, it takes at least {least}: {', '.join(names)}")
        return apply_one(name, _operands(name, values), keywords)

    parameters = []
    for n, raw in zip(plain, names):
        if raw.endswith("..."):
            parameters.append(inspect.Parameter(n, inspect.Parameter.VAR_POSITIONAL))
        else:
            default = None if raw.endswith("?") else inspect.Parameter.empty
            parameters.append(inspect.Parameter(n, inspect.Parameter.POSITIONAL_ONLY if variadic else
                                                inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default))
    for f in fields:
        if f[0] not in plain:
            parameters.append(inspect.Parameter(f[0], inspect.Parameter.KEYWORD_ONLY, default=f[5]))
    lines = [record["summary"], "", record["doc"] + "."]
    if fields:
        lines += ["", "Keywords:"]
        for f in fields:
            choices = f" one of {', '.join(f[4])};" if f[4] else ""
            lines.append(f"    {f[0]} ({_kinds[f[2]]}):{choices} {f[1]}")
    lines += ["", "Returns: " + ", ".join(record["results"])]
    function.__name__ = function.__qualname__ = _python_name(name)
    function.__doc__ = "\n".join(lines)
    function.__signature__ = inspect.Signature(parameters)
    function.__module__ = "rlx.ops"
    return function


def _python_name(name):
    return name + "_" if name in ("if", "while") else name


@functools.cache
def _records():
    return {_python_name(r["name"]): r for r in _rlx.describe_operators() if r["name"] != "constant"}


def names():
    return sorted(_records())


def make(name):
    """The function of an operator; None when there is none of that name."""
    record = _records().get(name)
    return None if record is None else _make(record)


def stubs():
    """The text of ops.pyi: a typed signature and a line for every function."""
    out = ['"""Generated from the records of the operators; do not edit."""', "from typing import Any", "",
           "Array = Any", ""]
    for name in names():
        f = make(name)
        parts, star = [], False
        for p in f.__signature__.parameters.values():
            if p.kind == inspect.Parameter.VAR_POSITIONAL:
                parts.append(f"*{p.name}: Array")
                star = True
                continue
            if p.kind == inspect.Parameter.KEYWORD_ONLY and not star:
                parts.append("*")
                star = True
            typed = f"{p.name}: {'Any' if p.kind == inspect.Parameter.KEYWORD_ONLY else 'Array'}"
            parts.append(typed if p.default is inspect.Parameter.empty else f"{typed} = {p.default!r}")
        out += [f"def {name}({', '.join(parts)}) -> Any:", f'    """{f.__doc__.splitlines()[0]}"""', ""]
    return "\n".join(out)
