// Tests of dense linear algebra on a GPU: graphs run there, their results beside those of the interpreter.
#pragma once

#include <algorithm>
#include <cmath>

#include "rlx/ir/sample.h"
#include "tests/backend/cuda/on_device.h"
#include "tests/support/graphs.h"

namespace rlx::test {

using Values = std::vector<double>;

class LinearAlgebraOnDevice : public OnDevice {
 protected:
  /// Three runs with equal bits: launched, recorded, repeated.
  NamedLiterals run(const std::string& text, const NamedLiterals& leaves) {
    CompiledGraph f = compile(graph(text), {}, {.device = "cuda"});
    for (const auto& step : f.plan().steps) EXPECT_NE(step.kernel, "on_host") << text;
    const NamedLiterals first = f.run(leaves);
    for (int i = is_sanitized() ? 1 : 0; i < 2; ++i) {
      for (const auto& [name, value] : f.run(leaves)) {
        const auto here = value.bytes(), there = first.at(name).bytes();
        EXPECT_TRUE(std::equal(here.begin(), here.end(), there.begin(), there.end()))
            << name << " of " << text;
      }
    }
    return first;
  }

  void compare(const std::string& text, const NamedLiterals& leaves, double tolerance) {
    SCOPED_TRACE(text);
    const NamedLiterals want = ir::interpret(graph(text), leaves);
    for (const auto& [name, value] : run(text, leaves)) {
      SCOPED_TRACE(name);
      expect_close(value, want.at(name), tolerance);
    }
  }

  void expect_error(const std::string& text, const NamedLiterals& leaves) {
    SCOPED_TRACE(text);
    const std::string want = error_of([&] { ir::interpret(graph(text), leaves); });
    EXPECT_NE(want, "");
    CompiledGraph f = compile(graph(text), {}, {.device = "cuda"});
    for (int i = 0; i < 3; ++i) EXPECT_EQ(error_of([&] { f.run(leaves); }), want);
  }
};

inline int64_t batch_of(int64_t n) { return n <= 33 ? 5 : is_sanitized() ? 1 : 2; }

/// Under compute-sanitizer one type of large matrices: they differ in how they are read and written, which small ones show too.
inline bool is_left_out(int64_t n, std::string_view type) {
  return is_sanitized() && n > 64 && type != "f64";
}

inline Literal sample(const std::string& spec, uint64_t seed) { return ir::sample_literal(spec, seed); }

}  // namespace rlx::test
