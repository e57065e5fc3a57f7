// Texts to train on, with the tokens that are to be learnt.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rlx/models/model.h"
#include "rlx/text/tokenizer.h"

namespace rlx::llm {

/// A text as tokens; learnt[i] says whether token i counts in the loss of predicting it.
struct TrainingText {
  std::vector<text::TokenId> ids;
  std::vector<uint8_t> learnt;
};

/// The texts of a file, as tokens.
struct TrainingTexts {
  std::vector<TrainingText> texts;
  int64_t cut = 0;  // texts that were longer than `length`

  /// Tokens of the longest.
  int64_t longest() const;
};

/// A .jsonl file has one text in each line:
///   {"messages": [{"role": .., "content": ..}, ..]}   by the model's chat template; answers of the assistant are learnt
///   {"prompt": .., "completion": ..}                  the completion and the end of text are learnt
///   {"text": ..}                                      all is learnt
/// Any other file is one text, cut into pieces of `length` tokens. Texts of a .jsonl that are longer lose their end. A line that is none of
/// these is a user error that names it.
TrainingTexts read_training_texts(const std::string& path, const models::Model&, int64_t length);

}  // namespace rlx::llm
