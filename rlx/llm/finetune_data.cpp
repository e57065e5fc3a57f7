#include "rlx/llm/finetune_data.h"

#include <algorithm>
#include <optional>

#include "rlx/base/error.h"
#include "rlx/base/file.h"
#include "rlx/text/chat_template.h"
#include "rlx/text/json.h"

namespace rlx::llm {

using text::TokenId;
using text::Value;

int64_t TrainingTexts::longest() const {
  size_t out = 0;
  for (const TrainingText& t : texts) out = std::max(out, t.ids.size());
  return int64_t(out);
}

namespace {

class Reader {
 public:
  Reader(const std::string& path, const models::Model& model)
      : path_(path), model_(model), tokenizer_(model.file().tokenizer()) {}

  TrainingText line(std::string_view json, int64_t number) {
    where_ = cat("'", path_, "' line ", number);
    const Value v = text::parse_json(json, where_);
    if (!v.is_dict()) fail("an object expected, got a ", v.kind_name());
    const text::Dict& d = v.as_dict();
    if (const Value* messages = d.find("messages")) return conversation(*messages);
    if (d.find("prompt") != nullptr) return completion(string_of(d, "prompt"), string_of(d, "completion"));
    if (d.find("text") != nullptr) return plain(string_of(d, "text"));
    fail("'messages', 'prompt' and 'completion', or 'text' expected");
  }

  TrainingText plain(const std::string& text) {
    TrainingText out{tokenizer_.encode(text).ids, {}};
    out.learnt.assign(out.ids.size(), 1);
    return out;
  }

 private:
  template <class... T>
  [[noreturn]] void fail(const T&... what) const {
    throw invalid("finetune: ", where_, ": ", what...);
  }

  std::string string_of(const text::Dict& d, const char* key) const {
    const Value* v = d.find(key);
    if (v == nullptr || !v->is_string()) fail("'", key, "' is missing or no string");
    return v->as_string();
  }

  TrainingText completion(const std::string& prompt, const std::string& answer) {
    TrainingText out{tokenizer_.encode(prompt).ids, {}};
    out.learnt.assign(out.ids.size(), 0);
    for (const TokenId id : tokenizer_.encode(answer, {.add_special = false}).ids) out.ids.push_back(id);
    if (!model_.config().eos.empty()) out.ids.push_back(TokenId(model_.config().eos.front()));
    out.learnt.resize(out.ids.size(), 1);
    return out;
  }

  std::string render(const text::List& messages, size_t count, bool ask) {
    if (!template_) {
      const io::ModelTemplate t = model_.file().chat_template();
      template_.emplace(text::ChatTemplate(t.source));
      options_.bos_token = t.bos_token;
      options_.eos_token = t.eos_token;
    }
    options_.add_generation_prompt = ask;
    return template_->render(Value(text::List(messages.begin(), messages.begin() + long(count))), options_);
  }

  // The answer is what its message adds to the text that asks for it.
  TrainingText conversation(const Value& list) {
    if (!list.is_list() || list.as_list().empty()) fail("'messages' is no list of messages");
    const text::List& messages = list.as_list();
    const std::string all = render(messages, messages.size(), false);
    std::vector<text::Range> answers;
    for (size_t i = 0; i < messages.size(); ++i) {
      const Value* role = messages[i].is_dict() ? messages[i].as_dict().find("role") : nullptr;
      if (role == nullptr || !role->is_string()) fail("message ", i, " has no 'role'");
      if (role->as_string() != "assistant") continue;
      const std::string asked = render(messages, i, true), answered = render(messages, i + 1, false);
      if (!answered.starts_with(asked) || !all.starts_with(answered))
        fail("the chat template changes what stands before message ", i, "; its answer cannot be told apart");
      answers.push_back({uint32_t(asked.size()), uint32_t(answered.size())});
    }
    if (answers.empty()) fail("there is no message of the role 'assistant' to learn");
    // The template writes the special tokens out, the first one too.
    const text::Encoding e = tokenizer_.encode(all, {.add_special = false, .offsets = true});
    TrainingText out{e.ids, std::vector<uint8_t>(e.ids.size(), 0)};
    for (size_t i = 0; i < e.ids.size(); ++i)
      for (const text::Range& a : answers)
        out.learnt[i] |= e.offsets[i].end > a.begin && e.offsets[i].begin < a.end;
    return out;
  }

  const std::string& path_;
  const models::Model& model_;
  text::Tokenizer tokenizer_;
  std::optional<text::ChatTemplate> template_;
  text::ChatOptions options_;
  std::string where_;
};

TrainingTexts pieces(TrainingText whole, int64_t length) {
  TrainingTexts out;
  const auto size = int64_t(whole.ids.size());
  for (int64_t at = 0; at < size; at += length) {
    const int64_t end = std::min(at + length, size);
    if (end - at < 2) break;  // nothing to predict
    out.texts.push_back({{whole.ids.begin() + at, whole.ids.begin() + end},
                         {whole.learnt.begin() + at, whole.learnt.begin() + end}});
  }
  return out;
}

}  // namespace

TrainingTexts read_training_texts(const std::string& path, const models::Model& model, int64_t length) {
  Reader reader(path, model);
  const std::string bytes = read_file(path);
  TrainingTexts out;
  if (!path.ends_with(".jsonl")) {
    out = pieces(reader.plain(bytes), length);
  } else {
    int64_t number = 0;
    for (size_t at = 0; at < bytes.size();) {
      const size_t end = std::min(bytes.find('\n', at), bytes.size());
      const std::string_view line = std::string_view(bytes).substr(at, end - at);
      at = end + 1;
      ++number;
      if (line.find_first_not_of(" \t\r") == line.npos) continue;
      TrainingText t = reader.line(line, number);
      if (int64_t(t.ids.size()) > length) {
        t.ids.resize(size_t(length)), t.learnt.resize(size_t(length));
        ++out.cut;
      }
      out.texts.push_back(std::move(t));
    }
  }
  // The first token is given, not predicted.
  for (TrainingText& t : out.texts)
    if (!t.learnt.empty()) t.learnt[0] = 0;
  std::erase_if(out.texts, [](const TrainingText& t) {
    return std::find(t.learnt.begin(), t.learnt.end(), uint8_t(1)) == t.learnt.end();
  });
  if (out.texts.empty())
    throw invalid("finetune: '", path, "' has nothing to learn within ", length, " tokens");
  return out;
}

}  // namespace rlx::llm
