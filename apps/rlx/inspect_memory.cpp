#include "apps/rlx/inspect_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>

#include "apps/rlx/output.h"
#include "rlx/base/error.h"
#include "rlx/base/json.h"
#include "rlx/base/json_write.h"

namespace rlx::cli {
namespace {

// Anonymous memory and code of this process now: what a command needs besides the model.
int64_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  int64_t size = 0, resident = 0;
  in >> size >> resident;
  return resident * int64_t(::sysconf(_SC_PAGESIZE));
}

struct Told {
  llm::ModelMemory memory;
  int64_t process = 0;
};

// The tokenizer is made and the plans are drawn, as every command does that runs the model: those of a short text, whose caches are
// nothing beside them. Whether longer caches take memory before they are written is up to the system.
Told told(const io::ModelFile& file, const llm::MemoryQuestion& question) {
  const models::Model model(file);
  llm::MemoryQuestion brief = question;
  brief.context = std::min<int64_t>(question.context, 16);
  brief.batch = 1;
  Told out{llm::memory_of(model, brief), 0};
  std::optional<text::Tokenizer> tokenizer;
  try {
    tokenizer = file.tokenizer();
  } catch (const Error&) {
    // a model of ids alone
  }
  out.process = resident_bytes();
  out.memory = llm::memory_of(model, question);
  return out;
}

}  // namespace

std::string memory_text(const io::ModelFile& file, const llm::MemoryQuestion& question) {
  if (file.architecture().empty()) return {};
  try {
    const auto [m, process] = told(file, question);
    const auto line = [](const char* what, int64_t bytes, const std::string& note = {}) {
      return cat("  ", what, readable_bytes(bytes), note.empty() ? "" : "  ", note, "\n");
    };
    std::string out = cat("\nmemory at a context of ", m.context, " tokens, ", m.batch,
                          m.batch == 1 ? " text\n" : " texts\n");
    out += line("weights           ", m.file, "as the file has them");
    out += line("                  ", m.packed, "in forms that products read");
    if (m.given_back > 0)
      out += line("                 -", m.given_back, "of the file, given back once they are packed");
    if (m.derived > 0) out += line("                  ", m.derived, "computed of them");
    if (m.caches > 0)
      out += line("keys and values   ", m.caches,
                  cat(readable_bytes(int64_t(std::llround(m.cache_per_token))), " a token"));
    out += line("workspace         ", m.prompt_workspace, cat("prompts, ", m.chunk, " tokens at a time"));
    if (m.caches > 0) out += line("                  ", m.token_workspace, "single tokens");
    out += line("program           ", process, "this process, with the plans");
    return out + line("resident in all   ", m.total() + process);
  } catch (const Error& e) {
    return cat("memory        not told: ", e.message(), "\n");
  }
}

std::string with_memory(const std::string& json, const io::ModelFile& file,
                        const llm::MemoryQuestion& question) {
  if (file.architecture().empty()) return json;
  const Json object = Json::parse(json, "inspect");
  JsonWriter out({.indent = 2});
  out.begin_object();
  for (const auto [key, value] : object.members()) out.member(key, value);
  out.key("memory"), out.begin_object();
  try {
    const auto [m, process] = told(file, question);
    out.member("context", m.context);
    out.member("batch", m.batch);
    out.member("weights", m.file);
    out.member("packed_weights", m.packed);
    out.member("given_back_weights", m.given_back);
    out.member("derived_weights", m.derived);
    out.member("caches", m.caches);
    out.member("cache_per_token", m.cache_per_token);
    out.member("prompt_tokens", m.chunk);
    out.member("prompt_workspace", m.prompt_workspace);
    out.member("token_workspace", m.token_workspace);
    out.member("program", process);
    out.member("resident", m.total() + process);
  } catch (const Error& e) {
    out.member("not_told", e.message());
  }
  out.end_object();
  out.end_object();
  return out.take();
}

}  // namespace rlx::cli
