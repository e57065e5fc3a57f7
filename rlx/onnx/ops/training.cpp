// One step of an optimiser.
#include "rlx/lang/operators.h"
#include "rlx/onnx/table.h"

namespace rlx::onnx {
namespace {

// Operands behind the rate and the count come as `kinds` lists, one entry of each per tensor.
int tensors_of(const Call& c, int kinds) {
  const int rest = c.count() - 2;
  if (rest < kinds || rest % kinds != 0) throw c.wrong(rest, " tensors; they must come in groups of ", kinds);
  return rest / kinds;
}

Items in_lists(const std::vector<Tensors>& lists) {
  Items out;
  for (const Tensors& list : lists) {
    for (const Tensor& t : list) out.emplace_back(t);
  }
  return out;
}

Items adagrad(Call& c) {
  const int n = tensors_of(c, 3);
  const double norm = c.real("norm_coefficient", 0), decay = c.real("decay_factor", 0),
               eps = c.real("epsilon", 1e-6);
  const Tensor rate = c.in(0).reshape({}) / (1.0 + c.in(1).cast(c.dtype(0)).reshape({}) * decay);
  std::vector<Tensors> out(2);
  for (int i = 0; i < n; ++i) {
    const Tensor x = c.in(2 + i), g = norm * x + c.in(2 + n + i), h = c.in(2 + 2 * n + i) + g * g;
    out[0].push_back(x - rate * g / (rlx::sqrt(h) + eps));
    out[1].push_back(h);
  }
  return in_lists(out);
}

Items momentum(Call& c) {
  const int n = tensors_of(c, 3);
  const double norm = c.real("norm_coefficient", 0), alpha = c.real("alpha", 0), beta = c.real("beta", 1);
  const bool nesterov = c.text("mode", "standard") == "nesterov";
  const Tensor rate = c.in(0).reshape({});
  const Tensor used =
      rlx::where(c.in(1).reshape({}) > 0, c.scalar(rate.dtype(), beta), c.scalar(rate.dtype(), 1));
  std::vector<Tensors> out(2);
  for (int i = 0; i < n; ++i) {
    const Tensor x = c.in(2 + i), g = norm * x + c.in(2 + n + i), v = alpha * c.in(2 + 2 * n + i) + used * g;
    out[0].push_back(x - rate * (nesterov ? g + alpha * v : v));
    out[1].push_back(v);
  }
  return in_lists(out);
}

Items adam(Call& c) {
  const int n = tensors_of(c, 4);
  const double norm = c.real("norm_coefficient", 0), after = c.real("norm_coefficient_post", 0);
  const double alpha = c.real("alpha", 0.9), beta = c.real("beta", 0.999), eps = c.real("epsilon", 1e-6);
  const DType type = c.dtype(0);
  const Tensor t = c.in(1).cast(type).reshape({}), rate = c.in(0).reshape({});
  // Averages that start at 0 are corrected for the steps done.
  const Tensor b = c.scalar(type, beta), a = c.scalar(type, alpha);
  const Tensor corrected = rlx::where(t > 0, rate * rlx::sqrt(1.0 - b.pow(t)) / (1.0 - a.pow(t)), rate);
  std::vector<Tensors> out(3);
  for (int i = 0; i < n; ++i) {
    const Tensor x = c.in(2 + i), g = norm * x + c.in(2 + n + i);
    const Tensor v = alpha * c.in(2 + 2 * n + i) + (1 - alpha) * g;
    const Tensor h = beta * c.in(2 + 3 * n + i) + (1 - beta) * g * g;
    const Tensor next = x - corrected * v / (rlx::sqrt(h) + eps);
    out[0].push_back((1 - after) * next);
    out[1].push_back(v);
    out[2].push_back(h);
  }
  return in_lists(out);
}

}  // namespace

std::span<const Entry> training_entries() {
  static const std::vector<Entry> kEntries{
      {"Adagrad", 1, adagrad},
      {"Adam", 1, adam},
      {"Momentum", 1, momentum},
  };
  return kEntries;
}

}  // namespace rlx::onnx
