// A compilation as one HTML page that needs nothing beside it.
#pragma once

#include "rlx/runtime/stages.h"

namespace rlx {

/// The graph at every stage as text and, where it is not too large, as a picture; what each pass changed; the plan over time; the
/// kernels with the user's lines; who declined and what was not joined.
std::string html_page(const runtime::Stages&);

/// Buffers of a plan as rectangles: steps to the right, bytes of the arena upwards.
std::string plan_svg(const backend::Plan&);

}  // namespace rlx
