// Running the region of a body, with the reference interpreter as its judge.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "rlx/ir/interpreter.h"
#include "rlx/ir/text.h"
#include "rlx/ops/all.h"
#include "rlx/region/from_graph.h"
#include "rlx/region/interpret.h"

namespace rlx::region::test {

inline ir::Graph parse(const std::string& text) { return ir::parse_graph(text, ops::table()); }

inline Region region_of(const std::string& text) {
  const Built built = from_graph(parse(text));
  EXPECT_TRUE(built) << built.refusal;
  return built ? *built.region : Region{.dims = {1}};
}

inline std::string refusal_of(const std::string& text) { return from_graph(parse(text)).refusal; }

/// Runs `run(region, memory)` on dense copies of the leaves; the results.
template <class Run>
Literals run_region(const ir::Graph& body, const Region& r, const Literals& leaves, Run run) {
  Literals in = leaves, out;
  for (const ir::Value v : body.outputs()) out.push_back(Literal::zeros(body.shape(v)));
  std::vector<std::byte*> memory;
  for (Literal& x : in) memory.push_back(x.mutable_bytes().data());
  for (Literal& x : out) memory.push_back(x.mutable_bytes().data());
  run(r, memory);
  return out;
}

/// Largest |a - b| / (1 + |b|); infinite where one is NaN and the other not.
inline double difference(const Literal& a, const Literal& b) {
  double worst = 0;
  for (int64_t i = 0; i < a.elements(); ++i) {
    const double x = a.real_at(i), y = b.real_at(i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    const double d = std::fabs(x - y) / (1 + std::fabs(y));
    worst = std::max(worst, std::isnan(d) ? INFINITY : d);
  }
  return worst;
}

}  // namespace rlx::region::test
