// Two thousand random programs: derivatives against differences and each other, batching against a loop. A
// failing program is cut to its shortest failing prefix and printed.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cstring>

#include "rlx/transform/transform.h"
#include "tests/support/derivatives.h"
#include "tests/support/random_program.h"

namespace rlx {
namespace {

constexpr uint64_t kPrograms = 2000;

// Whether forward and reverse mode and the differences agree; "" or what is wrong.
std::string check_derivatives(const ir::Graph& g, const Literals& leaves) {
  testing::TestPartResultArray failures;
  {
    testing::ScopedFakeTestPartResultReporter reporter(
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
    try {
      test::DerivativeCheck check(g, leaves, true);
      if (check.applies()) check.run();
    } catch (const Error& e) {
      return e.what();
    }
  }
  return failures.size() == 0 ? "" : failures.GetTestPartResult(0).message();
}

std::string check_batching(const ir::Graph& g, const Literals& leaves) {
  const auto mapped = transform::vmap(g, {.in_axes = {{"x0", 0}, {"x1", 1}}, .size = 2});
  // Two equal examples must give the plain result twice.
  Literals in = leaves;
  const auto doubled = [](const Literal& x, int axis) {
    Dims dims = x.shape().dims();
    dims.insert(dims.begin() + axis, Dim(2));
    std::vector<double> out;
    const int64_t inner = axis == 0 ? x.elements() : x.shape().dim(1).value();
    for (int64_t o = 0; o < x.elements(); o += inner) {
      for (int copy = 0; copy < 2; ++copy) {
        for (int64_t i = 0; i < inner; ++i) out.push_back(x.real_at(o + i));
      }
    }
    return Literal::reals(x.shape().with_dims(dims), out);
  };
  in[0] = doubled(in[0], 0);
  in[1] = doubled(in[1], 1);
  const Literals got = ir::interpret(mapped, in), want = ir::interpret(g, leaves);
  for (size_t r = 0; r < want.size(); ++r) {
    for (int64_t i = 0; i < got[r].elements(); ++i) {
      const double w = want[r].real_at(i % want[r].elements());
      if (std::fabs(got[r].real_at(i) - w) > 1e-9 * (1 + std::fabs(w)))
        return cat("vmap: ", got[r].real_at(i), " instead of ", w);
    }
  }
  return "";
}

class RandomPrograms : public testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Transform, RandomPrograms, testing::Range<uint64_t>(0, 10));

TEST_P(RandomPrograms, obey_the_identities) {
  for (uint64_t seed = GetParam() * kPrograms / 10; seed < (GetParam() + 1) * kPrograms / 10; ++seed) {
    const test::RandomProgram program(seed, int(8 + seed % 33));
    std::string wrong = check_derivatives(program.graph(), program.leaves());
    if (wrong.empty()) wrong = check_batching(program.graph(), program.leaves());
    if (wrong.empty()) continue;
    for (size_t count = 4; count <= program.values(); ++count) {
      const ir::Graph small = program.prefix(count);
      const std::string still = check_derivatives(small, program.leaves());
      if (still.empty()) continue;
      ADD_FAILURE() << "seed " << seed << ": " << still << "\n" << to_text(small);
      return;
    }
    ADD_FAILURE() << "seed " << seed << ": " << wrong << "\n" << to_text(program.graph());
    return;
  }
}

}  // namespace
}  // namespace rlx
