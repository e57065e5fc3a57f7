// Activations and what is normalised to one along an axis.
#include "rlx/lang/operators.h"
#include "rlx/onnx/bounds.h"
#include "rlx/onnx/table.h"

namespace rlx::onnx {
namespace {

template <auto kFunction>
Items unary(Call& c) {
  c.ignore("consumed_inputs");
  return {kFunction(c.in(0), Loc::current())};
}

Tensor otherwise(const Tensor& x, const Tensor& negative) { return (x > 0).where(x, negative); }

Items relu(Call& c) {
  const Tensor x = c.in(0);
  return {is_float(x.dtype()) ? rlx::relu(x) : x.max(0)};
}

Items leaky_relu(Call& c) {
  const Tensor x = c.in(0);
  return {otherwise(x, c.real("alpha", 0.01) * x)};
}

// Before version 7 the slopes belong to the channels.
Items p_relu(Call& c) {
  const Tensor x = c.in(0);
  Tensor slope = c.in(1);
  c.ignore("consumed_inputs");
  if (c.opset() < 7 && slope.rank() == 1 && slope.dim(0) != Dim(1)) {
    Dims dims(size_t(x.rank()), 1);
    dims[1] = slope.dim(0);
    slope = slope.reshape(dims);
  }
  return {(x < 0).where(slope * x, x)};
}

Items elu(Call& c) {
  const Tensor x = c.in(0);
  return {otherwise(x, c.real("alpha", 1) * rlx::expm1(x.min(0)))};
}

Items selu(Call& c) {
  const Tensor x = c.in(0);
  const double alpha = c.real("alpha", 1.67326319217681884765625),
               gamma = c.real("gamma", 1.05070102214813232421875);
  return {gamma * otherwise(x, alpha * rlx::expm1(x.min(0)))};
}

Items celu(Call& c) {
  const Tensor x = c.in(0);
  const double alpha = c.real("alpha", 1);
  return {x.max(0) + (alpha * rlx::expm1(x / alpha)).min(0)};
}

Tensor hard_sigmoid_of(const Tensor& x, double alpha, double beta) { return (alpha * x + beta).clamp(0, 1); }

Items hard_sigmoid(Call& c) { return {hard_sigmoid_of(c.in(0), c.real("alpha", 0.2), c.real("beta", 0.5))}; }

Items hard_swish(Call& c) {
  const Tensor x = c.in(0);
  return {x * hard_sigmoid_of(x, 1.0 / 6, 0.5)};
}

Items softsign(Call& c) {
  const Tensor x = c.in(0);
  return {x / (1.0 + rlx::abs(x))};
}

Items thresholded_relu(Call& c) {
  const Tensor x = c.in(0);
  return {(x > c.real("alpha", 1)).where(x, 0.0)};
}

Items gelu(Call& c) {
  const std::string kind = c.text("approximate", "none");
  if (kind != "none" && kind != "tanh") throw c.wrong("approximate is '", kind, "'; it must be none or tanh");
  return {kind == "none" ? rlx::gelu(c.in(0)) : rlx::gelu_approx(c.in(0))};
}

Items mish(Call& c) {
  const Tensor x = c.in(0);
  return {x * rlx::tanh(rlx::softplus(x))};
}

Tensor swish_of(const Tensor& x, double alpha) {
  return alpha == 1 ? rlx::silu(x) : x * rlx::sigmoid(alpha * x);
}

Items swish(Call& c) { return {swish_of(c.in(0), c.real("alpha", 1))}; }

Items swiglu(Call& c) { return {swish_of(c.in(0), c.real("alpha", 1)) * c.in(1)}; }

Items shrink(Call& c) {
  const Tensor x = c.in(0);
  const DType type = x.dtype();
  const double bias = c.real("bias", 0), lambda = c.real("lambd", 0.5);
  // Integers shrink as real numbers do and are cut back.
  const Tensor r = is_float(type) ? x : x.cast(DType::f32);
  const Tensor y = (r < -lambda).where(r + bias, (r > lambda).where(r - bias, 0.0));
  return {is_float(type) ? y : y.cast(type)};
}

// Before version 13 all axes from `axis` on are one.
template <auto kFunction>
Items along_rest(Call& c) {
  const Tensor x = c.in(0);
  const int rank = x.rank(),
            axis = int(c.integer("axis", 1)) == rank ? rank : c.axis(c.integer("axis", 1), rank);
  const auto with_rows = [&](Item out) {
    for (const Bound& b : c.item(0).bounds) {
      if (b.axis >= axis) c.unsupported("an axis whose size depends on data among those of the function");
      out.bounds.push_back(b);
    }
    return Items{std::move(out)};
  };
  if (axis == rank - 1) return with_rows(kFunction(x, -1));
  Dim rest = 1, first = 1;
  for (int i = 0; i < rank; ++i) (i < axis ? first : rest) = (i < axis ? first : rest) * x.dim(i);
  return with_rows(kFunction(x.reshape({first, rest}), -1).reshape(x.shape().dims()));
}

template <auto kFunction>
Items along_axis(Call& c) {
  const int axis = c.axis(c.integer("axis", -1), c.rank(0));
  Item out(kFunction(masked(c, 0, {axis}, lowest(c.dtype(0))), axis));
  out.bounds = c.item(0).bounds;
  return {std::move(out)};
}

Tensor softmax_of(const Tensor& x, int axis) { return rlx::softmax(x, {.axis = axis}); }
Tensor log_softmax_of(const Tensor& x, int axis) { return rlx::log_softmax(x, {.axis = axis}); }
Tensor hardmax_of(const Tensor& x, int axis) {
  const int at = axis < 0 ? axis + x.rank() : axis;
  return rlx::one_hot(rlx::argmax(x, {.axis = at}), {.depth = x.dim(at), .axis = at, .dtype = x.dtype()});
}

constexpr auto kFree = BoundsRule::elementwise;

}  // namespace

std::span<const Entry> activation_entries() {
  static const std::vector<Entry> kEntries{
      {"Celu", 12, celu, kFree},
      {"Elu", 1, elu, kFree},
      {"Gelu", 20, gelu, kFree},
      {"HardSigmoid", 1, hard_sigmoid, kFree},
      {"HardSwish", 14, hard_swish, kFree},
      {"Hardmax", 1, along_rest<hardmax_of>, BoundsRule::by_hand},
      {"Hardmax", 13, along_axis<hardmax_of>, BoundsRule::by_hand},
      {"LeakyRelu", 1, leaky_relu, kFree},
      {"LogSoftmax", 1, along_rest<log_softmax_of>, BoundsRule::by_hand},
      {"LogSoftmax", 13, along_axis<log_softmax_of>, BoundsRule::by_hand},
      {"Mish", 18, mish, kFree},
      {"PRelu", 1, p_relu, kFree},
      {"Relu", 1, relu, kFree},
      {"Selu", 1, selu, kFree},
      {"Shrink", 9, shrink, kFree},
      {"Sigmoid", 1, unary<rlx::sigmoid>, kFree},
      {"Softmax", 1, along_rest<softmax_of>, BoundsRule::by_hand},
      {"Softmax", 13, along_axis<softmax_of>, BoundsRule::by_hand},
      {"Softplus", 1, unary<rlx::softplus>, kFree},
      {"Softsign", 1, softsign, kFree},
      {"SwiGLU", 28, swiglu, kFree},
      {"Swish", 24, swish, kFree},
      {"Tanh", 1, unary<rlx::tanh>, kFree},
      {"ThresholdedRelu", 1, thresholded_relu, kFree},
  };
  return kEntries;
}

}  // namespace rlx::onnx
