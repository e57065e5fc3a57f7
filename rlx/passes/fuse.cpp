#include "rlx/passes/fuse.h"

#include <algorithm>

#include "rlx/ir/bodies.h"
#include "rlx/ir/clone.h"
#include "rlx/ir/leaves.h"
#include "rlx/ops/control/fused.h"
#include "rlx/ops/conv/conv_nd.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/norm/axis_norm.h"
#include "rlx/ops/reduce/reduce.h"
#include "rlx/ops/shape/expand.h"
#include "rlx/ops/shape/reshape.h"
#include "rlx/ops/shape/transpose.h"
#include "rlx/passes/piece_bodies.h"

namespace rlx::passes {
namespace {

constexpr size_t kMostNodes = 64;  // of a piece: enough for an optimiser's step, and programs stay small

Dims without_ones(const Dims& dims) {
  Dims out;
  for (const Dim d : dims) {
    if (d != Dim(1)) out.push_back(d);
  }
  return out;
}

/// How a node takes part in pieces.
enum class Part : uint8_t { none, value, reduction, product, view, fill };

Part part_of(const ir::Graph& g, const ir::Node& n) {
  if (n.op->traits.leaf || n.shapes.size() != 1) return Part::none;
  if (is_fill(n)) return Part::fill;
  if (n.op->traits.elementwise || n.is<ops::Cast>()) return Part::value;
  if (n.is<ops::Reduce>()) return Part::reduction;
  if (n.is<ops::Matmul>() || n.is<ops::Conv2d>()) return Part::product;
  if (n.is<ops::Expand>() || n.is<ops::Transpose>()) return Part::view;
  if (n.is<ops::Reshape>() && without_ones(g.shape(n.inputs[0]).dims()) == without_ones(n.shapes[0].dims()))
    return Part::view;
  return Part::none;
}

class Fuser {
 public:
  Fuser(const ir::Graph& g, const ir::Target& target, std::vector<Remark>& remarks)
      : g_(g), remarks_(remarks), bodies_(g, target) {
    const auto nodes = g.nodes();
    ir::NodeId last = 0;
    for (const ir::Node* n : nodes) last = std::max(last, n->id);
    parts_.assign(last + 1, Part::none);
    order_.assign(last + 1, 0);
    piece_.assign(last + 1, -1);
    summed_.assign(last + 1, false);
    for (size_t i = 0; i < nodes.size(); ++i) {
      const ir::Node& n = *nodes[i];
      order_[n.id] = i;
      parts_[n.id] = part_of(g, n);
      summed_[n.id] = parts_[n.id] == Part::reduction;
      if (parts_[n.id] == Part::value || parts_[n.id] == Part::view) {
        for (const ir::Value v : n.inputs) summed_[n.id] = summed_[n.id] || summed_[v.node];
      }
    }
  }

  void run() {
    const auto nodes = g_.nodes();
    for (size_t i = nodes.size(); i-- > 0;) {
      const ir::Node& n = *nodes[i];
      const Part part = parts_[n.id];
      if (piece_[n.id] < 0 && (part == Part::value || part == Part::reduction)) try_piece(n);
    }
    for (const ir::Node* n : nodes) {
      if (is_norm(*n) && g_.node(n->inputs[0]).is<ops::Add>()) {
        join_sum(*n);
      } else {
        note_border(*n);
      }
    }
  }
  size_t pieces() const { return pieces_.size(); }

  ir::Graph emit() const {
    ir::Graph out(g_.name());
    ir::Cloner copy(out);
    for (const ir::Node* n : g_.nodes()) {
      const int at = piece_[n->id];
      if (at < 0) {
        copy.copy(*n);
        continue;
      }
      const Piece& piece = pieces_[size_t(at)];
      if (piece.nodes.back() != n) continue;
      const ir::OriginScope scope(out, ir::noted_origin(*n, cat("fused ", piece.nodes.size(), " operators")));
      const auto attrs = std::make_shared<ops::Fused::Attrs>(ops::Fused::Attrs{piece.body});
      const ir::NodeId id = out.append(ir::def<ops::Fused>(), attrs, copy.at(piece.operands), n->name);
      for (uint32_t i = 0; i < piece.results.size(); ++i) copy.set(piece.results[i], out.value(id, i));
    }
    copy.copy_outputs(g_);
    out.erase_dead();
    return out;
  }

 private:
  bool in(const std::vector<const ir::Node*>& piece, ir::NodeId id) const {
    return std::any_of(piece.begin(), piece.end(), [&](const ir::Node* n) { return n->id == id; });
  }

