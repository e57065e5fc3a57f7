// Leaves, extents, boxes and order as nodes of ONNX.
#include <limits>

#include "rlx/ir/leaves.h"
#include "rlx/onnx/write/writer.h"
#include "rlx/ops/conv/windows.h"
#include "rlx/ops/reduce/cumulative.h"
#include "rlx/ops/reduce/extreme.h"
#include "rlx/ops/reduce/reduce.h"
#include "rlx/ops/reduce/sort.h"
#include "rlx/ops/shape/concat.h"
#include "rlx/ops/shape/expand.h"
#include "rlx/ops/shape/flip.h"
#include "rlx/ops/shape/iota.h"
#include "rlx/ops/shape/narrow.h"
#include "rlx/ops/shape/pad.h"
#include "rlx/ops/shape/slice.h"
#include "rlx/ops/shape/transpose.h"

namespace rlx::onnx {
namespace {

const Shape& type(const Writer& w, ir::Value v) { return w.graph().shape(v); }

Names constant(Writer& w, const ir::Node& n) { return {w.constant(n.as<ir::Constant>().value)}; }

Names full(Writer& w, const ir::Node& n) {
  const auto& a = n.as<ir::Full>();
  return {w.node("Expand", {w.scalar(a.shape.dtype(), a.value), w.dims(n.shapes[0].dims())})};
}

Names iota(Writer& w, const ir::Node& n) {
  const Shape& s = n.shapes[0];
  const int axis = n.as<ops::Iota>().axis < 0 ? n.as<ops::Iota>().axis + s.rank() : n.as<ops::Iota>().axis;
  const std::string length = w.node("Squeeze", {w.dim(s.dim(axis))});
  const std::string zero = w.constant(Literal::of<int64_t>({}, {0})),
                    one = w.constant(Literal::of<int64_t>({}, {1}));
  std::string y = w.node("Range", {zero, length, one});
  if (s.dtype() != DType::i64) y = w.cast(y, s.dtype());
  if (s.rank() == 1) return {y};
  std::vector<int64_t> line(size_t(s.rank()), 1);
  line[size_t(axis)] = -1;
  return {w.node("Expand", {w.node("Reshape", {y, w.ints(line)}), w.dims(s.dims())})};
}

Names reshape(Writer& w, const ir::Node& n) {
  return {w.node("Reshape", {w.name(n.inputs[0]), w.dims(n.shapes[0].dims())},
                 {attribute("allowzero", int64_t(1))})};
}

Names expand(Writer& w, const ir::Node& n) {
  return {w.node("Expand", {w.name(n.inputs[0]), w.dims(n.shapes[0].dims())})};
}

Names transpose(Writer& w, const ir::Node& n) {
  std::vector<int64_t> perm(n.as<ops::Transpose>().perm.begin(), n.as<ops::Transpose>().perm.end());
  if (perm.empty()) {
    for (int i = n.shapes[0].rank() - 1; i >= 0; --i) perm.push_back(i);
  }
  return {w.node("Transpose", {w.name(n.inputs[0])}, {attribute("perm", perm)})};
}

Names concat(Writer& w, const ir::Node& n) {
  Names in;
  for (const ir::Value v : n.inputs) in.push_back(w.name(v));
  return {w.node("Concat", in, {attribute("axis", int64_t(n.as<ops::Concat>().axis))})};
}

Names narrow(Writer& w, const ir::Node& n) {
  const auto& a = n.as<ops::Narrow>();
  return {w.node("Slice", {w.name(n.inputs[0]), w.dim(a.start), w.dim(a.start + a.len), w.ints({a.axis})})};
}

Names slice(Writer& w, const ir::Node& n) {
  if (n.shapes[0].rank() == 0) return {w.node("Identity", {w.name(n.inputs[0])})};
  const auto& a = n.as<ops::Slice>();
  std::vector<int64_t> axes, steps = a.stride;
  for (int i = 0; i < n.shapes[0].rank(); ++i) axes.push_back(i);
  steps.resize(axes.size(), 1);
  return {
      w.node("Slice", {w.name(n.inputs[0]), w.dims(a.start), w.dims(a.limit), w.ints(axes), w.ints(steps)})};
}

Names flip(Writer& w, const ir::Node& n) {
  if (n.shapes[0].rank() == 0) return {w.node("Identity", {w.name(n.inputs[0])})};
  std::vector<int64_t> axes(n.as<ops::Flip>().axes.begin(), n.as<ops::Flip>().axes.end());
  if (axes.empty()) {
    for (int i = 0; i < n.shapes[0].rank(); ++i) axes.push_back(i);
  }
  const std::vector<int64_t> last(axes.size(), -1), before(axes.size(), std::numeric_limits<int64_t>::min()),
      back(axes.size(), -1);
  return {w.node("Slice", {w.name(n.inputs[0]), w.ints(last), w.ints(before), w.ints(axes), w.ints(back)})};
}

Names pad(Writer& w, const ir::Node& n) {
  if (n.shapes[0].rank() == 0) return {w.node("Identity", {w.name(n.inputs[0])})};
  const auto& a = n.as<ops::Pad>();
  const size_t rank = size_t(n.shapes[0].rank());
  Dims widths = a.low;
  widths.resize(rank, 0);
  Dims high = a.high;
  high.resize(rank, 0);
  widths.insert(widths.end(), high.begin(), high.end());
  return {w.node("Pad", {w.name(n.inputs[0]), w.dims(widths), w.scalar(n.shapes[0].dtype(), a.value)})};
}

// Starts moved so that a box of these extents lies inside.
std::string clamped_starts(Writer& w, ir::Value starts, const Dims& x, const Dims& box) {
  Dims most;
  for (size_t i = 0; i < x.size(); ++i) most.push_back(x[i] - box[i]);
  return w.node(
      "Min", {w.node("Max", {w.cast(w.name(starts), DType::i64), w.constant(Literal::of<int64_t>({}, {0}))}),
              w.dims(most)});
}

// Axis by axis where something is cut off: numbers from the start on.
Names dynamic_slice(Writer& w, const ir::Node& n) {
  const Shape& x = type(w, n.inputs[0]);
  const std::string start = clamped_starts(w, n.inputs[1], x.dims(), n.shapes[0].dims());
  const std::string zero = w.constant(Literal::of<int64_t>({}, {0})),
                    one = w.constant(Literal::of<int64_t>({}, {1}));
  std::string y = w.name(n.inputs[0]);
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (decide_equal(x.dim(axis), n.shapes[0].dim(axis)) == true) continue;
    const std::string first = w.node("Gather", {start, w.constant(Literal::of<int64_t>({}, {axis}))});
    const std::string line = w.node("Range", {zero, w.node("Squeeze", {w.dim(n.shapes[0].dim(axis))}), one});
    y = w.node("Gather", {y, w.node("Add", {line, first})}, {attribute("axis", int64_t(axis))});
  }
  return {y == w.name(n.inputs[0]) ? w.node("Identity", {y}) : y};
}

// Rows are replaced by their numbers; of a smaller box all places are, moved by the starts.
Names dynamic_update_slice(Writer& w, const ir::Node& n) {
  const Shape &x = type(w, n.inputs[0]), &box = type(w, n.inputs[1]);
  if (x.rank() == 0) return {w.node("Identity", {w.name(n.inputs[1])})};
  bool rows = x.rank() > 0 && box.dim(0).is_static();
  for (int i = 1; i < x.rank(); ++i) rows = rows && x.dim(i) == box.dim(i);
  if (rows) {
    const std::string first =
        w.node("Slice", {clamped_starts(w, n.inputs[2], x.dims(), box.dims()), w.ints({0}), w.ints({1})});
    std::vector<int64_t> numbers;
    for (int64_t i = 0; i < box.dim(0).value(); ++i) numbers.push_back(i);
    const std::string at = w.node("Unsqueeze", {w.node("Add", {w.ints(numbers), first}), w.ints({1})});
    return {w.node("ScatterND", {w.name(n.inputs[0]), at, w.name(n.inputs[1])})};
  }
  const int64_t rank = x.rank(), count = box.elements();
  std::vector<int64_t> places;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<int64_t> at(static_cast<size_t>(rank));
    int64_t rest = i;
    for (int64_t k = rank - 1; k >= 0; --k) {
      const int64_t size = box.dim(int(k)).value();
      at[size_t(k)] = rest % size;
      rest /= size;
    }
    places.insert(places.end(), at.begin(), at.end());
  }
  Dims grid = box.dims();
  grid.push_back(rank);
  const std::string start = clamped_starts(w, n.inputs[2], x.dims(), box.dims());
  const std::string at = w.node("Add", {w.constant(Literal::of<int64_t>(grid, places)), start});
  return {w.node("ScatterND", {w.name(n.inputs[0]), at, w.name(n.inputs[1])})};
}

