// One layer of a Llama-like decoder as a block.
#pragma once

#include "rlx/ops/attention/attention.h"
#include "rlx/ops/block/block.h"

namespace rlx::ops {

struct LlamaDecoderBlock {
  static constexpr std::string_view
      name = "llama_decoder_block",
      summary = "Decoder layer of the Llama family (block).",
      operands = "x, ln1_g, ln1_b, q_w, k_w, v_w, o_w, ln2_g, ln2_b, up_w, gate_w, down_w, cos, sin, mask?";
  static constexpr std::string_view doc =
      "x is [batch, seq, hidden]. h = rms_norm(x); q, k, v = h q_w, h k_w, h v_w, the first two rotated by "
      "cos, sin [positions, head_dim / 2]; p = x + attention(q, k, v) o_w; y = p + swiglu(rms_norm(p)). "
      "num_kv_heads heads of k and v serve num_heads heads of q, adjacent heads sharing one. mask is the "
      "operand of mask_kind custom or bias";
  static constexpr Traits traits{.contraction = true, .block = true};
  struct Attrs {
    int64_t num_heads = 1;
    int64_t head_dim = 1;
    int64_t num_kv_heads = 0;
    double eps = 1e-5;
    MaskKind mask_kind = MaskKind::causal;
    int64_t window = 0;
    static constexpr auto fields() {
      return std::tuple{field("num_heads", &Attrs::num_heads, "heads of q"),
                        field("head_dim", &Attrs::head_dim, "width of a head, even"),
                        field("num_kv_heads", &Attrs::num_kv_heads, "heads of k and v; 0 means num_heads"),
                        field("eps", &Attrs::eps, "of both norms"),
                        field("mask_kind", &Attrs::mask_kind, "which keys a query sees"),
                        field("window", &Attrs::window, "of mask_kind sliding_window")};
    }
  };
  static Shapes infer(Infer& c, Attrs& a);
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

}  // namespace rlx::ops
