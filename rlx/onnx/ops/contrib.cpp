// Operators that exporters of transformers emit beside ONNX's own.
#include <cmath>
#include <limits>

#include "rlx/lang/operators.h"
#include "rlx/onnx/product.h"
#include "rlx/onnx/table.h"

namespace rlx::onnx {
namespace {

// [rows, batch .., k] as [batch .., rows, k].
Tensor with_batch_first(const Call& c, const Tensor& x) {
  if (x.rank() < 3) throw c.wrong("an operand of ", x.rank(), " axes has no batch axes to move");
  std::vector<int> perm;
  for (int i = 1; i < x.rank() - 1; ++i) perm.push_back(i);
  perm.insert(perm.end(), {0, x.rank() - 1});
  return x.transpose(perm);
}

Items fused_matmul(Call& c) {
  Tensor a = c.in(0), b = c.in(1);
  if (c.flag("transBatchA")) a = with_batch_first(c, a);
  if (c.flag("transBatchB")) b = with_batch_first(c, b);
  if (c.flag("transA")) a = a.t();
  if (c.flag("transB")) b = b.t();
  const double alpha = c.real("alpha", 1);
  const Tensor y = product_of(a, b);
  return {alpha == 1 ? y : y * alpha};
}

// Distances between the rows of two matrices.
Items row_distances(Call& c) {
  const Tensor a = c.in(0), b = c.in(1);
  const std::string metric = c.text("metric", "sqeuclidean");
  if (metric != "euclidean" && metric != "sqeuclidean") c.unsupported(cat("metric '", metric, "'"));
  const Tensor squares = (a * a).sum({1}, true) + (b * b).sum({1}).unsqueeze(0);
  const Tensor y = (squares - product_of(a, b.t()) * 2.0).max(0.0);
  return {metric == "euclidean" ? rlx::sqrt(y) : y};
}

Items gelu(Call& c) { return {rlx::gelu(c.in(0))}; }
Items bias_gelu(Call& c) { return {rlx::gelu(c.in(0) + c.in(1))}; }
Items fast_gelu(Call& c) { return {rlx::gelu_approx(c.has(1) ? c.in(0) + c.in(1) : c.in(0))}; }

Items quick_gelu(Call& c) {
  const Tensor x = c.in(0);
  return {x * rlx::sigmoid(c.real("alpha", 1.702) * x)};
}

// Sum of input, skip and bias, and its norm; the sum is output 3.
template <bool kCentred>
Items skip_norm(Call& c) {
  const int bias = kCentred ? 4 : 3;
  Tensor sum = c.in(0) + c.in(1);
  if (c.has(bias)) sum = sum + c.in(bias);
  const double eps = c.real("epsilon", 1e-12);
  const Tensor y = kCentred ? rlx::layer_norm(sum, c.in(2), c.in_or_empty(3), {.axis = -1, .eps = eps})
                            : rlx::rms_norm(sum, c.in(2), {}, {.axis = -1, .eps = eps});
  return {y, Item(), Item(), sum};
}

// Sum of the embeddings of words, positions and segments, normalised.
Items embed_norm(Call& c) {
  const Tensor ids = c.in(0);
  Tensor sum = rlx::gather(c.in(2), ids);
  if (c.has(8)) {
    sum = sum + rlx::gather(c.in(3), c.in(8));
  } else {
    sum = sum + c.in(3).narrow(0, 0, ids.dim(1));
  }
  if (c.has(1)) sum = sum + rlx::gather(c.in(4), c.in(1));
  c.ignore("mask_index_type");
  const Tensor y = rlx::layer_norm(sum, c.in(5), c.in(6), {.axis = -1, .eps = c.real("epsilon", 1e-12)});
  Items out{y};
  if (c.node().outputs.size() > 1) {
    out.emplace_back(c.has(7) ? c.in(7).cast(DType::i32).sum({1}) : c.full({ids.dim(0)}, DType::i32, 0));
    out.emplace_back(sum);
  }
  return out;
}

// An activation by the name it has as an operator, with its parameters in order.
Tensor activated(const Call& c, const Tensor& x, const std::string& name, const std::vector<float>& p) {
  const auto parameter = [&](size_t i, double otherwise) { return i < p.size() ? double(p[i]) : otherwise; };
  if (name.empty()) return x;
  if (name == "Relu") return rlx::relu(x);
  if (name == "Tanh") return rlx::tanh(x);
  if (name == "Sigmoid") return rlx::sigmoid(x);
  if (name == "LeakyRelu") return (x < 0).where(x * parameter(0, 0.01), x);
  if (name == "HardSigmoid") return (x * parameter(0, 0.2) + parameter(1, 0.5)).clamp(0, 1);
  if (name == "Clip") {
    const double most = std::numeric_limits<float>::max();
    return x.clamp(parameter(0, -most), parameter(1, most));
  }
  c.unsupported(cat("activation '", name, "'"));
}

// A convolution, plus another tensor, and an activation.
Items fused_conv(Call& c) {
  Tensor y = convolution(c)[0].tensor;
  if (c.has(3)) y = y + c.in(3);
  return {activated(c, y, c.text("activation", ""), c.reals("activation_params"))};
}

Items fused_gemm(Call& c) {
  const Tensor y = gemm(c)[0].tensor;
  std::vector<float> parameters;
  for (const char* name : {"activation_alpha", "activation_beta", "activation_gamma"}) {
    if (c.has_attr(name)) parameters.push_back(float(c.real(name, 0)));
  }
  return {activated(c, y, c.text("activation", ""), parameters)};
}

Items inverse(Call& c) { return {rlx::inverse(c.in(0))}; }
Items bias_add(Call& c) { return {c.in(0) + c.in(1) + c.in(2)}; }

// Half of the channels, times the gelu of the others.
Items bias_split_gelu(Call& c) {
  const Tensor x = c.in(0) + c.in(1);
  const Dim half = floordiv(x.dim(-1), 2);
  return {x.narrow(-1, 0, half) * rlx::gelu(x.narrow(-1, half, half))};
}

constexpr auto kFree = BoundsRule::elementwise;

}  // namespace

std::span<const Entry> contrib_entries() {
  static const std::vector<Entry> kEntries{
      {"BiasAdd", 1, bias_add, kFree},
      {"BiasGelu", 1, bias_gelu, kFree},
      {"BiasSplitGelu", 1, bias_split_gelu},
      {"CDist", 1, row_distances},
      {"EmbedLayerNormalization", 1, embed_norm},
      {"FastGelu", 1, fast_gelu, kFree},
      {"FusedConv", 1, fused_conv},
      {"FusedGemm", 1, fused_gemm},
      {"FusedMatMul", 1, fused_matmul},
      {"Gelu", 1, gelu, kFree},
      {"Inverse", 1, inverse},
      {"QuickGelu", 1, quick_gelu, kFree},
      {"SkipLayerNormalization", 1, skip_norm<true>},
      {"SkipSimplifiedLayerNormalization", 1, skip_norm<false>},
      {"TransposeMatMul", 1, fused_matmul},
  };
  return kEntries;
}

}  // namespace rlx::onnx
