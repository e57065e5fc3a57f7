#include "rlx/models/activation.h"

#include <numbers>
#include <utility>

#include "rlx/base/error.h"
#include "rlx/lang/operators.h"

namespace rlx::models {

namespace activations {

Tensor silu(const Tensor& x) { return rlx::silu(x); }
Tensor gelu(const Tensor& x) { return rlx::gelu(x); }
Tensor gelu_tanh(const Tensor& x) { return rlx::gelu_approx(x); }

}  // namespace activations

namespace {

using namespace activations;

Tensor gelu_10(const Tensor& x) { return rlx::gelu(x).max(-10).min(10); }
Tensor quick_gelu(const Tensor& x) { return x * rlx::sigmoid(x * 1.702); }
// The distribution function of a normal variable of mean sqrt(1/2) and variance 1 / (4 pi), to the digits that are published.
Tensor laplace(const Tensor& x) {
  return (rlx::erf((x - 0.707107) * (1 / (0.282095 * std::numbers::sqrt2))) + 1) * 0.5;
}
Tensor leaky_relu(const Tensor& x) { return (x > 0).where(x, x * 0.01); }
Tensor linear(const Tensor& x) { return x; }
Tensor mish(const Tensor& x) { return x * rlx::softplus(x).tanh(); }
Tensor relu(const Tensor& x) { return rlx::relu(x); }
Tensor relu2(const Tensor& x) { return rlx::relu(x).square(); }
Tensor relu6(const Tensor& x) { return rlx::relu(x).min(6); }
Tensor hardswish(const Tensor& x) { return x * relu6(x + 3) * (1.0 / 6); }
Tensor sigmoid(const Tensor& x) { return rlx::sigmoid(x); }
Tensor sqrtsoftplus(const Tensor& x) { return rlx::softplus(x).sqrt(); }
Tensor tanh(const Tensor& x) { return x.tanh(); }

constexpr std::pair<std::string_view, Activation> kWords[] = {
    {"silu", silu},
    {"swish", silu},
    {"gelu", gelu},
    {"gelu_python", gelu},
    {"gelu_10", gelu_10},
    {"gelu_new", gelu_tanh},
    {"gelu_fast", gelu_tanh},
    {"gelu_accurate", gelu_tanh},
    {"gelu_pytorch_tanh", gelu_tanh},
    {"gelu_python_tanh", gelu_tanh},
    {"quick_gelu", quick_gelu},
    {"hardswish", hardswish},
    {"laplace", laplace},
    {"leaky_relu", leaky_relu},
    {"linear", linear},
    {"mish", mish},
    {"relu", relu},
    {"relu2", relu2},
    {"relu6", relu6},
    {"sigmoid", sigmoid},
    {"sqrtsoftplus", sqrtsoftplus},
    {"tanh", tanh},
};

}  // namespace

Activation find_activation(std::string_view word) {
  for (const auto& [name, function] : kWords)
    if (name == word) return function;
  return nullptr;
}

std::string activation_words() {
  std::string all;
  for (const auto& [name, function] : kWords) all += cat(all.empty() ? "" : ", ", name);
  return all;
}

}  // namespace rlx::models
