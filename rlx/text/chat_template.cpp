#include "rlx/text/chat_template.h"

#include "rlx/base/error.h"
#include "rlx/text/template/evaluator.h"
#include "rlx/text/template/parser.h"

namespace rlx::text {

namespace {

constexpr size_t kMaxSource = size_t(4) << 20;

std::string_view checked(std::string_view source) {
  if (source.size() > kMaxSource)
    throw invalid("template: the source has ", source.size(), " bytes; at most ", kMaxSource);
  return source;
}

}  // namespace

struct ChatTemplate::Parsed {
  jinja::Block block;
};

ChatTemplate::ChatTemplate(std::string_view source)
    : parsed_(std::make_unique<Parsed>(Parsed{jinja::parse(checked(source))})) {}
ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

std::string ChatTemplate::render(const Value& messages, const ChatOptions& options) const {
  if (!messages.is_list()) throw invalid("template: messages must be a list, got ", messages.kind_name());
  Dict variables;
  variables.set("messages", messages);
  variables.set("tools", options.tools);
  variables.set("documents", options.documents);
  variables.set("add_generation_prompt", Value(options.add_generation_prompt));
  variables.set("bos_token", Value(options.bos_token));
  variables.set("eos_token", Value(options.eos_token));
  for (const auto& [name, value] : options.extra) variables.set_key(name, value);
  return render_with(variables, options.now);
}

std::string ChatTemplate::render_with(const Dict& variables, std::optional<std::tm> now) const {
  std::tm local{};
  if (now) {
    local = *now;
  } else {
    const std::time_t seconds = std::time(nullptr);
    localtime_r(&seconds, &local);
  }
  return jinja::evaluate(parsed_->block, variables, local);
}

}  // namespace rlx::text
