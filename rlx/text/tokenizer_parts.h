// What a tokenizer is made of. Loaders fill this in; everything but the model may be absent.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "rlx/text/added_tokens.h"
#include "rlx/text/decoder.h"
#include "rlx/text/model.h"
#include "rlx/text/normalizer.h"
#include "rlx/text/post_processor.h"
#include "rlx/text/pretokenizer.h"
#include "rlx/text/tokenizer.h"

namespace rlx::text {

struct TokenizerParts {
  NormalizerPtr normalizer;
  PreTokenizerPtr pretokenizer;
  std::unique_ptr<Model> model;
  std::vector<AddedToken> added;
  PostProcessorPtr post_processor;
  std::optional<Decoder> decoder;  // without one, tokens are joined by spaces
  bool clean_spaces = false;       // what DecodeOptions::clean_spaces asks for applies to this tokenizer
  std::optional<Truncation> truncation;
  std::optional<Padding> padding;
};

}  // namespace rlx::text
