// Tensors with contents, as Python sees them.
#pragma once

#include <nanobind/nanobind.h>

#include "rlx/ir/literal.h"
#include "rlx/runtime/view.h"

namespace rlx::python {

namespace nb = nanobind;

/// An immutable tensor on the host. Memory of NumPy and other libraries is borrowed, never copied.
struct Array {
  Literal value;
};

/// Extents as a tuple of numbers; a symbolic extent is its text.
nb::tuple tuple_of(const Shape&);
Dims dims_of(nb::handle sequence);

/// Anything with DLPack or the buffer protocol; null handles and other objects are an error.
Literal literal_from(nb::handle object);

void bind_array(nb::module_&);

}  // namespace rlx::python
