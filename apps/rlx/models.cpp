// rlx models: the models that have a name.
#include "apps/rlx/command.h"
#include "apps/rlx/model_arguments.h"
#include "apps/rlx/output.h"
#include "rlx/base/json_write.h"
#include "rlx/base/text.h"
#include "rlx/io/model_file.h"

namespace rlx::cli {

namespace {

std::string architecture_of(const std::string& path) {
  try {
    return io::ModelFile::open(path).architecture();
  } catch (const Error&) {
    return "unreadable";
  }
}

void list_models(bool json) {
  JsonWriter out({.indent = 2});
  out.begin_array();
  std::string table;
  for (const CachedModel& m : cached_models()) {
    const std::string architecture = architecture_of(m.path);
    out.begin_object();
    out.member("name", m.name);
    out.member("path", m.path);
    out.member("architecture", architecture);
    out.member("bytes", m.bytes);
    out.end_object();
    std::string name = m.name, kind = architecture;
    name.resize(std::max<size_t>(name.size(), 20), ' ');
    kind.resize(std::max<size_t>(kind.size(), 12), ' ');
    table += cat(name, " ", kind, " ", readable_bytes(m.bytes), "  ", m.path, "\n");
  }
  out.end_array();
  if (json) return print(out.take() + "\n");
  print(table.empty() ? cat("no models in ", model_cache(), "\n") : table);
}

}  // namespace

void add_models(Command app) {
  const auto json = std::make_shared<bool>(false);
  Command command = app.add_subcommand("models", "list the models in the cache by name");
  command.add_flag("--json", *json, "as JSON");
  command.callback([json] { list_models(*json); });
}

}  // namespace rlx::cli
