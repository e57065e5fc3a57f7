// Random programs whose inputs have a symbol for every axis: what a transform makes of them, run, is what it
// makes of the same program with numbers. A failing program is cut to its shortest failing prefix and printed.
#include <gtest/gtest.h>

#include "rlx/ir/text.h"
#include "rlx/transform/transform.h"
#include "tests/support/derivatives.h"
#include "tests/support/random_program.h"

namespace rlx {
namespace {

constexpr uint64_t kPrograms = 5000, kParts = 10;

using Transform = ir::Graph (*)(const ir::Graph&);

const std::vector<std::string> kInputs{"x0", "x1", "x2"};

// Two examples, in rows of x0 and columns of x1; x2 is shared. Among symbols their number is one too.
ir::Graph batched(const ir::Graph& g) {
  const Dim size = g.has_dynamic_dims() ? Dim::symbol("examples") : Dim(2);
  return transform::vmap(g, {.in_axes = {{"x0", 0}, {"x1", 1}}, .size = size});
}
ir::Graph pulled(const ir::Graph& g) { return transform::grad(g, kInputs, {.cotangent_inputs = true}); }

struct NamedTransform {
  const char* name;
  Transform run;
};
constexpr NamedTransform kTransforms[] = {
    {"value", [](const ir::Graph& g) { return g; }},
    {"grad", pulled},
    {"jvp", [](const ir::Graph& g) { return transform::jvp(g, kInputs); }},
    {"jvp of grad", [](const ir::Graph& g) { return transform::jvp(pulled(g), kInputs); }},
    {"vmap", batched},
    {"vmap of grad", [](const ir::Graph& g) { return batched(pulled(g)); }},
    {"grad of vmap", [](const ir::Graph& g) { return pulled(batched(g)); }}};

// "" or what is wrong with one transform.
std::string compare(const NamedTransform& t, const ir::Graph& symbolic, const ir::Graph& fixed) {
  const ir::Graph numbers = t.run(fixed), symbols = t.run(symbolic);
  for (const auto& e : symbols.verify()) return cat(t.name, ": ", e);
  Literals in;
  for (const ir::NodeId id : numbers.leaves())
    in.push_back(test::random_like(numbers.node(id).shapes[0], 9 + id));
  const Literals got = ir::interpret(symbols, in), want = ir::interpret(numbers, in);
  for (size_t r = 0; r < want.size(); ++r) {
    if (got[r].shape() != want[r].shape()) return cat(t.name, ": ", got[r].shape(), " for ", want[r].shape());
    for (int64_t i = 0; i < want[r].elements(); ++i) {
      const double g = got[r].real_at(i), w = want[r].real_at(i);
      if (!(std::fabs(g - w) <= 1e-10 * (1 + std::fabs(w)))) return cat(t.name, ": ", g, " instead of ", w);
    }
  }
  return "";
}

std::string check(const ir::Graph& symbolic, const DimBinding& sizes) {
  try {
    const ir::Graph fixed = symbolic.bind(sizes);
    if (fixed.has_dynamic_dims()) return "bind: a symbol is left";
    if (!(ir::parse_graph(to_text(symbolic), ops::table()) == symbolic))
      return "the text reads back otherwise";
    for (const NamedTransform& t : kTransforms) {
      if (std::string wrong = compare(t, symbolic, fixed); !wrong.empty()) return wrong;
    }
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

class SymbolicPrograms : public testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Transform, SymbolicPrograms, testing::Range<uint64_t>(0, kParts));

TEST_P(SymbolicPrograms, give_what_numbers_give) {
  for (uint64_t seed = GetParam(); seed < kPrograms; seed += kParts) {
    const test::RandomProgram program(seed, int(6 + seed % 19), true);
    const std::string wrong = check(program.graph(), program.sizes());
    if (wrong.empty()) continue;
    for (size_t count = 4; count <= program.values(); ++count) {
      const ir::Graph small = program.prefix(count);
      const std::string still = check(small, program.sizes());
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
