#include "apps/rlx/model_arguments.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "apps/rlx/device.h"
#include "apps/rlx/precision.h"
#include "rlx/base/error.h"
#include "rlx/base/file.h"
#include "rlx/base/json.h"

namespace rlx::cli {

namespace fs = std::filesystem;

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

int64_t bytes_below(const fs::path& path) {
  if (!fs::is_directory(path)) return int64_t(fs::file_size(path));
  int64_t bytes = 0;
  for (const fs::directory_entry& e : fs::recursive_directory_iterator(path))
    if (e.is_regular_file()) bytes += int64_t(e.file_size());
  return bytes;
}

}  // namespace

std::string model_cache() {
  if (const std::string own = variable("RLX_MODELS"); !own.empty()) return own;
  if (const std::string xdg = variable("XDG_CACHE_HOME"); !xdg.empty()) return xdg + "/rlx/models";
  return variable("HOME") + "/.cache/rlx/models";
}

std::vector<CachedModel> cached_models() {
  std::vector<CachedModel> out;
  if (!fs::is_directory(model_cache())) return out;
  for (const fs::directory_entry& e : fs::directory_iterator(model_cache())) {
    const fs::path& path = e.path();
    if (e.is_directory() && fs::exists(path / "config.json")) {
      out.push_back({path.filename().string(), path.string(), bytes_below(path)});
    } else if (path.extension() == ".gguf") {
      out.push_back({path.stem().string(), path.string(), bytes_below(path)});
    }
  }
  std::sort(out.begin(), out.end(),
            [](const CachedModel& a, const CachedModel& b) { return a.name < b.name; });
  return out;
}

std::string cached_path(const std::string& given) {
  if (fs::exists(given)) return given;
  for (const CachedModel& m : cached_models()) {
    if (m.name == given) return m.path;
  }
  return given;
}

std::string model_path(const std::string& given) {
  if (fs::exists(given)) return given;
  std::string names;
  for (const CachedModel& m : cached_models()) {
    if (m.name == given) return m.path;
    names += (names.empty() ? "" : ", ") + m.name;
  }
  throw environment_error("model '", given, "' is no file, no folder and no name in ", model_cache(),
                          names.empty() ? std::string(", which is empty") : "; there are: " + names);
}

void add_activations(Command command, std::string& activations) {
  command
      .add_option("--activations", activations,
                  "in products with packed weights: rounded to 8 bits as llama.cpp does (auto), or f32")
      .one_of({"auto", "f32"});
}

void RunArguments::add(Command command) {
  command.add_option("MODEL", model, "GGUF file, folder, or a name that 'rlx models' lists").required();
  command.add_option("-c,--context", context, "tokens of prompt and answer together").positive();
  command.add_option("-t,--threads", threads, "threads; 0: all cores").not_negative();
  command.add_option("--kv,--kv-type", cache_type, "storage of keys and values: f32, f16, bf16 or q8_0");
  add_activations(command, activations);
  add_device(command, device);
  add_precision(command, precision);
}

llm::ModelOptions RunArguments::options() const {
  llm::ModelOptions o{.context = context};
  o.cache_type = models::CacheType::named(cache_type);
  o.round_activations = activations != "f32";
  o.compile.threads = threads;
  o.compile.precision = read_precision(precision, device);
  o.compile.device = open_device(device);
  return o;
}

void SamplingArguments::add(Command command) {
  llm::Sampling& s = sampling;
  command.add_option("--temp", s.temperature, "divides the logits; 0 takes the most likely token");
  command.add_option("--top-k", s.top_k, "keep the k most likely tokens; 0: all");
  command.add_option("--top-p", s.top_p, "keep the fewest tokens whose probabilities reach this");
  command.add_option("--min-p", s.min_p, "keep tokens with this part of the highest probability");
  command.add_option("--repeat-penalty", s.repetition_penalty, "of tokens that are in the text; 1: none");
  command.add_option("--frequency-penalty", s.frequency_penalty, "times the number of a token in the answer");
  command.add_option("--presence-penalty", s.presence_penalty, "of tokens that are in the answer");
  command.add_option("--seed", s.seed, "of the draws; the same seed gives the same text").not_negative();
  command.add_option("--logit-bias", biases, "ID=VALUE, added to the logit of a token; may be repeated");
}

llm::Sampling SamplingArguments::read() const {
  llm::Sampling s = sampling;
  for (const std::string& text : biases) {
    const size_t equals = text.find('=');
    int32_t id = 0;
    double value = 0;
    const char* const end = text.data() + text.size();
    const bool good = equals != text.npos &&
                      std::from_chars(text.data(), text.data() + equals, id).ptr == text.data() + equals &&
                      std::from_chars(text.data() + equals + 1, end, value).ptr == end &&
                      equals + 1 < text.size();
    if (!good) throw invalid("--logit-bias: '", text, "'; ID=VALUE expected");
    s.logit_bias[id] = value;
  }
  return s;
}

void GrammarArguments::add(Command command) {
  Argument a = command.add_option("--grammar", gbnf, "file with a GBNF grammar that the answer keeps to");
  Argument b =
      command.add_option("--json-schema", schema, "file with a JSON schema that the answer keeps to");
  Argument c = command.add_option("--regex", regex, "regular expression that the whole answer matches");
  a.excludes(b).excludes(c);
  b.excludes(c);
}

std::shared_ptr<const llm::Grammar> GrammarArguments::read() const {
  const auto keep = [](llm::Grammar g) { return std::make_shared<const llm::Grammar>(std::move(g)); };
  if (!gbnf.empty()) return keep(llm::Grammar::from_gbnf(read_file(gbnf)));
  if (!schema.empty()) return keep(llm::Grammar::from_json_schema(Json::read(schema)));
  if (!regex.empty()) return keep(llm::Grammar::from_regex(regex));
  return {};
}

std::string speed_line(const llm::Generation& g) {
  char text[160];
  std::snprintf(text, sizeof text,
                "%lld prompt tokens (%lld reused), first token %.3f s, %zu tokens, %.1f a second",
                (long long)g.prompt_tokens, (long long)g.reused_tokens, g.first_token_seconds,
                g.tokens.size(), g.tokens_per_second());
  return text;
}

}  // namespace rlx::cli
