#include <algorithm>

#include "rlx/backend/cuda/groups/groups.h"
#include "rlx/ir/inline.h"
#include "rlx/ir/rewrite.h"
#include "rlx/ops/control/fused.h"
#include "rlx/ops/control/scan.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/reduce/reduce.h"
#include "rlx/ops/shape/reshape.h"
#include "rlx/ops/shape/transpose.h"
#include "rlx/passes/fuse.h"

namespace rlx::cuda {
namespace {

using ir::Expr;

/// A carry that the steps only add to: the addition, what is added, and the values of a step from which that is made.
struct Sum {
  size_t carry = 0;
  const ir::Node *add = nullptr, *added = nullptr;
  ir::Values parts;
};

bool is_turn(const ir::Node& n) {
  return n.is<ops::Transpose>() && n.as<ops::Transpose>().perm == std::vector<int>{1, 0};
}

class LoopSums {
 public:
  explicit LoopSums(const ir::Node& scan) : attrs_(scan.as<ops::Scan>()), body_(laid_open(*attrs_.body)) {
    leaves_ = body_.leaves();
    fixed_ = size_t(attrs_.carries + attrs_.consts);
    if (attrs_.gate != ops::ScanGate::none || attrs_.length.value() < 2) return;
    for (size_t i = 0; i < size_t(attrs_.carries); ++i) {
      if (auto sum = sum_of(i)) sums_.push_back(std::move(*sum));
    }
    keep_small();
  }

  bool empty() const { return sums_.empty(); }

  /// The loop without the sums, and these behind it: results as those of the loop had been.
  ir::Values run(ir::Cloner& copy, const ir::Node& scan, const ir::Target& target) {
    ir::Graph& g = copy.to();
    const ir::Values operands = copy.at(scan.inputs);
    const ir::OriginScope scope(g, ir::noted_origin(scan, "sums of all steps behind the loop"));
    ir::Values kept, outputs;
    std::vector<size_t> carry_results;  // of the new loop, by carries of the old one
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!is_sum(i)) kept.push_back(operands[i]);
    }
    for (size_t i = 0; i < body_.outputs().size(); ++i) {
      if (!is_sum(i)) outputs.push_back(body_.outputs()[i]);
    }
    const size_t own = outputs.size();
    for (const ir::Value v : stacked_) outputs.push_back(v);
    ops::Scan::Attrs attrs = attrs_;
    attrs.carries -= int(sums_.size());
    attrs.body = std::make_shared<const ir::Graph>(passes::fuse(body_with(outputs), target).graph);
    const ir::NodeId id =
        g.append(*scan.op, std::make_shared<ops::Scan::Attrs>(std::move(attrs)), kept, scan.name);
    const auto all_steps = [&](ir::Value v) -> Expr {
      if (const size_t leaf = leaf_of(v); leaf < leaves_.size()) return {&g, operands[leaf]};
      for (size_t i = size_t(attrs_.carries); i < body_.outputs().size(); ++i) {
        if (body_.outputs()[i] == v) return {&g, g.value(id, uint32_t(i - sums_.size()))};
      }
      const auto at = std::find(stacked_.begin(), stacked_.end(), v) - stacked_.begin();
      return {&g, g.value(id, uint32_t(own + size_t(at)))};
    };
    ir::Values results;
    for (uint32_t i = 0, next = 0; i < body_.outputs().size(); ++i) {
      const auto sum = std::find_if(sums_.begin(), sums_.end(), [&](const Sum& s) { return s.carry == i; });
      results.push_back(sum == sums_.end()
                            ? g.value(id, next++)
                            : ir::Value(ops::add({&g, operands[i]}, over_all(*sum, all_steps))));
    }
    return results;
  }

 private:
  // What a region hides is to be seen: sums are made in regions too.
  static ir::Graph laid_open(const ir::Graph& body) {
    ir::Graph out(body.name());
    ir::Cloner copy(out);
    for (const ir::NodeId id : body.leaves()) copy.copy(body.node(id));
    for (const ir::Node* n : body.nodes()) {
      if (n->op->traits.leaf) continue;
      if (n->is<ops::Fused>() && n->as<ops::Fused>().body->name() == backend::kRegionGroup) {
        copy.set_results(*n, ir::inline_graph(out, *n->as<ops::Fused>().body, copy.at(n->inputs)));
      } else {
        copy.copy(*n);
      }
    }
    copy.copy_outputs(body);
    return out;
  }

  bool is_sum(size_t carry) const {
    return std::any_of(sums_.begin(), sums_.end(), [&](const Sum& s) { return s.carry == carry; });
  }

  // The sequence of which `v` is the slice; the number of leaves for any other value.
  size_t leaf_of(ir::Value v) const {
    const auto at = size_t(std::find(leaves_.begin(), leaves_.end(), v.node) - leaves_.begin());
    return at >= fixed_ ? at : leaves_.size();
  }

  // Whether all steps of `v` are an operand or a result of the loop already.
  bool is_there(ir::Value v) const {
    const ir::Values& outputs = body_.outputs();
    return leaf_of(v) < leaves_.size() ||
           std::find(outputs.begin() + attrs_.carries, outputs.end(), v) != outputs.end();
  }

