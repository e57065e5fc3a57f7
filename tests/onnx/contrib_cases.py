#!/usr/bin/env python3
"""Writes contrib_cases.json: single nodes of com.microsoft with operands and the results of ONNX Runtime.

usage: contrib_cases.py > contrib_cases.json    (needs numpy, onnx and onnxruntime)

An operand is [type, shape, numbers], null where it is left out. Those listed under "constant" are initializers.
"""
import json
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

rng = np.random.default_rng(5)
cases = []
names = {np.dtype(np.float32): "f32", np.dtype(np.int32): "i32", np.dtype(np.int64): "i64", np.dtype(np.uint8): "u8",
         np.dtype(np.int8): "i8", np.dtype(np.bool_): "bool"}


def f(*shape, scale=1.0):
    return np.round(rng.normal(size=shape) * scale, 3).astype(np.float32)


def integers(low, high, shape, dtype):
    return rng.integers(low, high, size=shape).astype(dtype)


def some(shape):
    """A mask that leaves something in every row."""
    mask = integers(0, 2, shape, np.int32)
    mask[..., 0] = 1
    return mask


def tensor(x):
    values = [float(f"{v:.7g}") for v in x.ravel().tolist()] if x.dtype == np.float32 else [int(v) for v in x.ravel()]
    return [names[x.dtype], list(x.shape), values]


def run(op, operands, attributes, outputs, constant):
    inputs, initializers, node_inputs, feed = [], [], [], {}
    for i, x in enumerate(operands):
        node_inputs.append("" if x is None else f"x{i}")
        if x is None:
            continue
        if i in constant:
            initializers.append(numpy_helper.from_array(x, f"x{i}"))
        else:
            inputs.append(helper.make_tensor_value_info(f"x{i}", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape))
            feed[f"x{i}"] = x
    out = [f"y{i}" if i in outputs else "" for i in range(max(outputs) + 1)]
    node = helper.make_node(op, node_inputs, out, domain="com.microsoft", **attributes)
    graph = helper.make_graph([node], "g", inputs, [helper.make_empty_tensor_value_info(f"y{i}") for i in outputs],
                              initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)],
                              ir_version=10)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1  # with several, rows of an LSTM become codes apart
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run([f"y{i}" for i in outputs], feed)


def case(name, op, operands, attributes=None, outputs=(0,), constant=(), want=None, tolerance=2e-5):
    attributes = attributes or {}
    try:
        results = want or run(op, operands, attributes, outputs, constant)
    except Exception as e:  # noqa: BLE001 - shown, so that the case can be looked at
        print(f"{name}: {str(e)[:300]}", file=sys.stderr)
        return
    cases.append({"name": name, "op": op, "tolerance": tolerance, "attributes": attributes, "constant": list(constant),
                  "operands": [None if x is None else tensor(x) for x in operands],
                  "outputs": list(outputs), "results": [tensor(np.asarray(r)) for r in results]})


# Activations and norms.
case("gelu", "Gelu", [f(2, 5)])
case("bias_gelu", "BiasGelu", [f(2, 3, 4), f(4)])
case("fast_gelu", "FastGelu", [f(2, 4)])
case("fast_gelu_bias", "FastGelu", [f(2, 4), f(4)])
case("quick_gelu", "QuickGelu", [f(7)], {"alpha": 1.5})
case("skip_norm", "SkipLayerNormalization", [f(2, 3, 4), f(2, 3, 4), f(4), f(4), f(4)], {"epsilon": 1e-6}, (0, 3))
case("skip_norm_broadcast", "SkipLayerNormalization", [f(2, 3, 4), f(3, 4), f(4)])
case("skip_rms", "SkipSimplifiedLayerNormalization", [f(2, 3, 4), f(2, 3, 4), f(4), f(4)], {"epsilon": 1e-6}, (0, 3))
case("embed_norm", "EmbedLayerNormalization",
     [integers(0, 6, (2, 3), np.int32), integers(0, 2, (2, 3), np.int32), f(6, 4), f(5, 4), f(2, 4), f(4), f(4),
      np.array([[1, 1, 0], [1, 1, 1]], np.int32)], {"epsilon": 1e-12}, (0, 1))
