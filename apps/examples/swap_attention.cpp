// A model with another attention in its first layer: every key that is seen counts the same.
//   swap_attention MODEL
#include <cstdio>

#include "rlx/lang/operators.h"
#include "rlx/models/model.h"
#include "rlx/runtime/compiled_graph.h"

using namespace rlx;

namespace {

Tensor uniform_attention(const models::AttentionSite& site, const Tensor& q, const Tensor& k, const Tensor& v,
                         const Tensor& mask) {
  if (site.layer != 0) return {};  // as it was
  const Tensor seen = mask.cast(DType::f32).reshape({1, q.dim(1), k.dim(1)});
  const Tensor mean = seen.matmul(v) / seen.sum({2}, true);  // [batch, seq, kv_heads * lanes]
  const int64_t share = site.heads / site.kv_heads, lanes = v.dim(2).value() / site.kv_heads;
  return mean.reshape({q.dim(0), q.dim(1), site.kv_heads, 1, lanes})
      .expand({q.dim(0), q.dim(1), site.kv_heads, share, lanes})
      .reshape({q.dim(0), q.dim(1), site.heads * lanes});
}

Literal logits(const models::ModelGraph& g) {
  const Literal ids = Literal::of<int32_t>({1, 4}, {1, 2, 3, 4});
  return compile(g.graph, g.weights).run({{"input_ids", ids}}).at("logits");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::puts("usage: swap_attention MODEL"), 2;
  try {
    const models::Model model = models::open_model(argv[1]);
    const Literal before = logits(model.graph()),
                  after = logits(model.graph({.attention = uniform_attention}));
    const int64_t vocab = before.shape().dim(-1).value();
    std::printf("logit 0 of token 0: %.4f, now %.4f\n", before.real_at(0), after.real_at(0));
    std::printf("logit 0 of token 3: %.4f, now %.4f\n", before.real_at(3 * vocab), after.real_at(3 * vocab));
  } catch (const Error& e) {
    std::printf("%s\n", e.what());
    return 1;
  }
}
