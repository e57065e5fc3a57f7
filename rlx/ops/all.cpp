#include "rlx/ops/all.h"

#include "rlx/ir/build_def.h"

namespace rlx::ops {
namespace {

// Every other source links to the functions whose addresses are taken here.
template <class... Ops>
void add_all(OpTable& t, OpList<Ops...>) {
  for (const OpDef& (*def_of)() : {&def<Ops>...}) t.add(def_of());
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
