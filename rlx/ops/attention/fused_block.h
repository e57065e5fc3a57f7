// A self-attention block and a whole post-norm encoder layer as single
// operators.
#pragma once

#include "rlx/ops/attention/attention.h"
#include "rlx/ops/elementwise/activation.h"

namespace rlx::ops {

struct FusedAttentionBlock {
  static constexpr std::string_view name = "fused_attention_block",
                                    summary = "Projection to q, k, v, masked attention, projection back.",
                                    operands = "hidden, qkv_w, out_w, mask, rest...";
  static constexpr std::string_view doc =
      "hidden [batch, seq, h], qkv_w [h, 3 heads head_dim], out_w [heads head_dim, h], mask [batch, seq] "
      "(blocked where < 0.5), then qkv_b, out_b if has_bias, then cos, sin if has_rope. q, k, v are the "
      "thirds of hidden qkv_w (+ qkv_b), q and k rotated by rope; y = attention(q, k, v, mask) out_w (+ "
      "out_b)";
  static constexpr Traits traits{.contraction = true};
  struct Attrs {
    int64_t num_heads = 1, head_dim = 0;
    bool has_bias = false, has_rope = false;
    static constexpr auto fields() {
      return std::tuple{
          field("num_heads", &Attrs::num_heads, "heads"),
          field("head_dim", &Attrs::head_dim, "lanes of a head; 0 reads it from out_w"),
          field("has_bias", &Attrs::has_bias, "qkv_b and out_b follow the mask"),
          field("has_rope", &Attrs::has_rope, "cos and sin tables, [rows, head_dim/2], come last")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct FusedTransformerLayer {
  static constexpr std::string_view name = "fused_transformer_layer",
                                    summary = "A post-norm encoder layer as in BERT.",
                                    operands = "hidden, rest...";
  static constexpr std::string_view doc =
      "Operands with bias: hidden, qkv_w, qkv_b, out_w, out_b, ln1_g, ln1_b, fc1_w, fc1_b, fc2_w, fc2_b, "
      "ln2_g, ln2_b, mask; without, the four biases qkv_b, out_b, fc1_b, fc2_b are left out and the norms "
      "keep theirs (10 operands). x = layer_norm(hidden + fused_attention_block(hidden)); y = layer_norm(x + "
      "activation(x fc1_w + fc1_b) fc2_w + fc2_b)";
  static constexpr Traits traits{.contraction = true};
  struct Attrs {
    int64_t num_heads = 1, head_dim = 0, intermediate_size = 0;
    double eps1 = 1e-12, eps2 = 1e-12;
    Activation activation = Activation::gelu;
    bool has_bias = true;
    static constexpr auto fields() {
      return std::tuple{field("num_heads", &Attrs::num_heads, "heads"),
                        field("head_dim", &Attrs::head_dim, "lanes of a head; 0 reads it from out_w"),
                        field("intermediate_size", &Attrs::intermediate_size,
                              "width between fc1 and fc2; 0 reads it from fc1_w"),
                        field("eps1", &Attrs::eps1, "added to the variance of the first norm"),
                        field("eps2", &Attrs::eps2, "added to the variance of the second norm"),
                        field("activation", &Attrs::activation, "between fc1 and fc2"),
                        field("has_bias", &Attrs::has_bias, "the four linear maps have biases")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

/// Biases and tables may be empty, in pairs.
Expr fused_attention_block(Expr hidden, Expr qkv_w, Expr out_w, Expr mask, Expr qkv_b, Expr out_b, Expr cos,
                           Expr sin, int64_t num_heads, int64_t head_dim);
/// `weights` as listed in the operator's document, after hidden; attrs.has_bias
/// tells 13 from 9.
Expr fused_transformer_layer(Expr hidden, const Exprs& weights, FusedTransformerLayer::Attrs attrs);

}  // namespace rlx::ops
