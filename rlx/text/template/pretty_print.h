// Values over several lines, as Python's pprint shows them.
#pragma once

#include <string>

#include "rlx/text/template/operations.h"

namespace rlx::text::jinja {

/// Dicts in the order of their keys; what does not fit in 80 columns has an element a line.
std::string pretty_printed(const Value& v, Place place, Budget& budget);

}  // namespace rlx::text::jinja