// Axis after axis becomes [positions, kernel] by gathering; then the kernels go to the end.
Names windows(Writer& w, const ir::Node& n) {
  const auto& a = n.as<ops::Windows>();
  const Shape& x = type(w, n.inputs[0]);
  const int axes = int(a.kernel_size.size()), first = x.rank() - axes;
  std::vector<int64_t> pads(size_t(2 * x.rank()), 0), perm;
  for (int i = 0; i < axes; ++i) {
    const int64_t p = a.padding.empty() ? 0 : a.padding[size_t(i)];
    pads[size_t(first + i)] = pads[size_t(x.rank() + first + i)] = p;
  }
  std::string y = w.node("Pad", {w.name(n.inputs[0]), w.ints(pads), w.scalar(x.dtype(), 0)});
  const std::string zero = w.constant(Literal::of<int64_t>({}, {0})),
                    one = w.constant(Literal::of<int64_t>({}, {1}));
  for (int i = 0; i < axes; ++i) {
    const int64_t k = a.kernel_size[size_t(i)], stride = a.stride.empty() ? 1 : a.stride[size_t(i)];
    std::vector<int64_t> taps;
    for (int64_t t = 0; t < k; ++t) taps.push_back(t);
    const std::string out =
        w.node("Range", {zero, w.node("Squeeze", {w.dim(n.shapes[0].dim(first + i))}), one});
    const std::string starts = w.node(
        "Unsqueeze", {w.node("Mul", {out, w.constant(Literal::of<int64_t>({}, {stride}))}), w.ints({1})});
    y = w.node("Gather", {y, w.node("Add", {starts, w.ints(taps)})},
               {attribute("axis", int64_t(first + 2 * i))});
  }
  for (int i = 0; i < first; ++i) perm.push_back(i);
  for (const int offset : {0, 1}) {
    for (int i = 0; i < axes; ++i) perm.push_back(first + 2 * i + offset);
  }
  return {w.node("Transpose", {y}, {attribute("perm", perm)})};
}

