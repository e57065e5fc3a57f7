#include "rlx/runtime/devices.h"

#include "rlx/backend/cpu/nodes/device.h"
#include "rlx/backend/reference.h"
#if defined(RLX_CUDA)
#include "rlx/backend/cuda/device.h"
#endif
#include "rlx/runtime/session.h"

namespace rlx {

std::vector<std::string> device_names() {
#if defined(RLX_CUDA)
  return {"cpu", "cuda", "ref"};
#else
  return {"cpu", "ref"};
#endif
}

const backend::Backend& device_named(std::string_view name) {
  if (name == "cpu") return cpu::device();
#if defined(RLX_CUDA)
  if (name == "cuda") return cuda::device();
  constexpr std::string_view kWithout = "cuda:";
  if (name.starts_with(kWithout)) return cuda::device_for(name.substr(kWithout.size()));
#else
  if (name == "cuda")
    throw environment_error("device: this library was built without cuda; -DRLX_CUDA=ON adds it");
#endif
  if (name == "ref") return backend::ref();
  if (name == "auto") return device_named(available_devices().front());
  throw invalid("device: unknown device '", name, "'; known: ", join(device_names()), ", auto");
}

}  // namespace rlx
