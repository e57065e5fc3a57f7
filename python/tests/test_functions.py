"""Tracing, derivatives, batching, loops, memory shared with others, threads, leaks."""

import contextlib
import dataclasses
import gc
import io
import signal
import subprocess
import sys
import threading
import time
import unittest

import numpy as np

import rlx
import rlx.numpy as rnp


def mlp(params, x):
    for w, b in params["layers"]:
        x = rnp.tanh(x @ w + b)
    return rnp.sum(x * params["scale"])


def params():
    k = rlx.random.key(3)
    return {"layers": [(rlx.random.normal(k, (4, 5)), rlx.random.normal(k, (5,))),
                       (rlx.random.normal(k, (5, 2)), rlx.random.normal(k, (2,)))],
            "scale": rlx.array([1.0, -2.0])}


@dataclasses.dataclass
class Point:
    x: object
    y: object


class Tracing(unittest.TestCase):
    def test_a_function_compiles_once_per_type(self):
        calls = []

        @rlx.jit
        def f(x):
            calls.append(x.shape)
            return x * 2

        f(rlx.array([1.0, 2.0]))
        f(rlx.array([3.0, 4.0]))
        self.assertEqual(f(rlx.array([1.0])).tolist(), [2.0])
        self.assertEqual(calls, [(2,), (1,)])

    def test_structures_come_back(self):
        out = rlx.jit(lambda p: {"sum": p.x + p.y, "both": (p, [p.x])})(Point(rlx.array(1.0), rlx.array(2.0)))
        self.assertEqual(out["sum"].item(), 3.0)
        self.assertIsInstance(out["both"][0], Point)

    def test_static_arguments_and_text(self):
        f = rlx.jit(lambda x, n: x * n, static_argnums=1)
        self.assertEqual(f(rlx.array(2.0), 3).item(), 6.0)
        self.assertIn("mul(", f.text(rlx.array(2.0), 3))
        self.assertIn("step", f.plan(rlx.array(2.0), 3))
        self.assertEqual(rlx.Graph.parse(f.text(rlx.array(2.0), 3)), f.graph(rlx.array(2.0), 3))

    def test_static_arguments_by_name(self):
        f = rlx.jit(lambda x, n, kind: x * n if kind == "times" else x + n, static_argnames=("n", "kind"))
        self.assertEqual(f(rlx.array(2.0), 3, kind="times").item(), 6.0)
        self.assertEqual(f(rlx.array(2.0), n=3, kind="plus").item(), 5.0)
        with self.assertRaisesRegex(rlx.Error, "has no argument 'm'; it has x"):
            rlx.jit(lambda x: x, static_argnames="m")

    def test_reports(self):
        f = rlx.jit(lambda x: rnp.exp(x) * 2 + 1)
        self.assertIn("f32[3]", f.report(rlx.array([1.0, 2.0, 3.0])))
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            rlx.show_config()
        self.assertRegex(printed.getvalue(), rf"rlx {rlx.__version__} on Python[\s\S]*cpu: ready")

    def test_settings_that_make_no_sense_are_refused_at_once(self):
        with self.assertRaisesRegex(rlx.Error, "^config: unknown device 'tpu'; known: cpu, cuda, ref, auto$"):
            rlx.config.device = "tpu"
        with self.assertRaisesRegex(rlx.Error, "^config: -2 threads; 1 or more expected"):
            rlx.config.threads = -2
        rlx.config.device = "auto"
        self.assertIn(rlx.config.device, ("cpu", "cuda"))
        rlx.config.device = "ref"
        self.assertEqual((rlx.config.device, rlx.config.threads), ("ref", 0))
        rlx.config.device = "cpu"

    def test_progress_tells_how_far(self):
        from rlx._progress import Progress

        told = io.StringIO()
        with Progress(4, "work", "steps", file=told) as shown:
            for _ in range(4):
                shown.add()
        self.assertIn("4/4 steps", told.getvalue())
        with contextlib.redirect_stderr(told):
            self.assertEqual(list(rlx.progress([1, 2, 3])), [1, 2, 3])

    def test_branches_on_traced_values_are_told(self):
        with self.assertRaisesRegex(rlx.Error, "no contents while a function is traced"):
            rlx.jit(lambda x: x if x > 0 else -x)(rlx.array(1.0))

    def test_errors_point_at_the_line(self):
        with self.assertRaisesRegex(rlx.Error, r"do not broadcast.*test_functions.py:\d+"):
            rlx.jit(lambda x: x + rlx.array([1.0, 2.0, 3.0]))(rlx.array([1.0, 2.0]))


