// Decoders: from the spelling of tokens back to text.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/text/value.h"

namespace rlx::text {

/// One step of a decoder. Steps run one after the other over the list of tokens.
struct DecodeStep {
  enum class Kind {
    each,           // rewrites each token for itself
    byte_fallback,  // runs of <0xNN> tokens become the characters they spell
    fuse,           // all tokens become one
    list,           // rewrites the list as a whole
  };
  Kind kind;
  std::function<void(std::string& token, bool first)> rewrite = nullptr;         // for `each`
  std::function<void(std::vector<std::string>& tokens)> rewrite_list = nullptr;  // for `list`
};

using Decoder = std::vector<DecodeStep>;

/// From the `decoder` object of a tokenizer.json; `where` is its path in messages.
Decoder make_decoder(const Value& config, const std::string& where);

/// Runs the steps from `begin` on and joins what is left.
std::string run_decoder(const Decoder& decoder, size_t begin, std::vector<std::string> tokens);

/// Throws when a decoder makes more than `limit` bytes; see growth_limit().
void check_growth(size_t bytes, size_t limit);

/// Takes out the spaces before . , ? ! and before 's 'm 're 've, and those around a lone apostrophe.
void clean_spaces(std::string& text);

/// The characters a run of byte tokens spells, or U+FFFD for each byte when they spell none.
void append_fallback_bytes(std::string& out, std::string_view bytes);

// For loaders of other formats.
Decoder make_byte_level_decoder();
/// Bytes, and a space where a token ends in the suffix that marks the end of a word.
Decoder make_suffix_decoder(std::string suffix);
Decoder make_plain_decoder();  // tokens stand for themselves, next to each other
Decoder make_wordpiece_decoder(std::string prefix, bool cleanup);
/// ▁ to space, byte tokens to characters, and one leading space away where the encoder put it; all of them
/// where the encoder leaves none.
Decoder make_sentencepiece_decoder(bool strip_leading_space, bool remove_extra_spaces);

}  // namespace rlx::text
