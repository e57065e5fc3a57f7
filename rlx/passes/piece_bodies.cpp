#include "rlx/passes/piece_bodies.h"

#include <algorithm>

#include "rlx/ir/clone.h"
#include "rlx/ir/compare.h"
#include "rlx/ir/leaves.h"
#include "rlx/ops/control/fused.h"
#include "rlx/passes/ask.h"

namespace rlx::passes {
namespace {

constexpr uint32_t kInside = 1u << 31;

template <class List, class Item>
uint32_t place_in(const List& list, const Item& item) {
  return uint32_t(std::find(list.begin(), list.end(), item) - list.begin());
}

bool holds(const std::vector<const ir::Node*>& nodes, ir::NodeId id) {
  return std::any_of(nodes.begin(), nodes.end(), [&](const ir::Node* n) { return n->id == id; });
}

}  // namespace

bool is_fill(const ir::Node& n) {
  return n.is<ir::Full>() || (n.is<ir::Constant>() && n.shapes[0].elements() == 1);
}

PieceBodies::Form PieceBodies::form_of(Piece& piece) const {
  Form form;
  for (const ir::Node* n : piece.nodes) {
    for (const ir::Value v : n->inputs) {
      const ir::Node& from = g_.node(v);
      if (is_fill(from)) {
        if (!holds(form.nodes, from.id)) form.nodes.push_back(&from);
      } else if (!holds(piece.nodes, from.id) &&
                 std::ranges::find(piece.operands, v) == piece.operands.end()) {
        piece.operands.push_back(v);
        form.operands.push_back(g_.shape(v));
      }
    }
    form.nodes.push_back(n);
  }
  for (uint32_t i = 0; i < form.nodes.size(); ++i) {
    const ir::Node& n = *form.nodes[i];
    for (const ir::Value v : n.inputs) {
      const uint32_t operand = place_in(piece.operands, v);
      form.wiring.push_back(operand < piece.operands.size() ? operand
                                                            : kInside + place_in(form.nodes, &g_.node(v)));
    }
    const bool seen = !is_fill(n) && std::any_of(n.uses.begin(), n.uses.end(), [&](const ir::Use& u) {
      return u.user == ir::kNoNode || !holds(piece.nodes, u.user);
    });
    if (!seen) continue;
    piece.results.push_back(n.result());
    form.results.push_back(i);
  }
  return form;
}

bool PieceBodies::same(const Form& a, const Form& b) {
  const auto alike = [](const ir::Node* x, const ir::Node* y) {
    return x == y || (x->name == y->name && ir::same_operation(*x, *y));
  };
  return a.wiring == b.wiring && a.results == b.results && a.operands == b.operands &&
         std::ranges::equal(a.nodes, b.nodes, alike);
}

ir::GraphRef PieceBodies::body_of(const Form& form) const {
  ir::Graph body("fused");
  ir::Values leaves, made, operands, outputs;
  for (const Shape& s : form.operands) leaves.push_back(body.input(cat("x", leaves.size()), s));
  auto wire = form.wiring.begin();
  for (const ir::Node* n : form.nodes) {
    operands.clear();
    for (size_t i = 0; i < n->inputs.size(); ++i, ++wire)
      operands.push_back(*wire >= kInside ? made[*wire - kInside] : leaves[*wire]);
    const ir::OriginScope scope(body, n->origin);
    made.push_back(body.value(body.append(*n->op, n->attrs, operands, n->name)));
  }
  for (const uint32_t i : form.results) outputs.push_back(made[i]);
  body.set_outputs(outputs);
  return std::make_shared<const ir::Graph>(std::move(body));
}

ir::Support PieceBodies::ask(const Form& form, const ir::GraphRef& body) const {
  ir::Graph scratch;
  ir::Values operands;
  for (const Shape& s : form.operands) operands.push_back(scratch.input(cat("x", operands.size()), s));
  const auto attrs = std::make_shared<ops::Fused::Attrs>(ops::Fused::Attrs{body});
  return runs(target_, scratch, scratch.node(scratch.append(ir::def<ops::Fused>(), attrs, operands)));
}

ir::Support PieceBodies::complete(Piece& piece) {
  Form form = form_of(piece);
  Hasher h;
  for (const ir::Node* n : form.nodes) ir::add_operation(h, *n);
  for (const uint32_t w : form.wiring) h.add(w);
  const uint64_t key = h.finish().lo;
  for (auto [it, end] = places_.equal_range(key); it != end; ++it) {
    const Known& k = known_[it->second];
    if (!same(k.form, form)) continue;
    piece.body = k.body;
    return k.answer;
  }
  piece.body = body_of(form);
  const ir::Support answer = ask(form, piece.body);
  places_.emplace(key, known_.size());
  known_.push_back({std::move(form), piece.body, answer});
  return answer;
}

}  // namespace rlx::passes
