// What the machine reaches, measured with our own kernels.
#include <algorithm>

#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/runtime/compiled_graph.h"
#include "rlx/runtime/profile.h"

namespace rlx {
namespace {

double best_seconds(CompiledGraph& f, const NamedLiterals& values, int runs) {
  using Clock = std::chrono::steady_clock;
  std::vector<Input> inputs;
  for (const auto& [name, value] : values) inputs.push_back({name, view(value)});
  double best = 1e30;
  for (int i = 0; i < runs; ++i) {
    const auto start = Clock::now();
    f.run(std::span<const Input>(inputs));
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

}  // namespace

MachineLimits measure_limits(int threads) {
  MachineLimits out;
  const CompileOptions options{.threads = threads};
  {
    constexpr int64_t n = 512;
    const Shape square(DType::f32, {n, n});
    ir::Graph g("product");
    const ir::Expr a{&g, g.input("a", square)}, b{&g, g.param("b", square)};
    g.set_outputs({ops::matmul(a, b)});
    CompiledGraph f = compile(g, {{"b", Literal::full(square, 1)}}, options);
    out.operations_per_second = 2.0 * n * n * n / best_seconds(f, {{"a", Literal::full(square, 1)}}, 8);
  }
  {
    const Shape large(DType::f32, {int64_t(8) << 20});  // three of 32 MiB: more than caches hold
    ir::Graph g("sum");
    const ir::Expr a{&g, g.input("a", large)}, b{&g, g.input("b", large)};
    g.set_outputs({ops::add(a, b)});
    CompiledGraph f = compile(g, {}, options);
    const NamedLiterals values = {{"a", Literal::full(large, 1)}, {"b", Literal::full(large, 2)}};
    out.bytes_per_second = 3.0 * double(large.size_bytes()) / best_seconds(f, values, 4);
  }
  return out;
}

}  // namespace rlx
