// The matrix products all types are timed with, and what is common to timing them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/bench.h"

namespace rlx::bench {

struct GemmShape {
  int64_t m, k, n;

  std::string name(const std::string& type) const {
    return "gemm_" + type + " " + std::to_string(m) + "x" + std::to_string(k) + "x" + std::to_string(n);
  }
  /// Large weights of few rows pass through copies of 256 MiB together, so that they come from memory and not
  /// from a cache that kept them since the last call.
  bool from_memory() const { return m < 60 && k * n > 4000000; }
  size_t copies(int64_t element_bytes) const {
    return from_memory() ? size_t((int64_t(256) << 20) / (k * n * element_bytes)) : 1;
  }
  double multiply_adds() const { return double(m) * double(k) * double(n); }
};

/// body(shape, name) for those asked for: squares, and layers of small and large models for 1 to 128 rows.
template <class Body>
void each_gemm_shape(int argc, char** argv, const std::string& type, Body body) {
  std::vector<GemmShape> shapes = {{512, 512, 512}, {1024, 1024, 1024}, {2048, 2048, 2048}};
  for (auto [k, n] : {std::pair<int64_t, int64_t>{384, 1536}, {576, 1536}, {2048, 8192}}) {
    for (int64_t m : {1, 4, 16, 60, 128}) shapes.push_back({m, k, n});
  }
  for (const GemmShape& s : shapes) {
    if (const std::string name = s.name(type); wanted(argc, argv, name)) body(s, name);
  }
}

}  // namespace rlx::bench
