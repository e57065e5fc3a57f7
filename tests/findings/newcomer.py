#!/usr/bin/env python3
"""Programs that a newcomer wrote from the documents alone (../shared/findings/newcomer), compiled as they are and run. What
each must print stands here.

    newcomer.py write FOLDER OUT_FOLDER    one source file a program, and main.cpp that calls them by name
    newcomer.py run FOLDER PROGRAM DATA    runs every program and looks at what it prints; DATA is ../shared/data"""
import pathlib
import re
import subprocess
import sys
import tempfile

# Custom operators are records of a table now, and not entries of a registry; the two programs that used it say it the new way.
RECORD = '''struct %(type)s {
  static constexpr std::string_view name = "%(name)s", summary = "%(name)s", doc = "", operands = "x";
  struct Attrs {
    double t = 0;
    static constexpr auto fields() { return std::tuple{ir::field("t", &Attrs::t, "the threshold")}; }
  };
  static Shapes infer(ir::Infer& c, Attrs&) { return {c.in(0)}; }
'''
SOFT_THRESHOLD = RECORD % {"type": "SoftThreshold", "name": "soft_threshold"} + '''
  static Literals reference(const ir::Eval& c, const Attrs& a) {
    std::vector<double> v = c.in(0).to_reals();
    for (double& x : v) x = std::copysign(std::max(std::fabs(x) - a.t, 0.0), x);
    return {Literal::reals(c.out(), v)};
  }
  static ir::Exprs vjp(const ir::Vjp& c, const Attrs& a) {
    const Tensor x = c.in(0), dy = c.dy();
    const Tensor alive = x.abs() - a.t;
    return {dy * (alive.sign() * 0.5 + 0.5)};
  }
  static ir::Exprs vmap(const ir::Vmap& c, const Attrs& a) { return {ir::make<SoftThreshold>(c.graph, a, {c.in(0)})}; }
};

int main() {
  static ir::OpTable operators = ops::table();
  operators.add<SoftThreshold>();
'''
SAME = RECORD % {"type": "Same", "name": "same"} + '''
  static Literals reference(const ir::Eval& c, const Attrs&) { return {c.in(0)}; }
};

static void attempt('''
CHANGES = {
    "custom_op": [(r'#include "rlx/ops/control/custom.h"\n', ""),
                  (r"int main\(\) \{.*ops::register_custom_op\(op\);\n", SOFT_THRESHOLD),
                  (r'"0\.5", \{x\}\)', '"t=0.5", {x}, operators)')],
    "mistakes": [(r'#include "rlx/ops/control/custom.h"\n', ""), (r"static void attempt\(", SAME),
                 (r"ops::CustomOp op;.*?register_custom_op\(op\);", "static ir::OpTable operators = ops::table();\n    operators.add<Same>();"),
                 (r'"same", "", \{t\.input\("x", \{2\}\)\}\)', '"same", "", {t.input("x", {2})}, operators)'),
                 # A tensor as a condition does not compile: tests/lang/refused.
                 (r'  attempt\("31 .*?\n  \}\);\n', "")],
}
# Attempts of mistakes.cpp that are no mistakes, and what is printed instead of a refusal. 22: an operator without a rule is
# batched example by example.
SOUND = {22: "", 29: r"a = f32\[2\]\{1\.0, 2\.0\}, b = f32\[2\]\{9\.0, 2\.0\}", 30: "", 32: "", 33: "", 35: ""}


def write_if_changed(path, text):
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def names(folder):
    return sorted(p.stem for p in folder.glob("*.cpp"))


def source(path):
    """The program with its main under another name, which returns at its end."""
    text = path.read_text()
    for old, new in CHANGES.get(path.stem, []):
        text, count = re.subn(old, lambda _: new, text, flags=re.S)
        assert count == 1, f"{path.name}: '{old}' is not there once"
    text, count = re.subn(r"\bint main\(", f"int main_{path.stem}(", text)
    assert count == 1, path
    last = text.rindex("} catch") if re.search(r"\) try \{", text) else text.rindex("}")
    return text[:last] + "  return 0;\n" + text[last:]


def write(folder, out):
    out.mkdir(parents=True, exist_ok=True)
    calls = declared = ""
    for name in names(folder):
        text = source(folder / f"{name}.cpp")
        write_if_changed(out / f"{name}.cpp", text)
        takes = re.search(rf"main_{name}\((.*?)\)", text).group(1)
        declared += f"int main_{name}({takes});\n"
        calls += f'  if (name == "{name}") return main_{name}({"argc - 1, argv + 1" if takes else ""});\n'
    write_if_changed(out / "main.cpp",
                     f"#include <string>\n\n{declared}\nint main(int argc, char** argv) {{\n  const std::string name = argv[1];\n{calls}  return 2;\n}}\n")
    print(";".join(str(out / f"{n}.cpp") for n in [*names(folder), "main"]), end="")


