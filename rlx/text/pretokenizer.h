// Pre-tokenisers: they cut the normalised text into the words a model sees, and may rewrite it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/text/tracked_text.h"
#include "rlx/text/value.h"

namespace rlx::text {

/// The text between two added tokens and the words found in it so far. Words are in order, do not overlap and
/// are not empty; bytes outside every word are dropped.
struct Pieces {
  TrackedText text;
  std::vector<Range> words;

  void reset(std::string_view source, uint32_t offset, bool track) { text.reset(source, offset, track); }
  /// One word: the whole text.
  void start() {
    words.clear();
    if (!text.view().empty()) words.push_back({0, uint32_t(text.view().size())});
  }
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void apply(Pieces& pieces) const = 0;

  /// A byte-level pre-tokeniser ends by writing each byte as a printable character. When it stands last, the
  /// model can take the bytes as they are: then this returns true and the rewriting no longer happens.
  virtual bool leave_bytes() { return false; }
};

using PreTokenizerPtr = std::unique_ptr<PreTokenizer>;

/// From the `pre_tokenizer` object of a tokenizer.json; `where` is its path in messages.
PreTokenizerPtr make_pretokenizer(const Value& config, const std::string& where);

enum class PrependScheme { first, never, always };
PrependScheme read_prepend_scheme(const Fields& metaspace);

// For loaders of other formats.
PreTokenizerPtr make_pretokenizer_sequence(std::vector<PreTokenizerPtr> parts);
/// Cuts at the matches of the pattern and between them.
PreTokenizerPtr make_split(std::string_view pattern);
PreTokenizerPtr make_digits(bool individual);
/// The last step of byte-level BPE: bytes to characters.
PreTokenizerPtr make_byte_level(bool add_prefix_space, bool use_pattern);
PreTokenizerPtr make_metaspace(PrependScheme scheme);
PreTokenizerPtr make_bert_pretokenizer();

}  // namespace rlx::text
