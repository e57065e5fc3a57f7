// Fourier transforms and dense linear algebra, beside what the processor could do: the larger of operations over the peak of its units and bytes over the speed
// of its memory, each byte counted once.
#include <algorithm>
#include <cmath>

#include "bench/gpu/program.h"
#include "rlx/ir/sample.h"
#include "rlx/ops/all.h"

namespace rlx::bench {
namespace {

using ir::Expr;

// An H200: units of f32 and f64 (without matrix units), memory.
constexpr double kPeakF32 = 60e12, kPeakF64 = 30e12, kBytesEachSecond = 4.3e12;

void report_limit(const std::string& name, Program& p, double flops, double bytes, double peak) {
  const double seconds = seconds_of(p), limit = std::max(flops / peak, bytes / kBytesEachSecond);
  report(name,
         cat(rounded(seconds * 1e6, "us"), ", ", rounded(flops / seconds / 1e9, "GFLOP/s"), ", ",
             rounded(limit / seconds * 100, "% of"), " ", rounded(limit * 1e6, "us")),
         p);
  if (show_steps) p.print_steps();
}

// Operations are counted as 5 n log2 n of each line; x is read and y written once.
void transform(const std::string& name, const Dims& dims, const std::vector<int>& axes) {
  ir::Graph g("transform");
  const Shape s(DType::c64, dims);
  const Expr x{&g, g.input("x", s)};
  g.set_outputs({ops::fftn(x, axes, false)}, {"y"});
  Program p(g);
  double points = 1;
  for (const int axis : axes) points *= double(s.dim(axis).value());
  report_limit("fft_" + name, p, 5 * double(s.elements()) * std::log2(points), 2 * double(s.size_bytes()),
               kPeakF32);
}

enum class Factor { cholesky, solve, qr, eigh, svd };

struct FactorCase {
  const char* name;
  Factor kind;
  double flops;  // over n^3, as LAPACK counts one run of a direct method
  bool wide;     // computed in f64 whatever the type
};
// eigh and svd: with vectors.
constexpr FactorCase kFactors[] = {{"cholesky", Factor::cholesky, 1.0 / 3, false},
                                   {"solve", Factor::solve, 2.0 / 3, false},
                                   {"qr", Factor::qr, 8.0 / 3, true},
                                   {"eigh", Factor::eigh, 9, true},
                                   {"svd", Factor::svd, 21, true}};

// Symmetric, with a diagonal that makes it definite.
Literal definite(int64_t batch, int64_t n) {
  const Shape s(DType::f32, {batch, n, n});
  Literal a = ir::sample_literal(cat(s), 3);
  const auto v = a.mutable_data<float>();
  for (int64_t b = 0; b < batch; ++b) {
    float* const m = v.data() + b * n * n;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < i; ++j) m[j * n + i] = m[i * n + j];
      m[i * n + i] = float(n) + float(i % 7);
    }
  }
  return a;
}

void factor(const FactorCase& c, int64_t batch, int64_t n) {
  ir::Graph g("factor");
  const Shape s(DType::f32, {batch, n, n}), right(DType::f32, {batch, n, 1});
  const Expr a{&g, g.input("a", s)};
  ProgramOptions options;
  options.inputs = {{"a", definite(batch, n)}};
  double bytes = 2 * double(s.size_bytes());
  switch (c.kind) {
    case Factor::cholesky:
      g.set_outputs({ops::cholesky(a)}, {"l"});
      break;
    case Factor::solve:
      g.set_outputs({ops::batched_dense_solve(a, Expr{&g, g.input("b", right)})}, {"x"});
      bytes = double(s.size_bytes() + 2 * right.size_bytes());
      break;
    case Factor::qr: {
      const auto r = ops::qr(a);
      g.set_outputs({r.q, r.r}, {"q", "r"});
      bytes *= 1.5;
      break;
    }
    case Factor::eigh: {
      const auto r = ops::eigh(a);
      g.set_outputs({r.w, r.v}, {"w", "v"});
      break;
    }
    case Factor::svd: {
      const auto r = ops::svd(a);
      g.set_outputs({r.u, r.s, r.vt}, {"u", "s", "vt"});
      bytes *= 1.5;
      break;
    }
  }
  Program p(g, options);
  report_limit(cat("linalg_", c.name, "_", batch, "x", n), p,
               c.flops * double(batch) * double(n) * double(n) * double(n), bytes,
               c.wide ? kPeakF64 : kPeakF32);
}

}  // namespace

std::vector<Case> numeric_cases() {
  std::vector<Case> out;
  out.push_back({"fft", [] { transform("256x1024", {256, 1024}, {1}); }});
  out.push_back({"fft", [] { transform("64x65536", {64, 65536}, {1}); }});
  out.push_back({"fft", [] { transform("1x16777216", {1, int64_t(1) << 24}, {1}); }});
  out.push_back({"fft", [] { transform("1024x1024_both", {1024, 1024}, {0, 1}); }});
  for (const auto& [batch, n] : {std::pair<int64_t, int64_t>(64, 48), {1, 1024}, {1, 2048}}) {
    for (const FactorCase& c : kFactors)
      out.push_back({"linalg", [&c, batch = batch, n = n] { factor(c, batch, n); }});
  }
  return out;
}

}  // namespace rlx::bench
