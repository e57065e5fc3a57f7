#include "rlx/ops/all.h"

namespace rlx::ops {
namespace {

template <class... Ops>
void add_all(OpTable& t, OpList<Ops...>) {
  (t.add(def<Ops>()), ...);
}

OpTable build() {
  OpTable t;
  add_all(t, All{});
  return t;
}

}  // namespace

const OpTable& table() {
  static const OpTable t = build();
  return t;
}

}  // namespace rlx::ops
