// What the machine reaches, measured with our own kernels.
#include <algorithm>
#include <optional>
#include <utility>

#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/quant/q_matmul.h"
#include "rlx/runtime/compiled_graph.h"
#include "rlx/runtime/devices.h"
#include "rlx/runtime/profile.h"

namespace rlx {
namespace {

// The time that steps take, as a profile sees them: without what a run does around them.
class StepTime final : public backend::Observer {
 public:
  void before(const backend::Plan::Step&, const backend::Launch&) override { begin_ = Clock::now(); }
  void took(double by_device) override { by_device_ = by_device; }
  void after(const backend::Plan::Step&, const backend::Launch&) override {
    const double by_host = std::chrono::duration<double>(Clock::now() - begin_).count();
    seconds += std::exchange(by_device_, std::nullopt).value_or(by_host);
  }
  double seconds = 0;

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_;
  std::optional<double> by_device_;
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

// Of products of n x n matrices.
double product_operations(DType type, int64_t n, int runs, const CompileOptions& options) {
  const Shape square(type, {n, n});
  ir::Graph g("product");
  const ir::Expr a{&g, g.input("a", square)}, b{&g, g.param("b", square)};
  if (type == DType::i8)
    g.set_outputs({ops::q_matmul(a, b, ir::full(g, Shape(DType::i32, {n}), 0), 0, 0, 0, 0.01)});
  else
    g.set_outputs({ops::matmul(a, b)});
  CompiledGraph f = compile(g, {{"b", Literal::full(square, 1)}}, options);
  return 2.0 * double(n) * double(n) * double(n) / best_seconds(f, {{"a", Literal::full(square, 1)}}, runs);
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

MachineLimits processor_limits(const CompileOptions& options) {
  constexpr int64_t kRows = 512;
  constexpr int kRuns = 8;
  MachineLimits out;
  out.operations_per_second = product_operations(DType::f32, kRows, kRuns, options);
  for (const DType t : {DType::bf16, DType::f16, DType::i8})
    out.narrow_operations.emplace(t, product_operations(t, kRows, kRuns, options));
  // Three tensors of 4 KiB to 8 MiB, which lie in some cache, then of 32 MiB: more than caches hold.
  for (int64_t elements = 1024; elements <= int64_t(2) << 20; elements *= 2) {
    const int runs = elements < (1 << 16) ? 40 : 8;
    out.in_cache.push_back({12.0 * double(elements), sum_bytes(elements, runs, options)});
  }
  out.bytes_per_second = sum_bytes(int64_t(8) << 20, 4, options);
  return out;
}

// Sizes grow until a step takes so long that its beginning is nothing beside it: how large that is depends on the device.
MachineLimits device_limits(const CompileOptions& options) {
  constexpr double kLongProduct = 1e-3, kLongSum = 1e-4;
  constexpr int64_t kFirstRows = 64, kMostRows = 8192, kFirstElements = 1 << 12, kMostElements = 1 << 26;
  constexpr int kRuns = 3;
  const auto operations = [&](DType type) {
    for (int64_t n = kFirstRows;; n = std::min(8 * n, kMostRows)) {
      const double speed = product_operations(type, n, kRuns, options);
      if (n == kMostRows || 2.0 * double(n) * double(n) * double(n) / speed >= kLongProduct) return speed;
    }
  };
  MachineLimits out;
  out.operations_per_second = operations(DType::f32);
  for (const DType t : {DType::bf16, DType::f16}) out.narrow_operations.emplace(t, operations(t));
  for (int64_t n = kFirstElements;; n *= 4) {
    const double bytes = 12.0 * double(n);
    out.bytes_per_second = sum_bytes(n, kRuns, options);
    if (n >= kMostElements || bytes / out.bytes_per_second >= kLongSum) return out;
    out.in_cache.push_back({bytes, out.bytes_per_second});
  }
}

}  // namespace

MachineLimits measure_limits(int threads) { return measure_limits("cpu", threads); }

MachineLimits measure_limits(std::string_view device, int threads) {
  const backend::Backend& which = device_named(device);
  if (which.memory().on_host()) return processor_limits({.threads = threads});
  return device_limits({.device = std::string(which.name()), .threads = threads});
}

}  // namespace rlx
