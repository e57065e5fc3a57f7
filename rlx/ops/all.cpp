#include "rlx/ops/all.h"

#include "rlx/ir/build_def.h"
#include "rlx/ops/make_records.h"

namespace rlx::ops {
namespace {

OpTable build() {
  OpTable t;
  for (const RecordOf& r : all_records(All{})) {
    RLX_CHECK(&r.by_type() == &r.by_name(), r.by_name().name, " is not the record of its name");
    t.add(r.by_type());
  }
  return t;
}

}  // namespace

const OpTable& table() {
  static const OpTable t = build();
  return t;
}

}  // namespace rlx::ops
