// Post-processors: special tokens around one text or two.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/text/encoding.h"
#include "rlx/text/value.h"

namespace rlx::text {

/// How a token is spelled: in the vocabulary, or an added one as it stands in the text, spaces that it takes included.
using Spelling = std::function<std::string_view(TokenId, std::string_view in_text)>;

class PostProcessor {
 public:
  virtual ~PostProcessor() = default;
  /// How many tokens `process` will add for one text or a pair.
  virtual size_t added(bool pair) const = 0;
  /// Takes what a token has of the spaces around it out of its offsets, which are ranges of `sources`. Comes before
  /// `process`, while each text has an encoding of its own.
  virtual void trim(std::vector<Encoding>&, std::span<const std::string_view>, const Spelling&) const {}
  /// Turns the encodings of one or two texts into what the model gets; they are joined afterwards.
  virtual void process(std::vector<Encoding>& texts, bool add_special) const = 0;
};

using PostProcessorPtr = std::unique_ptr<PostProcessor>;

/// From the `post_processor` object of a tokenizer.json; `where` is its path in messages.
PostProcessorPtr make_post_processor(const Value& config, const std::string& where);

// For loaders of other formats: [prefix] A [suffix], and for a pair [prefix] A [middle] B [suffix].
PostProcessorPtr make_frame(std::vector<TokenId> prefix, std::vector<TokenId> middle,
                            std::vector<TokenId> suffix, bool second_type_id);

}  // namespace rlx::text
