// Random programs: derivatives against differences and each other; batching, before and after differentiating, against
// one example after another. A failing program is cut to its shortest failing prefix and printed.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cstring>

#include "rlx/transform/transform.h"
#include "tests/support/batches.h"
#include "tests/support/derivatives.h"
#include "tests/support/random_program.h"

namespace rlx {
namespace {

constexpr uint64_t kPrograms = 2500;
constexpr int64_t kBatch = 3;

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

// x0 and x1 have an example for each row, x1 with the batch as its second axis; x2 is shared.
const transform::VmapOptions kRows{.in_axes = {{"x0", 0}, {"x1", 1}}, .size = kBatch};

// Literals of one example each, and all of them as the batched program takes them.
struct Rows {
  std::vector<Literals> each;
  Literals all;
  explicit Rows(const Literals& leaves) {
    Literals x0, x1;
    for (int64_t k = 0; k < kBatch; ++k) {
      const double turn = 1 - 1.1 * double(k);  // rows of either sign, so that they go different ways
      each.push_back({test::moved(leaves[0], leaves[0], turn - 1),
                      test::moved(leaves[1], leaves[1], turn - 1), leaves[2]});
      x0.push_back(each.back()[0]);
      x1.push_back(each.back()[1]);
    }
    all = {test::stack(x0, 0), test::stack(x1, 1), leaves[2]};
  }
};

std::string compare(std::string_view what, const Literal& got, const Literal& want) {
  for (int64_t i = 0; i < want.elements(); ++i) {
    const double g = got.real_at(i), w = want.real_at(i);
    if (!(std::fabs(g - w) <= 1e-8 * (1 + std::fabs(w))))
      return cat(what, ", element ", i, ": ", g, " instead of ", w);
  }
  return "";
}

std::string check_batching(const ir::Graph& g, const Literals& leaves) {
  const Rows rows(leaves);
  const std::vector<std::string> names{"x0", "x1", "x2"};
  const ir::Graph pulled = transform::grad(g, names, {.cotangent_inputs = true});
  Literals cotangents, stacked_cotangents;
  for (size_t r = 0; r < g.outputs().size(); ++r) {
    cotangents.push_back(test::random_like(g.shape(g.outputs()[r]), 31 + r));
    stacked_cotangents.push_back(test::stack(Literals(kBatch, cotangents[r])));
  }
  // One example after another.
  std::vector<Literals> values, gradients;
  for (const Literals& in : rows.each) {
    values.push_back(ir::interpret(g, in));
    Literals seeded = in;
    seeded.insert(seeded.end(), cotangents.begin(), cotangents.end());
    gradients.push_back(ir::interpret(pulled, seeded));
  }
  const auto column = [](const std::vector<Literals>& of, size_t r, int axis) {
    Literals parts;
    for (const Literals& row : of) parts.push_back(row[r]);
    return test::stack(parts, axis);
  };
  const ir::Graph mapped = transform::vmap(g, kRows);
  const Literals got = ir::interpret(mapped, rows.all);
  std::string wrong;
  for (size_t r = 0; r < got.size() && wrong.empty(); ++r)
    wrong = compare("vmap", got[r], column(values, r, 0));
  if (!wrong.empty()) return wrong;

  // grad, then vmap: all gradients per row. Cotangents are shared.
  Literals in = rows.all;
  in.insert(in.end(), cotangents.begin(), cotangents.end());
  const Literals after = ir::interpret(transform::vmap(pulled, kRows), in);
  for (size_t i = 0; i < 3 && wrong.empty(); ++i)
    wrong = compare("vmap of grad", after[i], column(gradients, i, 0));
  if (!wrong.empty()) return wrong;

  // vmap, then grad: the gradient of x2 is the sum over the rows.
  in = rows.all;
  in.insert(in.end(), stacked_cotangents.begin(), stacked_cotangents.end());
  const Literals before = ir::interpret(transform::grad(mapped, names, {.cotangent_inputs = true}), in);
  Literal sum = gradients[0][2];
  for (size_t k = 1; k < size_t(kBatch); ++k) sum = test::moved(sum, gradients[k][2], 1);
  const Literal want[] = {column(gradients, 0, 0), column(gradients, 1, 1), sum};
  for (size_t i = 0; i < 3 && wrong.empty(); ++i) wrong = compare("grad of vmap", before[i], want[i]);
  return wrong;
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
      std::string still = check_derivatives(small, program.leaves());
      if (still.empty()) still = check_batching(small, program.leaves());
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
