// Operators that few programs spend their time in: encoded blocks, convolutions of codes, gradients of pools, lists of splats; beside the time that their bytes alone
// would take.
#include "bench/gpu/program.h"
#include "rlx/ops/all.h"
#include "rlx/transform/transform.h"

namespace rlx::bench {
namespace {

using ir::Expr;

constexpr double kBytesEachSecond = 4.3e12;  // of an H200

void report_bytes(const std::string& name, Program& p, double bytes) {
  const double seconds = seconds_of(p), limit = bytes / kBytesEachSecond;
  report(name,
         cat(rounded(seconds * 1e6, "us"), ", ", rounded(limit / seconds * 100, "% of"), " ",
             rounded(limit * 1e6, "us")),
         p);
  if (show_steps) p.print_steps();
}

void encode(const std::string& scheme) {
  ir::Graph g("encode");
  const Shape s(DType::f32, {4096, 14336});
  const Expr y = ops::make<ops::EncodeBlocks>(g, {scheme}, {Expr{&g, g.input("x", s)}});
  const double bytes = double(s.size_bytes() + y.shape().size_bytes());
  g.set_outputs({y}, {"y"});
  Program p(g);
  report_bytes(cat("encode_", scheme, "_4096x14336"), p, bytes);
}

// Of a max pool there is an operator; that of a min pool writes windows down.
void pool_gradient(ops::ReduceOp kind, const char* name) {
  ir::Graph g("pool");
  const Shape s(DType::f32, {32, 64, 112, 112});
  const Expr x{&g, g.input("x", s)};
  const Expr y = ops::pool(x, kind, {3, 3}, {2, 2}, {1, 1});
  const double bytes = 2 * double(s.size_bytes()) + double(y.shape().size_bytes());
  g.set_outputs({ops::reduce_sum(ops::mul(y, y), {0, 1, 2, 3})}, {"y"});
  Program p(transform::grad(g, {"x"}));
  report_bytes(cat("gradient_of_", name, "_pool_32x64x112x112"), p, bytes);
}

void code_convolution() {
  ir::Graph g("codes");
  const Shape x(DType::i8, {32, 64, 56, 56}), w(DType::i8, {64, 64, 3, 3}), bias(DType::i32, {64});
  const auto input = [&](const char* name, const Shape& s) { return Expr{&g, g.input(name, s)}; };
  g.set_outputs({ops::q_conv2d(input("x", x), input("w", w), input("bias", bias), {3, 3}, {1, 1}, {1, 1},
                               {1, 1}, 1, 3, 0, 0, 0.001)},
                {"y"});
  Program p(g);
  report_bytes("q_conv2d_3x3_64_64_56", p, 2 * double(x.size_bytes()) + double(w.size_bytes()));
}

void splat_lists(int64_t splats) {
  ir::Graph g("lists");
  const auto input = [&](const char* name, Dims dims) {
    return Expr{&g, g.input(name, Shape(DType::f32, std::move(dims)))};
  };
  const Expr raw = input("scales", {splats, 3}),
             scales = ops::sub(raw, ops::scalar_like(raw, 5));  // small ones
  const ops::SplatParams params{.width = 1024, .height = 1024, .max_list_entries = 4 * splats};
  const auto lists = ops::make_all<ops::GaussianSplatLists>(
      g, params,
      {input("positions", {splats, 3}), scales, input("rotations", {splats, 4}), input("opacities", {splats}),
       input("meta", {15})});
  g.set_outputs({lists[0], lists[1], lists[2]}, {"ids", "ranges", "dropped"});
  ProgramOptions options;
  options.inputs = {{"meta", Literal::of<float>({15}, {0, 0, -3, 0, 0, 0, 0, 1, 0, 60, 0.1f, 100, 0, 0, 0})}};
  Program p(g, options);
  report_bytes(cat("splat_lists_", splats, "_1024x1024"), p, double(splats) * (11 * 4 + 4 * 4));
}

}  // namespace

std::vector<Case> width_cases() {
  std::vector<Case> out;
  for (const char* scheme : {"gguf_q8_0", "gguf_q4_0", "gguf_q4_k", "gguf_q6_k", "gguf_iq4_xs", "gguf_iq2_s"})
    out.push_back({"blocks", [scheme] { encode(scheme); }});
  out.push_back({"pools", [] { pool_gradient(ops::ReduceOp::max, "max"); }});
  out.push_back({"pools", [] { pool_gradient(ops::ReduceOp::min, "min"); }});
  out.push_back({"codes", [] { code_convolution(); }});
  for (const int64_t splats : {100'000, 1'000'000}) out.push_back({"splats", [=] { splat_lists(splats); }});
  return out;
}

}  // namespace rlx::bench
