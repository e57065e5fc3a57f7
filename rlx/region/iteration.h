// Which axes of the tensors of a body run together, and the box of dimensions that they make.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "rlx/ir/graph.h"
#include "rlx/ir/inline.h"
#include "rlx/region/from_graph.h"
#include "rlx/region/region.h"

namespace rlx::region {

/// Thrown inside the builder, caught by from_graph.
struct Refused {
  std::string reason;
};

/// The axes of a body in classes: two axes belong to one class when an operator walks them together. Axes of
/// size 1 belong to none. Refuses operators that move elements between axes.
class AxisClasses {
 public:
  explicit AxisClasses(const ir::Graph& body);

  /// Class of each axis, -1 for axes of size 1.
  std::vector<int> of(ir::Value) const;
  /// Classes that the reductions of the body run over; none where nothing is reduced.
  std::set<int> reduced() const;
  std::set<int> all() const;
  int64_t size(int axis_class) const { return size_[size_t(axis_class)]; }

 private:
  void visit(const ir::Node&);
  void set(ir::Value, std::vector<int>);
  int fresh(int64_t size);
  int find(int axis) const;
  void join(int a, int b);
  void spread(const ir::Node&, const std::vector<ir::Value>& operands);

  const ir::Graph& body_;
  ir::ValueMap<std::vector<int>> axes_;
  std::vector<std::vector<int>> reductions_;
  std::vector<int64_t> size_;
  mutable std::vector<int> parent_;
};

/// An argument before the box is known: the class of each axis and its stride.
struct AxisStrides {
  std::vector<int> classes;
  std::vector<int64_t> strides;
};

/// Sets dims, row_rank and the strides of the region's arguments. Rows and columns are each ordered as the
/// leading argument lies in memory, and neighbours that continue each other in every argument become one
/// dimension. `leading` is the argument to follow.
void arrange(Region&, const AxisClasses&, const std::vector<AxisStrides>& arguments, size_t leading);

}  // namespace rlx::region