Names reduce(Writer& w, const ir::Node& n) {
  const auto& a = n.as<ops::Reduce>();
  const char* const kKinds[] = {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"};
  std::vector<int64_t> axes(a.axes.begin(), a.axes.end());
  const int rank = type(w, n.inputs[0]).rank();
  if (rank == 0) return {w.node("Identity", {w.name(n.inputs[0])})};
  if (axes.empty()) {
    for (int i = 0; i < rank; ++i) axes.push_back(i);
  }
  return {w.node(kKinds[size_t(a.kind)], {w.name(n.inputs[0]), w.ints(axes)},
                 {attribute("keepdims", int64_t(a.keep_dim))})};
}

template <class Op>
Names extreme(Writer& w, const ir::Node& n) {
  const auto& a = n.as<Op>();
  const char* const op = std::is_same_v<Op, ops::Argmax> ? "ArgMax" : "ArgMin";
  const std::string at =
      w.node(op, {w.name(n.inputs[0])},
             {attribute("axis", int64_t(a.axis)), attribute("keepdims", int64_t(a.keep_dim))});
  return {a.dtype == DType::i64 ? at : w.cast(at, a.dtype)};
}

Names cumsum(Writer& w, const ir::Node& n) {
  const auto& a = n.as<ops::Cumsum>();
  return {w.node("CumSum", {w.name(n.inputs[0]), w.constant(Literal::of<int64_t>({}, {a.axis}))},
                 {attribute("exclusive", int64_t(a.exclusive)), attribute("reverse", int64_t(a.reverse))})};
}

Names ordered(Writer& w, const ir::Node& n, const std::string& count, int axis, bool descending) {
  Names out = w.nodes("TopK", {w.name(n.inputs[0]), count},
                      {attribute("axis", int64_t(axis)), attribute("largest", int64_t(descending)),
                       attribute("sorted", int64_t(1))},
                      2);
  if (n.shapes[1].dtype() != DType::i64) out[1] = w.cast(out[1], n.shapes[1].dtype());
  return out;
}

Names top_k(Writer& w, const ir::Node& n) {
  const auto& a = n.as<ops::TopK>();
  return ordered(w, n, w.ints({a.k}), a.axis, true);
}

Names sort(Writer& w, const ir::Node& n) {
  const auto& a = n.as<ops::Sort>();
  return ordered(w, n, w.dim(n.shapes[0].dim(a.axis)), a.axis, a.descending);
}

}  // namespace

const std::map<std::string_view, WriteNode>& structure_writers() {
  static const std::map<std::string_view, WriteNode> kWriters{
      {"argmax", extreme<ops::Argmax>},
      {"argmin", extreme<ops::Argmin>},
      {"concat", concat},
      {"constant", constant},
      {"cumsum", cumsum},
      {"dynamic_slice", dynamic_slice},
      {"dynamic_update_slice", dynamic_update_slice},
      {"expand", expand},
      {"flip", flip},
      {"full", full},
      {"iota", iota},
      {"narrow", narrow},
      {"pad", pad},
      {"reduce", reduce},
      {"reshape", reshape},
      {"slice", slice},
      {"sort", sort},
      {"top_k", top_k},
      {"transpose", transpose},
      {"windows", windows},
  };
  return kWriters;
}

}  // namespace rlx::onnx
