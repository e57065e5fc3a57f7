"""One workload in another system, served like `bench_workloads --serve`: reads seconds a line, answers seconds a call.

usage: peer.py SYSTEM NAME [FILE]    SYSTEM: onnxruntime, openvino, torch, torch_compile
Says "absent: REASON" and ends where the system is not installed or does not run the workload.
"""
import sys
import time

THREADS = 2


def inputs_of(name):
    """By name, as the ONNX files have them."""
    import numpy as np
    random = lambda *shape: np.random.default_rng(5).uniform(-1, 1, shape).astype(np.float32)
    if name.startswith("minilm_"):
        b, s = map(int, name.split("_")[1].split("x"))
        return {"x": random(b, s, 384), "mask": np.ones((b, s), np.float32)}
    return {"image": random(int(name.rsplit("_", 1)[1]), 3, 224, 224)}


def onnxruntime(name, file):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = THREADS
    session = ort.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    feeds = inputs_of(name)
    return lambda: session.run(None, feeds)


def openvino(name, file):
    import openvino as ov
    core = ov.Core()
    settings = {"INFERENCE_NUM_THREADS": THREADS, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    model = core.read_model(file)
    feeds = inputs_of(name)
    model.reshape({k: list(v.shape) for k, v in feeds.items()})
    request = core.compile_model(model, "CPU", settings).create_infer_request()
    return lambda: request.infer(feeds)


def torch_workloads(name, compiled):
    import torch
    torch.set_num_threads(THREADS)
    torch.manual_seed(1)
    F, nn = torch.nn.functional, torch.nn

    class Layer(nn.Module):
        """Post-norm encoder layer of MiniLM-L6."""
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v, self.o = (nn.Linear(384, 384) for _ in range(4))
            self.up, self.down = nn.Linear(384, 1536), nn.Linear(1536, 384)
            self.ln1, self.ln2 = nn.LayerNorm(384, eps=1e-12), nn.LayerNorm(384, eps=1e-12)

        def forward(self, x, mask):
            b, s, _ = x.shape
            heads = lambda t: t.view(b, s, 12, 32).transpose(1, 2)
            a = F.scaled_dot_product_attention(heads(self.q(x)), heads(self.k(x)), heads(self.v(x)), attn_mask=mask)
            x = self.ln1(self.o(a.transpose(1, 2).reshape(b, s, 384)) + x)
            return self.ln2(self.down(F.gelu(self.up(x))) + x)

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(Layer() for _ in range(6))

        def forward(self, x, mask):
            for layer in self.layers:
                x = layer(x, mask)
            return x

    class Block(nn.Module):
        """Pre-norm decoder layer of ./dev run."""
        def __init__(self, width=128):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            b, s, w = x.shape
            q, k, v = (t.view(b, s, 4, w // 4).transpose(1, 2) for t in self.qkv(self.norm1(x)).split(w, 2))
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(a.transpose(1, 2).reshape(b, s, w))
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    class Decoder(nn.Module):
        def __init__(self, characters=96, width=128, context=128):
            super().__init__()
            self.characters, self.places = nn.Embedding(characters, width), nn.Embedding(context, width)
            self.before = nn.ModuleList(nn.Embedding(characters, width) for _ in range(2))
            self.blocks, self.norm = nn.ModuleList(Block() for _ in range(4)), nn.LayerNorm(width)

        def forward(self, ids):
            x = self.characters(ids[:, :-1]) + self.places.weight
            for back, table in enumerate(self.before, 1):
                x = x + F.pad(table(ids[:, :-1 - back]), (0, 0, back, 0))
            for block in self.blocks:
                x = block(x)
            logits = self.norm(x) @ self.characters.weight.T
            return F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())

    maybe = (lambda f: torch.compile(f)) if compiled else (lambda f: f)

    def training(model, loss, clip=None, **options):
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, **options)

        def step():
            optimizer.zero_grad()
            loss().backward()
            if clip:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
        return step

    if name == "minilm_train_8x128":
        model, x, mask = Encoder(), torch.randn(8, 128, 384), torch.ones(8, 1, 1, 128, dtype=torch.bool)
        f = maybe(lambda: (model(x, mask) ** 2).mean())
        return training(model, f)
    if name.startswith("minilm_"):
        b, s = map(int, name.split("_")[1].split("x"))
        model, x, mask = Encoder().eval(), torch.randn(b, s, 384), torch.ones(b, 1, 1, s, dtype=torch.bool)
        f = maybe(lambda: model(x, mask))

        def run():
            with torch.inference_mode():
                f()
        return run
    if name == "tiny_gpt_train_8x128":
        model, ids = Decoder(), torch.randint(0, 96, (8, 129))
        return training(model, maybe(lambda: model(ids)), clip=1.0, betas=(0.9, 0.95), weight_decay=0.1)
    if name in ("lstm_b32_t128_h256", "rnn_b32_t128_h256"):
        cell = (nn.LSTM if name.startswith("lstm") else nn.RNN)(256, 256).eval()
        x = torch.randn(128, 32, 256)
        f = maybe(lambda: cell(x))

        def run():
            with torch.inference_mode():
                f()
        return run
    if name == "pendulum_1000":
        start = [torch.tensor(v) for v in (0.5, 0.1, 0.01, 9.8, 0.1)]

        def loop():
            a, s, dt, g, k = start
            energies = []
            for _ in range(1000):
                s = s - (torch.sin(a) * g + s * k) * dt
                a = a + s * dt
                energies.append(s * s + a * a)
            return a, s, torch.stack(energies)
        if compiled:
            raise ImportError("a loop of 1,000 steps is not compiled in reasonable time")
        return loop
    raise ImportError(f"no {name}")


def main():
    system, name, file = sys.argv[1], sys.argv[2], (sys.argv[3] if len(sys.argv) > 3 else None)
    try:
        if system.startswith("torch"):
            work = torch_workloads(name, system == "torch_compile")
        else:
            if not file:
                raise ImportError("no file")
            work = {"onnxruntime": onnxruntime, "openvino": openvino}[system](name, file)
        for _ in range(3):
            work()
    except ImportError as e:
        print(f"absent: {e}", flush=True)
        return
    print("ready", flush=True)
    for line in sys.stdin:
        limit, begin, calls = float(line), time.perf_counter(), 0
        while True:
            work()
            calls += 1
            passed = time.perf_counter() - begin
            if passed >= limit:
                break
        print(passed / calls, flush=True)


main()