  // Whether nobody outside the piece needs the value before the piece has run.
  bool may_join(const std::vector<const ir::Node*>& piece, const ir::Node& n) const {
    const size_t root = order_[piece.front()->id];
    for (const ir::Use& u : n.uses) {
      if (u.user == ir::kNoNode || in(piece, u.user)) continue;
      if (order_[u.user] < root || parts_[n.id] == Part::view) return false;
    }
    return true;
  }

  // A weight that is only widened, perhaps behind views: to read it in its own type and widen it in place costs less than a
  // step of its own.
  bool is_widened_leaf(const ir::Node& n) const {
    const ir::Node* at = &n;
    while (parts_[at->id] == Part::view && at->uses.size() == 1) at = &g_.node(at->inputs[0]);
    if (!at->is<ops::Cast>() || at->uses.size() != 1 || piece_[at->id] >= 0) return false;
    const DType from = g_.shape(at->inputs[0]).dtype(), to = at->shapes[0].dtype();
    if (!is_float(from) || !is_float(to) || dtype_size(from) >= dtype_size(to)) return false;
    at = &g_.node(at->inputs[0]);
    while (parts_[at->id] == Part::view) at = &g_.node(at->inputs[0]);
    return at->op->traits.leaf;
  }

  /// What a piece may hold beside elementwise operators.
  enum class Scope : uint8_t { product, reductions, elements };

  // The root and what leads to it, as far as the scope allows; the root first. Behind a product nothing is collected: its
  // operands are read where they lie.
  std::vector<const ir::Node*> collect(const ir::Node& root, Scope scope,
                                       const std::vector<ir::NodeId>& refused) const {
    const bool reductions = scope == Scope::reductions;
    bool with_product = false;
    const bool sums = parts_[root.id] == Part::reduction;
    const int64_t box = (sums ? g_.shape(root.inputs[0]) : root.shapes[0]).elements();
    std::vector<const ir::Node*> piece = {&root};
    for (bool grown = true; grown;) {
      grown = false;
      for (size_t i = 0; i < piece.size() && piece.size() < kMostNodes; ++i) {
        if (parts_[piece[i]->id] == Part::product) continue;
        for (const ir::Value v : piece[i]->inputs) {
          const ir::Node& p = g_.node(v);
          const Part part = parts_[p.id];
          if (part == Part::none || part == Part::fill || piece_[p.id] >= 0 || in(piece, p.id)) continue;
          if (part == Part::reduction && !reductions) continue;
          if (part == Part::product && (scope != Scope::product || with_product ||
                                        std::find(refused.begin(), refused.end(), p.id) != refused.end()))
            continue;
          // A smaller value would be computed again for every element it is spread over, unless it is one per row.
          const int64_t size = (part == Part::reduction ? g_.shape(p.inputs[0]) : p.shapes[0]).elements();
          if (part == Part::product && p.uses.size() != 1) continue;
          if (size != box && !(reductions && summed_[p.id] && size <= box) && !is_widened_leaf(p)) continue;
          if (!may_join(piece, p)) continue;
          with_product = with_product || part == Part::product;
          piece.push_back(&p);
          grown = true;
        }
      }
    }
    // Views at the border cost nothing outside.
    for (bool cut = true; cut;) {
      cut = false;
      for (size_t i = 1; i < piece.size(); ++i) {
        if (parts_[piece[i]->id] != Part::view || in(piece, piece[i]->inputs[0].node)) continue;
        piece.erase(piece.begin() + long(i));
        cut = true;
        break;
      }
    }
    return piece;
  }

  // With one product and what follows it, with reductions, or elements alone: the first that the target takes. Of several
  // products that lead to the root, each is tried in turn.
  void try_piece(const ir::Node& root) {
    constexpr int kProductsTried = 3;
    std::vector<ir::NodeId> refused;
    for (int i = 0; i < kProductsTried; ++i) {
      const auto nodes = collect(root, Scope::product, refused);
      const auto product = std::find_if(nodes.begin(), nodes.end(),
                                        [&](const ir::Node* n) { return parts_[n->id] == Part::product; });
      if (product == nodes.end()) break;
      if (take(root, nodes)) return;
      refused.push_back((*product)->id);
    }
    if (!take(root, collect(root, Scope::reductions, {}))) take(root, collect(root, Scope::elements, {}));
  }

  static bool is_norm(const ir::Node& n) { return n.is<ops::LayerNorm>() || n.is<ops::RmsNorm>(); }

