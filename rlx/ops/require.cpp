#include "rlx/ops/require.h"

namespace rlx::ops {

void require_dims(ir::Infer& c, int i, const Dims& want, std::string_view why) {
  const Shape& x = c.in(i);
  bool ok = x.dims().size() == want.size();
  for (size_t k = 0; ok && k < want.size(); ++k) ok = decide_equal(x.dims()[k], want[k]) != false;
  if (!ok) c.fail(c.operand_name(i), ": ", x, " must be ", x.with_dims(want), why.empty() ? "" : " ", why);
  for (size_t k = 0; k < want.size(); ++k) c.same(x.dims()[k], want[k], "sizes");
}

}  // namespace rlx::ops
