// Every operator of the library by name. rlx/ops/all.h has the list behind it.
#pragma once

#include "rlx/ir/op_def.h"

namespace rlx::ops {

const ir::OpTable& table();

}  // namespace rlx::ops
