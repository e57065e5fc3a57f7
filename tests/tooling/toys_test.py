"""docs/how-to.md, tried: a toy of a kind is added in the places it lists, in a scratch tree, and used. Only the files that a
toy touches are compiled; the rest comes from the build folder. Arguments: source folder, build folder, compiler.

(tests/tooling/new_op_test.py does the same for an operator, with the script that writes it.)"""
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE, BUILD, COMPILER = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]


class Toy:
    """`places`: path -> (text that is there, text that takes its place), or the text of a new file."""

    def __init__(self, name, rooms, libraries, places, program, printed):
        self.name, self.rooms, self.libraries, self.places = name, rooms, libraries, places
        self.program, self.printed = program, printed

    def tree(self, root):
        compiled = [root / "main.cpp"]
        compiled[0].write_text(self.program)
        for place, change in self.places.items():
            text = change
            if isinstance(change, tuple):
                text = (SOURCE / place).read_text()
                assert text.count(change[0]) == 1, f"{place}: '{change[0]}' is not there once"
                text = text.replace(*change)
            path = root / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            if path.suffix == ".cpp":
                compiled.append(path)
        return compiled

    def check(self):
        with tempfile.TemporaryDirectory() as scratch:
            root = pathlib.Path(scratch)
            sources = self.tree(root)
            archives = [str(BUILD / f"librlx_{room}.a") for room in self.rooms]
            built = subprocess.run([COMPILER, "-std=c++20", "-O0", f"-I{root}", f"-I{SOURCE}", *map(str, sources), *archives,
                                    *self.libraries, "-pthread", "-o", str(root / "toy")], text=True, capture_output=True)
            if built.returncode:
                return f"does not build:\n{built.stderr[:3000]}"
            run = subprocess.run([str(root / "toy")], cwd=root, text=True, capture_output=True)
            return "" if run.stdout == self.printed else f"printed {run.stdout!r}, not {self.printed!r} {run.stderr}"


BLOCK = Toy("a block", ["transform", "ops", "ir", "quant", "math", "base"], [], {}, r'''
#include <cstdio>
#include "rlx/ir/interpreter.h"
#include "rlx/ir/text.h"
#include "rlx/ir/rewrite.h"
#include "rlx/ops/all.h"
namespace rlx::ops {
struct TwiceBlock {
  static constexpr std::string_view name = "twice_block", summary = "Twice.", doc = "y = x + x", operands = "x";
  static constexpr Traits traits{.block = true};
  using Attrs = NoAttrs;
  static Shapes infer(Infer& c, Attrs&) { return {c.in(0)}; }
  static Exprs decompose(const Lower& c, const Attrs&) { return {c.in(0) + c.in(0)}; }
};
}
int main() {
  using namespace rlx;
  ir::OpTable operators = ops::table();
  operators.add<ops::TwiceBlock>();
  const ir::Graph g = ir::parse_graph("graph(x: f32[2]) { return twice_block(x) }", operators);
  std::printf("%s\n", cat(ir::interpret(g, Literals{Literal::of<float>({2}, {1, 2})})[0]).c_str());
}
''', "f32[2]{2.0, 4.0}\n")

FILE_FORMAT = Toy("a file format", ["io", "text", "ir", "quant", "base"], ["-lz", "-lsimdjson", "-lpcre2-8", "-lutf8proc"], {
    "rlx/io/toy_format.cpp": r'''
#include "rlx/io/model_file.h"
namespace rlx::io {
extern const FileFormat kToyFormat{
    .name = "toy", .ending = ".toy", .summary = "bytes behind four letters",
    .recognises = [](const Input& input) { return input.text().starts_with("TOY!"); },
    .open = [](const Input& input, ModelFile& out) { out.metadata.emplace_back("size", cat(input.bytes().size() - 4)); },
};
}
''',
    "rlx/io/file_format.cpp": ("kNpyFormat, kNpzFormat;\nstatic const FileFormat* const kFormats[] = {&kGgufFormat, &kSafetensorsFormat, &kNpyFormat, &kNpzFormat};",
                               "kNpyFormat, kNpzFormat, kToyFormat;\nstatic const FileFormat* const kFormats[] = {&kGgufFormat, &kSafetensorsFormat, &kNpyFormat, &kNpzFormat, &kToyFormat};"),
}, r'''
#include <cstdio>
#include "rlx/base/text.h"
#include "rlx/io/model_file.h"
int main() {
  using namespace rlx;
  static const std::string bytes = "TOY!abc";
  const auto input = io::Input::of_bytes(std::as_bytes(std::span(bytes)), nullptr, "a");
  const io::ModelFile file = io::ModelFile::open(input);
  std::printf("%s %s; known: %s\n", std::string(file.format->name).c_str(), file.metadata[0].second.c_str(),
              io::FormatTable::standard().names().c_str());
}
''', "toy 3; known: gguf, safetensors, npy, npz or toy\n")

PRE_TOKENIZER = Toy("a pre-tokeniser", ["text", "base"], ["-lsimdjson", "-lpcre2-8", "-lutf8proc"], {
    "rlx/text/pre_table.cpp": ('{"bloom", {kBloomWords}', '{"bird", {"[a-z]+"}, kAddBos},\n      {"bloom", {kBloomWords}'),
}, r'''
#include <cstdio>
#include <string>
#include "rlx/text/pre_table.h"
int main() {
  using namespace rlx::text;
  const PreRules* rules = find_pre_rules("bird");
  std::printf("%s %d\n", std::string(rules->patterns[0]).c_str(), rules->has(kAddBos));
}
''', "[a-z]+ 1\n")

RULE = Toy("an algebraic rule", ["passes", "ops", "ir", "quant", "math", "base"], [], {
    "rlx/passes/algebra.cpp": ('    {"neg_neg",', '    {"sign_sign", "sign(sign(x))", "sign(x)"},\n    {"neg_neg",'),
}, r'''
#include <cstdio>
#include "rlx/ir/text.h"
#include "rlx/ops/all.h"
#include "rlx/passes/algebra.h"
int main() {
  using namespace rlx;
  const ir::Graph g = ir::parse_graph("graph(x: f32[2]) { return sign(sign(x)) }", ops::table());
  ir::Rewritten r = passes::simplify(g);
  r.graph.erase_dead();
  std::printf("%zu change\n%s", r.changes, ir::to_text(r.graph).c_str());
}
''', "1 change\ngraph @main(x: f32[2]) {\n  %2 = sign(x) : f32[2]\n  return %2\n}\n")


def main():
    failed = 0
    toys = (BLOCK, FILE_FORMAT, PRE_TOKENIZER, RULE)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for toy, wrong in zip(toys, pool.map(Toy.check, toys)):
            print(f"{toy.name}: {wrong or 'added in ' + str(len(toy.places) or 1) + ' places and used'}")
            failed += bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
