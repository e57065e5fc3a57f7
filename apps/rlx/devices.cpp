// rlx devices: where graphs can run.
#include "rlx/runtime/devices.h"
#include "apps/rlx/command.h"
#include "apps/rlx/output.h"
#include "rlx/base/json_write.h"
#include "rlx/base/text.h"
#include "rlx/runtime/attempt.h"
#include "rlx/runtime/table.h"

namespace rlx::cli {

void add_devices(Command app) {
  Command command = app.add_subcommand("devices", "list where graphs can run");
  const auto json = std::make_shared<bool>(false);
  command.add_flag("--json", *json, "as JSON");
  command.callback([json] {
    Table table({{"device"}, {"what it is"}});
    JsonWriter out({.indent = 2});
    out.begin_array();
    for (const std::string& name : device_names()) {
      auto device = attempt([&] { return &device_named(name); });
      const std::string what = device ? device.value()->description() : device.error()->message();
      table.add({name, device ? what : cat("not here: ", what)});
      out.begin_object();
      out.member("name", name);
      out.member("available", bool(device));
      out.member(device ? "description" : "reason", what);
      out.end_object();
    }
    out.end_array();
    print(*json ? out.take() + "\n" : table.text(""));
  });
}

}  // namespace rlx::cli
