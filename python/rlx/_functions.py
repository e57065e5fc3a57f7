"""Functions made from the records of operators."""

import functools

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


def _document(record):
    lines = [record["summary"], "", record["doc"] + "."]
    if record["fields"]:
        lines += ["", "Keywords:"]
        for f in record["fields"]:
            choices = f" one of {', '.join(f[4])};" if f[4] else ""
            lines.append(f"    {f[0]} ({_kinds[f[2]]}):{choices} {f[1]}")
    return "\n".join(lines + ["", "Returns: " + ", ".join(record["results"])])


def document(name):
    """The text of an operator, without making its function."""
    return _document(_records()[name])


def _make(record):
    import inspect  # which takes longer to load than all of this package

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
    function.__name__ = function.__qualname__ = _python_name(name)
    function.__doc__ = _document(record)
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


_types = {"bool": "bool", "int": "int", "float": "float", "str": "str", "dtype": "str", "ints": "Sequence[int]",
          "floats": "Sequence[float]", "size": "Size", "sizes": "Sequence[Size]", "type": "Any", "array": "Array", "Graph": "Graph"}


def _keyword_type(field):
    kind = _types[_kinds[field[2]]]
    if field[4]:
        kind = f"Literal[{', '.join(repr(c) for c in field[4])}]"
    return kind if field[5] is not None else f"{kind} | None"


def stubs():
    """The text of ops.pyi: a typed signature and a line for every function."""
    import inspect

    out = ['"""Generated from the records of the operators; do not edit."""', "from collections.abc import Sequence",
           "from typing import Any, Literal", "", "import numpy.typing", "", "from ._rlx import Array, Graph", "",
           "Size = int | str", "Operand = Array | numpy.typing.ArrayLike", ""]
    for name, record in sorted(_records().items()):
        f, fields = make(name), {f[0]: f for f in record["fields"]}
        parts, star = [], False
        for p in f.__signature__.parameters.values():
            if p.kind == inspect.Parameter.VAR_POSITIONAL:
                parts.append(f"*{p.name}: Operand")
                star = True
                continue
            keyword = p.kind == inspect.Parameter.KEYWORD_ONLY
            if keyword and not star:
                parts.append("*")
                star = True
            optional = p.default is not inspect.Parameter.empty
            kind = _keyword_type(fields[p.name]) if keyword else "Operand | None" if optional else "Operand"
            parts.append(f"{p.name}: {kind}" + (f" = {_default(p.default)}" if optional else ""))
        count = len(record["results"])
        several = count > 1 or any("..." in r or "?" in r for r in record["results"])
        out += [f"def {name}({', '.join(parts)}) -> {'Any' if several else 'Array'}:",
                f'    """{f.__doc__.splitlines()[0]}"""', ""]
    return "\n".join(out)


def _default(value):
    if isinstance(value, float) and value - value != 0:  # no literal of Python
        return "..."
    return repr(value) if isinstance(value, (bool, int, float, str, tuple, list, type(None))) else "..."


if __name__ == "__main__":
    import sys

    with open(sys.argv[1], "w") as file:
        file.write(stubs())
