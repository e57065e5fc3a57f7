// Operators that ONNX tries out.
#include <cmath>

#include "rlx/lang/operators.h"
#include "rlx/onnx/importer.h"
#include "rlx/onnx/table.h"

namespace rlx::onnx {
namespace {

Tensor as(const Tensor& t, DType type) { return t.dtype() == type ? t : t.cast(type); }

// Attention whose scores and probabilities pass through bodies of the model.
Items flex_attention(Call& c) {
  const Tensor q = c.in(0);
  const auto repeated = [&](const Tensor& x) {
    if (x.dim(1) == q.dim(1)) return x;
    const Dim each = floordiv(q.dim(1), x.dim(1));
    return x.unsqueeze(2)
        .expand({x.dim(0), x.dim(1), each, x.dim(2), x.dim(3)})
        .reshape({x.dim(0), q.dim(1), x.dim(2), x.dim(3)});
  };
  const Tensor k = repeated(c.in(1)), v = repeated(c.in(2));
  const DType type = q.dtype();
  const auto element =
      c.element("softmax_precision", type == DType::f64 ? file::ElementType::f64 : file::ElementType::f32);
  const DType precise = *file::info_of(element).dtype;
  double scale = c.real("scale", 0);
  if (!c.has_attr("scale")) scale = 1 / std::sqrt(double(q.dim(3).value()));
  const auto through = [&](std::string_view name, const Tensor& x) {
    if (!c.has_attr(name)) return x;
    Item argument(x);
    argument.element = file::element_of(x.dtype());
    const Items results = c.importer().run_body(c.body(name), {argument});
    if (results.size() != 1)
      throw c.wrong("body '", name, "' has ", results.size(), " outputs; it must have one");
    return c.tensor_of(results[0]);
  };
  const Tensor scores =
      through("score_mod", as(rlx::matmul(as(q, precise), as(k, precise).t()) * scale, precise));
  const Tensor p = through("prob_mod", rlx::softmax(scores, {.axis = -1}));
  return {as(rlx::matmul(p, as(v, precise)), type)};
}

}  // namespace

std::span<const Entry> preview_entries() {
  static const std::vector<Entry> kEntries{
      {"FlexAttention", 1, flex_attention, BoundsRule::refuse, nullptr, false},
  };
  return kEntries;
}

}  // namespace rlx::onnx