  std::optional<Sum> sum_of(size_t carry) const {
    const ir::Value next = body_.outputs()[carry];
    const ir::Node& n = body_.node(next);
    const ir::NodeId leaf = leaves_[carry];
    if (!n.is<ops::Add>() || n.uses.size() != 1 || body_.use_count(leaf) != 1) return std::nullopt;
    const size_t other = n.inputs[0].node == leaf ? 1 : 0;
    if (n.inputs[1 - other].node != leaf || body_.shape(n.inputs[other]) != body_.shape(next))
      return std::nullopt;
    ir::NodeId found = n.inputs[other].node;
    while (body_.node(found).is<ops::Reshape>()) found = body_.node(found).inputs[0].node;
    const ir::Node& added = body_.node(found);
    Sum out{carry, &n, &added, {}};
    if (added.is<ops::Matmul>()) {
      const ir::Node& turned = body_.node(added.inputs[0]);
      if (!is_turn(turned) || body_.shape(added.inputs[1]).rank() != 2) return std::nullopt;
      out.parts = {turned.inputs[0], added.inputs[1]};
    } else if (added.is<ops::Reduce>() && added.as<ops::Reduce>().kind == ops::ReduceOp::sum &&
               body_.shape(added.inputs[0]).rank() > 0) {
      out.parts = {added.inputs[0]};
    } else {
      return std::nullopt;
    }
    // What is the same in every step would be stacked for nothing.
    for (const ir::Value v : out.parts) {
      const auto at = size_t(std::find(leaves_.begin(), leaves_.end(), v.node) - leaves_.begin());
      if (at >= size_t(attrs_.carries) && at < fixed_) return std::nullopt;
    }
    return out;
  }

  // What is stacked for the sums may take as many bytes as the sequences that the loop reads.
  void keep_small() {
    int64_t room = 0;
    for (size_t i = fixed_; i < leaves_.size(); ++i) room += body_.node(leaves_[i]).shapes[0].size_bytes();
    std::vector<Sum> kept;
    for (Sum& sum : sums_) {
      ir::Values fresh;
      int64_t bytes = 0;
      for (const ir::Value v : sum.parts) {
        if (is_there(v) || std::count(stacked_.begin(), stacked_.end(), v) > 0 ||
            std::count(fresh.begin(), fresh.end(), v) > 0)
          continue;
        fresh.push_back(v);
        bytes += body_.shape(v).size_bytes();
      }
      if (bytes > room) continue;
      room -= bytes;
      stacked_.insert(stacked_.end(), fresh.begin(), fresh.end());
      kept.push_back(std::move(sum));
    }
    sums_ = std::move(kept);
  }

  ir::Graph body_with(const ir::Values& outputs) const {
    ir::Graph out(body_.name());
    ir::Cloner copy(out);
    for (size_t i = 0; i < leaves_.size(); ++i) {
      if (!is_sum(i)) copy.copy(body_.node(leaves_[i]));
    }
    for (const ir::Node* n : body_.nodes()) {
      const bool gone =
          std::any_of(sums_.begin(), sums_.end(), [&](const Sum& s) { return s.add->id == n->id; });
      if (!n->op->traits.leaf && !gone) copy.copy(*n);
    }
    out.set_outputs(copy.at(outputs));
    out.erase_dead();
    return out;
  }

  template <class AllSteps>
  Expr over_all(const Sum& sum, const AllSteps& all_steps) const {
    const Dims& dims = sum.add->shapes[0].dims();
    if (sum.added->is<ops::Matmul>()) {
      const auto rows = [&](ir::Value v) {
        const Shape& s = body_.shape(v);
        return ops::reshape(all_steps(v), {Dim(attrs_.length.value() * s.dim(0).value()), s.dim(1)});
      };
      return ops::reshape(ops::matmul(ops::swap_last(rows(sum.parts[0])), rows(sum.parts[1])), dims);
    }
    std::vector<int> axes{0};
    for (const int axis : sum.added->as<ops::Reduce>().axes) axes.push_back(axis + 1);
    return ops::reshape(ops::reduce_sum(all_steps(sum.parts[0]), axes), dims);
  }

  const ops::Scan::Attrs attrs_;
  const ir::Graph body_;
  std::vector<ir::NodeId> leaves_;
  size_t fixed_ = 0;  // leaves that are no slices of sequences
  std::vector<Sum> sums_;
  ir::Values stacked_;  // values of a step that the sums need and no sequence holds
};

}  // namespace

std::optional<ir::Graph> with_sums_behind_loops(const ir::Graph& g, const ir::Target& target) {
  const auto nodes = g.nodes();
  if (std::none_of(nodes.begin(), nodes.end(), [](const ir::Node* n) { return n->is<ops::Scan>(); }))
    return std::nullopt;
  bool changed = false;
  ir::Graph out(g.name());
  ir::Cloner copy(out);
  for (const ir::NodeId id : g.leaves()) copy.copy(g.node(id));
  for (const ir::Node* n : nodes) {
    if (n->op->traits.leaf) continue;
    if (n->is<ops::Scan>()) {
      if (LoopSums sums(*n); !sums.empty()) {
        copy.set_results(*n, sums.run(copy, *n, target));
        changed = true;
        continue;
      }
    }
    copy.copy(*n);
  }
  copy.copy_outputs(g);
  if (!changed) return std::nullopt;
  return out;
}

}  // namespace rlx::cuda
