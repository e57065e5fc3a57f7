// The operators for programs that only run: without reference rules, decompositions, derivatives, samples. Linked in front of rlx/ops, whose
// own records then stay out; each has a section of its own, so that a program has those it names.
#include "rlx/ir/plain_def.h"
#include "rlx/ops/make_records.h"

namespace rlx::ir {

template <OpRecord Op>
const OpDef& def() {
  static const OpDef d = detail::filled(&fill_plain_def<Op>);
  return d;
}

}  // namespace rlx::ir

namespace rlx::ops {

// Nobody calls it: it is here for the functions that it names.
std::span<const RecordOf> plain_records() {
  static const auto records = all_records(All{});
  return records;
}

}  // namespace rlx::ops