case("inverse", "Inverse", [f(2, 3, 3) + 3 * np.eye(3, dtype=np.float32)])
case("fused_gemm", "FusedGemm", [f(2, 3), f(4, 3), f(4)], {"transB": 1, "alpha": 0.5, "activation": "LeakyRelu", "activation_alpha": 0.1})
case("fused_conv", "FusedConv", [f(1, 2, 4, 4), f(3, 2, 3, 3), f(3), f(1, 3, 4, 4)], {"pads": [1, 1, 1, 1], "activation": "Relu"})
case("fused_conv_clip", "FusedConv", [f(1, 2, 4, 4), f(2, 2, 1, 1), f(2)], {"activation": "Clip", "activation_params": [-0.5, 0.75]})
case("fused_matmul", "FusedMatMul", [f(2, 4, 3), f(2, 5, 4)], {"transA": 1, "transB": 1, "alpha": 0.25})

# Attention.
b, s, t, heads, size = 2, 3, 5, 2, 4
h = heads * size
case("mha", "MultiHeadAttention", [f(b, s, h), f(b, t, h), f(b, t, h)], {"num_heads": heads})
case("mha_bias_scale", "MultiHeadAttention", [f(b, s, h), f(b, t, h), f(b, t, h), f(3 * h)], {"num_heads": heads, "scale": 0.3})
# Forms that ONNX Runtime has on GPUs only: the results are those of the same operands apart.
qkv, kv, q = f(b, s, heads, 3, size), f(b, t, heads, 2, size), f(b, s, h)
apart = lambda packed: [packed[:, :, :, i].reshape(b, packed.shape[1], h) for i in range(packed.shape[3])]
case("mha_packed_qkv", "MultiHeadAttention", [qkv], {"num_heads": heads},
     want=run("MultiHeadAttention", apart(qkv), {"num_heads": heads}, (0,), ()))
case("mha_packed_kv", "MultiHeadAttention", [q, kv], {"num_heads": heads},
     want=run("MultiHeadAttention", [q] + apart(kv), {"num_heads": heads}, (0,), ()))
case("mha_heads", "MultiHeadAttention", [f(b, s, h), f(b, heads, t, size), f(b, heads, t, size)], {"num_heads": heads})
mask = np.array([[1, 1, 1, 0, 0], [1, 0, 1, 1, 1]], np.int32)
case("mha_mask", "MultiHeadAttention", [f(b, s, h), f(b, t, h), f(b, t, h), None, mask], {"num_heads": heads})
case("mha_mask_all", "MultiHeadAttention", [f(b, s, h), f(b, t, h), f(b, t, h), None, mask * np.array([[1], [0]], np.int32)],
     {"num_heads": heads}, tolerance=1e-3)  # scores of -10000 have few digits left
case("mha_mask_rows", "MultiHeadAttention", [f(b, s, h), f(b, t, h), f(b, t, h), None, some((b, s, t))], {"num_heads": heads})
case("mha_lengths", "MultiHeadAttention", [f(b, s, h), f(b, t, h), f(b, t, h), None, np.array([3, 5], np.int32)], {"num_heads": heads})
case("mha_added", "MultiHeadAttention", [f(b, s, h), f(b, t, h), f(b, t, h), None, None, f(1, heads, s, t)], {"num_heads": heads})
case("mha_past", "MultiHeadAttention", [f(b, s, h), f(b, s, h), f(b, s, h), None, None, None, f(b, heads, 2, size), f(b, heads, 2, size)],
     {"num_heads": heads, "unidirectional": 1}, (0, 1, 2))
case("mha_causal", "MultiHeadAttention", [f(b, s, h), f(b, s, h), f(b, s, h), None, mask[:, :3]], {"num_heads": heads, "unidirectional": 1})
case("attention", "Attention", [f(b, s, 6), f(6, 3 * h, scale=0.5), f(3 * h)], {"num_heads": heads})
case("attention_mask", "Attention", [f(b, s, 6), f(6, 3 * h, scale=0.5), f(3 * h), mask[:, :3]], {"num_heads": heads})
case("attention_ends", "Attention", [f(b, s, 6), f(6, 3 * h, scale=0.5), f(3 * h), np.array([2, 3], np.int32)], {"num_heads": heads})
case("attention_ends_starts", "Attention", [f(b, s, 6), f(6, 3 * h, scale=0.5), f(3 * h), np.array([3, 3, 1, 0], np.int32)],
     {"num_heads": heads})
case("attention_rows", "Attention", [f(b, s, 6), f(6, 3 * h, scale=0.5), f(3 * h), some((b, s, s))],
     {"num_heads": heads, "mask_filter_value": -5.0})
square = some((b, 1, 8, 8))
operands = [f(b, s, 6), f(6, 3 * h, scale=0.5), f(3 * h), square[:, 0, 2:2 + s, :2 + s].copy(), f(2, b, heads, 2, size)]
results = run("Attention", operands, {"num_heads": heads}, (0, 1), ())
case("attention_square", "Attention", operands[:3] + [square] + operands[4:], {"num_heads": heads}, (0, 1), want=results)
case("attention_past", "Attention", [f(b, s, 6), f(6, 3 * h, scale=0.5), f(3 * h), None, f(2, b, heads, 2, size)],
     {"num_heads": heads, "unidirectional": 1}, (0, 1))
