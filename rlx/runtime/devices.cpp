#include "rlx/runtime/devices.h"

#include "rlx/backend/cpu/nodes/device.h"
#include "rlx/backend/cuda/device.h"
#include "rlx/backend/reference.h"

namespace rlx {

std::vector<std::string> device_names() { return {"cpu", "cuda", "ref"}; }

const backend::Backend& device_named(std::string_view name) {
  if (name == "cpu") return cpu::device();
  if (name == "cuda") return cuda::device();
  if (name == "ref") return backend::ref();
  throw invalid("device: unknown device '", name, "'; known: ", join(device_names()));
}

}  // namespace rlx
