"""Functions saved as ONNX files and read again; pictures of graphs."""

import os
import tempfile
import unittest

import numpy as np

import rlx
import rlx.numpy as rnp

try:
    import onnxruntime
except ImportError:
    onnxruntime = None


def mlp(params, x):
    return rnp.tanh(x @ params["w1"] + params["b1"]) @ params["w2"]


def params():
    key = rlx.random.key(3)
    return {"w1": rlx.random.normal(key, (4, 8)), "b1": rnp.ones((8,)),
            "w2": rlx.random.normal(rlx.random.fold_in(key, 1), (8, 2))}


class Save(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "m.onnx")

    def agree(self, feed, expected, name="y"):
        got = rlx.onnx.load(self.path)(**feed)[name]
        np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)
        if onnxruntime is None:
            return
        session = onnxruntime.InferenceSession(self.path, providers=["CPUExecutionProvider"])
        (theirs,) = session.run([name], {k: v.numpy() for k, v in feed.items()})
        np.testing.assert_allclose(theirs, expected.numpy(), rtol=1e-5, atol=1e-5)

    def test_a_function_with_weights_and_an_open_size(self):
        p = params()
        rlx.onnx.save(self.path, mlp, p, rlx.onnx.Input("f32", ("batch", 4)), weights=0)
        model = rlx.onnx.load(self.path)
        self.assertEqual([i[0] for i in model.inputs], ["x"])
        self.assertEqual(model.inputs[0][2], ("batch", 4))
        self.assertIn("params.w1", model.weights)
        for rows in (1, 5):
            x = rlx.random.normal(rlx.random.key(rows), (rows, 4))
            self.agree({"x": x}, mlp(p, x))

    def test_sizes_that_the_graph_for_all_sizes_has_not(self):
        rlx.onnx.save(self.path, lambda x: x[3:] * 2.0, rlx.onnx.Input("f32", ("n",)))
        model = rlx.onnx.load(self.path)
        self.assertEqual(model(rnp.ones((5,)))["y"].tolist(), [2.0, 2.0])
        self.assertEqual(model(rnp.ones((2,)))["y"].shape, (0,))
        with self.assertRaisesRegex(rlx.Error, r"'x' is f32\[n\]"):
            model(rnp.ones((2, 2)))

    def test_an_open_size_that_is_one_beside_a_number(self):
        """The graph for all sizes takes x for [3], because of what it is added to; the file allows [1] too."""
        rlx.onnx.save(self.path, lambda x, y: x + y, rlx.onnx.Input("f32", (3,)), rlx.onnx.Input("f32", (3,)))
        with open(self.path, "rb") as f:
            model = f.read()
        three, unknown = b"\x0a\x02\x08\x03", b"\x0a\x02\x12\x00"
        self.assertEqual(model.count(three), 3)  # x, y and the result
        with open(self.path, "wb") as f:
            f.write(model.replace(three, unknown, 1))
        model, y = rlx.onnx.load(self.path), rlx.array([1.0, 2.0, 3.0])
        for x in ([5.0], [1.0, 2.0, 3.0]):
            self.agree({"x": rlx.array(x), "y": y}, rlx.array(x) + y, model.outputs[0][0])
        with self.assertRaisesRegex(rlx.Error, r"'x' is f32\[3\]"):
            model(rnp.ones((2,)), y)

    def test_parts_of_an_axis_of_open_size(self):
        cases = {"rows": lambda x: x[:, 1:3], "one": lambda x: x[1], "last": lambda x: x[-1, :], "inner": lambda x: x[1:-1],
                 "end": lambda x: x[-2:], "front": lambda x: x[:2], "most": lambda x: x[:-1], "ends": lambda x: x[-3:-1],
                 "turned": lambda x: x[::-1], "new": lambda x: x[:, None, 0], "rest": lambda x: x[..., ::2],
                 "picked": lambda x: x[np.array([1, 0])]}
        for name, part in cases.items():
            with self.subTest(name):
                rlx.onnx.save(self.path, lambda x: part(x) * 2.0, rlx.onnx.Input("f32", ("n", 4)))
                for rows in (3, 5):
                    x = rlx.random.normal(rlx.random.key(rows), (rows, 4))
                    self.agree({"x": x}, part(x) * 2.0)
        with self.assertRaisesRegex(rlx.Error, "a step of 2 along an axis of open size 'n'"):
            rlx.onnx.save(self.path, lambda x: x[::2] * 2.0, rlx.onnx.Input("f32", ("n", 4)))

    def test_unsigned_types_that_are_held_in_wider_ones(self):
        rlx.onnx.save(self.path, lambda x: x + 1, rlx.array(np.array([1, 2], np.int32)))
        with open(self.path, "rb") as f:
            model = f.read()
        i32, u16 = b"x\x12\x0a\x0a\x08\x08\x06", b"x\x12\x0a\x0a\x08\x08\x04"  # the type of input x
        self.assertEqual(model.count(i32), 1)
        with open(self.path, "wb") as f:
            f.write(model.replace(i32, u16))
        self.assertEqual(rlx.onnx.load(self.path)(np.array([1, 65000], np.uint16))["y"].tolist(), [2, 65001])

    def test_an_argument_called_as_results_are(self):
        x, y = rlx.array([1.0, 2.0]), rlx.array([3.0, 5.0])
        rlx.onnx.save(self.path, lambda x, y: x - y, x, y)
        self.agree({"x": x, "y": y}, x - y, "y_")

    def test_a_gradient(self):
        p, x = params(), rlx.random.normal(rlx.random.key(9), (3, 4))
        slope = rlx.grad(lambda x: rnp.sum(mlp(p, x) ** 2.0))
        rlx.onnx.save(self.path, slope, x, outputs=["slope"])
        self.agree({"x": x}, slope(x), "slope")

    def test_a_loop(self):
        def powers(x):
            return rlx.scan(lambda c, _: (c * x, c * x), rnp.ones((2,)), None, length=4)[1]

        x = rlx.array([2.0, 3.0])
        rlx.onnx.save(self.path, powers, x)
        self.agree({"x": x}, powers(x))

    def test_a_loaded_model_and_weights_outside(self):
        p, x = params(), rlx.random.normal(rlx.random.key(9), (3, 4))
        rlx.onnx.save(self.path, mlp, p, x, weights=[0])
        model = rlx.onnx.load(self.path)
        self.path = os.path.join(self.folder.name, "again.onnx")
        rlx.onnx.save(self.path, model, external_above=100)
        self.assertTrue(os.path.exists(self.path + ".data"))
        self.agree({"x": x}, mlp(p, x))

    def test_bytes_that_are_no_text_do_not_hide_the_error(self):
        rlx.onnx.save(self.path, lambda a: a + 1, rnp.eye(3))
        with open(self.path, "rb") as f:
            model = f.read()
        with open(self.path, "wb") as f:
            f.write(model.replace(b"Add", b"Ad\xff"))
        with self.assertRaisesRegex(rlx.Error, "not UTF-8"):
            rlx.onnx.load(self.path)

    def test_what_has_no_counterpart_is_named(self):
        with self.assertRaisesRegex(rlx.Error, "onnx: operator '?eigh'? has no counterpart"):
            rlx.onnx.save(self.path, lambda a: rlx.ops.eigh(a)[0], rnp.eye(3))
        with self.assertRaisesRegex(rlx.Error, "operator set 9"):
            rlx.onnx.save(self.path, lambda a: a + 1, rnp.eye(3), opset=9)


class Pictures(unittest.TestCase):
    def test_graphs_show_themselves(self):
        graph = rlx.jit(lambda x: rnp.exp(x) + 1).graph(rlx.array([1.0]))
        picture = graph._repr_svg_()
        self.assertTrue(picture.startswith("<svg") or picture.startswith("<?xml"))
        self.assertIn("exp", picture)
        self.assertRegex(repr(graph), r"<rlx.Graph @\w+: \d+ nodes>")


if __name__ == "__main__":
    unittest.main()
