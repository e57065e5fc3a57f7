#include <algorithm>

#include "rlx/backend/cuda/groups/groups.h"
#include "rlx/ops/control/fused.h"
#include "rlx/ops/reduce/reduce.h"

namespace rlx::cuda {
namespace {

enum class Sums : uint8_t { none, of_rows, over_rows, mixed };

// Whether all reductions of a region go along the last axis, or all of them over the axes in front of it.
Sums sums_of(const ir::Node& n) {
  Sums out = Sums::none;
  const ir::Graph& body = *n.as<ops::Fused>().body;
  for (const ir::Node* inner : body.nodes()) {
    if (!inner->is<ops::Reduce>()) continue;
    const auto& axes = inner->as<ops::Reduce>().axes;
    const int rank = body.shape(inner->inputs[0]).rank();
    const bool last = std::find(axes.begin(), axes.end(), rank - 1) != axes.end();
    const Sums kind = last ? (axes.size() == 1 ? Sums::of_rows : Sums::mixed) : Sums::over_rows;
    if (out != Sums::none && out != kind) return Sums::mixed;
    out = kind;
  }
  return out;
}

class Finder {
 public:
  explicit Finder(const ir::Graph& g) : g_(g) {}

  std::vector<Group> run() const {
    std::vector<Group> out;
    for (const ir::Node* n : g_.nodes()) {
      if (!n->is<ops::Fused>() || sums_of(*n) != Sums::of_rows) continue;
      const ir::Node* const reader = reader_of(*n);
      if (!reader) continue;
      Group group{kSumsGroup, {n, reader}};
      bool sums = sums_of(*reader) == Sums::over_rows;
      for (const ir::Node* beside : sums_beside(*n, *reader)) {
        group.nodes.push_back(beside);
        sums = true;
      }
      if (sums) out.push_back(std::move(group));
    }
    return out;
  }

 private:
  // What the gradient of a norm is: sums of each row, which the elements of that row are made with.
  const ir::Node* reader_of(const ir::Node& n) const {
    const ir::Node* reader = nullptr;
    for (const ir::Use& u : n.uses) {
      if (u.user == ir::kNoNode || (reader && reader->id != u.user)) return nullptr;
      reader = &g_.node(u.user);
    }
    if (!reader || !reader->is<ops::Fused>()) return nullptr;
    const Sums sums = sums_of(*reader);
    return sums == Sums::none || sums == Sums::over_rows ? reader : nullptr;
  }

  // Sums over rows of what the two read anyway.
  std::vector<const ir::Node*> sums_beside(const ir::Node& a, const ir::Node& b) const {
    const auto is_read = [&](ir::Value v) {
      return std::find(a.inputs.begin(), a.inputs.end(), v) != a.inputs.end() ||
             std::find(b.inputs.begin(), b.inputs.end(), v) != b.inputs.end();
    };
    std::vector<const ir::Node*> out;
    for (const ir::Value v : a.inputs) {
      for (const ir::Use& u : g_.node(v).uses) {
        if (u.user == ir::kNoNode || u.user == a.id || u.user == b.id) continue;
        const ir::Node& n = g_.node(u.user);
        if (!n.is<ops::Fused>() || sums_of(n) != Sums::over_rows) continue;
        if (std::find(out.begin(), out.end(), &n) != out.end()) continue;
        if (std::all_of(n.inputs.begin(), n.inputs.end(), is_read)) out.push_back(&n);
      }
    }
    return out;
  }

  const ir::Graph& g_;
};

}  // namespace

std::vector<Group> sums_groups(const ir::Graph& g) { return Finder(g).run(); }

}  // namespace rlx::cuda