class Derivatives(unittest.TestCase):
    def numeric(self, f, x, eps=1e-2):
        out = np.zeros_like(x)
        for i in np.ndindex(*x.shape):
            a, b = x.copy(), x.copy()
            a[i] += eps
            b[i] -= eps
            out[i] = (f(rlx.array(a)).item() - f(rlx.array(b)).item()) / (2 * eps)
        return out

    def test_gradients_of_structures(self):
        p, x = params(), rlx.random.normal(rlx.random.key(1), (3, 4))
        value, g = rlx.value_and_grad(mlp)(p, x)
        self.assertAlmostEqual(value.item(), mlp(p, x).item(), places=4)
        w = p["layers"][0][0].numpy()
        f = lambda w: mlp({**p, "layers": [(w, p["layers"][0][1]), p["layers"][1]]}, x)
        np.testing.assert_allclose(g["layers"][0][0].numpy(), self.numeric(f, w), rtol=2e-2, atol=2e-2)

    def test_compiled_is_the_same(self):
        p, x = params(), rlx.random.normal(rlx.random.key(1), (3, 4))
        for a, b in zip(rlx.tree.flatten(rlx.grad(mlp)(p, x))[0], rlx.tree.flatten(rlx.jit(rlx.grad(mlp))(p, x))[0]):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)

    def test_second_order_aux_and_argnums(self):
        cube = lambda x: rnp.sum(x ** 3.0)
        x = rlx.array([1.0, 2.0])
        self.assertEqual(rlx.grad(lambda x: rnp.sum(rlx.grad(cube)(x)))(x).tolist(), [6.0, 12.0])
        g, aux = rlx.grad(lambda x: (cube(x), x + 1), has_aux=True)(x)
        self.assertEqual((g.tolist(), aux.tolist()), ([3.0, 12.0], [2.0, 3.0]))
        a, b = rlx.grad(lambda x, y: rnp.sum(x * y), argnums=(0, 1))(x, x + 1)
        self.assertEqual((a.tolist(), b.tolist()), ([2.0, 3.0], [1.0, 2.0]))

    def test_forward_and_reverse_agree(self):
        f = lambda x: rnp.sin(x) * x
        x, v = rlx.array([0.3, 0.7]), rlx.array([1.0, -2.0])
        y, dy = rlx.jvp(f, (x,), (v,))
        value, pull = rlx.vjp(f, x)
        (back,) = pull(v)
        np.testing.assert_allclose((dy * v).sum().item(), (back * v).sum().item(), rtol=1e-5)
        np.testing.assert_allclose(y.numpy(), value.numpy())

    def test_vmap_and_grad_in_both_orders(self):
        f = lambda w, x: rnp.sum(rnp.tanh(x * w))
        w, xs = rlx.array([0.5, -1.0]), rlx.random.normal(rlx.random.key(2), (3, 2))
        one = rlx.vmap(rlx.grad(f), in_axes=(None, 0))(w, xs)
        for i in range(3):
            np.testing.assert_allclose(one[i].numpy(), rlx.grad(f)(w, xs[i]).numpy(), rtol=1e-5, atol=1e-6)
        whole = rlx.grad(lambda w: rnp.sum(rlx.vmap(f, in_axes=(None, 0))(w, xs)))(w)
        np.testing.assert_allclose(whole.numpy(), one.sum(0).numpy(), rtol=1e-5, atol=1e-6)

    def test_all_derivatives(self):
        f = lambda x: rnp.stack([rnp.sin(x[0]) * x[1], x[0] * x[0], x[1] ** 3.0])
        a, b = 0.3, 0.7
        expected = [[np.cos(a) * b, np.sin(a)], [2 * a, 0], [0, 3 * b * b]]
        for jacobian in (rlx.jacfwd, rlx.jacrev, lambda f: rlx.jit(rlx.jacrev(f))):
            np.testing.assert_allclose(jacobian(f)(rlx.array([a, b])).numpy(), expected, rtol=1e-5, atol=1e-6)
        h = rlx.hessian(lambda x: rnp.sum(f(x)))(rlx.array([a, b])).numpy()
        np.testing.assert_allclose(h, [[2 - np.sin(a) * b, np.cos(a)], [np.cos(a), 6 * b]], rtol=1e-4, atol=1e-5)

    def test_constants_for_derivatives(self):
        self.assertEqual(rlx.grad(lambda x: x * rlx.stop_gradient(x))(rlx.array(3.0)).item(), 3.0)

    def test_vmap_over_structures(self):
        p = {"w": rlx.array([[1.0, 2.0], [3.0, 4.0]]), "b": rlx.array(1.0)}
        f = lambda p, x, scale: (p["w"] * x + p["b"]) * scale
        out = rlx.vmap(f, in_axes=({"w": 0, "b": None}, None))(p, rlx.array([1.0, 1.0]), scale=rlx.array([1.0, 2.0]))
        self.assertEqual(out.tolist(), [[2.0, 3.0], [8.0, 10.0]])
        with self.assertRaisesRegex(rlx.Error, "do not fit a dict with the keys"):
            rlx.vmap(f, in_axes=({"w": 0}, None))(p, rlx.array([1.0, 1.0]), scale=rlx.array([1.0, 2.0]))

    def test_a_vector_has_no_gradient(self):
        with self.assertRaisesRegex(rlx.Error, r"returns f32\[2\]; return one scalar"):
            rlx.grad(lambda x: x)(rlx.array([1.0, 2.0]))
        with self.assertRaisesRegex(rlx.Error, r"returns f32\[\] and 1 more; return one scalar"):
            rlx.grad(lambda x: (rnp.sum(x), x))(rlx.array([1.0, 2.0]))


