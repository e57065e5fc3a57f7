"""Models from files: they continue texts and give vectors for them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, Iterator, Sequence

from . import _rlx
from ._progress import Progress
from ._trace import config

if TYPE_CHECKING:
    from ._rlx import Array, Generation


class Model:
    """A model with its tokenizer. Weights are mapped from the file and packed when they are first used."""

    def __init__(self, path, context=4096, device=None, threads=None):
        self._files = _rlx.open_model(os.fspath(path))
        self._options = dict(context=context, device=device or config.device, threads=config.threads if threads is None else threads)
        self._language, self._embedders = None, {}

    def __repr__(self) -> str:
        c = self.config
        return f"<rlx.Model {c['architecture']}: {c['layers']} layers of {c['hidden']}, vocabulary {c['vocab']}>"

    @property
    def config(self) -> dict[str, Any]:
        """Sizes and the name of the architecture."""
        return self._files.config

    def _decoder(self):
        if self._language is None:
            if self._files.is_encoder:
                raise _rlx.Error(f"generate: {self._files.architecture} is an encoder, it writes no text; use .embed")
            self._language = _rlx.LanguageModel(self._files, **self._options)
        return self._language

    def encode(self, text: str) -> list[int]:
        """The tokens of a text."""
        return self._decoder().encode(text)

    def decode(self, tokens: Sequence[int]) -> str:
        return self._decoder().decode(list(tokens))

    def generate(self, prompt: str | Sequence[int], on_token: Callable[[str], Any] | None = None, progress: bool = False,
                 **options: Any) -> Generation:
        """Continues a text or a list of tokens; greedy unless a temperature is given.

        on_token gets each piece of text as it becomes certain and ends the answer by returning False. Options: max_tokens, stop,
        ignore_end, lookup, temperature, top_k, top_p, min_p, repetition_penalty, frequency_penalty, presence_penalty, seed.
        """
        model = self._decoder()
        if not progress:
            return model.generate(prompt, on_token, **options)
        with Progress(options.get("max_tokens", 128), "generate", "tokens") as shown:
            def count(text):
                shown.add()
                return on_token(text) if on_token else True

            return model.generate(prompt, count, **options)

    def stream(self, prompt: str | Sequence[int], **options: Any) -> Iterator[str]:
        """The pieces of the answer as they are written."""
        import queue
        import threading

        pieces: queue.Queue = queue.Queue()
        go_on = threading.Event()
        go_on.set()
        model = self._decoder()

        def write():
            try:
                model.generate(prompt, lambda text: (pieces.put((text, None)), go_on.is_set())[1], **options)
                pieces.put((None, None))
            except BaseException as e:  # noqa: BLE001 - handed to the thread that reads
                pieces.put((None, e))

        thread = threading.Thread(target=write, daemon=True)
        thread.start()
        try:
            while True:
                text, error = pieces.get()
                if error is not None:
                    raise error
                if text is None:
                    return
                if text:
                    yield text
        finally:
            go_on.clear()
            thread.join()

    def chat(self, messages: Sequence[dict[str, str]], **options: Any) -> Generation:
        """The answer to messages [{"role": "user", "content": ...}, ...], by the model's own template."""
        import json

        prompt = self._decoder().chat_prompt(json.dumps(list(messages)))
        return self.generate(prompt, **options)

    def embed(self, texts: str | Sequence[str], normalise: bool = True, dimensions: int = 0, pooling: str | None = None,
              progress: bool = False) -> Array:
        """A row for each text (a vector for a single one). pooling: mean, cls or last; None as the model's files say."""
        key = (normalise, dimensions, pooling)
        if key not in self._embedders:
            options = {k: v for k, v in self._options.items() if k != "context"}
            self._embedders[key] = _rlx.Embedder(self._files, normalise, dimensions, pooling, **options)
        embedder = self._embedders[key]
        if isinstance(texts, str):
            return embedder.embed([texts])[0]
        texts = list(texts)
        if not progress or len(texts) < 2:
            return embedder.embed(texts)
        from . import ops
        rows, part = [], 32
        with Progress(len(texts), "embed", "texts") as shown:
            for at in range(0, len(texts), part):
                rows.append(embedder.embed(texts[at:at + part]))
                shown.add(len(texts[at:at + part]))
        return ops.concat(*rows, axis=0) if len(rows) > 1 else rows[0]


def load(path, context: int = 4096, device: str | None = None, threads: int | None = None) -> Model:
    """The model of a GGUF file or of a folder with safetensors; ONNX files are functions: rlx.onnx.load.

    context: tokens of prompt and answer together. device and threads: rlx.config's, unless given."""
    if os.fspath(path).endswith(".onnx"):
        raise _rlx.Error("load: an ONNX file is a function, not a language model; rlx.onnx.load reads it")
    return Model(path, context, device, threads)
