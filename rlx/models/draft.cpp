#include "rlx/models/draft.h"

namespace rlx::models {

Tensor draft_input(Net& net) {
  const Tensor e =
      net.rms_norm("draft_embed_norm", net.embed(net.has("draft_embed") ? "draft_embed" : "embed"));
  const Tensor h = net.rms_norm("draft_hidden_norm", net.draft_hidden());
  return net.linear("draft_in", concat({e, h}, {.axis = 2}), net.c.hidden);
}

void finish_draft(Net& net, const Tensor& x) {
  net.finish_decoder(net.rms_norm(net.has("draft_norm") ? "draft_norm" : "norm", x));
}

}  // namespace rlx::models
