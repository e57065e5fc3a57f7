// rlx devices: where graphs can run.
#include "rlx/runtime/devices.h"
#include "apps/rlx/command.h"
#include "apps/rlx/output.h"
#include "rlx/base/text.h"
#include "rlx/runtime/attempt.h"

namespace rlx::cli {

void add_devices(Command app) {
  Command command = app.add_subcommand("devices", "list where graphs can run");
  command.callback([] {
    for (const std::string& name : device_names()) {
      const auto device = attempt([&] { return &device_named(name); });
      print(cat(name, device ? std::string() : cat("  not here: ", device.error()->message()), "\n"));
    }
  });
}

}  // namespace rlx::cli
