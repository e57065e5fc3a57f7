"""Functions under NumPy's names against NumPy, at once and compiled."""

import unittest

import numpy as np

import rlx
import rlx.numpy as rnp

rng = np.random.default_rng(5)
A = rng.normal(size=(3, 4)).astype(np.float32)
B = rng.normal(size=(3, 4)).astype(np.float32)
P = np.abs(A) + 0.5
M = rng.normal(size=(4, 4)).astype(np.float32) + 4 * np.eye(4, dtype=np.float32)
S = (M @ M.T).astype(np.float32)
I = rng.integers(-9, 9, size=(3, 4)).astype(np.int32)
J = rng.integers(1, 5, size=(3, 4)).astype(np.int32)
C = A > 0
K = np.array([2, 0, 1, 1], dtype=np.int32)

# name, function of a library (its numpy, arrays), arguments
UNARY = "abs exp sin cos tan tanh floor ceil sign expm1 isnan isfinite arctan negative square sinh cosh".split()
CASES = [(n, lambda np, x, n=n: getattr(np, n)(x), (A,)) for n in UNARY]
CASES += [(n, lambda np, x, n=n: getattr(np, n)(x), (P,)) for n in "log sqrt log1p reciprocal log2 log10".split()]
CASES += [(n, lambda np, x, y, n=n: getattr(np, n)(x, y), (A, B)) for n in
          "add subtract multiply divide maximum minimum fmod mod floor_divide equal not_equal less less_equal greater "
          "greater_equal".split()]
CASES += [(n + "_int", lambda np, x, y, n=n: getattr(np, n)(x, y), (I, J)) for n in
          "add subtract multiply mod floor_divide bitwise_and bitwise_or bitwise_xor maximum minimum".split()]
CASES += [(n, lambda np, x, y, n=n: getattr(np, n)(x, y), (C, B > 0)) for n in
          "logical_and logical_or logical_xor".split()]
CASES += [("power", lambda np, x: np.power(x, 2.5), (P,)), ("logical_not", lambda np, x: np.logical_not(x), (C,))]
for axis in (None, 0, -1):
    CASES += [(f"{n}_{axis}", lambda np, x, n=n, axis=axis: getattr(np, n)(x, axis=axis), (A,)) for n in
              "sum mean max min prod var std argmax argmin".split()]
    CASES += [(f"{n}_{axis}", lambda np, x, n=n, axis=axis: getattr(np, n)(x, axis=axis), (C,)) for n in "all any".split()]
for axis in ((), 1):
    CASES += [(f"{n}_{axis}_where", lambda np, x, c, n=n, axis=axis: getattr(np, n)(x, axis=axis, where=c), (A, np.array([[True], [True], [True]])))
              for n in "mean var std".split()]
    CASES += [(f"{n}_{axis}_where", lambda np, x, c, n=n, axis=axis: getattr(np, n)(x, axis=axis, where=c), (A, C))
              for n in "sum prod all any".split()]
    CASES += [(f"{n}_{axis}_initial", lambda np, x, c, n=n, axis=axis: getattr(np, n)(x, axis=axis, where=c, initial=0.25), (A, C))
              for n in "sum prod max min".split()]
    CASES += [(f"{n}_{axis}_no_axes", lambda np, x, n=n, axis=axis: getattr(np, n)(x, axis=axis), (A,)) for n in "var std all any".split()]
