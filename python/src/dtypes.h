// Names of element types and extents, checked.
#pragma once

#include <string>

#include "rlx/base/dim.h"
#include "rlx/base/dtype.h"

namespace rlx::python {

/// An unknown name is a user error that lists the known ones.
DType dtype_named(const std::string& name);
/// The whole text is one extent: "7", "batch", "2*seq".
Dim dim_named(const std::string& text);

}  // namespace rlx::python
