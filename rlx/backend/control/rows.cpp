#include "rlx/backend/control/rows.h"

#include <algorithm>

#include "rlx/ir/clone.h"
#include "rlx/ir/leaves.h"
#include "rlx/ops/control/fused.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/norm/axis_norm.h"
#include "rlx/ops/reduce/reduce.h"
#include "rlx/ops/reduce/softmax.h"
#include "rlx/ops/shape/concat.h"
#include "rlx/ops/shape/narrow.h"
#include "rlx/ops/shape/reshape.h"
#include "rlx/ops/shape/transpose.h"

namespace rlx::backend {
namespace {

class Cutter {
 public:
  Cutter(const ir::Graph& from, int64_t rows, int64_t part)
      : from_(from), to_(from.name()), copy_(to_), rows_(rows), part_(part) {}

  RowCut run(const std::vector<int>& leaf_axes) {
    size_t leaf = 0;
    for (const ir::Node* n : from_.nodes()) {
      if (n->op->traits.leaf) {
        leaf_number_[n->result()] = int(leaf);
        add_leaf(*n, leaf_axes[leaf++]);
      } else if (!add(*n)) {
        return {.body = std::nullopt, .output_axes = {}, .uncut_leaf = uncut_leaf_};
      }
    }
    copy_.copy_outputs(from_);
    RowCut out;
    for (const ir::Value v : from_.outputs()) out.output_axes.push_back(axis(v));
    to_.erase_dead();  // fills as they were before they were cut
    out.body = std::move(to_);
    return out;
  }

 private:
  int axis(ir::Value v) const { return axes_.at(v); }
  bool cut(ir::Value v) const { return axis(v) != kNoRows; }
  int rank(ir::Value v) const { return from_.shape(v).rank(); }

  Shape cut_shape(const Shape& s, int at) const { return at == kNoRows ? s : s.with_dim(at, part_); }

  void add_leaf(const ir::Node& n, int at) {
    copy_.set(n.result(), ir::append_leaf_like(to_, n, cut_shape(n.shapes[0], at)));
    axes_[n.result()] = at;
  }

  bool add(const ir::Node& n) {
    if (!n.op->traits.pure) return false;
    if (std::none_of(n.inputs.begin(), n.inputs.end(), [&](ir::Value v) { return cut(v); })) {
      copy_.copy(n);
      for (uint32_t i = 0; i < n.shapes.size(); ++i) axes_[n.result(i)] = kNoRows;
      return true;
    }
    if (n.is<ops::Fused>()) return add_fused(n);
    const std::optional<int> at = n.shapes.size() == 1 ? result_axis(n) : std::nullopt;
    if (!at) return false;
    ir::AttrsRef attrs = n.attrs;
    if (n.is<ops::Reshape>())
      attrs = std::make_shared<ops::Reshape::Attrs>(ops::Reshape::Attrs{cut_shape(n.shapes[0], *at).dims()});
    const ir::NodeId id = copy_.copy(n, attrs);
    axes_[n.result()] = *at;
    return to_.node(id).shapes[0] == cut_shape(n.shapes[0], *at);
  }

  bool add_fused(const ir::Node& n) {
    std::vector<int> leaf_axes;
    for (const ir::Value v : n.inputs) leaf_axes.push_back(axis(v));
    RowCut inside = cut_rows(*n.as<ops::Fused>().body, leaf_axes, rows_, part_);
    if (!inside.body) {
      if (inside.uncut_leaf >= 0) note_uncut(n.inputs[size_t(inside.uncut_leaf)], 0);
      return false;
    }
    copy_.copy(n, std::make_shared<ops::Fused::Attrs>(
                      ops::Fused::Attrs{std::make_shared<const ir::Graph>(std::move(*inside.body))}));
    for (uint32_t i = 0; i < n.shapes.size(); ++i) axes_[n.result(i)] = inside.output_axes[i];
    return true;
  }

