"""docs/how-to.md, tried: a toy of a kind is added in the places it lists, in a scratch tree, and used. Only the files that a
toy touches are compiled; the rest comes from the build folder. Arguments: source folder, build folder, compiler.

(tests/tooling/new_op_test.py does the same for an operator, with the script that writes it.)"""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE, BUILD, COMPILER = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
# As programs outside of the tree link: the rooms, each before those it uses, and the libraries of the system.
LIBRARIES = re.search(r"^Libs: (.*)$", (BUILD / "rlx-static.pc").read_text(), re.M).group(1).replace("-L${libdir}", f"-L{BUILD}").split()
# A unit of the build may hold the old form of a source that the toy changes: the toy, named first, wins.
TOY_FIRST = "-Wl,--allow-multiple-definition"
LEVEL_FLAGS = re.compile(r" (-m\S+|-DRLX_ISA=\S+|-O\d|-ffp-contract=off|-fno-\S+)")


def levels():
    """Flags of every instruction-set level, as the build compiles a family that is there."""
    commands = json.loads((BUILD / "compile_commands.json").read_text())
    return [LEVEL_FLAGS.findall(c["command"]) for c in commands if c["file"].endswith("kernels/isa/rope.cpp")]


class Toy:
    """`places`: path -> list of (text that is there, text that takes its place), or the text of a new file. `again`: sources
    that include a header among the places. `objects`: a pattern of object files of the build to link."""

    def __init__(self, name, places, program, printed, again=(), objects=None, arguments=()):
        self.name, self.places, self.program, self.printed = name, places, program, printed
        self.again, self.objects, self.arguments = again, objects, arguments

    def tree(self, root):
        """The sources to compile."""
        compiled = [SOURCE / path for path in self.again]
        if self.program:
            (root / "main.cpp").write_text(self.program)
            compiled.append(root / "main.cpp")
        for place, change in self.places.items():
            text = change
            if isinstance(change, list):
                text = (SOURCE / place).read_text()
                for old, new in change:
                    assert text.count(old) == 1, f"{place}: '{old}' is not there once"
                    text = text.replace(old, new)
            path = root / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            if path.suffix == ".cpp":
                compiled.append(path)
        return compiled

    def build(self, root):
        """What the compiler or the linker refuses."""
        objects = []
        for source in self.tree(root):
            for flags in levels() if "/isa/" in str(source) else [["-O0"]]:
                objects.append(f"{root}/{len(objects)}.o")
                done = subprocess.run([COMPILER, "-std=c++20", *flags, f"-I{root}", f"-I{SOURCE}", "-c", str(source), "-o", objects[-1]],
                                      text=True, capture_output=True)
                if done.returncode:
                    return done.stderr
        replaced = {pathlib.Path(path).name for path in self.again}
        if self.objects:
            objects += [str(o) for o in BUILD.glob(self.objects) if o.stem not in replaced]
        return subprocess.run([COMPILER, *objects, TOY_FIRST, *LIBRARIES, "-o", str(root / "toy")], text=True, capture_output=True).stderr

    def check(self):
        with tempfile.TemporaryDirectory() as scratch:
            root = pathlib.Path(scratch)
            refused = self.build(root)
            if not (root / "toy").exists():
                return f"does not build:\n{refused[:3000]}"
            run = subprocess.run([str(root / "toy"), *self.arguments], cwd=root, text=True, capture_output=True)
            return "" if run.stdout == self.printed else f"printed {run.stdout!r}, not {self.printed!r} {run.stderr}"


BLOCK = Toy("a block", {}, r'''
#include <cstdio>
#include "rlx/ir/build_def.h"
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

FILE_FORMAT = Toy("a file format", {
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
    "rlx/io/file_format.cpp": [("kNpzFormat;", "kNpzFormat, kToyFormat;"), ("&kNpzFormat}", "&kNpzFormat, &kToyFormat}")],
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

PRE_TOKENIZER = Toy("a pre-tokeniser", {
    "rlx/text/pre_table.cpp": [('{"bloom", {kBloomWords}', '{"bird", {"[a-z]+"}, kAddBos},\n      {"bloom", {kBloomWords}')],
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

RULE = Toy("an algebraic rule", {
    "rlx/passes/algebra.cpp": [('    {"neg_neg",', '    {"sign_sign", "sign(sign(x))", "sign(x)"},\n    {"neg_neg",')],
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
''', "1 change\ngraph @main(x: f32[2]) {\n  %3 = sign(x) : f32[2]\n  return %3\n}\n")


