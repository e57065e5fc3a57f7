#include "rlx/region/iteration.h"

#include <algorithm>
#include <numeric>

#include "rlx/base/text.h"
#include "rlx/ir/leaves.h"
#include "rlx/ops/reduce/reduce.h"
#include "rlx/ops/shape/expand.h"
#include "rlx/ops/shape/reshape.h"
#include "rlx/ops/shape/transpose.h"

namespace rlx::region {
namespace {

template <class... Args>
[[noreturn]] void refuse(const Args&... args) {
  throw Refused{cat(args...)};
}

std::vector<int64_t> sizes_of(const Shape& s) {
  std::vector<int64_t> out;
  for (const Dim d : s.dims()) {
    if (!d.is_static()) refuse("the size ", d, " is not known yet");
    out.push_back(d.value());
  }
  return out;
}

}  // namespace

AxisClasses::AxisClasses(const ir::Graph& body) : body_(body) {
  for (const ir::Node* n : body.nodes()) visit(*n);
  for (const ir::Node* n : body.nodes()) {
    std::vector<int> classes = of(n->result());
    classes.erase(std::remove(classes.begin(), classes.end(), -1), classes.end());
    std::sort(classes.begin(), classes.end());
    if (std::adjacent_find(classes.begin(), classes.end()) != classes.end())
      refuse("%", n->id, " ", n->op->name, " uses a tensor together with itself along another axis");
  }
}

int AxisClasses::fresh(int64_t size) {
  size_.push_back(size);
  parent_.push_back(int(parent_.size()));
  return int(parent_.size()) - 1;
}

int AxisClasses::find(int axis) const {
  while (parent_[size_t(axis)] != axis) axis = parent_[size_t(axis)] = parent_[size_t(parent_[size_t(axis)])];
  return axis;
}

void AxisClasses::join(int a, int b) { parent_[size_t(find(b))] = find(a); }

void AxisClasses::set(ir::Value v, std::vector<int> classes) { axes_[v] = std::move(classes); }

std::vector<int> AxisClasses::of(ir::Value v) const {
  std::vector<int> out = axes_.at(v);
  for (int& c : out) {
    if (c >= 0) c = find(c);
  }
  return out;
}

std::set<int> AxisClasses::reduced() const {
  std::set<int> first;
  for (const auto& axes : reductions_) {
    std::set<int> these;
    for (const int a : axes) these.insert(find(a));
    if (first.empty()) first = these;
    if (these != first) refuse("reductions run over different axes");
  }
  return first;
}

std::set<int> AxisClasses::all() const {
  std::set<int> out;
  for (const ir::Node* n : body_.nodes()) {
    if (n->uses.empty()) continue;  // an operand that nothing reads
    for (const int c : of(n->result())) {
      if (c >= 0) out.insert(c);
    }
  }
  return out;
}

// NumPy broadcasting: axes meet from the right; what no operand has is new.
void AxisClasses::spread(const ir::Node& n, const std::vector<ir::Value>& operands) {
  const auto sizes = sizes_of(n.shapes[0]);
  std::vector<int> classes(sizes.size(), -1);
  for (const ir::Value v : operands) {
    const auto& from = axes_.at(v);
    for (size_t i = 0; i < from.size(); ++i) {
      int& to = classes[classes.size() - from.size() + i];
      if (from[i] < 0) continue;
      if (to < 0) to = from[i];
      join(to, from[i]);
    }
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (classes[i] < 0 && sizes[i] != 1) classes[i] = fresh(sizes[i]);
  }
  set(n.result(), classes);
}

void AxisClasses::visit(const ir::Node& n) {
  if (n.shapes.size() != 1) refuse("%", n.id, " ", n.op->name, " has ", n.shapes.size(), " results");
  if (n.inputs.empty() || n.op->traits.elementwise || n.is<ops::Expand>()) return spread(n, n.inputs);
  const std::vector<int>& from = axes_.at(n.inputs[0]);
  if (n.is<ops::Transpose>()) {
    std::vector<int> classes;
    for (const int axis : n.as<ops::Transpose>().perm) classes.push_back(from[size_t(axis)]);
    return set(n.result(), classes);
  }
  if (n.is<ops::Reduce>()) {
    const auto& axes = n.as<ops::Reduce>().axes;
    std::vector<int> classes, gone;
    for (int i = 0; i < int(from.size()); ++i) {
      if (!std::binary_search(axes.begin(), axes.end(), i)) {
        classes.push_back(from[size_t(i)]);
      } else {
        if (from[size_t(i)] >= 0) gone.push_back(from[size_t(i)]);
        if (n.as<ops::Reduce>().keep_dim) classes.push_back(-1);
      }
    }
    if (!gone.empty()) reductions_.push_back(gone);
    return set(n.result(), classes);
  }
  if (n.is<ops::Reshape>()) {
    std::vector<int> classes;
    std::vector<int64_t> before = sizes_of(body_.shape(n.inputs[0])), after = sizes_of(n.shapes[0]);
    size_t next = 0;
    bool fits = true;
    for (const int64_t size : after) {
      classes.push_back(-1);
      if (size == 1) continue;
      while (next < before.size() && before[next] == 1) ++next;
      fits = fits && next < before.size() && before[next] == size;
      if (fits) classes.back() = from[next++];
    }
    while (next < before.size() && before[next] == 1) ++next;
    if (!fits || next != before.size())
      refuse("%", n.id, " reshape from ", body_.shape(n.inputs[0]), " to ", n.shapes[0],
             " moves elements between axes");
    return set(n.result(), classes);
  }
  refuse("%", n.id, " ", n.op->name, " is neither elementwise nor a reduction");
}

namespace {

struct Dimension {
  int64_t size;
  std::vector<int64_t> strides;  // per argument
};

std::vector<Dimension> ordered(const std::set<int>& classes, const AxisClasses& axes,
                               const std::vector<AxisStrides>& arguments, size_t leading) {
  std::vector<Dimension> dims;
  for (const int c : classes) {
    Dimension d{axes.size(c), std::vector<int64_t>(arguments.size(), 0)};
    for (size_t a = 0; a < arguments.size(); ++a) {
      for (size_t i = 0; i < arguments[a].classes.size(); ++i) {
        if (arguments[a].classes[i] == c) d.strides[a] = arguments[a].strides[i];
      }
    }
    dims.push_back(d);
  }
  const auto key = [&](const Dimension& d) {
    int64_t far = std::abs(d.strides[leading]);
    if (far == 0) far = std::abs(*std::max_element(d.strides.begin(), d.strides.end()));
    return far;
  };
  std::stable_sort(dims.begin(), dims.end(),
                   [&](const Dimension& a, const Dimension& b) { return key(a) > key(b); });
  return dims;
}

std::vector<Dimension> merged(const std::vector<Dimension>& dims) {
  std::vector<Dimension> out;
  for (const Dimension& d : dims) {
    bool joins = !out.empty();
    for (size_t a = 0; joins && a < d.strides.size(); ++a)
      joins = out.back().strides[a] == d.strides[a] * d.size;
    if (joins) {
      out.back() = {out.back().size * d.size, d.strides};
    } else {
      out.push_back(d);
    }
  }
  return out;
}

}  // namespace

void arrange(Region& r, const AxisClasses& axes, const std::vector<AxisStrides>& arguments, size_t leading) {
  std::set<int> rows = axes.all();
  const std::set<int> columns = axes.reduced();
  for (const int c : columns) rows.erase(c);
  std::vector<Dimension> dims = merged(ordered(rows, axes, arguments, leading));
  if (columns.empty()) {
    if (dims.empty()) dims.push_back({1, std::vector<int64_t>(arguments.size(), 1)});
    r.row_rank = int(dims.size()) - 1;
  } else {
    r.row_rank = int(dims.size());
    for (const Dimension& d : merged(ordered(columns, axes, arguments, leading))) dims.push_back(d);
  }
  if (int(dims.size()) > kMaxRank)
    refuse("its box has ", dims.size(), " dimensions that no layout joins; at most ", kMaxRank, " fit");
  for (size_t d = 0; d < dims.size(); ++d) {
    r.dims.push_back(dims[d].size);
    for (size_t a = 0; a < arguments.size(); ++a) r.arguments[a].strides[d] = dims[d].strides[a];
  }
}

}  // namespace rlx::region