class Programs:
    def __init__(self, program, data, scratch):
        self.program, self.data, self.scratch = program, data, scratch

    def run(self, name, *arguments):
        result = subprocess.run([self.program, name, *map(str, arguments)], cwd=self.scratch, text=True, capture_output=True, timeout=300)
        assert result.returncode == 0, f"exit {result.returncode}: {result.stderr}"
        return result.stdout

    def expect(self, pattern, name, *arguments):
        out = self.run(name, *arguments)
        match = re.search(pattern, out, re.S | re.M)
        assert match, f"{pattern!r} is not in {out!r}"
        return [float(v) for v in match.groups()]


def check_custom_op(p):
    p.expect(r"^f32\[3\]\{-3\.0, -?0\.0, 1\.0\}$.*^f32\[2,3\]\{-3\.0, -?0\.0, 1\.0, 5\.0, -?0\.0, -1\.0\}$", "custom_op")


def check_leaf_order(p):
    p.expect(r"\(carry: f32\[\], step: f32\[\]\).*f32\[\]\{9\.0\} \(10 - 1\)", "leaf_order")


def check_mistakes(p):
    """Each is a sentence for the user, but for those that are no mistakes."""
    out = p.run("mistakes", "all")
    said = re.findall(r"^(\d+) [^\n]*\n(.*?)(?=^\d+ |\Z)", out, re.S | re.M)
    assert [int(n) for n, _ in said] == [n for n in range(1, 37) if n != 31], out
    for number, answer in said:
        if int(number) in SOUND:
            assert "-> nothing is said" in answer and re.search(SOUND[int(number)], answer), (number, answer)
        else:
            assert re.search(r"^  -> (user|environment): \S", answer, re.M), (number, answer)


def check_mlp(p):
    first, last = p.expect(r"step   0 loss ([\d.]+)\n.*step  90 loss ([\d.]+)\n", "mlp", p.data / "mnist")
    assert 2 < first < 4 and last < 0.8, (first, last)


def check_module_write(p):
    p.expect(r"at HIR stage, policy fusable.*linear\(x, w, b, activation=gelu\)", "module_write", "ffn.safetensors")


def check_module_read(p):
    p.run("module_write", "ffn.safetensors")
    # gelu(4 times 0.5) = 2 Phi(2)
    p.expect(r"f32\[2,8\]\{1\.9544\d* \.\.\.\}", "module_read", "ffn.safetensors")


def check_neural_ode(p):
    error, = p.expect(r"gradients the same bits\n.*differences ([\d.e+-]+)\n", "neural_ode")
    assert error < 1e-7, error
    plain, saved = p.expect(r"peak (\d+) bytes.*peak (\d+) bytes", "neural_ode")
    assert saved < plain, (plain, saved)


def check_odd_ops(p):
    error, = p.expect(r"largest difference ([\d.e+-]+)\n", "odd_ops")
    assert error < 1e-6, error


def check_per_example(p):
    error, = p.expect(r"f32\[5,8,3\] worst difference ([\d.e+-]+)\n", "per_example")
    assert error < 1e-6, error


def check_safetensors_params(p):
    error, = p.expect(r"largest difference to transformers ([\d.e+-]+)\n", "safetensors_params", p.data / "checkpoints/bert")
    assert error < 2e-4, error


def check_while_loop(p):
    root, slope, second, exact, forward = p.expect(
        r"root (\S+), slope (\S+) from exact\nsecond derivative (\S+), exact (\S+)\nwithout a bound: [^\n]*max_iterations[^\n]*\n"
        r"forward mode without a bound: (\S+)\n", "while_loop")
    assert max(abs(root), abs(slope), abs(second - exact)) < 1e-6 and abs(forward - 0.5 / 2 ** 0.5) < 1e-6


def run(folder, program, data):
    if not folder.is_dir() or not data.is_dir():
        print(f"no folder {folder} or {data}: skipped")
        return 0
    failed = 0
    for name in names(folder):
        with tempfile.TemporaryDirectory() as scratch:
            try:
                assert f"check_{name}" in globals(), "nothing says what must come"
                globals()[f"check_{name}"](Programs(program, data, scratch))
                print(f"{name}: as it should be")
            except (AssertionError, subprocess.SubprocessError) as e:
                failed += 1
                print(f"{name}: WRONG {e}")
    return failed


if __name__ == "__main__":
    folder, out = map(lambda w: pathlib.Path(w).resolve(), sys.argv[2:4])
    if sys.argv[1] == "write":
        write(folder, out)
    else:
        sys.exit(1 if run(folder, str(out), pathlib.Path(sys.argv[4]).resolve()) else 0)
