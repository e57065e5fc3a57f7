#include "rlx/lang/inspect.h"

#include <algorithm>
#include <cstdio>

#include "rlx/ir/bodies.h"
#include "rlx/ir/text.h"

namespace rlx {
namespace {

// Static results only: a symbolic size has no bytes yet.
int64_t result_bytes(const ir::Graph& g) {
  int64_t total = 0;
  for (const ir::Node* n : g.nodes()) {
    for (const Shape& s : n->shapes) total += s.is_static() ? s.size_bytes() : 0;
  }
  return total;
}

std::string plural(size_t n, std::string_view noun) { return cat(n, " ", noun, n == 1 ? "" : "s"); }

}  // namespace

std::map<std::string, int64_t> histogram(const ir::Graph& g) {
  std::map<std::string, int64_t> counts;
  ir::for_each_node(g, [&counts](const ir::Node& n) { ++counts[std::string(n.op->name)]; });
  return counts;
}

std::string byte_text(int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KB", "MB", "GB", "TB"};
  if (bytes < 1024) return cat(bytes, " B");
  auto value = double(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) value /= 1024, ++unit;
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.1f %s", value, kUnits[unit]);
  return buffer;
}

std::string inspect(const ir::Graph& g) {
  std::string out =
      cat("graph @", ir::quote_name(g.name()), ": ", plural(g.len(), "node"), ", ",
          plural(g.outputs().size(), "output"), ", ", byte_text(result_bytes(g)), " in results\n");
  const auto counts = histogram(g);
  std::vector<std::pair<std::string, int64_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> entries;
  for (const auto& [name, count] : sorted) entries.push_back(cat(name, " ", count));
  if (!entries.empty()) out += cat("  ", join(entries), "\n");
  if (const auto symbols = g.dynamic_symbols(); !symbols.empty())
    out += cat("  symbols: ", join(symbols), "\n");
  return out + ir::to_annotated_text(g);
}

std::string diff(const ir::Graph& before, const ir::Graph& after) {
  std::string out = cat("diff: ", before.len(), " -> ", after.len(), " nodes (", before.outputs().size(),
                        " -> ", after.outputs().size(), " outputs)\n");
  auto change = histogram(after);
  for (const auto& [name, count] : histogram(before)) change[name] -= count;
  std::vector<std::string> entries;
  for (const auto& [name, delta] : change) {
    if (delta != 0) entries.push_back(cat(name, delta > 0 ? " +" : " ", delta));
  }
  return out + cat("ops: ", entries.empty() ? "unchanged" : join(entries), "\n");
}

}  // namespace rlx
