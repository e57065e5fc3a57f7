// Programs on a GPU, operands already there: ./dev gpu bench. Each line is a median over rounds of replays
// of the recorded program.
//   bench_gpu [PART OF A NAME].. [--steps | --plan]     all parts must be in a name: bench_gpu conv 3x3 bf16
#include <algorithm>
#include <cstdio>

#include "bench/gpu/program.h"
#include "rlx/backend/cuda/compile/timings.h"
#include "rlx/ops/all.h"
#include "rlx/transform/transform.h"

namespace rlx::bench {
namespace {

using ir::Expr;

// ---- programs ----

void elementwise(int64_t n, DType t) {
  ir::Graph g("chain");
  const Shape s(t, {n});
  const Expr x{&g, g.input("x", s)}, w{&g, g.input("w", s)};
  using namespace ops;  // NOLINT
  Expr y = mul(x, w);
  y = add(y, x);
  y = tanh(y);
  y = mul(y, w);
  y = sub(y, x);
  y = abs(y);
  y = add(y, w);
  y = relu(y);
  y = mul(y, x);
  y = sigmoid(y);
  g.set_outputs({y}, {"y"});
  Program p(g);
  const double bytes = 3.0 * double(n) * double(dtype_size(t));
  report(cat("elementwise_ten_", t), rounded(bytes / seconds_of(p) / 1e12, "TB/s"), p);
}

void row_program(const std::string& name, int64_t rows, int64_t columns, DType t,
                 const std::function<Expr(Expr)>& f, double passes) {
  ir::Graph g("rows");
  const Expr x{&g, g.input("x", Shape(t, {rows, columns}))};
  g.set_outputs({f(x)}, {"y"});
  Program p(g);
  const double bytes = passes * double(rows * columns) * double(dtype_size(t));
  report(cat(name, "_", rows, "x", columns, "_", t), rounded(bytes / seconds_of(p) / 1e12, "TB/s"), p);
}

void product(int64_t m, int64_t n, int64_t k, DType t) {
  ir::Graph g("product");
  const Expr a{&g, g.input("a", Shape(t, {m, k}))}, b{&g, g.input("b", Shape(t, {k, n}))};
  g.set_outputs({ops::matmul(a, b)}, {"y"});
  Program p(g);
  report(cat("product_", m, "x", n, "x", k, "_", t),
         rounded(2.0 * double(m) * double(n) * double(k) / seconds_of(p) / 1e12, "TFLOP/s"), p);
}

void attention(int64_t batch, int64_t heads, int64_t seq, int64_t lanes, DType t, bool causal) {
  ir::Graph g("attention");
  const Shape s(t, {batch, seq, heads * lanes});
  const Expr q{&g, g.input("q", s)}, k{&g, g.input("k", s)}, v{&g, g.input("v", s)};
  g.set_outputs(
      {ops::attention_kind(q, k, v, heads, lanes, causal ? ops::MaskKind::causal : ops::MaskKind::none)},
      {"y"});
  Program p(g);
  const double flops =
      4.0 * double(batch * heads) * double(seq) * double(seq) * double(lanes) * (causal ? 0.5 : 1);
  report(cat("attention_b", batch, "_h", heads, "_s", seq, "_d", lanes, "_", t, causal ? "_causal" : ""),
         rounded(flops / seconds_of(p) / 1e12, "TFLOP/s"), p);
}

// Attention and its gradients; operations of both, 14 for each pair of a query and a key it sees and lane.
void attention_gradients(int64_t batch, int64_t heads, int64_t seq, int64_t lanes, DType t) {
  ir::Graph g("attention_gradients");
  const Shape s(t, {batch, seq, heads * lanes});
  const Expr q{&g, g.input("q", s)}, k{&g, g.input("k", s)}, v{&g, g.input("v", s)}, dy{&g, g.input("dy", s)};
  const auto d = ops::attention_backward_all(q, k, v, dy, heads, lanes, ops::MaskKind::causal);
  g.set_outputs({d.dq, d.dk, d.dv}, {"dq", "dk", "dv"});
  Program p(g);
  const double flops = 14.0 * double(batch * heads) * double(seq) * double(seq) * double(lanes) * 0.5;
  report(cat("gradients_of_attention_b", batch, "_h", heads, "_s", seq, "_d", lanes, "_", t),
         rounded(flops / seconds_of(p) / 1e12, "TFLOP/s"), p);
}

// Six layers, 384 wide, 12 heads, 1536 inner: the shape of MiniLM-L6.
void encoder(int64_t batch, int64_t seq, DType t) {
  constexpr int64_t kWidth = 384, kInner = 1536, kHeads = 12, kLayers = 6;
  ir::Graph g("encoder");
  const auto weight = [&](const std::string& name, Dims dims) {
    return Expr{&g, g.param(name, Shape(t, std::move(dims)))};
  };
  const auto linear = [&](const std::string& name, Expr x, int64_t in, int64_t out) {
    return ops::add(ops::matmul(x, weight(name + ".w", {in, out})), weight(name + ".b", {out}));
  };
  const auto norm = [&](const std::string& name, Expr x) {
    return ops::layer_norm(x, weight(name + ".g", {kWidth}), weight(name + ".b", {kWidth}), -1, 1e-12);
  };
  Expr x{&g, g.input("x", Shape(t, {batch, seq, kWidth}))};
  const Expr mask{&g, g.input("mask", Shape(DType::f32, {batch, seq}))};
  for (int64_t i = 0; i < kLayers; ++i) {
    const std::string at = cat("layer", i);
    const Expr q = linear(at + ".q", x, kWidth, kWidth), k = linear(at + ".k", x, kWidth, kWidth),
               v = linear(at + ".v", x, kWidth, kWidth);
    const Expr a = ops::attention(q, k, v, mask, kHeads, kWidth / kHeads);
    x = norm(at + ".ln1", ops::add(linear(at + ".o", a, kWidth, kWidth), x));
    const Expr h = ops::gelu(linear(at + ".up", x, kWidth, kInner));
    x = norm(at + ".ln2", ops::add(linear(at + ".down", h, kInner, kWidth), x));
  }
  g.set_outputs({x}, {"y"});
  Program p(g);
  report(cat("encoder_minilm_", batch, "x", seq, "_", t), rounded(seconds_of(p) * 1e3, "ms"), p);
  if (show_steps) p.print_steps();
}

void delta_net(int64_t batch, int64_t seq, int64_t heads, int64_t n) {
  ir::Graph g("delta_net");
  const Shape lanes(DType::f32, {batch, seq, heads, n}), gates(DType::f32, {batch, seq, heads});
  const auto input = [&](const char* name, const Shape& s) { return Expr{&g, g.input(name, s)}; };
  const auto out = ops::gated_delta_net(input("q", lanes), input("k", lanes), input("v", lanes),
                                        input("g", gates), input("beta", gates), n);
  g.set_outputs({out.output, out.state}, {"y", "state"});
  ProgramOptions options;
  options.inputs = {{"g", Literal::full(gates, -0.1)}, {"beta", Literal::full(gates, 0.5)}};
  Program p(g, options);
  report(cat("delta_net_b", batch, "_s", seq, "_h", heads, "_n", n), rounded(seconds_of(p) * 1e3, "ms"), p);
}

void selective_scan(int64_t batch, int64_t seq, int64_t channels, int64_t states) {
  ir::Graph g("selective_scan");
  const Shape x(DType::f32, {batch, seq, channels}), b(DType::f32, {batch, seq, states});
  const auto input = [&](const char* name, const Shape& s) { return Expr{&g, g.input(name, s)}; };
  const Expr a = ops::neg(ops::exp(Expr{&g, g.param("a", Shape(DType::f32, {channels, states}))}));
  g.set_outputs(
      {ops::selective_scan(input("x", x), input("delta", x), a, input("b", b), input("c", b), states)},
      {"y"});
  Program p(g);
  report(cat("selective_scan_b", batch, "_s", seq, "_h", channels, "_n", states),
         rounded(seconds_of(p) * 1e3, "ms"), p);
}

// h = tanh(h w), again and again; with the gradients of the sum of the last state by h and w.
void tanh_rnn(int64_t batch, int64_t length, int64_t width, bool gradients) {
  ir::Graph body("body");
  const Shape state(DType::f32, {batch, width}), square(DType::f32, {width, width});
  const Expr h{&body, body.input("h", state)}, w{&body, body.input("w", square)};
  body.set_outputs({ops::tanh(ops::matmul(h, w))});
  ir::Graph g("rnn");
  const Expr start{&g, g.input("h", state)}, weights{&g, g.param("w", square)};
  const Expr last = ops::scan_all(g, {start}, {weights}, {}, body, length)[0];
  g.set_outputs({gradients ? ops::reduce_sum(last, {0, 1}) : last}, {"y"});
  Program p(gradients ? transform::value_and_grad(g, {"h", "w"}) : g);
  report(cat("tanh_rnn_b", batch, "_l", length, "_d", width, gradients ? "_gradients" : ""),
         rounded(seconds_of(p) * 1e3, "ms"), p);
  if (show_steps) p.print_steps();
}

std::vector<Case> cases() {
  std::vector<Case> out;
  out.push_back({"elementwise", [] { elementwise(int64_t(1) << 27, DType::f32); }});
  out.push_back({"elementwise", [] { elementwise(int64_t(1) << 27, DType::bf16); }});
  const auto softmax = [](Expr x) { return ops::softmax(x, -1); };
  out.push_back({"softmax", [=] { row_program("softmax", 65536, 1024, DType::f32, softmax, 2); }});
  out.push_back({"softmax", [=] { row_program("softmax", 8192, 32768, DType::f32, softmax, 2); }});
  out.push_back(
      {"sum", [] {
         row_program("sum_rows", 65536, 1024, DType::f32, [](Expr x) { return ops::reduce_sum(x, {1}); }, 1);
       }});
  out.push_back({"sum", [] {
                   row_program(
                       "sum_columns", 65536, 1024, DType::f32, [](Expr x) { return ops::reduce_sum(x, {0}); },
                       1);
                 }});
  out.push_back({"sum", [] {
                   row_program(
                       "sum_all", 65536, 1024, DType::f32, [](Expr x) { return ops::reduce_sum(x, {0, 1}); },
                       1);
                 }});
  out.push_back({"transpose", [] {
                   row_program(
                       "transpose", 16384, 8192, DType::f32, [](Expr x) { return ops::transpose(x, {1, 0}); },
                       2);
                 }});
  out.push_back({"product", [] { product(8192, 8192, 8192, DType::bf16); }});
  out.push_back({"product", [] { product(4096, 4096, 4096, DType::f32); }});
  for (const DType t : {DType::f32, DType::bf16}) {
    out.push_back({"attention", [=] { attention(32, 12, 128, 32, t, false); }});
    out.push_back({"attention", [=] { attention(8, 16, 2048, 64, t, true); }});
  }
  for (const int64_t batch : {8, 256})
    out.push_back({"attention", [=] { attention(batch, 12, 128, 32, DType::bf16, false); }});
  for (const auto& [batch, heads, rows] : {std::tuple(8, 12, 1024), {1, 9, 2048}, {1, 32, 2048}}) {
    out.push_back({"attention", [=, batch = batch, heads = heads, rows = rows] {
                     attention(batch, heads, rows, 64, DType::bf16, true);
                   }});
  }
  out.push_back({"attention", [] { attention(1, 32, 2048, 128, DType::bf16, true); }});
  for (const auto& [heads, rows] : {std::pair(16, 2048), {12, 1024}}) {
    out.push_back({"gradients", [=, heads = heads, rows = rows] {
                     attention_gradients(8, heads, rows, 64, DType::bf16);
                   }});
  }
  for (const DType t : {DType::bf16, DType::f32}) {
    for (const auto& [b, s] : {std::pair(1, 16), {8, 128}, {32, 128}, {256, 128}})
      out.push_back({cat("encoder_", t, "_", b, "x", s), [=, b = b, s = s] { encoder(b, s, t); }});
  }
  out.push_back({"recurrence", [] { delta_net(2, 1024, 16, 128); }});
  out.push_back({"recurrence", [] { selective_scan(4, 2048, 1024, 16); }});
  for (const bool gradients : {false, true})
    out.push_back({"recurrence", [=] { tanh_rnn(64, 1024, 256, gradients); }});
  for (Case& c : product_cases()) out.push_back(std::move(c));
  for (Case& c : conv_cases()) out.push_back(std::move(c));
  for (Case& c : training_cases()) out.push_back(std::move(c));
  for (Case& c : numeric_cases()) out.push_back(std::move(c));
  for (Case& c : width_cases()) out.push_back(std::move(c));
  for (Case& c : scheme_cases()) out.push_back(std::move(c));
  for (Case& c : fp8_cases()) out.push_back(std::move(c));
  for (Case& c : rows_cases()) out.push_back(std::move(c));
  for (Case& c : llama_cases()) out.push_back(std::move(c));
  return out;
}

}  // namespace
}  // namespace rlx::bench

