"""Gradients and batches of forty functions against JAX, where that is installed."""

import unittest

import numpy as np

import rlx
import rlx.numpy as rnp

try:
    import jax
    import jax.numpy as jnp
except ImportError:
    jax = None

rng = np.random.default_rng(11)
X = rng.normal(size=(4, 5)).astype(np.float32)
W = rng.normal(size=(5, 3)).astype(np.float32)
P = (np.abs(X) + 0.5).astype(np.float32)
M = (rng.normal(size=(4, 4)) + 4 * np.eye(4)).astype(np.float32)
S = (M @ M.T).astype(np.float32)
K = np.array([3, 1, 1], dtype=np.int32)

# Each takes a numpy module and the array to differentiate by; all return a scalar.
FUNCTIONS = {
    "sum": (lambda np, x: np.sum(x), X),
    "mean_square": (lambda np, x: np.mean(x * x), X),
    "exp": (lambda np, x: np.sum(np.exp(x)), X),
    "log": (lambda np, x: np.sum(np.log(x)), P),
    "sqrt": (lambda np, x: np.sum(np.sqrt(x)), P),
    "sin_cos": (lambda np, x: np.sum(np.sin(x) * np.cos(x)), X),
    "tan": (lambda np, x: np.sum(np.tan(0.3 * x)), X),
    "tanh": (lambda np, x: np.sum(np.tanh(x)), X),
    "arctan": (lambda np, x: np.sum(np.arctan(x)), X),
    "log1p": (lambda np, x: np.sum(np.log1p(x)), P),
    "expm1": (lambda np, x: np.sum(np.expm1(x)), X),
    "abs": (lambda np, x: np.sum(np.abs(x)), X),
    "power": (lambda np, x: np.sum(np.power(x, 2.5)), P),
    "divide": (lambda np, x: np.sum(1.0 / (x * x + 1.0)), X),
    "maximum": (lambda np, x: np.sum(np.maximum(x, 0.1)), X),
    "minimum": (lambda np, x: np.sum(np.minimum(x, 0.1) * x), X),
    "where": (lambda np, x: np.sum(np.where(x > 0.0, x * x, -x)), X),
    "clip": (lambda np, x: np.sum(np.clip(x, -0.5, 0.5) * x), X),
    "max": (lambda np, x: np.sum(np.max(x, axis=1)), X),
    "min": (lambda np, x: np.min(x), X),
    "prod": (lambda np, x: np.sum(np.prod(x, axis=1)), X),
    "var": (lambda np, x: np.sum(np.var(x, axis=0)), X),
    "std": (lambda np, x: np.sum(np.std(x, axis=1)), X),
    "softmax": (lambda np, x: np.sum((np.exp(x) / np.sum(np.exp(x), axis=1, keepdims=True))[:, 0]), X),
    "logsumexp": (lambda np, x: np.sum(np.log(np.sum(np.exp(x), axis=1))), X),
    "norm": (lambda np, x: np.linalg.norm(x), X),
    "layer_norm": (lambda np, x: np.sum(((x - np.mean(x, axis=1, keepdims=True)) /
                                         np.sqrt(np.var(x, axis=1, keepdims=True) + 1e-3))[:, 1]), X),
    "matmul": (lambda np, x: np.sum(np.tanh(np.matmul(x, np.asarray(W)))), X),
    "matvec": (lambda np, x: np.sum(np.matmul(x, np.asarray(W)[:, 0]) ** 2.0), X),
    "einsum": (lambda np, x: np.sum(np.einsum("ij,jk,ik->i", x, np.asarray(W), np.matmul(x, np.asarray(W)))), X),
    "transpose": (lambda np, x: np.sum(np.matmul(np.transpose(x), x) ** 2.0), X),
    "reshape": (lambda np, x: np.sum(np.reshape(x, (2, 10))[0] ** 3.0), X),
    "slice": (lambda np, x: np.sum(x[1:3, ::2] ** 2.0), X),
    "reversed": (lambda np, x: np.sum(x[:, ::-1] * x), X),
    "gather": (lambda np, x: np.sum(np.take(x, np.asarray(K), axis=0) ** 2.0), X),
    "concatenate": (lambda np, x: np.sum(np.concatenate([x, x * x], axis=1) ** 2.0), X),
    "cumsum": (lambda np, x: np.sum(np.cumsum(x, axis=1) ** 2.0), X),
    "sort": (lambda np, x: np.sum(np.sort(x, axis=1)[:, 2] * 3.0), X),
    "solve": (lambda np, x: np.sum(np.linalg.solve(x, np.asarray(X)) ** 2.0), M),
    "inverse": (lambda np, x: np.sum(np.linalg.inv(x)), M),
    "det": (lambda np, x: np.linalg.det(x) * 1e-2, M),
    "cholesky": (lambda np, x: np.sum(np.linalg.cholesky(x)), S),
}


@unittest.skipIf(jax is None, "jax is not installed")
class Jax(unittest.TestCase):
    def close(self, got, expected, name):
        np.testing.assert_allclose(got.numpy(), np.asarray(expected), rtol=2e-3, atol=2e-3, err_msg=name)

    def test_there_are_forty(self):
        self.assertGreaterEqual(len(FUNCTIONS), 40)

    def test_gradients(self):
        for name, (f, x) in FUNCTIONS.items():
            with self.subTest(name):
                expected = np.array(jax.grad(lambda v: f(jnp, v))(x))
                got = rlx.grad(lambda v: f(rnp, v))(rlx.array(x))
                if name == "cholesky":  # only the symmetric part is defined
                    expected = (expected + expected.T) / 2
                    got = (got + got.T) / 2
                self.close(got, expected, name)

    def test_batches(self):
        for name, (f, x) in FUNCTIONS.items():
            with self.subTest(name):
                xs = np.stack([x, x * 1.1, x * 0.9])
                self.close(rlx.vmap(lambda v: f(rnp, v))(rlx.array(xs)), jax.vmap(lambda v: f(jnp, v))(xs), name)

    def test_batches_of_gradients(self):
        for name, (f, x) in FUNCTIONS.items():
            if name == "cholesky":
                continue
            with self.subTest(name):
                xs = np.stack([x, x * 1.1, x * 0.9])
                self.close(rlx.jit(rlx.vmap(rlx.grad(lambda v: f(rnp, v))))(rlx.array(xs)),
                           jax.vmap(jax.grad(lambda v: f(jnp, v)))(xs), name)


if __name__ == "__main__":
    unittest.main()