class Loops(unittest.TestCase):
    def test_a_step_that_returns_no_pair_is_told(self):
        one = rlx.array([1.0])
        with self.assertRaisesRegex(rlx.Error, r"returns 3 values; \(carry, y\) expected"):
            rlx.scan(lambda carry, x: (carry, x, x), one, one)
        with self.assertRaisesRegex(rlx.Error, r"returns a Tracer; \(carry, y\) expected"):
            rlx.scan(lambda carry, x: carry, one, one)

    def test_xs_without_axes_are_told(self):
        with self.assertRaisesRegex(rlx.Error, "xs has no axes"):
            rlx.scan(lambda c, x: (c, x), rlx.array(0.0), rlx.array(1.0))

    def test_scan_with_its_gradient(self):
        def run(w, xs):
            c, ys = rlx.scan(lambda c, x: (rnp.tanh(c * w + x), c), rlx.array(0.0), xs)
            return rnp.sum(c) + rnp.sum(ys)

        w, xs = rlx.array(0.7), rlx.array([0.1, -0.4, 0.9])
        c, total = 0.0, 0.0
        for x in (0.1, -0.4, 0.9):
            total += c
            c = float(np.tanh(c * 0.7 + x))
        self.assertAlmostEqual(run(w, xs).item(), c + total, places=5)
        eps = 1e-2
        numeric = (run(rlx.array(0.7 + eps), xs).item() - run(rlx.array(0.7 - eps), xs).item()) / (2 * eps)
        self.assertAlmostEqual(rlx.jit(rlx.grad(run))(w, xs).item(), numeric, places=2)

    def test_while_and_cond(self):
        f = rlx.jit(lambda x: rlx.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * x), (rlx.array(0), x)))
        self.assertEqual(f(rlx.array(2.0))[1].item(), 64.0)
        g = rlx.jit(lambda x: rlx.cond(x > 0, lambda v: v * 2, lambda v: -v, x))
        self.assertEqual((g(rlx.array(3.0)).item(), g(rlx.array(-3.0)).item()), (6.0, 3.0))


    def test_counted_loops(self):
        power = lambda x: rlx.fori_loop(0, 3, lambda i, y: y * x, rnp.ones(()))
        self.assertEqual(power(rlx.array(2.0)).item(), 8.0)
        self.assertEqual(rlx.jit(rlx.grad(power))(rlx.array(2.0)).item(), 12.0)
        f = rlx.jit(lambda x, n: rlx.fori_loop(0, n, lambda i, y: y + i, x))
        self.assertEqual(f(rlx.array(1), rlx.array(5)).item(), 11)


