#include "rlx/onnx/ops/trees.h"

#include <algorithm>

#include "rlx/lang/control.h"
#include "rlx/lang/operators.h"

namespace rlx::onnx {

void TreeTables::add(int64_t feature_of, int64_t mode_of, double split_at, int64_t if_true, int64_t if_false,
                     int64_t missing_goes_true) {
  feature.push_back(feature_of), mode.push_back(mode_of), split.push_back(split_at);
  when_true.push_back(if_true), when_false.push_back(if_false), missing_is_true.push_back(missing_goes_true);
}

void TreeTables::append(const TreeTables& other) {
  for (size_t i = 0; i < other.feature.size(); ++i)
    add(other.feature[i], other.mode[i], other.split[i], other.when_true[i], other.when_false[i],
        other.missing_is_true[i]);
}

int64_t depth_of(const Call& c, const TreeTables& t) {
  int64_t deepest = 0;
  std::vector<int64_t> seen(size_t(t.nodes()), 0);
  std::vector<std::pair<int64_t, int64_t>> open;
  for (const int64_t root : t.roots) open.emplace_back(root, 0);
  int64_t visits = 0;
  while (!open.empty()) {
    const auto [node, depth] = open.back();
    open.pop_back();
    if (node < 0 || node >= t.nodes()) throw c.wrong("a tree points to node ", node, " of ", t.nodes());
    if (++visits > 2 * t.nodes() + int64_t(t.roots.size()) || depth > t.nodes())
      throw c.wrong("the trees have a cycle");
    deepest = std::max(deepest, depth);
    const size_t i = size_t(node);
    if (t.when_true[i] == node && t.when_false[i] == node) continue;
    open.emplace_back(t.when_true[i], depth + 1);
    if (t.when_false[i] != t.when_true[i]) open.emplace_back(t.when_false[i], depth + 1);
  }
  return deepest;
}

namespace {

Tensor holds(const Call& c, const TreeTables& t, const Tensor& mode, const Tensor& value,
             const Tensor& split) {
  using ops::CompareOp;
  const std::pair<int64_t, CompareOp> kinds[] = {{0, CompareOp::le}, {1, CompareOp::lt}, {2, CompareOp::ge},
                                                 {3, CompareOp::gt}, {4, CompareOp::eq}, {5, CompareOp::ne}};
  Tensor out;
  for (const auto& [number, kind] : kinds) {
    if (std::find(t.mode.begin(), t.mode.end(), number) == t.mode.end()) continue;
    const Tensor yes = rlx::compare(value, split, {.kind = kind});
    out = out.is_empty() ? yes : rlx::where(mode.eq(double(number)), yes, out);
  }
  if (out.is_empty()) c.unsupported("a comparison with a set");
  return out;
}

}  // namespace

Tensor tree_scores(const Call& c, const TreeTables& t, const Tensor& x) {
  const int64_t n = t.nodes(), trees = int64_t(t.roots.size());
  const int64_t depth = depth_of(c, t);
  const auto table = [&](const std::vector<int64_t>& v) { return c.constant(Literal::of<int64_t>({n}, v)); };
  const Tensor feature = table(t.feature), mode = table(t.mode), yes = table(t.when_true),
               no = table(t.when_false);
  const Tensor split = c.constant(Literal::reals(Shape(x.dtype(), {n}), t.split));
  const bool has_missing =
      std::any_of(t.missing_is_true.begin(), t.missing_is_true.end(), [](int64_t v) { return v != 0; });
  const Tensor missing = has_missing ? table(t.missing_is_true) : Tensor();
  Tensor at = c.constant(Literal::of<int64_t>({1, trees}, t.roots)).expand({x.dim(0), trees});
  if (depth > 0) {
    at = rlx::scan(at, {.length = Dim(depth)}, [&](Tensor node) {
      const Tensor value = rlx::take_along(x, rlx::gather(feature, node), {.axis = 1});
      Tensor condition = holds(c, t, rlx::gather(mode, node), value, rlx::gather(split, node));
      if (has_missing)
        condition = rlx::logical_or(condition,
                                    rlx::logical_and(rlx::is_nan(value), rlx::gather(missing, node).ne(0)));
      return rlx::where(condition, rlx::gather(yes, node), rlx::gather(no, node));
    });
  }
  return rlx::gather(c.constant(Literal::reals(Shape(x.dtype(), {n, t.targets}), t.leaf)), at);
}

}  // namespace rlx::onnx
