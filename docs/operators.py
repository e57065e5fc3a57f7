"""rlx/lang/operators.h and .cpp: every operator as a free function of tensors, made from its record.

The records are read from the headers of rlx/ops; which struct has which name stands there, and nothing else does."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Made by hand: loops and branches take functions (rlx/lang/control.h), leaves come from a Tracer.
SKIPPED = {"input", "param", "constant", "full", "iota", "custom_fn", "if", "scan", "while", "fused"}
NOTE = "// Made by ./dev docs from the records of rlx/ops; see docs/operators.py."


def structs(text):
    """(name, struct it derives from or None, body) of every struct of a header."""
    for match in re.finditer(r"^struct (\w+)(?: : (?:\w+::)*(\w+)(?:<\w+>)?)? \{$", text, re.M):
        end = text.index("\n};", match.end())
        yield match.group(1), match.group(2), text[match.end():end]


def words(body, key):
    """The text of `key = "..." "..."` in a struct, its pieces joined; None where it has none."""
    match = re.search(rf"\b{key} =\s*((?:\"(?:[^\"\\]|\\.)*\"\s*)+)", body)
    return "".join(re.findall(r"\"((?:[^\"\\]|\\.)*)\"", match.group(1))) if match else None


def records():
    """One dictionary per operator of rlx/ops/all.h, by name."""
    listed = re.search(r"using All =\s*OpList<(.*?)>;", (ROOT / "rlx/ops/all.h").read_text(), re.S).group(1)
    listed = set(re.findall(r"\w+", re.sub(r"//[^\n]*", "", listed)))
    found, bodies = {}, {}
    for path in sorted(ROOT.glob("rlx/ops/**/*.h")) + [ROOT / "rlx/ir/leaves.h"]:
        for struct, base, body in structs(path.read_text()):
            bodies[struct] = (base, body)
            if struct in listed and words(body, "name"):
                found[struct] = body
    missing = listed - set(found)
    if missing:
        raise SystemExit(f"docs/operators.py: no record found for {', '.join(sorted(missing))}")
    out = {}
    for struct, body in found.items():
        base, whole = bodies[struct]
        while base in bodies:
            base, more = bodies[base]
            whole += more
        out[words(body, "name")] = {
            "struct": struct, "summary": words(body, "summary"),
            "operands": [o.strip() for o in words(whole, "operands").split(",") if o.strip()],
            "results": (words(whole, "results") or "y").split(","),
            "plain": "using Attrs = NoAttrs" in whole, "elementwise": ".elementwise = true" in whole}
    return dict(sorted(out.items()))


def parameters(op):
    """Declarations of the operands, and the list that apply takes."""
    declared, passed = [], []
    kind = "Operand" if op["elementwise"] and len(op["operands"]) > 1 else "Tensor"
    operands = op["operands"]
    if operands[0] == "first":  # "first, rest...": one list
        operands = operands[1:]
    for operand in operands:
        name = operand.rstrip("?.")
        if operand.endswith("..."):
            declared.append(f"const Tensors& {name}")
            passed.append(name)
        else:
            declared.append(f"const {kind}& {name}" + (" = {}" if operand.endswith("?") else ""))
            passed.append(name)
    return declared, passed


def functions():
    for name, op in records().items():
        if name in SKIPPED:
            continue
        count = len(op["results"])
        result = "Tensors" if op["results"][-1].endswith(("...", "?")) else "Tensor" if count == 1 else \
            f"std::array<Tensor, {count}>"
        declared, passed = parameters(op)
        if not op["plain"]:
            declared.append(f"ops::{op['struct']}::Attrs attrs = {{}}")
        declared.append("const Loc& loc = Loc::current()")
        yield name, op, result, declared, passed


def wrapped(head, items, tail, width=110):
    """head + items joined by ", " + tail, broken as clang-format does."""
    lines, line, indent = [], head, " " * len(head)
    for i, item in enumerate(items):
        end = tail if i == len(items) - 1 else ","
        piece = ("" if line.endswith("(") or not line.strip() else " ") + item + end
        if len(line + piece) > width:
            lines.append(line)
            line, piece = indent, item + end
        line += piece
    return "\n".join([*lines, line])


def header():
    out = ["// Every operator as a free function of tensors: operands, then attributes by name, then the caller's place.",
           "//", "//   const Tensor y = einsum({a, b}, {.equation = \"ij,jk->ik\"});",
           "//   const auto [u, s, vt] = svd(a);", "//   const auto [values, indices] = top_k(x, {.k = 5});", "//",
           "// An operand left out is an empty tensor. What each means and takes: docs/ops.md.", NOTE, "// clang-format off", "#pragma once", "",
           "#include <array>", "", "#include \"rlx/lang/apply.h\"", "#include \"rlx/ops/all.h\"", "",
           "namespace rlx {", ""]
    for name, op, result, declared, _ in functions():
        out += [f"/// {op['summary']}", wrapped(f"{result} {name}(", declared, ");")]
    return "\n".join([*out, "", "}  // namespace rlx", ""])


def source():
    out = [NOTE, "// clang-format off", "#include \"rlx/lang/operators.h\"", "", "namespace rlx {", ""]
    for name, op, result, declared, passed in functions():
        plain = [d.split(" = ")[0] for d in declared]
        attrs = "{}" if op["plain"] else "std::move(attrs)"
        if any(o.endswith("...") for o in op["operands"]):
            fixed = passed[:-1]
            operands = f"detail::with_list({{{', '.join(fixed)}}}, {passed[-1]})"
        else:
            operands = "{" + ", ".join(passed) + "}"
        call = f"return apply<ops::{op['struct']}>({attrs}, {operands}, loc);"
        line = f"{result} {name}({', '.join(plain)}) {{ {call} }}"
        out += [line] if len(line) <= 120 else [wrapped(f"{result} {name}(", plain, ") {"), f"  {call}", "}"]
    return "\n".join([*out, "", "}  // namespace rlx", ""])


def write():
    (ROOT / "rlx/lang/operators.h").write_text(header())
    (ROOT / "rlx/lang/operators.cpp").write_text(source())
