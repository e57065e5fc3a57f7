"""Writes the seeds of the file readers: small good files. Needs numpy, gguf, safetensors (python3 make_seeds.py)."""
import json
import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFWriter, quants
from safetensors.numpy import save_file

w = GGUFWriter("gguf/types.gguf", "llama")
w.add_uint8("a.u8", 1); w.add_int8("a.i8", -1); w.add_uint16("a.u16", 2); w.add_int16("a.i16", -2)
w.add_uint32("a.u32", 3); w.add_int32("a.i32", -3); w.add_uint64("a.u64", 4); w.add_int64("a.i64", -4)
w.add_float32("a.f32", 0.5); w.add_float64("a.f64", 0.25); w.add_bool("a.bool", True); w.add_string("a.s", "text")
w.add_array("a.strings", ["a", "bc", ""]); w.add_array("a.ints", [1, 2, 3])
w.add_tensor("w", np.arange(6, dtype=np.float32).reshape(2, 3))
x = np.sin(np.arange(64, dtype=np.float32)).reshape(2, 32)
for t in (GGMLQuantizationType.Q4_0, GGMLQuantizationType.Q8_0):
    w.add_tensor(t.name, quants.quantize(x, t), raw_dtype=t)
w.write_header_to_file(); w.write_kv_data_to_file(); w.write_tensors_to_file(); w.close()
w = GGUFWriter("gguf/codebooks.gguf", "llama")
for name in ("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S"):
    t = GGMLQuantizationType[name]
    block = (37 * np.arange(GGML_QUANT_SIZES[t][1])).astype(np.uint8)
    w.add_tensor(name, block.reshape(1, -1), raw_dtype=t)
w.write_header_to_file(); w.write_kv_data_to_file(); w.write_tensors_to_file(); w.close()
w = GGUFWriter("gguf/empty.gguf", "x")
w.write_header_to_file(); w.write_kv_data_to_file(); w.write_tensors_to_file(); w.close()

a = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array([1, 2], np.int8), "c": np.array([0.5])}
save_file(a, "safetensors/small.safetensors", metadata={"format": "np"})
save_file({}, "safetensors/empty.safetensors")

np.save("npy/f32.npy", a["a"])
np.save("npy/fortran.npy", np.asfortranarray(a["a"]))
np.save("npy/big.npy", a["a"].astype(">f8"))
np.save("npy/bf16.npy", np.zeros(2, dtype=[("bf16", "<u2")]))
np.savez("npz/stored.npz", **a)
np.savez_compressed("npz/deflated.npz", **a)

json.dump({"architectures": ["X"], "vocab_size": 5, "eos_token_id": [1, 2], "rms_norm_eps": 1e-5, "layer_types": ["a"],
           "rope_parameters": {"rope_theta": 1e4}, "tie_word_embeddings": True, "pad_token_id": None},
          open("config_json/model.json", "w"))
json.dump({"bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": True}, "chat_template": "{{ x }}",
           "added_tokens_decoder": {"5": {"content": "<t>", "special": False}}, "model_max_length": 1e30},
          open("config_json/tokenizer.json", "w"))
