"""The types that editors and checkers read: complete, and sound where mypy is installed."""

import ast
import os
import subprocess
import sys
import tempfile
import unittest

import rlx
from rlx import _functions, _rlx

FOLDER = os.path.dirname(rlx.__file__)
PROGRAM = """
import numpy as np

import rlx
import rlx.numpy as rnp

x = rlx.array(np.ones((2, 3), np.float32))
y: rlx.Array = (x + 1) * 2 @ x.T - x[0].sum() + abs(-x).mean()
z: rlx.Array = rnp.exp(x).mean(axis=0)
shape: tuple = x.at[0].set(1.0).shape
slope: rlx.Array = rlx.grad(rlx.jit(lambda a: rnp.sum(a ** 2.0)))(x)
s: rlx.Array = rlx.ops.softmax(x, axis=-1)
n: np.ndarray = x.numpy()
model: rlx.Model = rlx.load("model.gguf", context=128)
text: str = model.generate("once", max_tokens=3).text
net: rlx.onnx.Model = rlx.onnx.load("net.onnx")
"""


@unittest.skipUnless(os.path.exists(os.path.join(FOLDER, "_rlx.pyi")), "the types were not built")
class Types(unittest.TestCase):
    def classes(self, name):
        with open(os.path.join(FOLDER, name)) as f:
            tree = ast.parse(f.read())
        named = lambda body: {n.name for n in body if isinstance(n, (ast.FunctionDef, ast.ClassDef))} | \
            {n.target.id for n in body if isinstance(n, ast.AnnAssign)}
        return named(tree.body), {n.name: named(n.body) for n in tree.body if isinstance(n, ast.ClassDef)}

    def test_every_name_is_there(self):
        names, classes = self.classes("_rlx.pyi")
        for name, value in vars(_rlx).items():
            if name.startswith("_") and name != "__version__":
                continue
            self.assertIn(name, names)
            if isinstance(value, type):
                missing = [m for m in vars(value) if not m.startswith("_") and m not in classes[name]]
                self.assertEqual(missing, [], name)
        self.assertEqual(set(_functions.names()) - self.classes("ops.pyi")[0], set())

    def test_a_program_is_understood(self):
        try:
            import mypy  # noqa: F401
        except ImportError:
            self.skipTest("mypy is not installed")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.py")
            with open(path, "w") as f:
                f.write(PROGRAM)
            found = subprocess.run([sys.executable, "-m", "mypy", "--follow-imports=silent", "--cache-dir", folder, path],
                                   capture_output=True, text=True, env={**os.environ, "MYPYPATH": os.path.dirname(FOLDER)})
            self.assertIn("Success", found.stdout, found.stdout + found.stderr)


if __name__ == "__main__":
    unittest.main()