case("attention_sizes", "Attention", [f(b, s, 6), f(6, 2 * h + 6, scale=0.5), f(2 * h + 6)],
     {"num_heads": heads, "qkv_hidden_sizes": [h, h, 6]})
case("attention_added", "Attention", [f(b, s, 6), f(6, 3 * h, scale=0.5), f(3 * h), None, None, f(b, heads, s, s)], {"num_heads": heads})
case("qattention", "QAttention", [integers(0, 255, (b, s, 6), np.uint8), integers(-30, 30, (6, 3 * h), np.int8), f(3 * h),
                                  np.array(0.004, np.float32), np.array(0.011, np.float32), np.array([2, 3], np.int32),
                                  np.array(120, np.uint8), np.array(0, np.int8)], {"num_heads": heads}, constant=(1, 4, 7))

# Rotary positions.
angles = np.outer(np.arange(8), [1.0, 0.1]).astype(np.float32)
cos, sin = np.cos(angles), np.sin(angles)
position = integers(0, 8, (b, s), np.int64)
case("rope", "RotaryEmbedding", [f(b, s, h), position, cos, sin])
case("rope_first", "RotaryEmbedding", [f(b, s, h), np.array([2], np.int64), cos, sin], {"interleaved": 1})
case("rope_heads", "RotaryEmbedding", [f(b, heads, s, size), position, cos, sin])
case("rope_part", "RotaryEmbedding", [f(b, s, 12), position, cos, sin], {"num_heads": 2, "rotary_embedding_dim": 4})
case("rope_scale", "RotaryEmbedding", [f(b, s, h), position, cos, sin], {"scale": 0.5})

# Grouped queries.
q_heads, kv_heads, size = 2, 1, 16
angles = np.outer(np.arange(8), [1.0, 0.7, 0.5, 0.3, 0.1, 0.07, 0.05, 0.02]).astype(np.float32)
cos, sin = np.cos(angles), np.sin(angles)


def gqa(name, batch, steps, past, lengths, total, attributes=None, rotary=True, room=0, packed=False, extra=()):
    """room: rows behind those of the cache, as in a buffer that past and present share; the results are those without."""
    q, k, v = f(batch, steps, q_heads * size), f(batch, steps, kv_heads * size), f(batch, steps, kv_heads * size)
    cache = [f(batch, kv_heads, past, size), f(batch, kv_heads, past, size)] if past else [None, None]
    operands = [np.concatenate([q, k, v], 2), None, None] if packed else [q, k, v]
    operands += cache + [np.array(lengths, np.int32), np.array(total, np.int32)]
    operands += [cos, sin] if rotary else [None, None]
    operands += list(extra)
    attributes = {"num_heads": q_heads, "kv_num_heads": kv_heads, "do_rotary": int(rotary), **(attributes or {})}
    if not room:
        return case(name, "GroupQueryAttention", operands, attributes, (0, 1, 2), constant=(6,))
    results = run("GroupQueryAttention", operands, attributes, (0, 1, 2), (6,))[:1]
    operands[3:5] = [np.pad(c, ((0, 0), (0, 0), (0, room), (0, 0))) for c in cache]
    return case(name, "GroupQueryAttention", operands, attributes, (0,), constant=(6,), want=results)


gqa("gqa_prompt", 2, 3, 0, [2, 2], 3)
gqa("gqa_prompt_packed", 2, 3, 0, [2, 2], 3, packed=True)
gqa("gqa_step", 1, 1, 4, [4], 5)
gqa("gqa_step_rows", 2, 1, 4, [4, 3], 5)
gqa("gqa_steps", 1, 2, 3, [4], 5)
gqa("gqa_window", 1, 4, 0, [3], 4, {"local_window_size": 2})
gqa("gqa_window_step", 2, 1, 5, [5, 4], 6, {"local_window_size": 3})
gqa("gqa_interleaved", 1, 3, 0, [2], 3, {"rotary_interleaved": 1})
gqa("gqa_softcap_scale", 1, 3, 0, [2], 3, {"softcap": 2.0, "scale": 0.7}, rotary=False)
gqa("gqa_buffer", 2, 1, 3, [3, 2], 4, room=4)
gqa("gqa_buffer_one", 1, 1, 3, [3], 4, room=2)
gqa("gqa_smooth", 1, 3, 0, [2], 3, {"smooth_softmax": 1})
gqa("gqa_sink", 1, 3, 0, [2], 3, extra=[None, None, f(q_heads)])
gqa("gqa_added", 1, 2, 3, [4], 5, extra=[None, f(1, q_heads, 2, 5)])
gqa("gqa_positions", 1, 1, 4, [4], 5, extra=[np.array([[2]], np.int64)])
gqa("gqa_both_ways", 1, 3, 0, [2], 3, {"causal": 0})