KERNEL_FAMILY = Toy("a kernel family", {
    "rlx/backend/cpu/kernels/triple.h": r'''
// y = 3 x.
#pragma once
#include "rlx/base/pool.h"
namespace rlx::cpu {
void triple(Team, const float* x, float* y, int64_t n);
struct TripleKernels {
  void (*range)(const float* x, float* y, int64_t begin, int64_t end);
};
}
''',
    "rlx/backend/cpu/kernels/triple.cpp": r'''
#include "rlx/backend/cpu/kernels/triple.h"
#include "rlx/backend/cpu/isa_table.h"
namespace rlx::cpu {
RLX_ISA_TABLE(TripleKernels, triple_kernels)
void triple(Team team, const float* x, float* y, int64_t n) {
  team.parallel_for(n, 4, [&](int64_t begin, int64_t end) { triple_kernels().range(x, y, begin, end); });
}
}
''',
    "rlx/backend/cpu/kernels/isa/triple.cpp": r'''
#include "rlx/backend/cpu/kernels/triple.h"
#include "rlx/backend/cpu/simd/vec.h"
namespace rlx::cpu::RLX_ISA {
static void range(const float* x, float* y, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i += kLanes) {
    const int lanes = end - i < kLanes ? int(end - i) : kLanes;
    store_n(y + i, load_n(x + i, lanes) * set1(3.0f), lanes);
  }
}
TripleKernels triple_kernels() { return {.range = range}; }
}
''',
}, r'''
#include <cstdio>
#include "rlx/backend/cpu/isa.h"
#include "rlx/backend/cpu/kernels/triple.h"
int main() {
  using namespace rlx;
  const float x[5] = {1, 2, 3, 4, 5};
  Pool pool(2);
  int right = 0, levels = 0;
  for (const cpu::Isa isa : cpu::available_isas()) {
    cpu::use_isa(isa);
    float y[5] = {};
    cpu::triple(Team(pool), x, y, 5);
    right += y[0] == 3 && y[1] == 6 && y[2] == 9 && y[3] == 12 && y[4] == 15;
    ++levels;
  }
  std::printf("%s\n", right == levels && levels > 0 ? "right at every level" : "wrong");
}
''', "right at every level\n")

KERNEL = Toy("a kernel for an operator", {
    "rlx/backend/cpu/nodes/det_of_one.cpp": r'''
#include "rlx/backend/cpu/nodes/families.h"
#include "rlx/ops/linalg/det.h"
namespace rlx::cpu {
static Support accepts(const Request& r) {
  if (const Support s = plain_f32(r); !s) return s;
  return r.in[0].shape.dims().back() == Dim(1) ? Support::yes() : Support::no("more than one number");
}
static std::unique_ptr<Step> prepare(const Request& r) {
  return make_step([n = r.out[0].shape.elements()](const Launch& l) {
    std::copy_n(f32(l, 0), n, reinterpret_cast<float*>(l.out[0]));
  });
}
void add_det_of_one(KernelTable& table) { table.add<ops::Det>({"det_of_one_f32", accepts, prepare}); }
}
''',
    "rlx/backend/cpu/nodes/families.h": [("void add_attention(KernelTable&);", "void add_attention(KernelTable&);\nvoid add_det_of_one(KernelTable&);")],
    "rlx/backend/cpu/nodes/device.cpp": [("    RLX_FAMILY(add_attention),", "    RLX_FAMILY(add_attention),\n    RLX_FAMILY(add_det_of_one),")],
}, r'''
#include <cstdio>
#include "rlx/ir/text.h"
#include "rlx/ops/all.h"
#include "rlx/runtime/compiled_graph.h"
#include "rlx/runtime/stages.h"
int main() {
  using namespace rlx;
  const ir::Graph g = ir::parse_graph("graph(x: f32[2,1,1]) { return y=det(x) }", ops::table());
  const auto report = *runtime::compile_in_stages(g, {}).report;
  for (const auto& step : report.plan.steps) std::printf("%s\n", std::string(step.kernel).c_str());
  const auto out = compile(g).run(NamedLiterals{{"x", Literal::of<float>({2, 1, 1}, {3, 4})}});
  std::printf("%s\n", cat(out.at("y")).c_str());
}
''', "det_of_one_f32\nf32[2]{3.0, 4.0}\n")

