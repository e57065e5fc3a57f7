// Picking and writing by index as nodes of ONNX.
#include "rlx/onnx/write/writer.h"
#include "rlx/ops/index/gather.h"
#include "rlx/ops/index/scatter.h"
#include "rlx/ops/index/take_along.h"

namespace rlx::onnx {
namespace {

using ops::IndexMode;

const Shape& type(const Writer& w, ir::Value v) { return w.graph().shape(v); }

// Indices as ONNX takes them, brought into the axis where they are to be.
std::string indices(Writer& w, ir::Value v, Dim size, IndexMode mode) {
  const DType t = type(w, v).dtype();
  const std::string at = t == DType::i64 ? w.name(v) : w.cast(w.name(v), DType::i64);
  if (mode != IndexMode::clamp) return at;
  const std::string last = w.node("Squeeze", {w.node("Sub", {w.dim(size), w.ints({1})})});
  return w.node("Min", {w.node("Max", {at, w.constant(Literal::of<int64_t>({}, {0}))}), last});
}

Names gather(Writer& w, const ir::Node& n) {
  const auto& a = n.as<ops::Gather>();
  const std::string at = indices(w, n.inputs[1], type(w, n.inputs[0]).dim(a.axis), a.mode);
  return {w.node("Gather", {w.name(n.inputs[0]), at}, {attribute("axis", int64_t(a.axis))})};
}

Names take_along(Writer& w, const ir::Node& n) {
  const auto& a = n.as<ops::TakeAlong>();
  const std::string at = indices(w, n.inputs[1], type(w, n.inputs[0]).dim(a.axis), a.mode);
  return {w.node("GatherElements", {w.name(n.inputs[0]), at}, {attribute("axis", int64_t(a.axis))})};
}

// Slices with an index of their own for each batch entry: the axis goes behind the batch, and the picked ones to its place.
Names batched_gather(Writer& w, const ir::Node& n) {
  const auto& a = n.as<ops::BatchedGather>();
  const Shape& table = type(w, n.inputs[0]);
  const int rank = table.rank(), axis = a.axis < 0 ? a.axis + rank : a.axis;
  const int picked = type(w, n.inputs[1]).rank() - a.batch_dims, between = axis - a.batch_dims;
  const std::string at =
      w.node("Unsqueeze", {indices(w, n.inputs[1], table.dim(axis), a.mode), w.ints({-1})});
  std::string x = w.name(n.inputs[0]);
  std::vector<int64_t> there, back;
  for (int i = 0; i < a.batch_dims; ++i) there.push_back(i), back.push_back(i);
  there.push_back(axis);
  for (int i = a.batch_dims; i < rank; ++i) {
    if (i != axis) there.push_back(i);
  }
  if (between > 0) x = w.node("Transpose", {x}, {attribute("perm", there)});
  const std::string y = w.node("GatherND", {x, at}, {attribute("batch_dims", int64_t(a.batch_dims))});
  if (between == 0) return {y};
  // [batch, picked, between, rest] to [batch, between, picked, rest].
  for (int i = 0; i < between; ++i) back.push_back(a.batch_dims + picked + i);
  for (int i = 0; i < picked; ++i) back.push_back(a.batch_dims + i);
  for (int i = int(back.size()); i < n.shapes[0].rank(); ++i) back.push_back(i);
  return {w.node("Transpose", {y}, {attribute("perm", back)})};
}

// The number of the place along `axis`, for each place of these extents, with an axis of one behind.
std::string numbers(Writer& w, const Dims& dims, size_t axis) {
  const std::string zero = w.constant(Literal::of<int64_t>({}, {0})),
                    one = w.constant(Literal::of<int64_t>({}, {1}));
  const std::string line = w.node("Range", {zero, w.node("Squeeze", {w.dim(dims[axis])}), one});
  std::vector<int64_t> shape(dims.size() + 1, 1);
  shape[axis] = -1;
  Dims wide = dims;
  wide.push_back(1);
  return w.node("Expand", {w.node("Reshape", {line, w.ints(shape)}), w.dims(wide)});
}

// An index of a row; in a batch the numbers of its entries stand before it.
Names scatter(Writer& w, const ir::Node& n) {
  const auto& a = n.as<ops::Scatter>();
  const char* const kKinds[] = {"none", "add", "max", "min"};
  const Dim rows = type(w, n.inputs[0]).dim(a.batch_dims);
  std::string at = w.node("Unsqueeze", {indices(w, n.inputs[1], rows, a.mode), w.ints({-1})});
  if (a.batch_dims > 0) {
    Names parts;
    for (int i = 0; i < a.batch_dims; ++i)
      parts.push_back(numbers(w, type(w, n.inputs[1]).dims(), size_t(i)));
    parts.push_back(at);
    at = w.node("Concat", parts, {attribute("axis", int64_t(-1))});
  }
  return {w.node("ScatterND", {w.name(n.inputs[0]), at, w.name(n.inputs[2])},
                 {attribute("reduction", std::string(kKinds[size_t(a.kind)]))})};
}

}  // namespace

const std::map<std::string_view, WriteNode>& index_writers() {
  static const std::map<std::string_view, WriteNode> kWriters{{"batched_gather", batched_gather},
                                                              {"gather", gather},
                                                              {"scatter", scatter},
                                                              {"take_along", take_along}};
  return kWriters;
}

}  // namespace rlx::onnx
