// rlx template: a conversation to the text a model expects.
#include <memory>

#include "apps/rlx/command.h"
#include "apps/rlx/output.h"
#include "rlx/base/error.h"
#include "rlx/io/model_text.h"
#include "rlx/text/json.h"

namespace rlx::cli {

namespace {

struct TemplateArguments {
  std::string model, name;
  bool no_generation_prompt = false;
};

// Standard input is a list of messages, or an object with `messages` and any other variables of the template.
void run(const TemplateArguments& a) {
  // The model first: who named a wrong one is not asked for messages.
  const io::ModelTemplate model = io::load_chat_template(a.model, a.name);
  const text::ChatTemplate chat(model.source);
  const text::Value value = text::parse_json(read_input(), "standard input");
  text::ChatOptions options;
  options.add_generation_prompt = !a.no_generation_prompt;
  options.bos_token = model.bos_token;
  options.eos_token = model.eos_token;
  text::Value messages = value;
  if (value.is_dict()) {
    const text::Value* list = value.as_dict().find("messages");
    if (!list) throw invalid("template: standard input has no field 'messages'");
    messages = *list;
    for (const auto& [name, v] : value.as_dict())
      if (name.as_string() != "messages") options.extra.set_key(name, v);
  }
  print(chat.render(messages, options));
}

}  // namespace

void add_template(Command app) {
  const auto a = std::make_shared<TemplateArguments>();
  Command command = app.add_subcommand(
      "template", "render the chat template of a model over messages (JSON) from standard input");
  command.add_option("MODEL", a->model, "GGUF file, model folder or a file with the template itself")
      .required();
  command.add_option("--name", a->name, "one of several templates, such as tool_use");
  command.add_flag("--no-generation-prompt", a->no_generation_prompt,
                   "do not open the answer of the assistant");
  command.callback([a] { run(*a); });
}

}  // namespace rlx::cli