PASS = Toy("a pass", {
    "rlx/passes/double_sums.h": r'''
// add(x, x) => mul(x, 2)
#pragma once
#include "rlx/ir/rewrite.h"
namespace rlx::passes {
ir::Rewritten double_sums(const ir::Graph&);
}
''',
    "rlx/passes/double_sums.cpp": r'''
#include "rlx/passes/double_sums.h"
#include "rlx/ops/elementwise/binary.h"
namespace rlx::passes {
ir::Rewritten double_sums(const ir::Graph& g) {
  return ir::rewrite(g, [](ir::Cloner& copy, const ir::Node& n) -> std::optional<ir::Values> {
    if (!n.is<ops::Add>() || n.inputs[0] != n.inputs[1]) return std::nullopt;
    return ir::Values{ops::operator*(ir::Expr{&copy.to(), copy.at(n.inputs[0])}, 2.0)};
  });
}
}
''',
    "rlx/runtime/pipeline.cpp": [('#include "rlx/passes/cse.h"\n', '#include "rlx/passes/cse.h"\n#include "rlx/passes/double_sums.h"\n'),
                                 ('constexpr Pass kGeneral[] = {\n', 'constexpr Pass kGeneral[] = {\n    {"double_sums", [](ir::Graph g, const Context&) { return passes::double_sums(g); }},\n')],
}, r'''
#include <cstdio>
#include "rlx/ir/text.h"
#include "rlx/ops/all.h"
#include "rlx/runtime/stages.h"
#include "rlx/runtime/pipeline.h"
int main() {
  using namespace rlx;
  const ir::Graph g = ir::parse_graph("graph(x: f32[2]) { return y=add(x, x) }", ops::table());
  for (const auto& stage : runtime::compile_in_stages(g, {}).stages) {
    if (stage.name == "double_sums") std::printf("%s", ir::to_text(stage.graph).c_str());
  }
  std::printf("%s\n", runtime::pass_names()[0].c_str());
}
''', "graph @main(x: f32[2]) {\n  %1 = full(value=2.0) : f32[]\n  %2 = mul(x, %1) : f32[2]\n  return y=%2\n}\ndouble_sums\n")

OPTIMISER = Toy("an optimiser", {
    "rlx/train/first_order.cpp": [('void add_first_order(Catalogue& c) {\n', '''void add_first_order(Catalogue& c) {
  c["halving"] = [](const Settings&) {
    return Optimizer{"halving", {}, [](Update& u) {
      for (Trained& p : u.trained()) p.next = p.value * 0.5;
    }};
  };
''')],
}, r'''
#include <cstdio>
#include "rlx/lang/trace.h"
#include "rlx/train/trainer.h"
int main() {
  using namespace rlx;
  const Graph loss = trace("loss", [](Tracer& t) { return t.param("w", {2}).sum(); });
  train::Trainer t(loss, {{"w", Literal::of<float>({2}, {4, 8})}}, {.optimizer = train::optimizer_named("halving", {})});
  t.step(NamedLiterals{});
  std::printf("%s\n", cat(t.weights().at("w")).c_str());
}
''', "f32[2]{2.0, 4.0}\n")

