// Numbers as Python writes them, which is how chat templates and json.dumps do.
#pragma once

#include <string>

namespace rlx::text {

/// repr() of a finite float: the shortest digits that read back, with an exponent below 1e-4 and from 1e16 on.
void append_python_float(std::string& out, double value);

}  // namespace rlx::text
