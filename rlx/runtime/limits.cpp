// What the machine reaches, measured with our own kernels.
#include <algorithm>

#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/quant/q_matmul.h"
#include "rlx/runtime/compiled_graph.h"
#include "rlx/runtime/profile.h"

namespace rlx {
namespace {

// The time that steps take, as a profile sees them: without what a run does around them.
class StepTime final : public backend::Observer {
 public:
  void before(const backend::Plan::Step&, const backend::Launch&) override { begin_ = Clock::now(); }
  void after(const backend::Plan::Step&, const backend::Launch&) override {
    seconds += std::chrono::duration<double>(Clock::now() - begin_).count();
  }
  double seconds = 0;

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_;
};

double best_seconds(CompiledGraph& f, const NamedLiterals& values, int runs) {
  std::vector<Input> inputs;
  for (const auto& [name, value] : values) inputs.push_back({name, view(value)});
  f.run(std::span<const Input>(inputs));  // packs and allocates
  double best = 1e30;
  for (int i = 0; i < runs; ++i) {
    StepTime time;
    f.observe(&time);
    f.run(std::span<const Input>(inputs));
    best = std::min(best, time.seconds);
  }
  f.observe(nullptr);
  return best;
}

double product_operations(DType type, const CompileOptions& options) {
  constexpr int64_t n = 512;
  const Shape square(type, {n, n});
  ir::Graph g("product");
  const ir::Expr a{&g, g.input("a", square)}, b{&g, g.param("b", square)};
  if (type == DType::i8)
    g.set_outputs({ops::q_matmul(a, b, ir::full(g, Shape(DType::i32, {n}), 0), 0, 0, 0, 0.01)});
  else
    g.set_outputs({ops::matmul(a, b)});
  CompiledGraph f = compile(g, {{"b", Literal::full(square, 1)}}, options);
  constexpr int kRuns = 8;
  return 2.0 * n * n * n / best_seconds(f, {{"a", Literal::full(square, 1)}}, kRuns);
}

double sum_bytes(int64_t elements, int runs, const CompileOptions& options) {
  const Shape type(DType::f32, {elements});
  ir::Graph g("sum");
  const ir::Expr a{&g, g.input("a", type)}, b{&g, g.input("b", type)};
  g.set_outputs({ops::add(a, b)});
  CompiledGraph f = compile(g, {}, options);
  return 3.0 * double(type.size_bytes()) /
         best_seconds(f, {{"a", Literal::full(type, 1)}, {"b", Literal::full(type, 2)}}, runs);
}

}  // namespace

MachineLimits measure_limits(int threads) {
  MachineLimits out;
  const CompileOptions options{.threads = threads};
  out.operations_per_second = product_operations(DType::f32, options);
  for (const DType t : {DType::bf16, DType::f16, DType::i8})
    out.narrow_operations.emplace(t, product_operations(t, options));
  // Three tensors of 4 KiB to 8 MiB, which lie in some cache, then of 32 MiB: more than caches hold.
  for (int64_t elements = 1024; elements <= int64_t(2) << 20; elements *= 2) {
    const int runs = elements < (1 << 16) ? 40 : 8;
    out.in_cache.push_back({12.0 * double(elements), sum_bytes(elements, runs, options)});
  }
  out.bytes_per_second = sum_bytes(int64_t(8) << 20, 4, options);
  return out;
}

}  // namespace rlx
