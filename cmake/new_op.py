#!/usr/bin/env python3
"""./dev op NAME [FOLDER]: writes the file pair of a new operator and its two words in rlx/ops/all.h, and makes its
function of tensors (docs/operators.py).

The operator it writes is y = scale x, complete with every required part: it builds and passes the conformance run as it is,
so that a newcomer changes a working thing. RLX_ROOT names another tree, for the test of this script."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

SOURCE_ROOT = pathlib.Path(__file__).resolve().parent.parent
ROOT = pathlib.Path(os.environ.get("RLX_ROOT", SOURCE_ROOT))

HEADER = '''// TODO_SENTENCE
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct NAME {
  static constexpr std::string_view name = "SNAKE", summary = "One sentence.", operands = "x";
  static constexpr std::string_view doc = "y = scale x, the mathematics in a line or two";
  static constexpr Traits traits{.elementwise = true};
  struct Attrs {
    double scale = 1;
    static constexpr auto fields() { return std::tuple{field("scale", &Attrs::scale, "what it means")}; }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr SNAKE(Expr x, double scale = 1);

}  // namespace rlx::ops
'''

SOURCE = '''#include "rlx/ops/FOLDER/SNAKE.h"

#include "rlx/ops/elementwise/binary.h"

namespace rlx::ops {

Shapes NAME::infer(Infer& c, Attrs&) {
  c.require_float(0);
  return {c.in(0)};
}

Literals NAME::reference(const Eval& c, const Attrs& a) {
  std::vector<double> v = c.in(0).to_reals();
  for (double& x : v) x *= a.scale;
  return {Literal::reals(c.out(), v)};
}

Exprs NAME::vjp(const Vjp& c, const Attrs& a) { return {c.dy() * a.scale}; }

std::vector<OpSample<NAME::Attrs>> NAME::samples() {
  return {{{2}, {"f32[2,3]"}}, {{-1}, {"f64[7]"}}, {{0.5}, {"f32[]"}}, {{1}, {"f32[0,3]"}}, {{3}, {"f16[1]"}}};
}

Expr SNAKE(Expr x, double scale) { return make<NAME>(*x.graph, {scale}, {x}); }

}  // namespace rlx::ops
'''


def home_of(snake):
    """The header that has an operator of this name already."""
    for path in [*sorted((SOURCE_ROOT / "rlx/ops").glob("**/*.h")), SOURCE_ROOT / "rlx/ir/leaves.h"]:
        if re.search(rf'\bname = "{snake}"', path.read_text()):
            return path.relative_to(SOURCE_ROOT)
    return None


def add_to_list(snake, folder, name):
    listing = ROOT / "rlx/ops/all.h"
    text = listing.read_text()
    include = f'#include "rlx/ops/{folder}/{snake}.h"'
    includes = re.findall(r'^#include "rlx/ops/.*$', text, re.M)
    text = text.replace("\n".join(includes), "\n".join(sorted({*includes, include})))
    listing.write_text(re.sub(r"(using All =\s*OpList<)", rf"\1{name}, ", text, count=1))
    if shutil.which("clang-format-19") and (ROOT / ".clang-format").exists():
        subprocess.run(["clang-format-19", "-i", str(listing)], check=True)


def main():
    if len(sys.argv) not in (2, 3) or not all(re.fullmatch(r"[a-z][a-z0-9_]*", word) for word in sys.argv[1:]):
        print("usage: ./dev op NAME [FOLDER]; both in lower case with underscores", file=sys.stderr)
        return 2
    snake, folder = sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else "elementwise"
    name = "".join(word.capitalize() for word in snake.split("_"))
    base = ROOT / "rlx/ops" / folder / snake
    if base.with_suffix(".h").exists():
        print(f"op: {base.relative_to(ROOT)}.h exists already", file=sys.stderr)
        return 1
    if home := home_of(snake):
        print(f"op: {home} has an operator '{snake}' already; names must be unique", file=sys.stderr)
        return 1
    base.parent.mkdir(parents=True, exist_ok=True)
    for suffix, text in ((".h", HEADER), (".cpp", SOURCE)):
        text = text.replace("// TODO_SENTENCE", f"// {name}: what it is for, in a sentence.")
        base.with_suffix(suffix).write_text(text.replace("NAME", name).replace("SNAKE", snake).replace("FOLDER", folder))
    add_to_list(snake, folder, name)
    if (ROOT / "docs/operators.py").exists():
        sys.path.insert(0, str(ROOT / "docs"))
        import operators
        operators.write()
    print(f"wrote rlx/ops/{folder}/{snake}.h and .cpp, and added {name} to rlx/ops/all.h")
    print("next: make it yours, then ./dev test conformance")
    return 0


if __name__ == "__main__":
    sys.exit(main())
