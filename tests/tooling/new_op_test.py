"""Adds an operator with cmake/new_op.py in a scratch tree, builds it against the libraries of the build folder and sees
it in the table, printed, parsed and run. Arguments: source folder, build folder, compiler."""
import os
import pathlib
import subprocess
import sys
import tempfile

PROGRAM = r'''
#include <cstdio>
#include "rlx/ir/interpreter.h"
#include "rlx/ir/text.h"
#include "rlx/ops/all.h"
int main() {
  using namespace rlx;
  for (const auto& [name, op] : ops::table().all()) {
    if (name == "triple_it") std::printf("listed: %s\n", std::string(op->summary).c_str());
  }
  const ir::Graph g = ir::parse_graph("graph(x: f32[2]) { y = triple_it(x, scale=3.0) return y }", ops::table());
  std::printf("%s", ir::to_text(g).c_str());
  std::printf("%s\n", cat(ir::interpret(g, Literals{Literal::of<float>({2}, {1, 2})})[0]).c_str());
}
'''


def main():
    source, build, compiler = (pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3])
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch)
        (root / "rlx/ops").mkdir(parents=True)
        (root / "rlx/ops/all.h").write_text((source / "rlx/ops/all.h").read_text())
        env = dict(os.environ, RLX_ROOT=str(root))
        subprocess.run([sys.executable, str(source / "cmake/new_op.py"), "triple_it"], env=env, check=True)
        again = subprocess.run([sys.executable, str(source / "cmake/new_op.py"), "triple_it"], env=env, text=True,
                               capture_output=True)
        assert again.returncode == 1 and "exists already" in again.stderr, again.stderr
        for words, message in ((["add"], "rlx/ops/elementwise/binary.h has an operator 'add' already"), (["input"], "rlx/ir/leaves.h has"),
                               (["mine", "../.."], "usage"), (["Mine"], "usage")):
            refused = subprocess.run([sys.executable, str(source / "cmake/new_op.py"), *words], env=env, text=True, capture_output=True)
            assert refused.returncode and message in refused.stderr, refused.stderr
        listed = [line for line in (root / "rlx/ops/all.h").read_text().splitlines() if line.startswith('#include "rlx/ops/')]
        assert listed == sorted(listed), "the includes are out of order"
        (root / "main.cpp").write_text(PROGRAM)
        # all.cpp is compiled anew, so that the table is the one with the new operator: named first, it wins over the
        # one in the library.
        (root / "all.cpp").write_text((source / "rlx/ops/all.cpp").read_text())
        libraries = [str(build / f"librlx_{room}.a") for room in ("ops", "ir", "quant", "math", "base")]
        subprocess.run([compiler, "-std=c++20", "-O0", f"-I{root}", f"-I{source}", str(root / "main.cpp"),
                        str(root / "all.cpp"), str(root / "rlx/ops/elementwise/triple_it.cpp"), "-Wl,--allow-multiple-definition",
                        *libraries, "-pthread", "-o", str(root / "toy")], check=True)
        out = subprocess.run([str(root / "toy")], text=True, capture_output=True, check=True).stdout
        print(out)
        assert "listed: One sentence." in out
        assert "y = triple_it(x, scale=3.0) : f32[2]" in out
        assert "f32[2]{3.0, 6.0}" in out


if __name__ == "__main__":
    main()
