// Chat templates: a list of messages to the text a model was trained on.
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "rlx/text/value.h"

namespace rlx::text {

/// What a template sees beside the messages.
struct ChatOptions {
  bool add_generation_prompt = true;
  Value tools;      // a list, or none
  Value documents;  // a list, or none
  std::string bos_token, eos_token;
  Dict extra;                  // further variables, such as enable_thinking
  std::optional<std::tm> now;  // what strftime_now shows; the present time when not given
};

/// A Jinja template with trim_blocks and lstrip_blocks on, as chat templates are written. May be rendered
/// from several threads. What the template does wrong, or what is not part of the subset, is an error with
/// line and column; rendering has a limit of steps, text and depth.
class ChatTemplate {
 public:
  explicit ChatTemplate(std::string_view source);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  /// `messages` is a list of objects with `role` and `content`.
  std::string render(const Value& messages, const ChatOptions& options = {}) const;
  /// With the given variables and nothing else.
  std::string render_with(const Dict& variables, std::optional<std::tm> now = {}) const;

 private:
  struct Parsed;
  std::unique_ptr<Parsed> parsed_;
};

}  // namespace rlx::text
