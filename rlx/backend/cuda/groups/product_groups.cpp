#include <algorithm>
#include <map>
#include <set>

#include "rlx/backend/cuda/groups/groups.h"
#include "rlx/backend/cuda/nodes/few_rows.h"
#include "rlx/backend/cuda/nodes/streamed_tiles.h"
#include "rlx/ir/leaves.h"
#include "rlx/ops/control/fused.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/quant/dequant_matmul.h"
#include "rlx/ops/quant/scaled_matmul.h"
#include "rlx/ops/shape/transpose.h"
#include "rlx/quant/scheme.h"

namespace rlx::cuda {
namespace {

constexpr int64_t kKeptBytes = 32 << 10;  // rows that a block makes for itself
constexpr size_t kMostProducts = 4, kMostResults = 2;

class Finder {
 public:
  explicit Finder(const ir::Graph& g) : g_(g), order_(order_of(g)) {}

  std::vector<Group> run() {
    std::map<std::tuple<ir::NodeId, uint16_t, std::string>, std::vector<const ir::Node*>> alike;
    std::vector<const std::vector<const ir::Node*>*> in_order;
    for (const ir::Node* n : g_.nodes()) {
      const std::string kind = kind_of(*n);
      if (kind.empty()) continue;
      auto [it, is_new] = alike.try_emplace({n->inputs[0].node, n->inputs[0].index, kind});
      if (is_new) in_order.push_back(&it->second);
      it->second.push_back(n);
    }
    std::vector<Group> out;
    const std::vector<MovedProducts> moved = moved_products(g_);
    for (const auto* products : in_order) {
      if (products->size() > kMostProducts) continue;
      Group group{kProductGroup, *products};
      if (const ir::Node* rows = rows_before(*products->front()); rows && taken_.insert(rows->id).second)
        group.nodes.insert(group.nodes.begin(), rows);
      // With what moves their columns; where the target takes that, what follows is none.
      for (const MovedProducts& m : moved) {
        if (!std::is_permutation(m.products.begin(), m.products.end(), products->begin(), products->end()))
          continue;
        out.push_back({kTurnedGroup, group.nodes});
        out.back().nodes.insert(out.back().nodes.end(), m.moves.begin(), m.moves.end());
      }
      if (const ir::Node* elements = elements_behind(group, *products)) group.nodes.push_back(elements);
      if (group.nodes.size() > 1) out.push_back(std::move(group));
    }
    return out;
  }

  std::vector<Group> elements() {
    std::vector<Group> out;
    for (const ir::Node* n : g_.nodes()) {
      if (!is_tiled(*n)) continue;
      for (const auto& products : {with_partners(*n), {n}}) {
        Group group{kProductGroup, products};
        const ir::Node* const elements = elements_behind(group, products, kMostResults);
        const bool casts = elements && elements->is<ops::Cast>() && rows_of(*n) > StreamedTiles::kMostRows;
        if (!elements || casts) continue;  // a cast of many rows is cheaper where it is read
        group.nodes.push_back(elements);
        out.push_back(std::move(group));
        if (products.size() == 1) break;
      }
    }
    return out;
  }

 private:
  static int64_t rows_of(const ir::Node& product) {
    const int64_t n = product.shapes[0].dim(-1).value();
    return n > 0 ? product.shapes[0].elements() / n : 0;
  }

  // The products of the same input that the reader of this one takes with it, such as gate and up.
  std::vector<const ir::Node*> with_partners(const ir::Node& n) const {
    std::vector<const ir::Node*> out{&n};
    if (n.uses.empty() || n.uses[0].user == ir::kNoNode) return out;
    for (const ir::Value v : g_.node(n.uses[0].user).inputs) {
      const ir::Node& other = g_.node(v);
      const bool same = other.id != n.id && is_tiled(other) && other.inputs[0] == n.inputs[0] &&
                        other.inputs.size() == n.inputs.size();
      if (same && (n.inputs.size() < 3 || other.inputs[2] == n.inputs[2])) out.push_back(&other);
    }
    std::sort(out.begin(), out.end(),
              [&](const ir::Node* a, const ir::Node* b) { return order_[a->id] < order_[b->id]; });
    return out;
  }

  // A product of more rows than few; the target knows best.
  bool is_tiled(const ir::Node& n) const {
    if ((!n.is<ops::Matmul>() && !n.is<ops::ScaledMatmul>()) || g_.shape(n.inputs[1]).rank() != 2)
      return false;
    const DType t = n.shapes[0].dtype();
    return (t == DType::f16 || t == DType::bf16) && rows_of(n) > most_few_rows();
  }

  // Products of one kind can be one kernel; empty for what is no product of few rows.
  std::string kind_of(const ir::Node& n) const {
    if (!n.is<ops::Matmul>() && !n.is<ops::DequantMatmul>()) return {};
    const Shape &x = g_.shape(n.inputs[0]), &w = g_.shape(n.inputs[1]);
    const DType t = x.dtype();
    if ((t != DType::f32 && t != DType::f16 && t != DType::bf16) || n.shapes[0].dtype() != t) return {};
    const int64_t rows = rows_of(n), k = x.dim(-1).value();
    if (rows < 1 || rows > most_few_rows() || k < 1) return {};
    if (n.is<ops::DequantMatmul>()) {
      const auto& a = n.as<ops::DequantMatmul>();
      const bool blocks = n.inputs.size() == 2 && quant::scheme_from_text(a.scheme)->is_gguf();
      return blocks && g_.node(n.inputs[1]).op->traits.leaf
                 ? cat(a.scheme, a.activations == ops::Activations::exact ? " exact" : "")
                 : std::string();
    }
    // Columns are runs: a matrix of the file, turned.
    const ir::Node& turned = g_.node(n.inputs[1]);
    const bool runs = w.rank() == 2 && w.dtype() == t && turned.is<ops::Transpose>() &&
                      g_.node(turned.inputs[0]).op->traits.leaf;
    return runs && k * int64_t(dtype_size(t)) % 16 == 0 ? "matmul" : std::string();
  }

  // The region that makes the input row by row.
  const ir::Node* rows_before(const ir::Node& product) const {
    const ir::Node& n = g_.node(product.inputs[0]);
    if (!n.is<ops::Fused>() || !reduces(n)) return nullptr;
    const Shape& x = g_.shape(product.inputs[0]);
    if (x.size_bytes() > kKeptBytes) return nullptr;
    for (const Shape& s : n.shapes) {
      if (s.elements() != x.elements()) return nullptr;
    }
    return &n;
  }

  const ir::Node* elements_behind(const Group& group, const std::vector<const ir::Node*>& products,
                                  size_t results = 1) const {
    return cuda::elements_behind(g_, order_, order_[group.nodes.front()->id], products, results);
  }

  const ir::Graph& g_;
  std::vector<size_t> order_;
  std::set<ir::NodeId> taken_;
};

}  // namespace

std::vector<Group> product_groups(const ir::Graph& g) { return Finder(g).run(); }
std::vector<Group> element_groups(const ir::Graph& g) { return Finder(g).elements(); }

}  // namespace rlx::cuda
