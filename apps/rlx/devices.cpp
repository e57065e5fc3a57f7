// rlx devices: where graphs can run.
#include "rlx/runtime/devices.h"
#include "apps/rlx/command.h"
#include "apps/rlx/output.h"
#include "rlx/base/json_write.h"
#include "rlx/base/text.h"
#include "rlx/runtime/attempt.h"

namespace rlx::cli {

void add_devices(Command app) {
  Command command = app.add_subcommand("devices", "list where graphs can run");
  const auto json = std::make_shared<bool>(false);
  command.add_flag("--json", *json, "as JSON");
  command.callback([json] {
    JsonWriter out({.indent = 2});
    out.begin_array();
    for (const std::string& name : device_names()) {
      const auto device = attempt([&] { return &device_named(name); });
      if (!*json)
        print(cat(name, device ? std::string() : cat("  not here: ", device.error()->message()), "\n"));
      out.begin_object();
      out.member("name", name);
      out.member("available", bool(device));
      if (!device) out.member("reason", device.error()->message());
      out.end_object();
    }
    out.end_array();
    if (*json) print(out.take() + "\n");
  });
}

}  // namespace rlx::cli
