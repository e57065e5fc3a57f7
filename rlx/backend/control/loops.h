// The steps of control flow.
#pragma once

#include "rlx/backend/kernel.h"

namespace rlx::backend {

std::unique_ptr<Step> prepare_scan(const Request&);
std::unique_ptr<Step> prepare_while(const Request&);
std::unique_ptr<Step> prepare_if(const Request&);
std::unique_ptr<Step> prepare_call(const Request&);

}  // namespace rlx::backend
