"""Writes the models that bench/peers runs, with random weights, as ONNX: ResNet-18 in f32 and as QDQ in eight bits, and the
encoder of MiniLM-L6.

usage: models.py FOLDER    writes resnet18_f32.onnx, resnet18_int8.onnx and minilm.onnx there
"""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

rng = np.random.default_rng(3)
nodes, weights = [], []


def tensor(name, array):
    weights.append(numpy_helper.from_array(array.astype(np.float32), name))
    return name


def add(op, inputs, **attributes):
    out = f"v{len(nodes)}"
    nodes.append(helper.make_node(op, inputs, [out], **attributes))
    return out


def conv(x, cin, cout, size, stride):
    # Batch norm is already part of weights and bias, as in an exported model.
    n = len(nodes)
    w = tensor(f"w{n}", rng.normal(0, (2 / (cin * size * size)) ** 0.5, (cout, cin, size, size)))
    b = tensor(f"b{n}", rng.normal(0, 0.1, cout))
    p = size // 2
    return add("Conv", [x, w, b], kernel_shape=[size, size], strides=[stride, stride], pads=[p, p, p, p])


def block(x, cin, cout, stride):
    y = add("Relu", [conv(x, cin, cout, 3, stride)])
    y = conv(y, cout, cout, 3, 1)
    if stride != 1 or cin != cout:
        x = conv(x, cin, cout, 1, stride)
    return add("Relu", [add("Add", [y, x])])


def resnet18():
    x = add("Relu", [conv("image", 3, 64, 7, 2)])
    x = add("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    cin = 64
    for cout, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        x = block(block(x, cin, cout, stride), cout, cout, 1)
        cin = cout
    x = add("Flatten", [add("GlobalAveragePool", [x])])
    x = add("Gemm", [x, tensor("fc.w", rng.normal(0, 0.04, (1000, 512))), tensor("fc.b", np.zeros(1000))], transB=1)
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, 224, 224])
    logits = helper.make_tensor_value_info(x, TensorProto.FLOAT, ["n", 1000])
    graph = helper.make_graph(nodes, "resnet18", [image], [logits], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def minilm():
    """The layers behind the embedding: x [b, s, 384], mask [b, s] (1: a token) -> y."""
    def linear(x, cin, cout):
        n = len(nodes)
        y = add("MatMul", [x, tensor(f"w{n}", rng.normal(0, 0.05, (cin, cout)))])
        return add("Add", [y, tensor(f"b{n}", rng.normal(0, 0.05, cout))])

    def norm(x):
        n = len(nodes)
        return add("LayerNormalization", [x, tensor(f"g{n}", np.ones(384)), tensor(f"h{n}", np.zeros(384))], epsilon=1e-12)

    def integers(name, values):
        weights.append(numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    def heads(x):
        return add("Transpose", [add("Reshape", [x, "split"])], perm=[0, 2, 1, 3])

    integers("split", [0, 0, 12, 32]), integers("join", [0, 0, 384]), integers("axes", [1, 2])
    off = add("Mul", [add("Sub", [tensor("one", np.array(1.0)), "mask"]), tensor("low", np.array(-1e9))])
    off, x = add("Unsqueeze", [off, "axes"]), "x"
    for _ in range(6):
        q, k, v = (heads(linear(x, 384, 384)) for _ in range(3))
        k = add("Transpose", [k], perm=[0, 1, 3, 2])
        scores = add("Div", [add("MatMul", [q, k]), tensor(f"root{len(nodes)}", np.array(32 ** 0.5))])
        a = add("MatMul", [add("Softmax", [add("Add", [scores, off])], axis=-1), v])
        a = add("Reshape", [add("Transpose", [a], perm=[0, 2, 1, 3]), "join"])
        x = norm(add("Add", [linear(a, 384, 384), x]))
        x = norm(add("Add", [linear(gelu(linear(x, 384, 1536)), 1536, 384), x]))
    return x


def gelu(x):
    n = len(nodes)
    e = add("Erf", [add("Div", [x, tensor(f"root{n}", np.array(2 ** 0.5))])])
    return add("Mul", [add("Mul", [x, add("Add", [e, tensor(f"plus{n}", np.array(1.0))])]), tensor(f"half{n}", np.array(0.5))])


def saved_minilm(path):
    nodes.clear(), weights.clear()
    y = minilm()
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "minilm", [info("x", TensorProto.FLOAT, ["b", "s", 384]),
                                                info("mask", TensorProto.FLOAT, ["b", "s"])],
                              [info(y, TensorProto.FLOAT, ["b", "s", 384])], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path)


def quantised(source, target):
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Images(CalibrationDataReader):
        def __init__(self):
            self.left = 4

        def get_next(self):
            self.left -= 1
            return {"image": rng.uniform(-1, 1, (1, 3, 224, 224)).astype(np.float32)} if self.left >= 0 else None

    quantize_static(source, target, Images(), quant_format=QuantFormat.QDQ, per_channel=True,
                    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)


folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
f32 = os.path.join(folder, "resnet18_f32.onnx")
onnx.save(resnet18(), f32)
quantised(f32, os.path.join(folder, "resnet18_int8.onnx"))
saved_minilm(os.path.join(folder, "minilm.onnx"))
