// Byte-level BPE without a list of merges: any two neighbours whose bytes together are a token may merge, the
// token of lowest rank first. This is what tiktoken files hold, and tekken.json.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/text/tokenizer_parts.h"

namespace rlx::text {

struct RankedVocab {
  struct Entry {
    std::string bytes;
    TokenId id;
  };
  std::vector<Entry> tokens;  // by rank
  std::string pattern;        // of words
  std::vector<AddedToken> special;
  std::optional<TokenId> bos;  // goes before each text
};

TokenizerParts make_ranked(const RankedVocab& ranked);

}  // namespace rlx::text
