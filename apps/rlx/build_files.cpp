#include "apps/rlx/build_files.h"

#include <algorithm>

#include "apps/rlx/build_plan.h"
#include "apps/rlx/build_sources.h"
#include "rlx/backend/cpu/nodes/built_device.h"
#include "rlx/base/file.h"

namespace rlx::cli {
namespace {

using Words = std::vector<std::pair<std::string_view, std::string>>;

// Every word of the list, in one go: what is put in is not looked at again.
std::string filled(std::string_view text, const Words& words) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const auto word = std::find_if(words.begin(), words.end(),
                                   [&](const auto& w) { return text.substr(at).starts_with(w.first); });
    if (word == words.end()) {
      out += text[at++];
    } else {
      out += word->second;
      at += word->first.size();
    }
  }
  return out;
}

// A name inside of a comment: it neither ends it nor begins another.
std::string in_comment(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const char last = out.empty() ? ' ' : out.back();
    if ((last == '*' && c == '/') || (last == '/' && c == '*')) out += ' ';
    out += c;
  }
  return out;
}

std::string ports_text(const CompiledGraph& f, const std::vector<std::string>& opened) {
  std::string out;
  const auto add = [&](std::string_view list, const std::vector<Port>& ports) {
    for (size_t i = 0; i < ports.size(); ++i) {
      const bool open =
          list == "inputs" && std::find(opened.begin(), opened.end(), ports[i].name) != opened.end();
      out += cat("/* ", list, "[", i, "]: ", in_comment(ports[i].name), ", ", ports[i].shape, ", ",
                 ports[i].shape.size_bytes(), " bytes",
                 open ? ", a param that the graph came without a value for" : "", " */\n");
    }
  };
  add("inputs", f.inputs());
  add("outputs", f.outputs());
  return out;
}

}  // namespace

void write_program(CompiledGraph& f, const std::string& name, const std::string& folder,
                   const std::vector<std::string>& opened) {
  DataFile data(name + "_data");
  const BuiltPlan plan = built_plan(f, data);
  make_folders(folder);
  data.write(cat(folder, "/", name, ".weights"));
  const Words words = {{"NAME", name},
                       {"INPUTS", cat(f.inputs().size())},
                       {"OUTPUTS", cat(f.outputs().size())},
                       {"THREAD_COUNT", cat(plan.threads)},
                       {"PORTS", ports_text(f, opened)},
                       {"GRAPH", cpp_comment(plan.graph)},
                       {"SUMMARY", plan.summary},
                       {"FAMILIES", plan.families},
                       {"ARENA_BYTES", cat(plan.arena_bytes)},
                       {"MACHINE", cpu::machine_text()},
                       {"PLAN", plan.text}};
  const auto write = [&](std::string_view file, std::string_view text) {
    const std::string out = filled(text, words);
    write_file(cat(folder, "/", file), std::string_view(out));
  };
  write(name + ".h", kHeader);
  write(name + ".cpp", kSource);
  write("CMakeLists.txt", kCMake);
}

}  // namespace rlx::cli
