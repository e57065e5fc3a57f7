// Products and what is joined with them, as the kernels of groups see them (groups/groups.h).
#pragma once

#include <algorithm>
#include <map>

#include "rlx/backend/cuda/groups/groups.h"
#include "rlx/backend/cuda/nodes/families.h"
#include "rlx/backend/cuda/region/schedule.h"
#include "rlx/ops/control/fused.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/quant/dequant_matmul.h"
#include "rlx/ops/quant/scaled_matmul.h"
#include "rlx/region/of_node.h"

namespace rlx::cuda {

/// The body of a group of products, read: the region of rows in front of them, the products of one input, the operator behind them (not what moves their columns: nodes/product_hooks.h).
class ProductReading {
 public:
  explicit ProductReading(const Request& r) : r_(r), body_(*r.node.as<ops::Fused>().body) {
    const auto leaves = body_.leaves();
    for (size_t i = 0; i < leaves.size(); ++i) operand_of_[leaves[i]] = int(i);
    for (const ir::Node* n : body_.nodes()) {
      if (n->is<ops::Matmul>() || n->is<ops::DequantMatmul>() || n->is<ops::ScaledMatmul>())
        products.push_back(n);
    }
    if (products.empty()) return;
    const ir::Node& before = body_.node(products.front()->inputs[0]);
    if (!before.op->traits.leaf) rows = &before;
    const ir::Node& last = *body_.nodes().back();
    if (&last != products.back() && body_.name() != kTurnedGroup) elements = &last;
  }

  const Request& request() const { return r_; }
  /// The operand of the node that a value of the body is, or -1.
  int operand(ir::Value v) const {
    const auto it = operand_of_.find(v.node);
    return it == operand_of_.end() ? -1 : it->second;
  }
  /// The result of the node that a value of the body is, or -1.
  int result(ir::Value v) const {
    const auto& outputs = body_.outputs();
    const auto it = std::find(outputs.begin(), outputs.end(), v);
    return it == outputs.end() ? -1 : int(it - outputs.begin());
  }
  const Arg& arg(ir::Value v) const { return r_.in[size_t(operand(v))]; }
  int product_number(ir::Value v) const {
    for (size_t i = 0; i < products.size(); ++i) {
      if (products[i]->id == v.node) return int(i);
    }
    return -1;
  }
  ir::Value input() const { return products.front()->inputs[0]; }
  /// Of the products, and of what is multiplied but for fp8.
  DType dtype() const { return products.front()->shapes[0].dtype(); }
  int64_t depth() const { return body_.shape(input()).dim(-1).value(); }
  int64_t row_count() const { return body_.shape(input()).elements() / depth(); }
  static int64_t columns(const ir::Node& product) { return product.shapes[0].dim(-1).value(); }
  int64_t all_columns() const {
    int64_t sum = 0;
    for (const ir::Node* p : products) sum += columns(*p);
    return elements ? columns(*products.front()) : sum;
  }

  region::Built region_of(const ir::Node& n) const {
    std::vector<Shape> types;
    std::vector<region::Layout> in, out;
    for (const ir::Value v : n.inputs) {
      types.push_back(body_.shape(v));
      in.push_back(operand(v) >= 0 ? region::Layout{arg(v).layout.strides} : region::Layout{});
    }
    return region::of_node(n, types, in, out);
  }

  /// Why the operator behind the products cannot be made where their sums are, or nothing.
  std::string elements_problem() const {
    const region::Built built = region_of(*elements);
    if (!built) return built.refusal;
    const region::Region& r = *built.region;
    if (r.has_reduction() || r.rows() * r.columns() != elements->shapes[0].elements())
      return "elements of another shape";
    for (size_t i = 0; i < r.arguments.size(); ++i) {
      const bool made = i >= elements->inputs.size() || product_number(elements->inputs[i]) >= 0;
      if (made && !is_dense(r, r.arguments[i])) return "elements in another order";
    }
    return {};
  }

  std::vector<const ir::Node*> products;
  const ir::Node *rows = nullptr, *elements = nullptr;

 private:
  const Request& r_;
  const ir::Graph& body_;
  std::map<ir::NodeId, int> operand_of_;
};

}  // namespace rlx::cuda
