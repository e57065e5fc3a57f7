// Attention of many queries and its gradients with tiles that the copy engine brings: which programs have it, that its kernels compile, and values beside the
// interpreter where there is a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <tuple>

#include "rlx/backend/builder.h"
#include "rlx/backend/cuda/compile/compiler.h"
#include "rlx/backend/cuda/groups/groups.h"
#include "rlx/backend/cuda/nodes/head_maps.h"
#include "rlx/ops/control/fused.h"
#include "rlx/runtime/pipeline.h"
#include "tests/backend/cuda/on_device.h"
#include "tests/support/graphs.h"

namespace rlx::cuda {
namespace {

/// Attention [batch 2, rows, heads x lanes].
struct Forward {
  std::string type = "bf16";
  int64_t queries = 256, keys = 256, lanes = 64, heads = 3, kv_heads = 1;
  std::string attributes = {}, mask = {};

  std::string text() const {
    const std::string q = cat(type, "[2,", queries, ",", heads * lanes, "]"),
                      k = cat(type, "[2,", keys, ",", kv_heads * lanes, "]");
    return cat("graph @f(q: ", q, ", k: ", k, ", v: ", k, mask.empty() ? "" : ", m: " + mask,
               ") { y:2 = attention(q, k, v", mask.empty() ? "" : ", m, has_mask=true", ", num_heads=", heads,
               ", num_kv_heads=", kv_heads, attributes, ") return y, l=y#1 }");
  }
};

/// Its gradients [batch 2, heads, rows, 64 lanes].
std::string backward_text(const std::string& type, int64_t queries, int64_t keys, int64_t heads,
                          int64_t kv_heads, const std::string& attributes) {
  const auto of = [&](int64_t n, int64_t rows) { return cat(type, "[2,", n, ",", rows, ",64]"); };
  const std::string q = of(heads, queries), k = of(kv_heads, keys),
                    row = cat("f32[2,", heads, ",", queries, "]");
  return cat("graph @f(q: ", q, ", k: ", k, ", v: ", k, ", dy: ", q, ", lse: ", row, ", delta: ", row,
             ") {\n  d:3 = attention_backward(q, k, v, dy, lse, delta, num_heads=", heads,
             ", num_kv_heads=", kv_heads, ", layout=bhsd", attributes, ")\n  return dq=d, dk=d#1, dv=d#2\n}");
}

bool has_step(const Device& device, const std::string& text, const std::string& words) {
  std::vector<passes::Remark> remarks;
  const auto program =
      backend::Builder(device, 1).build(runtime::specialise(test::graph(text), device, {}, remarks));
  for (const auto& s : program->plan().steps) {
    if (s.note.find(words) != std::string::npos) return true;
  }
  return false;
}
bool is_copied_ahead(const Device& device, const std::string& text) {
  return has_step(device, text, "tiles copied ahead");
}

TEST(CudaAttentionPipeline, takes_scores_that_are_scaled_products) {
  const Device device("sm_90a", nullptr), older("sm_80", nullptr);
  for (const char* type : {"bf16", "f16"}) {
    for (const int64_t lanes : {64, 128}) {
      for (const char* kind : {"", ", mask_kind=causal"}) {
        const std::string text = Forward{.type = type, .lanes = lanes, .attributes = kind}.text();
        EXPECT_TRUE(is_copied_ahead(device, text)) << text;
        EXPECT_FALSE(is_copied_ahead(older, text)) << text;
      }
      EXPECT_TRUE(
          is_copied_ahead(device, Forward{.type = type, .lanes = lanes, .mask = "bool[2,1,256,256]"}.text()));
    }
    EXPECT_TRUE(is_copied_ahead(device, backward_text(type, 256, 300, 4, 2, "")));
    EXPECT_TRUE(is_copied_ahead(device, backward_text(type, 300, 256, 4, 2, ", mask_kind=causal")));
  }
  for (const Forward& c :
       {Forward{.queries = 255}, Forward{.lanes = 96}, Forward{.attributes = ", attn_logit_softcap=3.0"},
        Forward{.attributes = ", score_scale=-0.5"},
        Forward{.attributes = ", mask_kind=sliding_window, window=9"}, Forward{.mask = "bool[2,256]"},
        Forward{.mask = "bool[2,3,256,256]"}})
    EXPECT_FALSE(is_copied_ahead(device, c.text())) << c.text();
  EXPECT_FALSE(is_copied_ahead(device, backward_text("bf16", 200, 300, 4, 2, "")));
  EXPECT_FALSE(is_copied_ahead(device, backward_text("bf16", 256, 256, 4, 2, ", attn_logit_softcap=3.0")));
  if (compiler_problem().empty()) {
    EXPECT_GT(device.functions().compile_waiting(), 10u);
  }
}

TEST(CudaAttentionPipeline, blocks_stay_and_share_queries_where_they_are_few) {
  const Device device("sm_90a", nullptr);
  const auto with = [](int64_t queries, int64_t lanes, const std::string& mask) {
    return Forward{
        .queries = queries, .keys = queries, .lanes = lanes, .attributes = ", mask_kind=causal", .mask = mask}
        .text();
  };
  EXPECT_TRUE(has_step(device, with(2048, 64, ""), "groups share queries"));
  EXPECT_TRUE(has_step(device, with(2048, 64, "bool[2,1,2048,2048]"), "groups share queries"));
  EXPECT_FALSE(has_step(device, with(16384, 64, ""), "groups share queries"));
  EXPECT_FALSE(has_step(device, with(2048, 128, ""), "groups share queries"));
  for (const int64_t lanes : {64, 128}) {
    EXPECT_TRUE(has_step(device, with(16384, lanes, ""), "blocks that stay"));
    EXPECT_TRUE(has_step(device, with(2048, lanes, "bool[1,1,2048,2048]"), "blocks that stay"));
  }
  EXPECT_TRUE(has_step(device, Forward{.queries = 128, .keys = 100, .lanes = 32, .mask = "f32[2,100]"}.text(),
                       "all keys at once"));
  EXPECT_FALSE(
      has_step(device, Forward{.queries = 129, .keys = 100, .lanes = 32}.text(), "all keys at once"));
  EXPECT_FALSE(has_step(device,
                        Forward{.queries = 99, .keys = 100, .lanes = 32, .mask = "bool[1,1,99,100]"}.text(),
                        "all keys at once"));
  EXPECT_TRUE(has_step(device, backward_text("bf16", 4096, 4096, 8, 8, ", mask_kind=causal"), "one kernel"));
  EXPECT_TRUE(has_step(device, backward_text("f16", 4096, 4096, 16, 8, ""), "one kernel"));
  EXPECT_FALSE(has_step(device, backward_text("bf16", 1024, 1024, 8, 8, ""), "one kernel"));
  if (compiler_problem().empty()) {
    EXPECT_GT(device.functions().compile_waiting(), 8u);
  }
}

TEST(CudaAttentionPipeline, the_copy_engine_wants_even_strides_and_no_repeated_axis) {
  const auto is_possible = [](HeadStrides strides, int64_t batch, int64_t rows, int64_t lanes) {
    return HeadMap{{strides, batch, rows, lanes}, 2, true}.is_possible();
  };
  EXPECT_TRUE(is_possible({25600, 64, 128}, 2, 200, 64));
  EXPECT_TRUE(is_possible({0, 64, 128}, 1, 200, 64));  // one text: its stride is never used
  EXPECT_FALSE(is_possible({0, 64, 128}, 2, 200, 64));
  EXPECT_FALSE(is_possible({25600, 0, 128}, 2, 200, 64));
  EXPECT_FALSE(is_possible({25600, 64, 100}, 2, 200, 64));
  EXPECT_FALSE(is_possible({-25600, 64, 128}, 2, 200, 64));
  EXPECT_FALSE(is_possible({25600, 96, 192}, 2, 200, 96));
}

class AttentionPipelineOnDevice : public test::OnDevice {
 protected:
  static NamedLiterals leaves_of(const ir::Graph& g) {
    NamedLiterals out;
    uint64_t seed = 21;
    for (const ir::NodeId id : g.leaves()) {
      const std::string& name = ir::leaf_name(g.node(id));
      const std::string range = name == "lse" ? " in 3..5" : name == "m" ? "" : " in -1..1";
      out.emplace(name, ir::sample_literal(cat(g.node(id).shapes[0]) + range, ++seed));
    }
    return out;
  }
};

// Rows and keys that fill tiles, that do not, more queries than keys and fewer.
TEST_F(AttentionPipelineOnDevice, scores_that_are_scaled_products) {
  for (const char* type : {"bf16", "f16"}) {
    for (const int64_t lanes : {64, 128}) {
      for (const char* kind : {"", ", mask_kind=causal"}) {
        for (const auto& [queries, keys] : {std::pair(256, 256), {257, 70}, {400, 700}, {700, 400}}) {
          const Forward c{.type = type, .queries = queries, .keys = keys, .lanes = lanes, .attributes = kind};
          SCOPED_TRACE(c.text());
          const ir::Graph g = test::graph(c.text());
          test::expect_as_interpreted(g, leaves_of(g), 1e-9);
          if (HasFailure()) return;
        }
      }
    }
  }
}

// A mask that all heads share: keys behind a query, a band, whole tiles in the middle, nothing for some queries, every third key.
TEST_F(AttentionPipelineOnDevice, masks_that_all_heads_share) {
  constexpr int64_t kQueries = 330, kKeys = 520;
  const std::function<bool(int64_t, int64_t)> masks[] = {
      [](int64_t i, int64_t j) { return j <= i + 100; },
      [](int64_t i, int64_t j) { return j <= i + 190 && j > i + 60; },
      [](int64_t i, int64_t j) { return (j < 64 || j >= 384) && j <= i + 190; },
      [](int64_t i, int64_t j) { return (i < 64 || i > 200) && j >= 300; },
      [](int64_t i, int64_t j) { return (i + j) % 3 == 0; },
  };
  for (const int64_t lanes : {64, 128}) {
    for (const char* kind : {"", ", mask_kind=causal"}) {
      const Forward c{.queries = kQueries,
                      .keys = kKeys,
                      .lanes = lanes,
                      .attributes = kind,
                      .mask = cat("bool[2,1,", kQueries, ",", kKeys, "]")};
      SCOPED_TRACE(c.text());
      const ir::Graph g = test::graph(c.text());
      for (size_t n = 0; n < std::size(masks); ++n) {
        SCOPED_TRACE(cat("mask ", n));
        NamedLiterals leaves = leaves_of(g);
        const auto bytes = leaves.at("m").mutable_bytes();
        for (int64_t e = 0; e < 2 * kQueries * kKeys; ++e)
          bytes[size_t(e)] = std::byte(
              masks[(n + size_t(e / kQueries / kKeys)) % std::size(masks)](e / kKeys % kQueries, e % kKeys));
        test::expect_as_interpreted(g, leaves, 1e-9);
        if (HasFailure()) return;
      }
    }
  }
}

// A mask that two layers read is looked at once.
std::string two_layers(int64_t queries, int64_t keys, int64_t batch) {
  const std::string q = cat("bf16[2,", queries, ",192]"), k = cat("bf16[2,", keys, ",64]");
  return cat(
      "graph @f(q: ", q, ", k: ", k, ", v: ", k, ", m: bool[", batch, ",1,", queries, ",", keys,
      "]) {\n  n = logical_not(m)\n  a:2 = attention(q, k, v, n, has_mask=true, num_heads=3, num_kv_heads=1)\n",
      "  b:2 = attention(a, k, v, n, has_mask=true, num_heads=3, num_kv_heads=1)\n  return b, l=b#1, n\n}");
}
TEST(CudaAttentionPipeline, a_mask_of_several_layers_is_looked_at_once) {
  const Device device("sm_90a", nullptr), older("sm_80", nullptr);
  EXPECT_TRUE(has_step(device, two_layers(256, 300, 2), "the mask as a table"));
  EXPECT_TRUE(has_step(device, two_layers(256, 300, 2), "tiles and bits of 256 x 300"));
  EXPECT_FALSE(has_step(device, two_layers(200, 300, 2), "the mask as a table"));
  EXPECT_FALSE(has_step(older, two_layers(256, 300, 2), "the mask as a table"));
  EXPECT_FALSE(has_step(device, Forward{.mask = "bool[2,1,256,256]"}.text(), "the mask as a table"));
}
// What the table of a mask means, which kernels and the interpreter both go by.
TEST(CudaAttentionPipeline, the_table_of_a_mask) {
  constexpr int64_t kRows = 256, kKeys = 300, kRowTiles = 4, kKeyTiles = 5;
  const Device device("sm_90a", nullptr);
  const auto open = [](int64_t i, int64_t j) {
    return j < 64 || (j < 128 && i < 100) || (j > 290 && i >= 192);
  };
  const auto grouped = device.grouped(test::graph(two_layers(kRows, kKeys, 1)));
  ASSERT_TRUE(grouped.has_value());
  const ir::Graph* body = nullptr;
  for (const ir::Node* n : grouped->nodes()) {
    if (n->is<ops::Fused>() && n->as<ops::Fused>().body->name() == kMaskTableGroup)
      body = n->as<ops::Fused>().body.get();
  }
  ASSERT_NE(body, nullptr);
  Literal mask = ir::sample_literal(cat("bool[1,1,", kRows, ",", kKeys, "]"), 1);
  for (int64_t e = 0; e < kRows * kKeys; ++e)
    mask.mutable_bytes()[size_t(e)] = std::byte(open(e / kKeys, e % kKeys));
  const Literals table = ir::interpret(*body, Literals{mask});
  ASSERT_EQ(table.size(), 2u);
  for (int64_t e = 0; e < kRowTiles * kKeyTiles; ++e) {
    const int64_t i = e / kKeyTiles, j = e % kKeyTiles;
    const int want = j == 0 ? 2 : j == 1 ? (i == 0 ? 2 : i == 1 ? 1 : 0) : j == 4 && i == 3 ? 1 : 0;
    EXPECT_EQ(int(table[0].bytes()[size_t(e)]), want) << i << ", " << j;
  }
  for (int64_t e = 0; e < kRows * kKeyTiles * 64; ++e) {
    const int64_t i = e / (kKeyTiles * 64), j = e % (kKeyTiles * 64);
    EXPECT_EQ((int(table[1].bytes()[size_t(e / 8)]) >> (e % 8)) & 1, j < kKeys && open(i, j))
        << i << ", " << j;
  }
}
TEST_F(AttentionPipelineOnDevice, a_mask_of_several_layers) {
  for (const auto& [queries, keys, batch] : {std::tuple(330, 520, 2), {256, 256, 1}, {270, 100, 1}}) {
    const ir::Graph g = test::graph(two_layers(queries, keys, batch));
    SCOPED_TRACE(cat(g));
    NamedLiterals leaves = leaves_of(g);
    const auto bytes = leaves.at("m").mutable_bytes();
    for (int64_t e = 0; e < batch * queries * keys; ++e) {
      const int64_t i = e / keys % queries, j = e % keys;
      bytes[size_t(e)] = std::byte(j > i || (j > 130 && j < 200) || (i > 70 && i < 75) || (j + i) % 200 == 3);
    }
    test::expect_as_interpreted(g, leaves, 1e-9);
    if (HasFailure()) return;
  }
}

TEST_F(AttentionPipelineOnDevice, gradients) {
  for (const char* type : {"bf16", "f16"}) {
    for (const char* kind : {"", ", mask_kind=causal"}) {
      for (const auto& [queries, keys] : {std::pair(256, 256), {300, 520}, {520, 300}}) {
        for (const int64_t kv_heads : {3, 1}) {
          const std::string text = backward_text(type, queries, keys, 3, kv_heads, kind);
          SCOPED_TRACE(text);
          const ir::Graph g = test::graph(text);
          test::expect_as_interpreted(g, leaves_of(g), 1e-9);
          if (HasFailure()) return;
        }
      }
    }
  }
}

// Heads side by side in one tensor, as a projection gives them; and at places that the copy engine cannot read.
TEST_F(AttentionPipelineOnDevice, parts_of_a_projection) {
  for (const int64_t start : {0, 8, 3}) {
    const ir::Graph g = test::graph(
        cat("graph @f(x: bf16[2,300,400]) {\n  q = narrow(x, axis=2, start=", start,
            ", len=128)\n  k = narrow(x, axis=2, start=", start + 128,
            ", len=128)\n  v = narrow(x, axis=2, start=", start + 256,
            ", len=128)\n  y:2 = attention(q, k, v, num_heads=2, mask_kind=causal)\n  return y, l=y#1\n}"));
    SCOPED_TRACE(cat(g));
    test::expect_as_interpreted(g, leaves_of(g), 1e-9);
  }
}

// All scores of a head at once: sizes that are no multiples of anything, keys that a mask hides, all of them for the second text.
TEST_F(AttentionPipelineOnDevice, short_rows) {
  const auto run = [](const Forward& c) {
    SCOPED_TRACE(c.text());
    const ir::Graph g = test::graph(c.text());
    NamedLiterals leaves = leaves_of(g);
    if (!c.mask.empty()) {
      std::vector<float> mask;
      for (int64_t e = 0; e < 2 * c.keys; ++e)
        mask.push_back(e < c.keys && e % 5 != 1 && e < c.keys - 3 ? 1.0f : 0.0f);
      leaves.at("m") = Literal::of<float>({2, c.keys}, mask);
    }
    test::expect_as_interpreted(g, leaves, 1e-9);
  };
  for (const auto& [queries, keys, lanes] :
       {std::tuple(128, 128, 32), {100, 128, 32}, {128, 77, 64}, {33, 120, 16}, {16, 16, 32}, {50, 20, 48}}) {
    for (const char* kind : {"", ", mask_kind=causal"}) {
      run({.queries = queries, .keys = keys, .lanes = lanes, .attributes = kind});
      run({.type = "f16",
           .queries = queries,
           .keys = keys,
           .lanes = lanes,
           .heads = 4,
           .kv_heads = 2,
           .attributes = kind,
           .mask = cat("f32[2,", keys, "]")});
      if (HasFailure()) return;
    }
  }
}

// Enough blocks of keys for one kernel, whose parts of dq are added in their order: what the interpreter gives, and the same numbers in every run.
TEST_F(AttentionPipelineOnDevice, gradients_of_many_heads) {
  if (device().gpu()->multiprocessors() < 100) GTEST_SKIP() << "sizes are for a whole GPU";
  const ir::Graph one = test::graph(backward_text("bf16", 256, 512, 50, 50, ", mask_kind=causal"));
  test::expect_as_interpreted(one, leaves_of(one), 1e-9);
  for (const char* kind : {"", ", mask_kind=causal"}) {
    for (const auto& [queries, keys, heads, kv_heads] :
         {std::tuple(512, 512, 52, 52), {1000, 700, 36, 36}, {520, 1100, 48, 24}}) {
      const std::string text = backward_text("bf16", queries, keys, heads, kv_heads, kind);
      SCOPED_TRACE(text);
      const ir::Graph g = test::graph(text);
      const NamedLiterals leaves = leaves_of(g);
      CompiledGraph f = rlx::compile(g, {}, {.device = "cuda"});
      const NamedLiterals first = f.run(leaves);
      for (int run = 0; run < 20; ++run) {
        for (const auto& [name, value] : f.run(leaves))
          EXPECT_TRUE(std::ranges::equal(value.bytes(), first.at(name).bytes())) << name;
        if (HasFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace rlx::cuda