ONNX_OPERATOR = Toy("an operator of ONNX", {
    "rlx/onnx/ops/activation.cpp": [('Items softsign(Call& c) {', 'Items halve(Call& c) { return {c.in(0) * 0.5}; }\n\nItems softsign(Call& c) {'),
                                    ('      {"Celu", 12, celu, kFree},', '      {"Celu", 12, celu, kFree},\n      {"Halve", 1, halve, kFree},')],
}, r'''
#include <cstdio>
#include "rlx/onnx/import.h"
int main() {
  using namespace rlx;
  io::onnx::ValueInfo x{"x", {.kind = io::onnx::Type::Kind::tensor, .element = 1, .shape = {{{.value = 2}}}}}, y = x;
  y.name = "y";
  io::onnx::Model m;
  m.ir_version = 8;
  m.opsets = {{"", 17}};
  m.graph = {.name = "g", .nodes = {{.name = "n", .op = "Halve", .inputs = {"x"}, .outputs = {"y"}}}, .inputs = {x}, .outputs = {y}};
  const NamedLiterals out = onnx::import_model(m).program.interpret({{"x", Literal::of<float>({2}, {2, 6})}});
  std::printf("%s\n", cat(out.at("y")).c_str());
}
''', "f32[2]{1.0, 3.0}\n")

BLOCKS = Toy("a block format of weights", {
    "rlx/quant/toy.h": r'''
// toy4: four numbers as whole ones of 8 bits.
#pragma once
#include <cstddef>
#include <cstdint>
namespace rlx::quant {
void decode_toy4(const std::byte* in, float* out, int64_t count);
void encode_toy4(const float* in, std::byte* out, int64_t count);
}
''',
    "rlx/quant/toy.cpp": r'''
#include "rlx/quant/toy.h"
#include <cmath>
namespace rlx::quant {
void decode_toy4(const std::byte* in, float* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = float(int8_t(in[i]));
}
void encode_toy4(const float* in, std::byte* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = std::byte(int8_t(std::lround(in[i])));
}
}
''',
    "rlx/quant/format.cpp": [('#include "rlx/quant/ternary.h"\n', '#include "rlx/quant/ternary.h"\n#include "rlx/quant/toy.h"\n'),
                             ('    {"q1_0", 41, 128, 18, {}},\n', '    {"q1_0", 41, 128, 18, {}},\n    {"toy4", 240, 4, 4, {}, decode_toy4, encode_toy4},\n')],
}, r'''
#include <cstdio>
#include "rlx/io/convert.h"
#include "rlx/io/literal.h"
#include "rlx/io/model_file.h"
#include "rlx/io/npy.h"
int main() {
  using namespace rlx;
  io::write_npz("in.npz", std::vector{io::to_view("w", Literal::of<float>({1, 4}, {1.2f, -2, 3, 100}))});
  io::convert_file("in.npz", "out.gguf", {.type = "toy4"});
  const io::TensorView w = io::ModelFile::open("out.gguf").tensors.at(0);
  std::printf("%s, %s\n", cat(w).c_str(), cat(io::to_literal(w)).c_str());
}
''', "toy4[1, 4], f32[1,4]{1.0, -2.0, 3.0, 100.0}\n")

ARCHITECTURE = Toy("a model architecture", {
    "rlx/models/toy.cpp": r'''
#include "rlx/models/architecture.h"
#include "rlx/models/layers.h"
namespace rlx::models {
static constexpr WeightName kNames[] = {{"embed", "@words.weight"}, {"head", "head.weight"}};
static void build(Net& net) { net.finish_decoder(net.embed()); }
static constexpr std::string_view kHf[] = {"toy"}, kPrefixes[] = {"toy.", ""};
constexpr Architecture kToy{"toy", kHf, {}, kNames, kPrefixes, read_decoder, build};
}
''',
    "rlx/models/architecture.h": [("extern const Architecture kLlama,", "extern const Architecture kToy, kLlama,")],
    "rlx/models/architecture.cpp": [("&kRoberta};", "&kRoberta, &kToy};")],
}, r'''
#include <cstdio>
#include "rlx/base/file.h"
#include "rlx/io/literal.h"
#include "rlx/io/safetensors.h"
#include "rlx/ir/interpreter.h"
#include "rlx/models/model.h"
int main() {
  using namespace rlx;
  write_file("config.json", R"({"model_type": "toy", "vocab_size": 2, "hidden_size": 2, "num_hidden_layers": 0, "tie_word_embeddings": true})");
  io::write_safetensors("model.safetensors", std::vector{io::to_view("toy.words.weight", Literal::of<float>({2, 2}, {1, 2, 3, 4}))});
  const models::ModelGraph m = models::open_model(".").graph();
  NamedLiterals leaves = m.weights;
  leaves["input_ids"] = Literal::of<int32_t>({1, 1}, {1});
  std::printf("%s\n", cat(ir::interpret(m.graph.bind({{"batch", 1}, {"seq", 1}}), leaves).at("logits")).c_str());
}
''', "f32[1,1,2]{11.0, 25.0}\n")

