// Elements moved between axes.
#include "rlx/lang/operators.h"
#include "rlx/onnx/table.h"

namespace rlx::onnx {
namespace {

bool is_columns_first(const Call& c) {
  const std::string mode = c.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") throw c.wrong("mode is '", mode, "'; it must be DCR or CRD");
  return mode == "CRD";
}

Items depth_to_space(Call& c) {
  const Tensor x = c.in(0);
  const int64_t b = c.integer("blocksize", 1);
  const bool columns_first = is_columns_first(c);
  const Dim n = x.dim(0), ch = floordiv(x.dim(1), b * b), h = x.dim(2), w = x.dim(3);
  const Tensor parts = columns_first ? x.reshape({n, ch, b, b, h, w}).transpose({0, 1, 4, 2, 5, 3})
                                     : x.reshape({n, b, b, ch, h, w}).transpose({0, 3, 4, 1, 5, 2});
  return {parts.reshape({n, ch, h * Dim(b), w * Dim(b)})};
}

Items space_to_depth(Call& c) {
  const Tensor x = c.in(0);
  const int64_t b = c.integer("blocksize", 1);
  const bool columns_first = is_columns_first(c);
  const Dim n = x.dim(0), ch = x.dim(1), h = floordiv(x.dim(2), b), w = floordiv(x.dim(3), b);
  const Tensor parts = x.reshape({n, ch, h, b, w, b});
  const Tensor moved =
      columns_first ? parts.transpose({0, 1, 3, 5, 2, 4}) : parts.transpose({0, 3, 5, 1, 2, 4});
  return {moved.reshape({n, ch * Dim(b * b), h, w})};
}

// Step t of sequence b comes from len[b] - 1 - t where t < len[b], else from t.
Items reverse_sequence(Call& c) {
  Tensor x = c.in(0);
  const int batch = c.axis(c.integer("batch_axis", 1), x.rank()),
            time = c.axis(c.integer("time_axis", 0), x.rank());
  Dims lengths(size_t(x.rank()), 1), steps(size_t(x.rank()), 1);
  lengths[size_t(batch)] = x.dim(batch);
  steps[size_t(time)] = x.dim(time);
  const Tensor len = c.in(1).cast(DType::i64).reshape(lengths);
  const Tensor t = c.iota(Shape(DType::i64, {x.dim(time)}), 0).reshape(steps);
  const Tensor from = (t < len).where(len - 1 - t, t);
  return {rlx::take_along(x, from.expand(x.shape().dims()), {.axis = time})};
}

}  // namespace

std::span<const Entry> layout_entries() {
  static const std::vector<Entry> kEntries{
      {"DepthToSpace", 1, depth_to_space, BoundsRule::rows},
      {"ReverseSequence", 10, reverse_sequence},
      {"SpaceToDepth", 1, space_to_depth, BoundsRule::rows},
  };
  return kEntries;
}

}  // namespace rlx::onnx
