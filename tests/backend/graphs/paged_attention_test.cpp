// Attention over pages at random sizes, page maps, lengths and formats: the CPU gives what the decomposition gives, at every
// level; and a row gives the same bits wherever its pages lie and whoever shares the run.
#include "rlx/ops/attention/paged_attention.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>

#include "rlx/backend/cpu/isa.h"
#include "rlx/backend/cpu/nodes/device.h"
#include "rlx/ir/interpreter.h"
#include "rlx/ops/quant/encode_blocks.h"
#include "tests/support/compare.h"
#include "tests/support/errors.h"
#include "tests/support/run_on.h"

namespace rlx::backend {
namespace {

using ops::PagedAttention;

struct Case {
  int64_t rows = 2, seq = 1, heads = 4, kv_heads = 2, lanes = 16, value_lanes = 16, page = 4, pages = 5,
          window = 0;
  double softcap = 0;
  DType store = DType::f32;
  std::string scheme;
  bool shares_values = false;  // there is no v
  unsigned seed = 1;

  int64_t slots() const { return (rows * pages + 2) * page; }
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.rows << " rows of " << c.seq << ", heads " << c.heads << "/" << c.kv_heads << " of "
             << c.lanes << "/" << c.value_lanes << ", " << c.pages << " pages of " << c.page << ", window "
             << c.window << ", " << cat(c.store, c.scheme) << ", seed " << c.seed;
}

struct Problem {
  ir::Graph graph;
  Literals leaves;
};

Literal random_reals(std::mt19937& e, DType dtype, std::vector<int64_t> dims) {
  std::vector<double> x(size_t(std::accumulate(dims.begin(), dims.end(), int64_t(1), std::multiplies<>())));
  std::normal_distribution<float> normal;
  for (double& v : x) v = normal(e);
  return Literal::reals(Shape(dtype, Dims(dims.begin(), dims.end())), x);
}

// Queries of each row stand behind one another at a random place; the map of pages is random.
Problem make_problem(const Case& c) {
  std::mt19937 e(c.seed);
  Problem p;
  const auto add = [&](const char* name, Literal value) {
    const ir::Value v = p.graph.input(name, value.shape());
    p.leaves.push_back(std::move(value));
    return v;
  };
  const ir::Value q = add("q", random_reals(e, DType::f32, {c.rows, c.seq, c.heads * c.lanes}));
  const ir::Value k = add("k", random_reals(e, c.store, {c.slots(), c.kv_heads * c.lanes}));
  ir::Value v;
  if (!c.shares_values) v = add("v", random_reals(e, c.store, {c.slots(), c.kv_heads * c.value_lanes}));
  std::vector<int32_t> map(size_t(c.slots() / c.page)), at;
  std::iota(map.begin(), map.end(), 0);
  std::shuffle(map.begin(), map.end(), e);
  map.resize(size_t(c.rows * c.pages));
  for (int64_t r = 0; r < c.rows; ++r) {
    const auto start = int32_t(e() % uint64_t(c.page * c.pages - c.seq + 1));
    for (int32_t i = 0; i < c.seq; ++i) at.push_back(start + i);
  }
  const ir::Value pages = add("pages", Literal::of<int32_t>({c.rows, c.pages}, map));
  const ir::Value positions = add("positions", Literal::of<int32_t>({c.rows, c.seq}, at));
  PagedAttention::Attrs a{.num_heads = c.heads,
                          .num_kv_heads = c.kv_heads,
                          .head_dim = c.lanes,
                          .value_dim = c.value_lanes,
                          .page = c.page,
                          .window = c.window};
  if (c.softcap != 0) a.attn_logit_softcap = c.softcap;
  a.scheme = c.scheme;
  const auto stored = [&](ir::Value x) -> ir::Value {
    return c.scheme.empty() ? x : ir::make<ops::EncodeBlocks>(p.graph, {c.scheme}, {x});
  };
  ir::Values operands{q, stored(k), pages, positions};
  if (!c.shares_values) operands.push_back(stored(v));
  p.graph.set_outputs({ir::make<PagedAttention>(p.graph, a, operands)});
  return p;
}

Literal on_cpu(const Problem& p, int threads = 1) {
  return test::run_on(cpu::device(), p.graph, p.leaves, {.threads = threads})[0];
}

void expect_equal_to_reference(const Case& c) {
  SCOPED_TRACE(::testing::Message() << c);
  const Problem p = make_problem(c);
  const Literal want = ir::interpret(p.graph, p.leaves)[0];
  const Literal one = on_cpu(p), two = on_cpu(p, 2);
  EXPECT_EQ(std::memcmp(one.bytes().data(), two.bytes().data(), one.bytes().size()), 0);
  test::expect_close(one, want, 2e-5);
}

TEST(PagedAttention, RandomPageMaps) {
  std::mt19937 e(7);
  const auto from = [&](int64_t low, int64_t high) { return low + int64_t(e() % uint64_t(high - low + 1)); };
  for (unsigned seed = 0; seed < 60; ++seed) {
    Case c{.seed = seed};
    c.kv_heads = from(1, 3);
    c.heads = c.kv_heads * from(1, 5);
    c.lanes = from(1, 40);
    c.value_lanes = from(1, 40);
    c.page = from(1, 20);
    c.pages = from(1, 12);
    c.rows = from(1, 5);
    c.seq = std::min(c.page * c.pages, from(0, 2) == 0 ? from(5, 40) : from(1, 4));
    c.window = from(0, 1) == 0 ? 0 : from(1, 30);
    c.softcap = from(0, 3) == 0 ? 3.0 : 0;
    c.store = std::array{DType::f32, DType::f16, DType::bf16}[size_t(from(0, 2))];
    if (from(0, 4) == 0) c.shares_values = true, c.value_lanes = std::min(c.value_lanes, c.lanes);
    expect_equal_to_reference(c);
  }
}

TEST(PagedAttention, Blocks) {
  for (const int64_t seq : {1, 3, 24})
    for (const bool shares : {false, true})
      expect_equal_to_reference({.rows = 3,
                                 .seq = seq,
                                 .lanes = 64,
                                 .value_lanes = 32,
                                 .page = 16,
                                 .store = DType::f32,
                                 .scheme = "gguf_q8_0",
                                 .shares_values = shares,
                                 .seed = unsigned(seq)});
}

TEST(PagedAttention, PagesLongerThanASplitAndAllLevels) {
  const cpu::Isa before = cpu::current_isa();
  for (const cpu::Isa level : cpu::available_isas()) {
    cpu::use_isa(level);
    expect_equal_to_reference({.rows = 2, .seq = 2, .lanes = 64, .value_lanes = 64, .page = 600, .pages = 2});
    expect_equal_to_reference(
        {.rows = 2, .seq = 70, .lanes = 64, .value_lanes = 64, .page = 64, .window = 50});
  }
  cpu::use_isa(before);
}

// Rows of one batch, each alone, with its pages somewhere else.
TEST(PagedAttention, ARowDoesNotDependOnItsCompany) {
  for (const int64_t seq : {1, 4, 16}) {
    const Case all{.rows = 8, .seq = seq, .lanes = 64, .value_lanes = 64, .page = 16, .pages = 24, .seed = 3};
    const Problem together = make_problem(all);
    const Literal y = on_cpu(together, 2);
    const size_t row_bytes = y.bytes().size() / 8;
    Case alone = all;
    alone.rows = 1;
    for (int64_t r = 0; r < all.rows; ++r) {
      Problem p = make_problem(alone);
      const auto take = [&](size_t leaf) {
        const auto from = together.leaves[leaf].bytes();
        const auto to = p.leaves[leaf].mutable_bytes();
        std::memcpy(to.data(), from.data() + size_t(r) * to.size(), to.size());
      };
      take(0);  // q
      take(4);  // positions
      // Page i of the row goes to page i + 1 of the small store.
      const auto* map = together.leaves[3].data<int32_t>().data() + r * all.pages;
      auto small = p.leaves[3].mutable_data<int32_t>();
      for (size_t i = 0; i < size_t(all.pages); ++i) {
        small[i] = int32_t(i) + 1;
        for (const size_t store : {1, 2}) {
          const size_t bytes = size_t(all.page) * 2 * 64 * sizeof(float);
          std::memcpy(p.leaves[store].mutable_bytes().data() + (i + 1) * bytes,
                      together.leaves[store].bytes().data() + size_t(map[i]) * bytes, bytes);
        }
      }
      const Literal one = on_cpu(p);
      EXPECT_EQ(std::memcmp(one.bytes().data(), y.bytes().data() + size_t(r) * row_bytes, row_bytes), 0)
          << "row " << r << " of " << seq;
    }
  }
}

TEST(PagedAttention, PaddingSeesNothing) {
  Problem p = make_problem({.rows = 2, .seq = 3});
  auto at = p.leaves[4].mutable_data<int32_t>();
  at[0] = at[1] = -1;
  at[3] = at[4] = at[5] = -1;
  const Literal y = on_cpu(p), want = ir::interpret(p.graph, p.leaves)[0];
  test::expect_close(y, want, 2e-5);
  for (int64_t i = 0; i < 2 * 64; ++i) EXPECT_EQ(y.real_at(i), 0);
}

TEST(PagedAttention, PlacesOutsideOfTheStoreAreRefused) {
  Problem p = make_problem({.rows = 1, .seq = 1});
  p.leaves[4].mutable_data<int32_t>()[0] = 20;
  EXPECT_EQ(test::message_of([&] { on_cpu(p); }),
            "paged_attention: position 20 of row 0 is not below 20, the slots of its pages");
  p.leaves[4].mutable_data<int32_t>()[0] = 3;
  p.leaves[3].mutable_data<int32_t>()[0] = 7;
  EXPECT_EQ(test::message_of([&] { on_cpu(p); }), "paged_attention: page 7 of row 0 is not below 7");
}

}  // namespace
}  // namespace rlx::backend
