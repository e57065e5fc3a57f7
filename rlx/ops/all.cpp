#include "rlx/ops/all.h"

#include "rlx/ops/attention/paged_attention.h"
#include "rlx/ops/quant/encode_blocks.h"

namespace rlx::ops {
namespace {

// Operators that few files name; those have the header of the operator instead of all.h.
using Special = OpList<EncodeBlocks, PagedAttention>;

template <class... Ops>
void add_all(OpTable& t, OpList<Ops...>) {
  (t.add(def<Ops>()), ...);
}

OpTable build() {
  OpTable t;
  add_all(t, All{});
  add_all(t, Special{});
  return t;
}

}  // namespace

const OpTable& table() {
  static const OpTable t = build();
  return t;
}

}  // namespace rlx::ops