# Codes.
scalar = lambda v, dtype=np.float32: np.array(v, dtype)
for op in ("QLinearAdd", "QLinearMul"):
    case(op.lower(), op, [integers(0, 255, (2, 3), np.uint8), scalar(0.05), scalar(120, np.uint8), integers(0, 255, (3,), np.uint8),
                          scalar(0.031), scalar(7, np.uint8), scalar(0.093), scalar(90, np.uint8)], constant=(1, 2, 4, 5, 6, 7))
one = [scalar(0.041), scalar(-3, np.int8), scalar(0.013), scalar(5, np.int8)]
fixed = (1, 2, 3, 4)
for op in ("QLinearSigmoid", "QLinearLeakyRelu"):
    case(op.lower(), op, [integers(-128, 127, (9,), np.int8)] + one, constant=fixed)
case("qlinearsoftmax", "QLinearSoftmax", [integers(-128, 127, (2, 5), np.int8), scalar(0.03), scalar(4, np.int8), scalar(1 / 256),
                                          scalar(-128, np.int8)], {"axis": 1, "opset": 13}, constant=fixed)
case("qlinearglobalaveragepool", "QLinearGlobalAveragePool", [integers(-128, 127, (1, 2, 3, 3), np.int8)] + one, constant=fixed)
case("qlinearconcat", "QLinearConcat", [scalar(0.05), scalar(3, np.uint8), integers(0, 255, (2, 2), np.uint8), scalar(0.04),
                                        scalar(9, np.uint8), integers(0, 255, (2, 1), np.uint8), scalar(0.07), scalar(0, np.uint8)],
     {"axis": 1}, constant=(0, 1, 3, 4, 6, 7))
case("qlinearwhere", "QLinearWhere", [np.array([True, False, True]), integers(0, 255, (2, 3), np.uint8), scalar(0.04), scalar(9, np.uint8),
                                      integers(0, 255, (2, 3), np.uint8), scalar(0.07), scalar(0, np.uint8), scalar(0.06), scalar(2, np.uint8)],
     constant=(2, 3, 5, 6, 7, 8))
case("dynamic_matmul", "DynamicQuantizeMatMul", [f(2, 3), integers(-100, 100, (3, 4), np.int8), f(4) * 0 + np.array([.01, .02, .03, .04], np.float32),
                                                 integers(-5, 5, (4,), np.int8), f(4)], constant=(1, 2, 3))
case("integer_to_float", "MatMulIntegerToFloat", [integers(0, 255, (2, 3), np.uint8), integers(-100, 100, (3, 4), np.int8), scalar(0.02),
                                                  np.array([.01, .02, .03, .04], np.float32), scalar(11, np.uint8), None, f(4)], constant=(1,))
case("qgemm", "QGemm", [integers(0, 255, (2, 3), np.uint8), scalar(0.02), scalar(100, np.uint8), integers(-100, 100, (4, 3), np.int8),
                        scalar(0.01), scalar(0, np.int8), integers(-500, 500, (4,), np.int32), scalar(0.05), scalar(128, np.uint8)],
     {"transB": 1, "alpha": 1.0}, constant=(3, 6))
case("qgemm_real", "QGemm", [integers(0, 255, (2, 3), np.uint8), scalar(0.02), scalar(100, np.uint8), integers(-100, 100, (3, 4), np.int8),
                             np.array([.01, .02, .03, .04], np.float32), np.array([0, 1, 2, 3], np.int8)], {"alpha": 1.0}, constant=(3,))
case("microsoft_dequantize", "DequantizeLinear", [integers(0, 255, (2, 3), np.uint8), np.array([.1, .2, .3], np.float32),
                                                  np.array([1, 2, 3], np.uint8)], {"axis": 1})
