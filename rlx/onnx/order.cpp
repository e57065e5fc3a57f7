#include "rlx/onnx/order.h"

#include <numeric>
#include <string_view>
#include <unordered_map>

namespace rlx::onnx {
namespace {

namespace file = rlx::io::onnx;

template <class Visit>
void for_each_name(const file::Node& node, const Visit& visit) {
  for (const std::string& name : node.inputs) visit(name);
  for (const file::Attribute& a : node.attributes) {
    if (!a.graph) continue;
    for (const file::Node& n : a.graph->nodes) for_each_name(n, visit);
    for (const file::ValueInfo& o : a.graph->outputs) visit(o.name);
  }
}

}  // namespace

std::vector<size_t> order_of(const std::vector<file::Node>& nodes) {
  std::unordered_map<std::string_view, size_t> maker;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string& name : nodes[i].outputs) {
      if (!name.empty()) maker.emplace(name, i);
    }
  }
  std::vector<std::vector<size_t>> needs(nodes.size());
  bool sorted = true;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for_each_name(nodes[i], [&](const std::string& name) {
      const auto at = maker.find(name);
      if (at == maker.end() || at->second == i) return;
      needs[i].push_back(at->second);
      sorted = sorted && at->second < i;
    });
  }
  std::vector<size_t> as_written(nodes.size()), out;
  std::iota(as_written.begin(), as_written.end(), size_t(0));
  if (sorted) return as_written;
  // Depth first without recursion: a chain may be as long as the model.
  std::vector<bool> seen(nodes.size(), false), done(nodes.size(), false);
  std::vector<std::pair<size_t, size_t>> path;  // a node and how many of its needs were looked at
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (seen[i]) continue;
    seen[i] = true;
    path.emplace_back(i, 0);
    while (!path.empty()) {
      auto& [at, next] = path.back();
      if (next == needs[at].size()) {
        out.push_back(at);
        done[at] = true;
        path.pop_back();
        continue;
      }
      const size_t need = needs[at][next++];
      if (seen[need] && !done[need]) return as_written;
      if (seen[need]) continue;
      seen[need] = true;
      path.emplace_back(need, 0);
    }
  }
  return out;
}

}  // namespace rlx::onnx