class Interrupts(unittest.TestCase):
    def interrupted(self, program):
        """What a program prints that is interrupted two seconds after it says that it begins."""
        child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        try:
            self.assertEqual(child.stdout.readline().strip(), "begins")
            time.sleep(2)
            begin = time.monotonic()
            child.send_signal(signal.SIGINT)
            out, _ = child.communicate(timeout=60)
            self.assertLess(time.monotonic() - begin, 30)
            return out
        finally:
            child.kill()

    def test_a_loop_without_end(self):
        self.assertIn("interrupted", self.interrupted("""
import os, rlx
f = rlx.jit(lambda x: rlx.while_loop(lambda s: s[0] > 0.0, lambda s: (s[0] + 1.0,), (x,)))
print("begins", flush=True)
try:
    f(rlx.array(1.0))
except KeyboardInterrupt:
    print("interrupted", flush=True)
os._exit(0)
"""))

    def test_many_steps(self):
        self.assertIn("interrupted 4.0", self.interrupted("""
import rlx, rlx.numpy as rnp
def f(x):
    for _ in range(4000):
        x = rnp.tanh(x @ x)
    return x
f = rlx.jit(f)
x = rnp.ones((600, 600)) * 1e-3
print("begins", flush=True)
try:
    f(x)
except KeyboardInterrupt:
    print("interrupted", rnp.sum(rnp.ones(4)).item(), flush=True)
"""))


class Memory(unittest.TestCase):
    def test_numpy_is_shared(self):
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        a = rlx.array(x)
        x[0, 0] = 42
        self.assertEqual(a[0, 0].item(), 42.0)
        self.assertTrue(np.shares_memory(a.numpy(), x))
        np.testing.assert_array_equal(np.from_dlpack(a), x)
        self.assertEqual(rlx.array(x.T).tolist(), x.T.tolist())

    def test_numpy_may_not_write_into_arrays(self):
        x = rlx.array([1.0, 2.0])
        for view in (np.asarray(x), x.numpy(), np.array(x, copy=False)):
            with self.assertRaisesRegex(ValueError, "read-only"):
                view[0] = 5.0
        own = np.array(x)
        own[0] = 5.0
        self.assertEqual(x.tolist(), [1.0, 2.0])
        self.assertEqual((rlx.array(np.asarray(x)) + np.asarray(x)).tolist(), [2.0, 4.0])

    def test_torch(self):
        try:
            import torch
        except ImportError:
            self.skipTest("torch is not installed")
        t = torch.arange(4, dtype=torch.float32)
        self.assertEqual(rlx.array(t).tolist(), [0.0, 1.0, 2.0, 3.0])
        self.assertTrue(torch.equal(torch.from_dlpack(rlx.array(t)), t))

    def test_torch_both_ways(self):
        try:
            import torch
        except ImportError:
            self.skipTest("torch is not installed")
        for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int8, torch.uint8, torch.bool):
            t = torch.arange(6).reshape(2, 3).to(dtype)
            x = rlx.array(t)
            self.assertEqual(x.shape, (2, 3))
            back = torch.from_dlpack(x)
            self.assertEqual((back.dtype, back.data_ptr()), (dtype, t.data_ptr()))
            self.assertTrue(torch.equal(back, t))
        t = torch.arange(6.0).reshape(2, 3).T  # strides: a copy, the same numbers
        self.assertEqual(rlx.array(t).tolist(), t.tolist())
        self.assertEqual(torch.from_dlpack(rlx.jit(lambda x: x * 2)(rlx.array([1.0, 2.0]))).tolist(), [2.0, 4.0])

    def test_jax_both_ways(self):
        try:
            import jax.numpy as jnp
        except ImportError:
            self.skipTest("jax is not installed")
        x = jnp.arange(6, dtype=jnp.float32).reshape(2, 3)
        self.assertEqual(rlx.array(x).tolist(), x.tolist())
        self.assertEqual(jnp.from_dlpack(rlx.array([[1.0, 2.0], [3.0, 4.0]])).tolist(), [[1.0, 2.0], [3.0, 4.0]])

    def test_memory_that_may_not_be_written(self):
        x = np.arange(3, dtype=np.float32)
        x.flags.writeable = False
        self.assertTrue(np.shares_memory(rlx.array(x).numpy(), x))

    def test_memory_outlives_its_owner(self):
        a = rlx.array(np.arange(1000, dtype=np.float32))
        n = a.numpy()
        gc.collect()
        del a
        gc.collect()
        self.assertEqual(n.sum(), 499500.0)

    def test_threads_run_at_once(self):
        f = rlx.jit(lambda x: rnp.sum(rnp.exp(x @ x)))
        x = rlx.random.normal(rlx.random.key(0), (64, 64)) * 0.01
        expected, got = f(x).item(), []
        threads = [threading.Thread(target=lambda: got.extend(f(x).item() for _ in range(20))) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(got, [expected] * 80)

    def test_calls_leak_nothing(self):
        import resource
        f = rlx.jit(lambda x: {"y": rnp.exp(x) * 2})
        x = rlx.array(np.zeros(1000, dtype=np.float32))
        for _ in range(1000):
            f(x)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(10000):
            f(x)
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, 4000)

    def test_other_calls_leak_nothing(self):
        import resource
        x = rlx.array(np.zeros(1000, dtype=np.float32))
        f = rlx.jit(rlx.grad(lambda x: rnp.sum(rnp.exp(x))))
        work = lambda: (f(x), x + 1, x[3:7].numpy(), np.from_dlpack(x), rlx.array(np.zeros(1000, np.float32)), x.at[0].set(1.0))
        for _ in range(500):
            work()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(3000):
            work()
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, 4000)

    def test_functions_are_collected(self):
        import weakref
        class Mark:
            pass
        mark = Mark()
        ref = weakref.ref(mark)
        f = rlx.jit(lambda x, mark=mark: x + 1)
        f(rlx.array(1.0))
        del f, mark
        gc.collect()
        self.assertIsNone(ref())


