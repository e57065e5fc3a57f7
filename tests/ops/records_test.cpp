// What records claim beyond their rules, held against a list.
#include <gtest/gtest.h>

#include <set>

#include "rlx/ops/all.h"

namespace rlx::ops {
namespace {

TEST(Records, every_operator_that_sums_products_is_a_contraction) {
  const std::set<std::string_view> wanted{"matmul",
                                          "dot_general",
                                          "einsum",
                                          "conv",
                                          "conv1d",
                                          "conv2d",
                                          "conv3d",
                                          "conv_transpose1d",
                                          "conv_transpose2d",
                                          "conv_transpose3d",
                                          "conv2d_backward_input",
                                          "conv2d_backward_weight",
                                          "depthwise_conv1d_causal",
                                          "attention",
                                          "attention_backward",
                                          "paged_attention",
                                          "fused_attention_block",
                                          "fused_transformer_layer",
                                          "fused_matmul_bias_act",
                                          "lora_matmul",
                                          "grouped_matmul",
                                          "grouped_outer",
                                          "q_matmul",
                                          "q_conv2d",
                                          "scaled_matmul",
                                          "dequant_matmul",
                                          "dequant_matmul_transposed",
                                          "dequant_grouped_matmul",
                                          "linear",
                                          "linear_fused",
                                          "shared_linear_pair",
                                          "swiglu_ffn",
                                          "llama_decoder_block",
                                          "qwen35_mtp_head",
                                          "gated_delta_net",
                                          "gated_delta_net_carry"};
  for (const auto& [name, op] : table().all())
    EXPECT_EQ(op->traits.contraction, wanted.contains(name)) << name;
}

// Random numbers follow from key and counter, so even they may be run again or merged.
TEST(Records, every_operator_is_pure) {
  for (const auto& [name, op] : table().all()) EXPECT_TRUE(op->traits.pure) << name;
}

TEST(Records, what_commutes_says_so) {
  const std::set<std::string_view> wanted{"add",         "mul",        "max",         "min",
                                          "logical_and", "logical_or", "logical_xor", "bitwise_and",
                                          "bitwise_or",  "bitwise_xor"};
  for (const auto& [name, op] : table().all())
    EXPECT_EQ(op->traits.commutative, wanted.contains(name)) << name;
}

}  // namespace
}  // namespace rlx::ops