CASES += [("mean_where", lambda np, x, c: np.mean(x, where=c), (A, C)), ("std_where", lambda np, x, c: np.std(x, where=c, ddof=1), (A, C))]
CASES += [
    ("sum_keep", lambda np, x: np.sum(x, axis=1, keepdims=True), (A,)),
    ("var_ddof", lambda np, x: np.var(x, axis=1, ddof=1), (A,)),
    ("cumsum", lambda np, x: np.cumsum(x, axis=1), (A,)),
    ("cumprod", lambda np, x: np.cumprod(x, axis=0), (A,)),
    ("sort", lambda np, x: np.sort(x, axis=1), (A,)),
    ("argsort", lambda np, x: np.argsort(x, axis=1), (A,)),
    ("reshape", lambda np, x: np.reshape(x, (2, 6)), (A,)),
    ("ravel", lambda np, x: np.ravel(x), (A,)),
    ("transpose", lambda np, x: np.transpose(x), (A,)),
    ("swapaxes", lambda np, x: np.swapaxes(x, 0, 1), (A,)),
    ("moveaxis", lambda np, x: np.moveaxis(x.reshape(3, 2, 2), 0, 2), (A,)),
    ("expand_dims", lambda np, x: np.expand_dims(x, 1), (A,)),
    ("squeeze", lambda np, x: np.squeeze(np.expand_dims(x, 1), 1), (A,)),
    ("broadcast_to", lambda np, x: np.broadcast_to(x, (2, 3, 4)), (A,)),
    ("concatenate", lambda np, x, y: np.concatenate([x, y], axis=1), (A, B)),
    ("stack", lambda np, x, y: np.stack([x, y], axis=1), (A, B)),
    ("split", lambda np, x: np.split(x, 2, axis=1)[1], (A,)),
    ("split_at", lambda np, x: np.split(x, [1, 3], axis=1)[1], (A,)),
    ("repeat", lambda np, x: np.repeat(x, 2, axis=1), (A,)),
    ("tile", lambda np, x: np.tile(x, (2, 3)), (A,)),
    ("flip", lambda np, x: np.flip(x, axis=0), (A,)),
    ("roll", lambda np, x: np.roll(x, 1, axis=1), (A,)),
    ("take", lambda np, x, k: np.take(x, k, axis=1), (A, K)),
    ("take_along_axis", lambda np, x, k: np.take_along_axis(x, k, axis=1), (A, np.stack([K % 4] * 3))),
    ("tril", lambda np, x: np.tril(x), (A,)),
    ("triu", lambda np, x: np.triu(x, 1), (A,)),
    ("diagonal", lambda np, x: np.diagonal(x), (A,)),
    ("trace", lambda np, x: np.trace(x), (M,)),
    ("where", lambda np, c, x, y: np.where(c, x, y), (C, A, B)),
    ("clip", lambda np, x: np.clip(x, -0.5, 0.5), (A,)),
    ("matmul", lambda np, x, y: np.matmul(x, y), (A, M)),
    ("dot_vectors", lambda np, x, y: np.dot(x[0], y[1]), (A, B)),
    ("matvec", lambda np, x, y: np.matmul(x, y[0]), (A, B)),
    ("einsum", lambda np, x, y: np.einsum("ij,kj->ik", x, y), (A, B)),
    ("outer", lambda np, x, y: np.outer(x[0], y[0]), (A, B)),
    ("tensordot", lambda np, x, y: np.tensordot(x, y, axes=((1,), (0,))), (A, M)),
    ("solve", lambda np, a, b: np.linalg.solve(a, b), (M, A.T.copy())),
    ("inv", lambda np, a: np.linalg.inv(a), (M,)),
    ("det", lambda np, a: np.linalg.det(a), (M,)),
    ("cholesky", lambda np, a: np.linalg.cholesky(a), (S,)),
    ("norm", lambda np, x: np.linalg.norm(x), (A,)),
    ("operators", lambda np, x, y: -x + 2 * y - x * y / (x * x + 1) + abs(x) ** 2.0 + 3 - (1 - x), (A, B)),
    ("index", lambda np, x: x[1], (A,)),
    ("index_last", lambda np, x: x[-1, -2], (A,)),
    ("slice", lambda np, x: x[1:, ::2], (A,)),
    ("slice_back", lambda np, x: x[::-1, 3:0:-2], (A,)),
    ("slice_new", lambda np, x: x[:, None, 1:3], (A,)),
    ("ellipsis", lambda np, x: x[..., 0], (A,)),
    ("index_array", lambda np, x, k: x[:, k], (A, K)),
    ("empty_slice", lambda np, x: x[2:1], (A,)),
    ("int_floor", lambda np, x, y: x // y + x % y, (I, J)),
]


class Numpy(unittest.TestCase):
    def check(self, got, expected, name):
        expected = np.asarray(expected)
        got = got.numpy()
        self.assertEqual(got.shape, expected.shape, name)
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(got, expected, rtol=2e-4, atol=2e-4, err_msg=name)
        else:
            np.testing.assert_array_equal(got, expected, err_msg=name)

    def test_there_are_a_hundred(self):
        self.assertGreaterEqual(len(CASES), 100)

    def test_at_once(self):
        for name, f, args in CASES:
            with self.subTest(name):
                self.check(f(rnp, *map(rlx.array, args)), f(np, *args), name)

    def test_compiled(self):
        for name, f, args in CASES:
            with self.subTest(name):
                self.check(rlx.jit(lambda *a: f(rnp, *a))(*map(rlx.array, args)), f(np, *args), name)

    def test_at(self):
        x = rlx.array(A)
        expected = A.copy()
        expected[1, 1:3] = 7
        self.check(x.at[1, 1:3].set(7.0), expected, "set")
        expected = A.copy()
        np.add.at(expected, (slice(None), K), 1)
        self.check(x.at[:, K].add(1.0), expected, "add")

    def test_indices_are_whole(self):
        for index in (1.0, np.array([0.0, 1.0], np.float32)):
            with self.assertRaisesRegex(IndexError, "an index of f32; indices are integers"):
                rlx.array(A)[index]

    def test_types_do_not_change_by_themselves(self):
        with self.assertRaisesRegex(rlx.Error, "dtypes differ.*cast b to f32"):
            rlx.array([1.0]) + rlx.array([1])
        with self.assertRaisesRegex(rlx.Error, "0.5 is no i32"):
            rlx.array([1]) * 0.5


if __name__ == "__main__":
    unittest.main()
