"""Every operator by its Python function, against the interpreter, on the samples of its record."""

import unittest

import numpy as np

import rlx
from rlx import _functions, _rlx

TOLERANCE = {"f64": 1e-9, "f32": 2e-4, "c64": 2e-4, "f16": 1e-2, "bf16": 4e-2}


def numbers(array):
    if array.dtype in ("bf16", "f8e4m3", "f8e5m2"):
        array = _rlx.array_cast(array, "f32")
    return array.numpy()


def close(test, got, expected, label, operands=()):
    test.assertEqual((got.dtype, got.shape), (expected.dtype, expected.shape), label)
    a, b = numbers(got), numbers(expected)
    if got.dtype in TOLERANCE:
        bound = max(TOLERANCE.get(d, 0) for d in [got.dtype] + [o.dtype for o in operands])
        np.testing.assert_allclose(a, b, rtol=bound, atol=bound, err_msg=label)
    else:
        np.testing.assert_array_equal(a, b, err_msg=label)


class Operators(unittest.TestCase):
    def test_every_sample(self):
        seen = 0
        for name in _functions.names():
            record = name[:-1] if name in ("if_", "while_") else name
            for i, (operands, keywords, expected) in enumerate(_rlx.samples_of(record)):
                if any(numbers_missing(o) for o in operands):
                    continue
                with self.subTest(operator=name, sample=i):
                    got = getattr(rlx.ops, name)(*operands, **keywords)
                    got = got if isinstance(got, tuple) else (got,)
                    for r, (g, e) in enumerate(zip(got, expected, strict=True)):
                        close(self, g, e, f"{name} sample {i} result {r}", operands)
                    seen += 1
        self.assertGreater(seen, 400)

    def test_signatures_and_documents(self):
        import inspect
        parameters = list(inspect.signature(rlx.ops.softmax).parameters)
        self.assertEqual(parameters, ["x", "axis"])
        self.assertIn("axis (int)", rlx.ops.softmax.__doc__)
        compile(_functions.stubs(), "ops.pyi", "exec")

    def test_unknown_names_are_told(self):
        with self.assertRaisesRegex(rlx.Error, "softmax: no argument 'axes'; it has axis"):
            rlx.ops.softmax(rlx.array([1.0]), axes=0)
        with self.assertRaises(AttributeError):
            rlx.ops.softmaxx


def numbers_missing(array):
    return array.dtype in ("f8e4m3", "f8e5m2")


if __name__ == "__main__":
    unittest.main()
