// What a GGUF file means by the name in `tokenizer.ggml.pre`: how byte-pair vocabularies cut text into words,
// and the habits that go with the name.
#pragma once

#include <string_view>
#include <vector>

namespace rlx::text {

enum PreFlag : unsigned {
  kIgnoreMerges = 1,    // a word that is a token as a whole is that token
  kAddBos = 2,          // the bos token goes first, unless the file says otherwise
  kAlwaysBos = 4,       // the bos token goes first, whatever the file says
  kAddSeparator = 8,    // the second text of a pair begins with the separator token
  kCleanSpaces = 16,    // decoding may take out the spaces before punctuation; DecodeOptions::clean_spaces
  kCharacters = 32,     // tokens are spelled in characters, with <0xNN> for bytes, not in the byte alphabet
  kMarkSpaces = 64,     // a space is spelled ▁
  kWholeNewlines = 128  // a run of line ends that is a token as a whole is that token
};

struct PreRules {
  std::string_view name;
  std::vector<std::string_view> patterns;  // each cuts the words that the one before it left
  unsigned flags = 0;

  bool has(PreFlag flag) const { return flags & flag; }
};

/// In order of their names. Patterns match what the published ones match; those that repeat a group for each
/// character are written as classes, which need no stack.
const std::vector<PreRules>& pre_table();

/// Null when the name is not known.
const PreRules* find_pre_rules(std::string_view name);

}  // namespace rlx::text
