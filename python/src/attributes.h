// Keyword arguments of Python and attributes of operators.
#pragma once

#include <nanobind/nanobind.h>

#include "rlx/ir/op_def.h"

namespace rlx::python {

namespace nb = nanobind;

/// The attributes of an operator from keywords, over its defaults. Unknown names and wrong kinds are user errors.
ir::AttrsRef attributes_from(const ir::OpDef&, nb::dict keywords);
/// The value of an attribute as a keyword would give it; None where it is absent.
nb::object object_of(const ir::AttrValue&);

}  // namespace rlx::python
