#include "apps/rlx/device.h"

#include "rlx/runtime/devices.h"

namespace rlx::cli {

Argument add_device(Command command, std::string& device) {
  return command.add_option("--device", device,
                            cat("where to run: ", join(device_names()),
                                ", or auto, the GPU where there is one; see 'rlx devices'"));
}

std::string open_device(const std::string& device) { return std::string(device_named(device).name()); }

}  // namespace rlx::cli
