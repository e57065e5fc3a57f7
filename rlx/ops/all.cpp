#include "rlx/ops/all.h"

namespace rlx::ops {
namespace {

template <class... Ops>
OpTable build(OpList<Ops...>) {
  OpTable t;
  (t.add(def<Ops>()), ...);
  return t;
}

}  // namespace

const OpTable& table() {
  static const OpTable t = build(All{});
  return t;
}

}  // namespace rlx::ops
