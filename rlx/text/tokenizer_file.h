// Which tokenizer a file or a folder holds. A new kind of file is one row of the table in tokenizer_file.cpp.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/text/tokenizer.h"

namespace rlx::text {

/// A file beside the one that is read, by name; nothing when there is none.
using Siblings = std::function<std::optional<std::string>(std::string_view name)>;

struct TokenizerFile {
  std::string_view bytes;
  std::string_view name;   // without its folder
  std::string_view where;  // for messages
  Siblings siblings;
};

struct TokenizerFileKind {
  std::string_view what;                     // for messages
  std::vector<std::string_view> names;       // in a folder; "*.x" is any name that ends in ".x"
  bool (*recognises)(const TokenizerFile&);  // by content, and by name where the content does not tell
  Tokenizer (*load)(const TokenizerFile&);
};

/// In the order in which a folder is searched and a file is tried.
const std::vector<TokenizerFileKind>& tokenizer_file_kinds();

Tokenizer load_tokenizer_file(const TokenizerFile& file);

// Readers of formats that come with other files.
Tokenizer read_tiktoken(const TokenizerFile&);  // ranked_vocab.cpp
Tokenizer read_tekken(const TokenizerFile&);
Tokenizer read_vocab_json(const TokenizerFile&);  // vocab_files.cpp
Tokenizer read_vocab_txt(const TokenizerFile&);

}  // namespace rlx::text
