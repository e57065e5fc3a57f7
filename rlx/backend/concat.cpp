// GraphAssembly, third part: parts of a concatenation are made where they belong.
//
//   a = exp(x); b = sin(x); c = concat(a, b, axis=0)    a and b are written into the buffer of c, which is no step then
//
// It takes parts that follow each other in memory (every axis in front of the joined one has one element) and begin at
// multiples of 64 bytes, like every buffer. What was not made by a step (leaves, views), or belongs to another
// concatenation already, is copied into its place.
#include "rlx/ops/shape/concat.h"

#include <algorithm>

#include "rlx/backend/graph_assembly.h"

namespace rlx::backend {
namespace {

constexpr int64_t kAlignment = 64;

// Bytes in front of each part; nothing where parts do not lie one behind the other, or there is but one.
std::vector<int64_t> offsets_of(const ir::Graph& g, const ir::Node& concat) {
  int axis = concat.as<ops::Concat>().axis;
  normalize_axis(axis, concat.shapes[0].rank());
  for (int i = 0; i < axis; ++i) {
    if (concat.shapes[0].dim(i) != Dim(1)) return {};
  }
  std::vector<int64_t> out;
  int64_t at = 0;
  int parts = 0;
  for (const ir::Value v : concat.inputs) {
    const int64_t bytes = g.shape(v).size_bytes();
    out.push_back(at);
    at += bytes;
    parts += bytes > 0;
  }
  return parts > 1 ? out : std::vector<int64_t>();
}

bool is_made_by_a_step(const ir::Node& n) {
  return !n.op->traits.leaf && !n.inputs.empty() && n.op->view == nullptr;
}

}  // namespace

void GraphAssembly::find_parts() {
  for (const ir::Node* n : graph_.nodes()) {
    if (!n->is<ops::Concat>()) continue;
    const std::vector<int64_t> offsets = offsets_of(graph_, *n);
    for (size_t i = 0; i < offsets.size(); ++i) {
      const ir::Value v = n->inputs[i];
      const ir::Node& from = graph_.node(v.node);
      const bool is_output =
          std::find(graph_.outputs().begin(), graph_.outputs().end(), v) != graph_.outputs().end();
      if (is_made_by_a_step(from) && !is_output && offsets[i] % kAlignment == 0)
        parts_.try_emplace(v, Part{n->id, offsets[i]});
    }
  }
}

Plan::Place GraphAssembly::place_of_result(const ir::Node& n, uint32_t i) {
  const auto part = parts_.find(n.result(i));
  if (part == parts_.end())
    return fresh(n.shapes[i], n.shapes.size() > 1 ? cat(n.label(), "#", i) : n.label());
  const Place whole = place_of_concat(graph_.node(part->second.concat));
  return part_of(whole, n.shapes[i], part->second.offset);
}

Plan::Place GraphAssembly::part_of(const Place& whole, const Shape& shape, int64_t offset) const {
  return {.buffer = whole.buffer,
          .offset = whole.offset + offset,
          .shape = shape,
          .layout = Layout::row_major(shape.dims())};
}

// Made when the first of its parts is.
const Plan::Place& GraphAssembly::place_of_concat(const ir::Node& n) {
  const auto found = places_.find(n.result());
  if (found != places_.end()) return found->second;
  Place place = place_of_result(n, 0);
  return places_[n.result()] = std::move(place);
}

bool GraphAssembly::add_concat(const ir::Node& n) {
  if (!n.is<ops::Concat>() || places_.find(n.result()) == places_.end()) return false;
  const Place whole = places_.at(n.result());
  const std::vector<int64_t> offsets = offsets_of(graph_, n);
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    const Place from = places_.at(n.inputs[i]), to = part_of(whole, from.shape, offsets[i]);
    const bool is_there = from.buffer == to.buffer && from.offset == to.offset;
    if (!is_there && from.shape.size_bytes() > 0) append_copy(from, to);
  }
  return true;
}

}  // namespace rlx::backend
