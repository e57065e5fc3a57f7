// Families with many parameters at random ones: values and gradients on the CPU are those of the interpreter,
// at every level, plain and fused.
#include <gtest/gtest.h>

#include <random>

#include "rlx/backend/cpu/isa.h"
#include "rlx/backend/cpu/nodes/device.h"
#include "rlx/ir/leaves.h"
#include "rlx/ir/sample.h"
#include "rlx/passes/fuse.h"
#include "rlx/passes/legalise.h"
#include "rlx/transform/transform.h"
#include "tests/support/compare.h"
#include "tests/support/graphs.h"
#include "tests/support/run_on.h"

namespace rlx::backend {
namespace {

using Sizes = std::vector<int64_t>;

class Chance {
 public:
  explicit Chance(unsigned seed) : engine_(seed) {}
  int64_t from(int64_t low, int64_t high) { return low + int64_t(engine_() % uint64_t(high - low + 1)); }
  bool coin() { return from(0, 1) == 0; }

 private:
  std::mt19937 engine_;
};

std::string list(const Sizes& s) { return cat("[", join(s, ","), "]"); }
std::string type(const Sizes& s) { return cat("f32", list(s)); }

std::string random_conv(Chance& c, bool transposed) {
  const int64_t axes = c.from(1, 3), groups = c.from(1, 3);
  const int64_t in = groups * c.from(1, 4), out = groups * c.from(1, 9);
  Sizes kernel, stride, padding, dilation, x{c.from(1, 2), in}, w{transposed ? in : out};
  w.push_back((transposed ? out : in) / groups);
  for (int64_t i = 0; i < axes; ++i) {
    kernel.push_back(c.from(1, 4));
    stride.push_back(c.from(1, 3));
    dilation.push_back(c.from(1, 3));
    padding.push_back(transposed ? 0 : c.from(0, 2));
    x.push_back(dilation.back() * (kernel.back() - 1) + 1 + c.from(0, axes == 3 ? 5 : 14));
    w.push_back(kernel.back());
  }
  return cat("graph @g(x: ", type(x), ", w: ", type(w), ") { y = conv", transposed ? "_transpose" : "", axes,
             "d(x, w, kernel_size=", list(kernel), ", stride=", list(stride), ", padding=", list(padding),
             ", dilation=", list(dilation), ", groups=", groups, ") return y }");
}

std::string random_pool(Chance& c) {
  constexpr std::string_view kKinds[] = {"sum", "mean", "max", "min"};
  Sizes kernel, stride, padding, x{c.from(1, 2), c.from(1, 5)};
  for (int64_t i = c.from(1, 3); i > 0; --i) {
    kernel.push_back(c.from(1, 4));
    stride.push_back(c.from(1, 4));
    padding.push_back(c.from(0, kernel.back() - 1));
    x.push_back(kernel.back() + c.from(0, 13));
  }
  return cat("graph @g(x: ", type(x), ") { y = pool(x, kind=", kKinds[c.from(0, 3)],
             ", kernel_size=", list(kernel), ", stride=", list(stride), ", padding=", list(padding),
             ", count_include_pad=", c.coin() ? "true" : "false", ") return y }");
}

std::string random_attention(Chance& c) {
  constexpr std::string_view kLayouts[] = {"bshd_packed", "bshd", "bhsd"};
  constexpr std::string_view kMasks[] = {"none", "causal", "sliding_window"};
  const int64_t kv = c.from(1, 3), heads = kv * c.from(1, 4), batch = c.from(1, 2), layout = c.from(0, 2);
  const int64_t queries = c.from(1, 40), keys = c.from(1, 70), lanes = c.from(1, 41);
  const auto operand = [&](int64_t rows, int64_t h) {
    if (layout == 0) return type({batch, rows, h * lanes});
    return layout == 1 ? type({batch, rows, h, lanes}) : type({batch, h, rows, lanes});
  };
  const auto scores = [&] {
    return list({c.coin() ? batch : 1, c.coin() ? heads : 1, c.coin() ? queries : 1, keys});
  };
  std::string leaves, operands, attrs;
  if (c.coin()) {
    leaves += cat(", m: ", c.coin() ? cat("bool", scores()) : type({batch, keys}));
    operands += ", m", attrs += ", has_mask=true";
  }
  if (c.coin()) leaves += cat(", b: f32", scores()), operands += ", b", attrs += ", has_bias=true";
  if (c.coin()) attrs += ", attn_logit_softcap=3.0";
  return cat("graph @g(q: ", operand(queries, heads), ", k: ", operand(keys, kv), ", v: ", operand(keys, kv),
             leaves, ") { y:2 = attention(q, k, v", operands, attrs, ", num_heads=", heads,
             ", num_kv_heads=", kv, ", mask_kind=", kMasks[c.from(0, 2)], ", window=", c.from(0, 9),
             ", layout=", kLayouts[layout], ") return y, y#1 }");
}

std::string random_resize(Chance& c) {
  Sizes x{c.from(1, 3), c.from(1, 3)}, to;
  for (int64_t i = c.from(1, 3); i > 0; --i) x.push_back(c.from(1, 20)), to.push_back(c.from(1, 30));
  const bool linear = c.coin(), aligned = linear && c.coin();
  return cat("graph @g(x: ", type(x), ") { y = resize(x, mode=", linear ? "linear" : "nearest", ", size=(",
             join(to, ","), "), align_corners=", aligned ? "true" : "false", ") return y }");
}

// A batch axis, one or two contracted axes and the free ones, each anywhere.
std::string random_contraction(Chance& c) {
  const auto order = [&] {
    Sizes out;
    while (out.size() < 4) {
      const int64_t axis = c.from(0, 3);
      if (std::find(out.begin(), out.end(), axis) == out.end()) out.push_back(axis);
    }
    return out;
  };
  const Sizes at_a = order(), at_b = order();
  const bool two = c.coin();
  Sizes a(4), b(4);
  for (size_t i = 0; i < 4; ++i) {
    a[size_t(at_a[i])] = c.from(1, 9);
    b[size_t(at_b[i])] = i < 2 || (i == 2 && two) ? a[size_t(at_a[i])] : c.from(1, 9);
  }
  const auto inner = [&](const Sizes& at) { return list(two ? Sizes{at[1], at[2]} : Sizes{at[1]}); };
  return cat("graph @g(a: ", type(a), ", b: ", type(b),
             ") { y = dot_general(a, b, lhs_batch=", list({at_a[0]}), ", rhs_batch=", list({at_b[0]}),
             ", lhs_contracting=", inner(at_a), ", rhs_contracting=", inner(at_b), ") return y }");
}

// Sums in f32 of up to some hundred terms of order one, squared once by the chain rule.
void expect_values_and_gradients(const std::string& text, bool weights) {
  SCOPED_TRACE(text);
  const ir::Graph forward = test::graph(text);
  std::vector<std::string> wrt;
  for (const ir::NodeId id : forward.leaves()) {
    const ir::Node& n = forward.node(id);
    if (n.shapes[0].dtype() == DType::f32)
      wrt.push_back(static_cast<const ir::NamedLeaf*>(n.attrs.get())->name);
  }
  const ir::Graph g = transform::value_and_grad(forward, wrt, {.cotangent_inputs = true});
  Literals leaves;
  for (const ir::NodeId id : g.leaves())
    leaves.push_back(ir::sample_literal(cat(g.node(id).shapes[0]), 11 + leaves.size()));
  const Literals want = ir::interpret(g, leaves);
  const std::vector<bool> fixed(leaves.size(), weights);
  const cpu::Isa before = cpu::current_isa();
  for (const cpu::Isa isa : cpu::available_isas()) {
    SCOPED_TRACE(cpu::isa_name(isa));
    cpu::use_isa(isa);
    const ir::Graph plain = passes::legalise(g, cpu::device()).graph;
    const ir::Graph fused = passes::fuse(plain, cpu::device()).graph;
    for (const ir::Graph* program : {&plain, &fused})
      test::expect_close(test::run_on(cpu::device(), *program, leaves, {.threads = 3, .fixed = fixed}), want,
                         1e-3);
  }
  cpu::use_isa(before);
}

template <class Make>
void expect_all(unsigned seed, Make make) {
  constexpr int kCases = 40;
  Chance chance(seed);
  for (int i = 0; i < kCases && !testing::Test::HasFailure(); ++i)
    expect_values_and_gradients(make(chance), i % 2 == 1);
}

TEST(RandomShapes, of_convolutions) {
  expect_all(1, [](Chance& c) { return random_conv(c, false); });
}
TEST(RandomShapes, of_transposed_convolutions) {
  expect_all(2, [](Chance& c) { return random_conv(c, true); });
}
TEST(RandomShapes, of_pooling) { expect_all(3, random_pool); }
TEST(RandomShapes, of_attention) { expect_all(4, random_attention); }
TEST(RandomShapes, of_resizing) { expect_all(5, random_resize); }
TEST(RandomShapes, of_contractions) { expect_all(6, random_contraction); }

}  // namespace
}  // namespace rlx::backend