int main(int argc, char** argv) {
  std::vector<std::string> wanted;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--steps") {
      rlx::bench::show_steps = true;
    } else if (std::string_view(argv[i]) == "--plan") {
      rlx::bench::only_plans = true;
    } else if (std::string_view(argv[i]) == "--times") {
      rlx::bench::show_times = true;
    } else {
      wanted.emplace_back(argv[i]);
    }
  }
  if (!rlx::bench::only_plans) {
    if (const std::string why = rlx::cuda::device_problem(); !why.empty()) {
      std::fprintf(stderr, "bench_gpu: %s\n", why.c_str());
      return 2;
    }
    const rlx::cuda::Gpu& gpu = *rlx::cuda::device().gpu();
    std::printf("%s, %d multiprocessors, driver %d, compiler %s\n", gpu.name().c_str(), gpu.multiprocessors(),
                gpu.driver_version(), rlx::cuda::compiler_version().c_str());
  }
  int failed = 0;
  for (const auto& c : rlx::bench::cases()) {
    const auto named = [&](const std::string& part) { return c.name.find(part) != std::string::npos; };
    if (!std::all_of(wanted.begin(), wanted.end(), named)) continue;
    if (rlx::bench::show_times) rlx::cuda::take_timings();
    try {
      c.run();
    } catch (const std::exception& e) {
      std::printf("%s failed: %s\n", c.name.c_str(), e.what());
      ++failed;
    }
    if (rlx::bench::show_times) rlx::bench::print_timings();
  }
  return failed == 0 ? 0 : 1;
}