  // A norm and the sum in front of it, which others may read, too: one pass over memory. The sum is free where it belongs to the
  // step of a product, so pieces come first.
  void join_sum(const ir::Node& norm) {
    const ir::Node& sum = g_.node(norm.inputs[0]);
    if (piece_[sum.id] >= 0) {
      const size_t others = pieces_[size_t(piece_[sum.id])].nodes.size() - 1;
      return note_apart(sum, norm,
                        cat("the sum is joined with ", others, " other operator", others == 1 ? "" : "s"));
    }
    const auto early = std::find_if(sum.uses.begin(), sum.uses.end(), [&](const ir::Use& u) {
      return u.user != ir::kNoNode && order_[u.user] < order_[norm.id];
    });
    if (early == sum.uses.end()) {
      take(norm, {&norm, &sum});
    } else {
      note_apart(sum, norm, cat(label_for_remark(g_, g_.node(early->user)), " needs the sum before"));
    }
  }

  // Told of both sides.
  void note_apart(const ir::Node& from, const ir::Node& reader, const std::string& why) {
    const std::string before = label_for_remark(g_, from), after = label_for_remark(g_, reader);
    remarks_.push_back({before, cat("not joined with ", after, ": ", why), false, true});
    remarks_.push_back({after, cat("not joined with ", before, ": ", why), false, true});
  }

  // Steps of their own take no elementwise operators in front of them.
  void note_border(const ir::Node& n) {
    if (parts_[n.id] != Part::none || n.op->traits.leaf || n.op->view != nullptr) return;
    std::vector<ir::NodeId> told;
    for (const ir::Value v : n.inputs) {
      const ir::Node& from = g_.node(v);
      if (parts_[from.id] != Part::value || std::find(told.begin(), told.end(), from.id) != told.end())
        continue;
      told.push_back(from.id);
      note_apart(from, n, cat(n.op->name, " is a step of its own, which takes no operators in front of it"));
    }
  }

  bool take(const ir::Node& root, const std::vector<const ir::Node*>& nodes) {
    const auto real = std::count_if(nodes.begin(), nodes.end(),
                                    [&](const ir::Node* n) { return parts_[n->id] != Part::view; });
    if (real < 2) return false;
    Piece piece{.nodes = nodes};
    std::ranges::sort(piece.nodes, {}, [&](const ir::Node* n) { return order_[n->id]; });
    const ir::Support answer = bodies_.complete(piece);
    remarks_.push_back({label_for_remark(g_, root),
                        answer ? cat(nodes.size(), " operators joined")
                               : cat(nodes.size(), " operators not joined: ", answer.reason()),
                        bool(answer)});
    if (!answer) return false;
    for (const ir::Node* n : piece.nodes) piece_[n->id] = int(pieces_.size());
    pieces_.push_back(std::move(piece));
    return true;
  }

  const ir::Graph& g_;
  std::vector<Remark>& remarks_;
  PieceBodies bodies_;
  std::vector<Part> parts_;
  std::vector<size_t> order_;
  std::vector<bool> summed_;  // a reduction, or made of one
  std::vector<int> piece_;    // by node
  std::vector<Piece> pieces_;
};

void fuse_bodies(ir::Graph& g, const ir::Target& target, Fused& out) {
  for (const ir::NodeId id : g.topo_order()) {
    const ir::Node& n = g.node(id);
    if (n.is<ops::Fused>()) continue;
    const ir::AttrsRef attrs = ir::map_bodies(n, [&](const ir::FieldInfo&, const ir::GraphRef& body) {
      Fused fused = fuse(*body, target);
      if (fused.pieces == 0) return body;
      out.pieces += fused.pieces;
      out.remarks.insert(out.remarks.end(), fused.remarks.begin(), fused.remarks.end());
      return std::make_shared<const ir::Graph>(std::move(fused.graph));
    });
    if (attrs != n.attrs) g.node_mut(id).attrs = attrs;
  }
}

}  // namespace

Fused fuse(ir::Graph graph, const ir::Target& target) {
  Fused out;
  graph.erase_dead();  // what nobody needs is no root of a piece
  fuse_bodies(graph, target, out);
  Fuser fuser(graph, target, out.remarks);
  fuser.run();
  if (fuser.pieces() == 0) {
    out.graph = std::move(graph);
    return out;
  }
  out.pieces += fuser.pieces();
  out.graph = fuser.emit();
  return out;
}

}  // namespace rlx::passes
