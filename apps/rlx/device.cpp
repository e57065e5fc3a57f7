#include "apps/rlx/device.h"

#include "rlx/runtime/devices.h"

namespace rlx::cli {

namespace {

std::string choices() { return join(device_names()) + ", or auto, the GPU where there is one"; }

}  // namespace

Argument add_device(Command command, std::string& device) {
  return command.add_option("--device", device, cat("where to run: ", choices(), "; see 'rlx devices'"));
}

Argument add_target(Command command, std::string& device) {
  return command.add_option(
      "--device", device,
      cat("what to compile for: ", choices(), "; cuda:sm_90a, cuda:sm_80, ..: without a GPU"));
}

std::string open_device(const std::string& device) { return std::string(device_named(device).name()); }

}  // namespace rlx::cli
