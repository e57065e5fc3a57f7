// Tensors that stay on a device, as Python sees them.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "rlx/runtime/dlpack.h"

namespace rlx::python {

namespace nb = nanobind;

/// An immutable tensor in the memory of a device; that of other libraries is borrowed, never copied.
struct DeviceArray {
  std::shared_ptr<DlManagedTensor> value;
  const DlTensor& tensor() const { return value->tensor; }
};

void bind_device_array(nb::module_&);

}  // namespace rlx::python
