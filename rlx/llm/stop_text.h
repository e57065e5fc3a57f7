// Texts that end a generation, found across the borders of tokens.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rlx::llm {

/// Hands on text piece by piece, but holds back what may be the start of a stop text.
class StopText {
 public:
  /// An empty stop text is a user error.
  explicit StopText(std::vector<std::string> stops);

  /// What is certain to stand before any stop text. After a stop text was found nothing more comes.
  std::string push(std::string_view piece);
  /// What was held back, when no more comes.
  std::string finish();
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace rlx::llm
