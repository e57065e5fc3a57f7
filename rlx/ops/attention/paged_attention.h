// Attention over keys and values that lie in pages of a store many texts share.
//
// Text b has its tokens in pages pages[b, 0], pages[b, 1], ..: key j lies in slot pages[b, j / page] * page + j % page of
// the store. Where a query stands in its text is given, so texts of different lengths meet in one node.
#pragma once

#include <optional>

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct PagedAttention {
  static constexpr std::string_view name = "paged_attention",
                                    summary = "Attention over keys and values in pages.",
                                    operands = "q, k, pages, positions, v?";
  static constexpr std::string_view doc =
      "q [batch, seq, heads * head_dim]; k [slots, kv_heads * head_dim] and v [slots, kv_heads * value_dim], "
      "plain or in blocks of `scheme`; pages [batch, n]: key j of row b is row pages[b, j / page] * page + j % page "
      "of k and v; positions [batch, seq]: a query at p sees keys p - window + 1 .. p, all up to p without a "
      "window, none where p is negative, which gives 0. Without v the values of a head are the first value_dim "
      "lanes of its keys. Otherwise as attention; every position is below n * page";
  static constexpr Traits traits{.contraction = true};
  struct Attrs {
    int64_t num_heads = 1, num_kv_heads = 0, head_dim = 0, value_dim = 0, page = 1, window = 0;
    std::optional<double> score_scale, attn_logit_softcap;
    std::string scheme;
    static constexpr auto fields() {
      return std::tuple{
          field("num_heads", &Attrs::num_heads, "heads of q"),
          field("num_kv_heads", &Attrs::num_kv_heads,
                "heads of k and v, which divide num_heads; 0 means num_heads"),
          field("head_dim", &Attrs::head_dim, "lanes of a head of q and k; 0 reads it from q"),
          field("value_dim", &Attrs::value_dim, "lanes of a head of v; 0 means head_dim"),
          field("page", &Attrs::page, "slots of a page"),
          field("window", &Attrs::window, "keys that are seen, the query's own among them; 0: all before"),
          field("score_scale", &Attrs::score_scale,
                "factor of the products; 1 / sqrt(head_dim) when left out"),
          field("attn_logit_softcap", &Attrs::attn_logit_softcap,
                "cap c: s becomes c tanh(s / c); 0 means none"),
          field("scheme", &Attrs::scheme,
                "how rows of u8 stores hold numbers: gguf_q8_0; empty for plain types")};
    }
    double scale() const;
  };
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static double operations(std::span<const Shape> in, std::span<const Shape> out, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

}  // namespace rlx::ops
