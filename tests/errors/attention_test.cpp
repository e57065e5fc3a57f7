#include <gtest/gtest.h>

#include "rlx/ops/attention/attention.h"
#include "rlx/ops/attention/paged_attention.h"
#include "tests/support/errors.h"

namespace rlx::ops {
namespace {

using test::message_of;

std::string refusal(const std::vector<std::string>& types, AttentionAttrs a) {
  return message_of([&] {
    Graph g;
    Values in;
    for (const auto& t : types) in.push_back(g.input(cat("x", in.size()), parse_shape(t)));
    make<Attention>(g, a, in);
  });
}

TEST(AttentionErrors, sizes_that_do_not_fit) {
  EXPECT_EQ(refusal({"f32[2,3,7]", "f32[2,3,6]", "f32[2,3,6]"}, {.num_heads = 2}),
            "attention: q: f32[2,3,7] does not divide into 2 heads; its last axis is heads * head_dim");
  EXPECT_EQ(refusal({"f32[2,3,6]", "f32[2,3,6]", "f32[2,4,6]"}, {.num_heads = 2}),
            "attention: k: f32[2,3,6] and v: f32[2,4,6] have 3 and 4 keys");
  EXPECT_EQ(refusal({"f32[2,3,6]", "f32[2,3,4]", "f32[2,3,4]"}, {.num_heads = 2}),
            "attention: k: f32[2,3,4] has 2 lanes per head; head_dim is 3");
  EXPECT_EQ(
      refusal({"f32[2,3,2,3]", "f32[2,3,2,3]", "f32[2,3,2,3]"}, {.num_heads = 2}),
      "attention: q: f32[2,3,2,3] has rank 4; layout bshd_packed is [batch, seq, heads * head_dim] or [seq, "
      "heads * head_dim]; give layout bshd or bhsd for four axes");
  EXPECT_EQ(
      refusal({"f32[2,3,2,3]", "f32[2,3,2,3]", "f32[2,3,2,3]"}, {.num_heads = 2, .layout = HeadLayout::bhsd}),
      "attention: q: f32[2,3,2,3] has 3 heads; it must have 2");
  EXPECT_EQ(refusal({"f32[2,3,6]", "f32[3,3,6]", "f32[2,3,6]"}, {.num_heads = 2}),
            "attention: batch sizes of q and k differ, 2 and 3");
}

TEST(AttentionErrors, heads_and_options_that_make_no_sense) {
  const std::vector<std::string> qkv(3, "f32[2,3,6]");
  EXPECT_EQ(refusal(qkv, {.num_heads = 3, .num_kv_heads = 2}),
            "attention: num_kv_heads 2 does not divide num_heads 3");
  EXPECT_EQ(refusal(qkv, {.num_heads = 0}), "attention: num_heads is 0; it must be 1 or more");
  EXPECT_EQ(refusal(qkv, {.mask_kind = MaskKind::sliding_window, .window = -1}),
            "attention: window is -1; it must be 0 or more (window + 1 keys are seen)");
  EXPECT_EQ(refusal(qkv, {.attn_logit_softcap = -1.0}),
            "attention: attn_logit_softcap is -1.0; it must be positive, or 0 for none");
  EXPECT_EQ(refusal({"i32[3,6]", "i32[3,6]", "i32[3,6]"}, {}),
            "attention: q: i32[3,6] has dtype i32; it must be f16, bf16, f32 or f64");
  EXPECT_EQ(refusal({"f32[3,6]", "f16[3,6]", "f32[3,6]"}, {}),
            "attention: dtypes differ, q: f32[3,6] and k: f16[3,6]; cast k to f32");
}

TEST(AttentionErrors, masks_and_biases_that_do_not_fit) {
  EXPECT_EQ(refusal({"f32[2,3,6]", "f32[2,4,6]", "f32[2,4,6]", "f32[2,3]"}, {.mask_kind = MaskKind::custom}),
            "attention: mask: f32[2,3] must be [2, 1, 3, 4] (batch, heads, queries, keys), any of the first "
            "three may be 1; or [2, 4] (batch, keys)");
  EXPECT_EQ(
      refusal({"f32[2,3,6]", "f32[2,4,6]", "f32[2,4,6]", "f32[2,2,3,4]"}, {.mask_kind = MaskKind::bias}),
      "attention: bias: f32[2,2,3,4] must be [2, 1, 3, 4] (batch, heads, queries, keys), any of the first "
      "three may be 1");
  EXPECT_EQ(refusal({"f32[3,6]", "f32[3,6]", "f32[3,6]", "f32[1,3]"}, {}),
            "attention: 4 operands given; with has_mask false and has_bias false it takes 3");
  EXPECT_EQ(refusal({"f32[3,6]", "f32[3,6]", "f32[3,6]"}, {.mask_kind = MaskKind::custom}),
            "attention: 3 operands given; with has_mask true and has_bias false it takes 4");
  Graph g;
  const Expr x{&g, g.input("x", parse_shape("f32[3,6]"))};
  EXPECT_EQ(message_of([&] { attention_kind(x, x, x, 1, 6, MaskKind::bias); }),
            "attention: mask_kind is bias and no bias is given");
  EXPECT_EQ(message_of([&] { attention_backward(AttentionWrt::bias, x, x, x, x, 1, 6, MaskKind::none); }),
            "attention_backward: the gradient of the bias needs mask_kind bias");
}

TEST(AttentionErrors, backward_wants_its_saved_tensors) {
  Graph g;
  const Expr x{&g, g.input("x", parse_shape("f32[3,6]"))}, lse{&g, g.input("lse", parse_shape("f32[1,1,4]"))};
  EXPECT_EQ(message_of([&] { make<AttentionBackward>(g, {}, {x, x, x, x, lse, lse}); }),
            "attention_backward: lse: f32[1,1,4] must be f32[1,1,3] (batch, heads, queries)");
}

TEST(AttentionErrors, pages_and_stores_that_do_not_fit) {
  const auto paged = [](const std::vector<std::string>& types, PagedAttention::Attrs a) {
    return message_of([&] {
      Graph g;
      Values in;
      for (const auto& t : types) in.push_back(g.input(cat("x", in.size()), parse_shape(t)));
      make<PagedAttention>(g, a, in);
    });
  };
  EXPECT_EQ(paged({"f32[2,3,4]", "f32[7,4]", "i32[2,3]", "i32[2,3]"}, {.num_heads = 2, .page = 2}),
            "paged_attention: k: f32[7,4] is no whole number of pages of 2");
  EXPECT_EQ(paged({"f32[2,3,4]", "f32[8,4]", "f32[2,3]", "i32[2,3]"}, {.num_heads = 2, .page = 2}),
            "paged_attention: pages: f32[2,3] must be i32 or i64");
  EXPECT_EQ(paged({"f32[2,3,4]", "f32[8,4]", "i32[2,3]", "i32[2,3]"}, {.num_heads = 2, .page = 0}),
            "paged_attention: page is 0; it must be 1 or more");
  EXPECT_EQ(
      paged({"f32[2,3,4]", "u8[8,34]", "i32[2,3]", "i32[2,3]"}, {.num_heads = 2, .scheme = "gguf_q8_0"}),
      "paged_attention: rows of 4 numbers are no whole blocks of gguf_q8_0");
}

}  // namespace
}  // namespace rlx::ops
