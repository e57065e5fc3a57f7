#include <algorithm>

#include "rlx/backend/cuda/groups/groups.h"
#include "rlx/ir/clone.h"
#include "rlx/ops/control/fused.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/shape/reshape.h"
#include "rlx/ops/shape/transpose.h"

namespace rlx::cuda {
namespace {

constexpr int64_t kLarge = 1 << 20;  // elements that are worth it
constexpr int kMostViews = 4;        // of one value
constexpr int64_t kManyRows = 128;   // fewer, and products have kernels for rows

bool works_on_elements(const ir::Node& n) { return n.op->traits.elementwise || n.is<ops::Cast>(); }

class Mover {
 public:
  explicit Mover(const ir::Graph& g) : g_(g) {}

  std::optional<ir::Graph> run() const {
    bool changed = false;
    ir::Graph out(g_.name());
    ir::Cloner copy(out);
    for (const ir::NodeId id : g_.leaves()) copy.copy(g_.node(id));
    for (const ir::Node* n : g_.nodes()) {
      if (n->op->traits.leaf || is_moved(*n)) continue;
      if (!moves(*n)) {
        copy.copy(*n);
        continue;
      }
      changed = true;
      copy.set(n->result(), moved(copy, *n, g_.node(n->inputs[0])));
    }
    if (!changed) return std::nullopt;
    copy.copy_outputs(g_);
    return out;
  }

 private:
  // A value that its only reader turns or cuts anew.
  bool is_moved(const ir::Node& n) const {
    return n.uses.size() == 1 && n.uses[0].user != ir::kNoNode && moves(g_.node(n.uses[0].user)) &&
           g_.node(n.uses[0].user).inputs[0].node == n.id;
  }

  bool moves(const ir::Node& view) const {
    if (!view.is<ops::Reshape>() && !view.is<ops::Transpose>()) return false;
    const ir::Node& x = g_.node(view.inputs[0]);
    if (turns_product(view, x)) return true;
    if (x.uses.size() != 1 || x.shapes.size() != 1 || x.op->traits.leaf) return false;
    const Shape& type = x.shapes[0];
    if (type.dtype() != DType::f32 || type.elements() < kLarge) return false;
    int64_t bytes = 0;
    for (const ir::Value v : x.inputs) {
      const Shape& s = g_.shape(v);
      if (s.dims() != type.dims() && s.rank() != 0) return false;
      bytes += s.size_bytes();
    }
    return bytes <= type.size_bytes() && has_elements_only(x);
  }

  // A product of two matrices that is turned for elements: neighbours among what they read would lie a row apart. A product takes operands that lie
  // either way.
  bool turns_product(const ir::Node& view, const ir::Node& x) const {
    if (!view.is<ops::Transpose>() || !x.is<ops::Matmul>() || x.uses.size() != 1) return false;
    const Shape& type = x.shapes[0];
    if (type.rank() != 2 || !is_float(type.dtype()) || type.elements() < kLarge ||
        view.as<ops::Transpose>().perm != std::vector<int>{1, 0})
      return false;
    for (const ir::Value v : x.inputs) {
      if (g_.shape(v).rank() != 2) return false;
    }
    for (const Dim& d : type.dims()) {
      if (d.value() < kManyRows) return false;
    }
    return std::all_of(view.uses.begin(), view.uses.end(), [&](const ir::Use& u) {
      if (u.user == ir::kNoNode) return false;
      const ir::Node& reader = g_.node(u.user);
      return reader.is<ops::Fused>() ? !reduces(reader) : works_on_elements(reader);
    });
  }

  static bool has_elements_only(const ir::Node& x) {
    if (!x.is<ops::Fused>()) return works_on_elements(x);
    for (const ir::Node* inner : x.as<ops::Fused>().body->nodes()) {
      const bool scalar = inner->is<ir::Full>() && inner->shapes[0].rank() == 0;
      if (!inner->is<ir::Input>() && !scalar && !works_on_elements(*inner)) return false;
    }
    return true;
  }

  // view(x(a, b)) as x(view(a), view(b)); of a product as x(view(b), view(a)).
  static ir::Value moved(ir::Cloner& copy, const ir::Node& view, const ir::Node& x) {
    ir::Graph& g = copy.to();
    if (x.is<ops::Matmul>()) {
      ir::Values turned;
      for (const size_t i : {1, 0})
        turned.push_back(g.value(g.append(*view.op, view.attrs, ir::Values{copy.at(x.inputs[i])}), 0));
      const ir::OriginScope scope(g, ir::noted_origin(x, "its operands are turned instead of it"));
      return g.value(g.append(*x.op, x.attrs, turned, x.name), 0);
    }
    ir::Values operands;
    for (const ir::Value v : x.inputs) {
      const ir::Value at = copy.at(v);
      if (g.shape(at).rank() == 0) {
        operands.push_back(at);
        continue;
      }
      operands.push_back(g.value(g.append(*view.op, view.attrs, ir::Values{at}), 0));
    }
    const ir::OriginScope scope(g, ir::noted_origin(x, "its operands are turned instead of it"));
    if (!x.is<ops::Fused>()) return g.value(g.append(*x.op, x.attrs, operands, x.name), 0);
    const ir::Graph& old = *x.as<ops::Fused>().body;
    ir::Graph body("fused");
    ir::Cloner inside(body);
    size_t i = 0;
    for (const ir::NodeId leaf : old.leaves()) {
      const ir::Value input = body.input(cat("x", i), g.shape(operands[i]));
      inside.set(old.node(leaf).result(), input);
      ++i;
    }
    for (const ir::Node* inner : old.nodes()) {
      if (!inner->is<ir::Input>()) inside.copy(*inner);
    }
    body.set_outputs(inside.at(old.outputs()));
    auto attrs = std::make_shared<ops::Fused::Attrs>(
        ops::Fused::Attrs{std::make_shared<const ir::Graph>(std::move(body))});
    return g.value(g.append(ir::def<ops::Fused>(), std::move(attrs), operands, x.name), 0);
  }

  const ir::Graph& g_;
};

}  // namespace

std::optional<ir::Graph> with_views_in_front(const ir::Graph& g, const ir::Target&) {
  std::optional<ir::Graph> out;
  for (int i = 0; i < kMostViews; ++i) {
    auto next = Mover(out ? *out : g).run();
    if (!next) break;
    out = std::move(next);
  }
  return out;
}

}  // namespace rlx::cuda