case("microsoft_quantize", "QuantizeLinear", [f(2, 3, scale=9), scalar(0.07), scalar(128, np.uint8)])
for bits, k, n, block in ((4, 32, 3, 16), (4, 40, 5, 16), (8, 32, 3, 16), (2, 32, 3, 16)):
    blocks = -(-k // block)
    weights = integers(0, 256, (n, blocks, block * bits // 8), np.uint8)
    scales = np.abs(f(n, blocks, scale=0.1)) + np.float32(0.01)
    attributes = {"K": k, "N": n, "bits": bits, "block_size": block}
    case(f"matmul_{bits}bits_{k}", "MatMulNBits", [f(2, k), weights, scales], attributes, constant=(1, 2))
    zeros = integers(0, 256, (n, -(-blocks * bits // 8)), np.uint8)
    case(f"matmul_{bits}bits_{k}_zeros", "MatMulNBits", [f(1, 2, k), weights, scales, zeros, None, f(n)], attributes, constant=(1, 2, 3))
case("matmul_4bits_real_zeros", "MatMulNBits", [f(2, 32), integers(0, 256, (3, 2, 8), np.uint8), np.abs(f(3, 2)), f(3, 2) + 8],
     {"K": 32, "N": 3, "bits": 4, "block_size": 16}, constant=(1, 2, 3))
case("gather_codes", "GatherBlockQuantized", [integers(0, 256, (5, 16), np.uint8), integers(0, 5, (2, 2), np.int64), np.abs(f(5, 2)),
                                              integers(0, 256, (5, 1), np.uint8)], {"bits": 4, "block_size": 16, "quantize_axis": 1, "gather_axis": 0},
     constant=(0, 2, 3))
case("gather_codes_8", "GatherBlockQuantized", [integers(0, 256, (5, 16), np.uint8), np.array([4, 0], np.int32), np.abs(f(5, 1))],
     {"bits": 8, "block_size": 16, "quantize_axis": 1, "gather_axis": 0}, constant=(0, 2))

for i, more in enumerate(({}, {"pads": [1, 1, 1, 1], "strides": [2, 2]}, {"pads": [1, 1, 1, 1], "count_include_pad": 1},
                          {"channels_last": 1, "strides": [2, 1]}, {"ceil_mode": 1, "strides": [2, 2]})):
    scales = [scalar(0.042), scalar(-3, np.int8), scalar(0.0131), scalar(5, np.int8)]  # no mean lies between two codes
    case(f"qlinearaveragepool_{i}", "QLinearAveragePool", [integers(-128, 127, (1, 4, 6, 3), np.int8)] + scales,
         {"kernel_shape": [3, 2], **more}, constant=fixed)

for a, b, more in (((3, 2, 4), (2, 4, 5), {"transBatchA": 1}), ((4, 2, 3), (2, 4, 5), {"transBatchA": 1, "transA": 1}),
                   ((2, 3, 4), (5, 2, 4), {"transBatchB": 1, "transB": 1, "alpha": 0.5}),
                   ((3, 2, 2, 4), (4, 2, 2, 5), {"transBatchA": 1, "transBatchB": 1})):
    case("fused_matmul_" + "_".join(sorted(more)), "FusedMatMul", [f(*a), f(*b)], more)
case("distances", "CDist", [f(4, 3), f(5, 3)], {"metric": "euclidean"})
case("squared_distances", "CDist", [f(4, 3), f(2, 3)], {"metric": "sqeuclidean"})

steps, rows, width, hidden = 3, 2, 3, 4
# Of rows that have ended, and backwards of rows that begin later, ONNX Runtime takes other numbers into the range of codes.
ends = np.array([3, 2], np.int32)
for name, two, more, scales, lengths in (("dynamic_lstm", 1, {}, (), None), ("dynamic_lstm_columns", 1, {"direction": "reverse"}, (4 * hidden,), None),
                                         ("dynamic_lstm_both", 2, {"direction": "bidirectional"}, (), None),
                                         ("dynamic_lstm_lengths", 2, {"direction": "bidirectional"}, (), ends)):
    codes = lambda n: integers(-127, 128, (two, n, 4 * hidden), np.int8)
    scale = lambda: (np.abs(f(two, *scales)) + 1).astype(np.float32) * np.float32(0.01)
    zero = lambda: integers(-5, 5, (two, *scales), np.int8) * np.int8(not scales)
    case(name, "DynamicQuantizeLSTM",
         [f(steps, rows, width), codes(width), codes(hidden), f(two, 8 * hidden), lengths,
          f(two, rows, hidden), f(two, rows, hidden), None, scale(), zero(), scale(), zero()],
         {"hidden_size": hidden, **more}, (0, 1, 2), constant=(1, 2, 8, 9, 10, 11),
         tolerance=2e-5 if lengths is None else 5e-3)

print("[")
print(",\n".join(json.dumps(c, separators=(", ", ": ")) for c in cases))
print("]")