  // Where the rows of the only result lie; nothing when they are mixed.
  std::optional<int> result_axis(const ir::Node& n) {
    const int x = axis(n.inputs[0]);
    const auto unless = [&](bool mixed, int at) { return mixed || x < 0 ? std::nullopt : std::optional(at); };
    if (n.op->traits.elementwise && !n.op->find_field("axis")) return broadcast_axis(n, 0);
    if (n.is<ops::Matmul>()) return product_axis(n);
    if (n.is<ops::Narrow>()) return unless(n.as<ops::Narrow>().axis == x, x);
    if (n.is<ops::Softmax>()) return unless(n.as<ops::Softmax>().axis == x, x);
    if (n.is<ops::LogSoftmax>()) return unless(n.as<ops::LogSoftmax>().axis == x, x);
    if (n.is<ops::LayerNorm>()) return norm_axis(n, n.as<ops::LayerNorm>().axis);
    if (n.is<ops::RmsNorm>()) return norm_axis(n, n.as<ops::RmsNorm>().axis);
    if (n.is<ops::Reshape>()) {
      const Shape& y = n.shapes[0];
      return unless(x != 0 || y.rank() == 0 || y.dim(0) != Dim(rows_), 0);
    }
    if (n.is<ops::Transpose>()) {
      const auto& perm = n.as<ops::Transpose>().perm;
      return unless(false, int(std::find(perm.begin(), perm.end(), x) - perm.begin()));
    }
    if (n.is<ops::Concat>()) {
      const bool mixed =
          std::any_of(n.inputs.begin(), n.inputs.end(), [&](ir::Value v) { return axis(v) != x; });
      return unless(mixed || n.as<ops::Concat>().axis == x, x);
    }
    if (n.is<ops::Reduce>()) {
      const auto& a = n.as<ops::Reduce>();
      const bool mixed = a.axes.empty() || std::find(a.axes.begin(), a.axes.end(), x) != a.axes.end();
      const auto before = std::count_if(a.axes.begin(), a.axes.end(), [&](int k) { return k < x; });
      return unless(mixed, a.keep_dim ? x : x - int(before));
    }
    return std::nullopt;
  }

  std::optional<int> norm_axis(const ir::Node& n, int normalised) const {
    for (size_t i = 1; i < n.inputs.size(); ++i) {
      if (cut(n.inputs[i])) return std::nullopt;
    }
    return normalised == axis(n.inputs[0]) ? std::nullopt : std::optional(axis(n.inputs[0]));
  }

  // Rows of the left factor, or products of their own along an axis before the last two.
  std::optional<int> product_axis(const ir::Node& n) {
    const ir::Value a = n.inputs[0], b = n.inputs[1];
    if (rank(a) < 2 || rank(b) < 2) return std::nullopt;
    const int y = n.shapes[0].rank();
    if (!cut(b) && axis(a) == rank(a) - 2) return y - 2;
    const auto at = broadcast_axis(n, 2);
    return at && *at < y - 2 ? at : std::nullopt;
  }

  // Axes meet from the right. Whoever is the same for all rows must not have an extent there. `inner`: axes at the end that
  // do not take part.
  std::optional<int> broadcast_axis(const ir::Node& n, int inner) {
    const int y = n.shapes[0].rank();
    int from_right = 0;
    for (const ir::Value v : n.inputs) {
      if (!cut(v)) continue;
      const int here = rank(v) - axis(v);
      if (here <= inner || (from_right != 0 && here != from_right)) return std::nullopt;
      from_right = here;
    }
    for (const ir::Value v : n.inputs) {
      const int at = rank(v) - from_right;
      if (cut(v) || at < 0 || from_.shape(v).dim(at) == Dim(1)) continue;
      if (!cut_fill(v, at)) {
        note_uncut(v, at);
        return std::nullopt;
      }
    }
    return y - from_right;
  }

  // A tensor of one repeated value has rows wherever one wants them, and so has what is made of such element by element.
  bool cut_fill(ir::Value v, int at) {
    const ir::Node& n = from_.node(v);
    if (n.is<ir::Full>()) {
      ir::Full::Attrs attrs = n.as<ir::Full>();
      attrs.shape = cut_shape(attrs.shape, at);
      copy_.copy(n, std::make_shared<ir::Full::Attrs>(attrs));
    } else {
      if (!n.op->traits.elementwise || n.op->find_field("axis") || n.shapes.size() != 1) return false;
      for (const ir::Value x : n.inputs) {
        const int here = rank(x) - (rank(v) - at);
        if (here < 0 || from_.shape(x).dim(here) == Dim(1) || axis(x) == here) continue;
        if (cut(x) || !cut_fill(x, here)) return false;
      }
      copy_.copy(n);
    }
    axes_[v] = at;
    return true;
  }

  void note_uncut(ir::Value v, int at) {
    const auto leaf = leaf_number_.find(v);
    if (at == 0 && leaf != leaf_number_.end() && rank(v) > 0 && from_.shape(v).dim(0) == Dim(rows_))
      uncut_leaf_ = leaf->second;
  }

  const ir::Graph& from_;
  ir::Graph to_;
  ir::Cloner copy_;
  int64_t rows_, part_;
  ir::ValueMap<int> axes_, leaf_number_;
  int uncut_leaf_ = -1;
};

}  // namespace

RowCut cut_rows(const ir::Graph& body, const std::vector<int>& leaf_axes, int64_t rows, int64_t part) {
  return Cutter(body, rows, part).run(leaf_axes);
}

}  // namespace rlx::backend