COMMAND = Toy("a command", {
    "apps/rlx/greet.cpp": r'''
#include "apps/rlx/command.h"
#include "apps/rlx/output.h"
namespace rlx::cli {
void add_greet(Command app) {
  app.add_subcommand("greet", "say good day").callback([] { print("good day\n"); });
}
}
''',
    "apps/rlx/command.h": [("void add_grad(Command app);", "void add_grad(Command app);\nvoid add_greet(Command app);"),
                           ("kCommands[] = {\n", "kCommands[] = {\n    add_greet,\n")],
}, "", "good day\n", again=["apps/rlx/main.cpp"], objects="apps/CMakeFiles/rlx_command.dir/**/*.o", arguments=["greet"])


class Chapter:
    """A chapter of the guide: one file, found and typed along by tests/guide/programs.py."""
    name, places = "a chapter of the guide", {"docs/guide/toy.md": """# A toy

```cpp
std::cout << cat(Dim::symbol("n") * 2) << "\\n";
```

```text
2*n
```
"""}

    def check(self):
        with tempfile.TemporaryDirectory() as scratch:
            root = pathlib.Path(scratch)
            for path, text in {**self.places, "README.md": "# A toy\n", "tests/guide/programs.py": (SOURCE / "tests/guide/programs.py").read_text()}.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            guide = [sys.executable, str(root / "tests/guide/programs.py")]
            sources = subprocess.run([*guide, "write", str(root)], text=True, capture_output=True, check=True).stdout.split(";")
            built = subprocess.run([COMPILER, "-std=c++20", "-O0", f"-I{SOURCE}", str(root / "main.cpp"), *sources, *LIBRARIES, "-o", str(root / "toy")],
                                   text=True, capture_output=True)
            if built.returncode:
                return f"does not build:\n{built.stderr[:3000]}"
            run = subprocess.run([*guide, "run", str(root / "toy")], text=True, capture_output=True)
            return "" if (run.returncode, run.stdout) == (0, "toy: as printed\n") else f"said {run.stdout!r} {run.stderr}"


class NumpyName:
    """A name of NumPy: a function and its word in __all__ of one file."""
    name, places = "a name of NumPy in Python", {"python/rlx/numpy/_shape.py": None}

    def check(self):
        python = re.search(r"^_?Python_EXECUTABLE:\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.M).group(1)
        with tempfile.TemporaryDirectory() as scratch:
            package = pathlib.Path(scratch) / "rlx"
            shutil.copytree(BUILD / "python/rlx", package)
            file = package / "numpy/_shape.py"
            text = file.read_text()
            changed = text.replace("__all__ = [", '__all__ = ["first_of", ', 1)
            assert changed != text, "numpy/_shape.py has no __all__"
            file.write_text(changed + "\n\ndef first_of(x):\n    return x[0]\n")
            run = subprocess.run([python, "-c", "import rlx, rlx.numpy as rnp; print(rlx.jit(rnp.first_of)(rlx.array([3.0, 4.0])))"],
                                 text=True, capture_output=True, env=dict(os.environ, PYTHONPATH=scratch))
            return "" if run.stdout == "3.0\n" else f"printed {run.stdout!r} {run.stderr}"


def main():
    failed = 0
    toys = (BLOCK, FILE_FORMAT, PRE_TOKENIZER, RULE, KERNEL_FAMILY, KERNEL, PASS, OPTIMISER, ONNX_OPERATOR, BLOCKS, ARCHITECTURE, Chapter())
    if any(BUILD.glob("apps/CMakeFiles/rlx_command.dir/**/*.o")):
        toys += (COMMAND,)
    if any(BUILD.glob("python/rlx/_rlx*.so")):
        toys += (NumpyName(),)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for toy, wrong in zip(toys, pool.map(lambda toy: toy.check(), toys)):
            print(f"{toy.name}: {wrong or 'added in ' + str(len(toy.places) or 1) + ' places and used'}")
            failed += bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
