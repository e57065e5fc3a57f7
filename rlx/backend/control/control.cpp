#include "rlx/backend/control.h"

#include "rlx/backend/control/loops.h"
#include "rlx/ops/control/custom_fn.h"
#include "rlx/ops/control/if.h"
#include "rlx/ops/control/scan.h"
#include "rlx/ops/control/while.h"

namespace rlx::backend {
namespace {

Support accepts(const Request& r) {
  for (size_t i = 0; i < r.in.size(); ++i) {
    if (!r.in[i].is_row_major()) return Support::no("operand ", i, " is strided");
  }
  return Support::yes();
}

}  // namespace

void add_control(KernelTable& table) {
  table.add<ops::Scan>({"scan", accepts, prepare_scan});
  table.add<ops::While>({"while", accepts, prepare_while});
  table.add<ops::If>({"if", accepts, prepare_if});
  table.add<ops::CustomFn>({"call", accepts, prepare_call});
}

}  // namespace rlx::backend