class Training(unittest.TestCase):
    def test_optimizers_keep_the_types_of_weights(self):
        g = {"a": rlx.array(np.array([3.0, 4.0])), "b": rlx.array([12.0]).astype("bf16")}
        p = {"a": rlx.array(np.array([1.0, 2.0])), "b": rlx.array([1.0]).astype("bf16")}
        rate = lambda i: 0.1 / (1.0 + i.astype("f32"))
        for opt in (rlx.optim.sgd(rate, 0.9), rlx.optim.adam(rate, b1=0.0), rlx.optim.rmsprop(rate), rlx.optim.lion(rate)):
            new, _ = opt.update(rlx.optim.clip_by_global_norm(g, 1.0), opt.init(p), p)
            self.assertEqual([new["a"].dtype, new["b"].dtype], ["f64", "bf16"])

    def test_the_first_step_of_adam_is_the_rate(self):
        opt = rlx.optim.adam(1.0, eps=0.0)  # m / (1 - b1) and sqrt(v / (1 - b2)) are the gradient
        p, g = {"w": rlx.array([0.0, 0.0])}, {"w": rlx.array([3.0, -0.1])}
        np.testing.assert_allclose(opt.update(g, opt.init(p), p)[0]["w"].numpy(), [-1, 1], rtol=3e-7)

    def test_every_optimizer_lowers_the_loss(self):
        x = rlx.random.normal(rlx.random.key(1), (64, 4))
        y = rnp.sum(x * rlx.array([1.0, -2.0, 0.5, 3.0]), -1, True)
        loss = lambda p: rnp.mean((x @ p["w"] + p["b"] - y) ** 2.0)
        makers = {"sgd": (rlx.optim.sgd, 0.05), "momentum": (lambda lr: rlx.optim.sgd(lr, 0.9, True), 0.02),
                  "adam": (rlx.optim.adam, 0.1), "adamw": (rlx.optim.adamw, 0.1), "rmsprop": (rlx.optim.rmsprop, 0.05),
                  "adagrad": (rlx.optim.adagrad, 0.5), "lion": (rlx.optim.lion, 0.03), "muon": (rlx.optim.muon, 0.05)}
        for name, (make, lr) in makers.items():
            with self.subTest(name):
                opt = make(lr)

                @rlx.jit
                def step(p, s):
                    value, g = rlx.value_and_grad(loss)(p)
                    p, s = opt.update(rlx.optim.clip_by_global_norm(g, 10.0), s, p)
                    return value, p, s

                p = {"w": rnp.zeros((4, 1)), "b": rnp.zeros((1,))}
                s = opt.init(p)
                first = None
                for _ in range(100):
                    value, p, s = step(p, s)
                    first = value.item() if first is None else first
                self.assertLess(value.item(), 0.2 * first)


if __name__ == "__main__":
    unittest.main()
