// Normalisers: what happens to the text before it is cut into words.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "rlx/text/tracked_text.h"
#include "rlx/text/value.h"

namespace rlx::text {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(TrackedText& text) const = 0;
};

using NormalizerPtr = std::unique_ptr<Normalizer>;

/// From the `normalizer` object of a tokenizer.json; `where` is its path in messages.
NormalizerPtr make_normalizer(const Value& config, const std::string& where);

// For loaders of other formats.
NormalizerPtr make_normalizer_sequence(std::vector<NormalizerPtr> parts);
NormalizerPtr make_prepend(std::string text);
NormalizerPtr make_replace(std::string_view literal, std::string content);
NormalizerPtr make_bert_normalizer(bool lowercase, bool strip_accents, bool chinese = true);
/// What SentencePiece does with its table: the longest key at each place is replaced, then, where asked, runs
/// of spaces become one and those at both ends go.
NormalizerPtr make_sentencepiece(std::string_view charsmap, bool remove_extra_spaces,
                                 const std::string& where);

}  // namespace rlx::text
