"""Language models and ONNX files of the test data; skipped where these are not."""

import json
import os
import tempfile
import unittest

import numpy as np

import rlx
import rlx.numpy as rnp

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../shared/data")


@unittest.skipUnless(os.path.isdir(DATA), "no test data")
class Models(unittest.TestCase):
    def test_a_language_model_writes(self):
        model = rlx.load(os.path.join(DATA, "gguf/qwen2-Q8_0.gguf"), context=128)
        pieces = []
        written = model.generate("the model", on_token=pieces.append, max_tokens=12)
        self.assertEqual(len(written.tokens), 12)
        self.assertEqual(model.generate("the model", max_tokens=12).tokens, written.tokens)
        self.assertEqual(model.generate(model.encode("the model"), max_tokens=12, lookup=4).tokens, written.tokens)
        with self.assertRaisesRegex(rlx.Error, "no argument 'banana'"):
            model.generate("x", banana=1)

    def test_pieces_tokens_and_vectors(self):
        model = rlx.load(os.path.join(DATA, "gguf/qwen2-Q8_0.gguf"), context=128)
        whole = model.generate("the model", max_tokens=8)
        self.assertEqual("".join(model.stream("the model", max_tokens=8)), whole.text)
        self.assertEqual(model.decode(model.encode("the model")), "the model")
        self.assertRegex(repr(model), r"<rlx.Model qwen2: \d+ layers")
        rows = model.embed(["one text", "another one"])
        np.testing.assert_allclose(np.linalg.norm(rows.numpy(), axis=1), [1, 1], rtol=1e-5)
        np.testing.assert_allclose(model.embed("one text").numpy(), rows[0].numpy(), rtol=1e-4, atol=1e-5)
        first = next(model.stream("the model", max_tokens=100))  # the rest is not written
        self.assertTrue(whole.text.startswith(first))
        with self.assertRaisesRegex(rlx.Error, "rlx.onnx.load reads it"):
            rlx.load("model.onnx")

    def test_an_encoder_embeds_and_writes_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("config.json", "model.safetensors"):
                os.symlink(os.path.join(DATA, "checkpoints/bert", name), os.path.join(folder, name))
            with open(os.path.join(DATA, "tokenizers/wordpiece_bert/tokenizer.json")) as f:
                tokenizer = json.load(f)
            words = tokenizer["model"]["vocab"]
            tokenizer["model"]["vocab"] = {w: i for w, i in words.items() if i < 512}
            with open(os.path.join(folder, "tokenizer.json"), "w") as f:
                json.dump(tokenizer, f)
            model = rlx.load(folder)
            self.assertEqual(model.embed(["a", "a longer text"]).shape, (2, model.config["hidden"]))
        with self.assertRaisesRegex(rlx.Error, "is an encoder, it writes no text; use .embed"):
            model.generate("x")

    def test_a_callback_may_stop_and_raise(self):
        model = rlx.load(os.path.join(DATA, "gguf/qwen2-Q8_0.gguf"), context=128)
        self.assertLess(len(model.generate("the", on_token=lambda t: False, max_tokens=12).tokens), 12)

        def fail(text):
            raise KeyError("mine")

        with self.assertRaises(KeyError):
            model.generate("the", on_token=fail, max_tokens=12)

    def test_an_onnx_model_is_a_function(self):
        model = rlx.onnx.load(os.path.join(DATA, "onnx/resnet_basic/model.onnx"))
        x = rlx.array(np.random.default_rng(1).normal(size=(2, 3, 64, 64)).astype(np.float32))
        y = model(x)["logits"]
        self.assertEqual(y.shape, (2, 10))
        compiled = rlx.jit(lambda x: model(x)["logits"])(x)
        np.testing.assert_allclose(compiled.numpy(), y.numpy(), rtol=1e-4, atol=1e-4)
        gradient = rlx.grad(lambda x: rnp.sum(model(x)["logits"]))(x)
        self.assertEqual(gradient.shape, x.shape)
        self.assertTrue(np.isfinite(gradient.numpy()).all())
        with self.assertRaisesRegex(rlx.Error, "unknown inputs"):
            model(image2=x)


if __name__ == "__main__":
    unittest.main()
